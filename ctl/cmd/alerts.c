// SPDX-License-Identifier: GPL-2.0-only
// The alarms of weir status, and the times in /run since when each is reported.
#include "ctl/cmd/alerts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/hook_alarms.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

// What a shell does not interpret. A comma divides two commands, or ends a sentence.
#define PLAIN                                                  \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789 ._/:@%+=-"

void alerts_free(struct alerts *a)
{
	vec_each (a, one) {
		free(one->text);
		free(one->about);
		free(one->mend);
	}
	vec_free(a);
}

// ---- one alarm ----------------------------------------------------------------------------------

static bool is_command(const char *text)
{
	static const char *const programs[] = {"weir ", "systemctl ", "ethtool ", "ip "};

	for (size_t p = 0; p < ARRAY_SIZE(programs); p++)
		if (!strncmp(text, programs[p], strlen(programs[p])))
			return !text[strspn(text, PLAIN)];
	return false;
}

// One word, and no option.
static bool is_word(const char *name)
{
	return name[0] && name[0] != '-' && !name[strspn(name, PLAIN)] && !strchr(name, ' ');
}

static size_t word_len(const char *text)
{
	return strcspn(text, " " MEND_END);
}

// Does the command have the words of its format, and in place of each %s one word? Otherwise a name
// in it has a space, or is an option. A format of only "%s" is a command that was made before, in
// which the name of the object can be.
static bool has_words_of(const char *mend, const char *fmt, const char *name)
{
	if (!strncmp(fmt, "%s" MEND_END, 3))
		return !name || is_word(name) || !strstr(mend, name);
	for (;; mend++, fmt++) {
		size_t n = word_len(mend), fmt_n = word_len(fmt);

		if (*fmt == '%' && (!n || *mend == '-'))
			return false;
		mend += n;
		fmt += fmt_n;
		if (*fmt != ' ' || *mend != ' ')
			return *fmt != ' ' && !*mend;
	}
}

// The command between the marks. Names in the text can have the same characters as the marks, and
// then no command is certain.
static char *find_mend(const char *text, const char *fmt, const char *name)
{
	const char *begin = strchr(text, MEND_BEGIN[0]), *end = strchr(text, MEND_END[0]);
	const char *format = strchr(fmt, MEND_BEGIN[0]);
	char *mend;

	if (!format || !begin || !end || end < begin || strchr(begin + 1, MEND_BEGIN[0]) ||
	    strchr(end + 1, MEND_END[0]))
		return NULL;
	mend = mem_strndup(begin + 1, (size_t)(end - begin - 1));
	if (is_command(mend) && has_words_of(mend, format + 1, name))
		return mend;
	free(mend);
	return NULL;
}

static char *without_marks(const char *text)
{
	struct text t = {0};

	for (; *text; text++)
		if (*text != MEND_BEGIN[0] && *text != MEND_END[0])
			text_addc(&t, *text);
	return text_take(&t);
}

// Is the format a sentence that was made before, with or without a command?
static bool is_free(const char *fmt)
{
	return !strncmp(fmt, "%s", 2) && (!fmt[2] || !strncmp(fmt + 2, " (", 2));
}

static void set_key(struct alert *a, const char *same, const char *fmt)
{
	CLEANUP_FREE char *sentence = is_free(fmt) ? hook_alarm_key(a->text) : NULL;
	CLEANUP_TEXT struct text t = {0};

	same = same ? same : sentence ? sentence : fmt;
	text_addf(&t, "%s\n%s", a->about, same);
	sum_of(t.at, t.len, a->key);
}

void alerts_add(struct alerts *a, const char *kind, const char *name, const char *same,
		const char *fmt, va_list ap)
{
	CLEANUP_TEXT struct text t = {0};
	struct alert one = {.about = name ? mem_printf("%s %s", kind, name) : mem_strdup(kind)};

	text_vaddf(&t, fmt, ap);
	one.mend = find_mend(text_get(&t), fmt, name);
	one.text = without_marks(text_get(&t));
	set_key(&one, same, fmt);
	vec_push(a, one);
}

// ---- since when ---------------------------------------------------------------------------------

struct alert_time {
	sum_text key;
	uint64_t since_s;
};
struct alert_times {
	struct alert_time *at;
	size_t n, cap;
};

static int read_row(void *ctx, const struct json *row)
{
	const char *key = json_get_string(row, "key");
	struct alert_time one = {.since_s = json_get_u64(row, "since_s")};
	struct alert_times *times = ctx;

	if (!key || strlen(key) != sizeof(one.key) - 1)
		return -EBADMSG;
	snprintf(one.key, sizeof(one.key), "%s", key);
	vec_push(times, one);
	return 0;
}

static const struct state_kind alarm_kind = {.name = "alarm", .row = read_row};

static uint64_t find_time(const struct alert_times *times, const sum_text key)
{
	vec_each (times, one)
		if (!strcmp(one->key, key))
			return one->since_s;
	return 0;
}

// True: the file has not these.
static bool date_all(struct alerts *a, const struct alert_times *times, uint64_t now_s)
{
	bool differs = a->n != times->n;

	vec_each (a, one) {
		one->since_s = find_time(times, one->key);
		differs = differs || !one->since_s;
		if (!one->since_s || one->since_s > now_s) // the clock was set back
			one->since_s = now_s;
	}
	return differs;
}

static void times_free(struct alert_times *times)
{
	vec_free(times);
}

void alerts_date(struct alerts *a, const char *instance, uint64_t now_s)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/alarms", WEIR_RUN_FOLDER, instance);
	CLEANUP(json_writer_free) struct json_writer file = {0};
	CLEANUP(times_free) struct alert_times times = {0};

	if (state_read(path, &alarm_kind, &times, NULL))
		times.n = 0;
	if (!date_all(a, &times, now_s))
		return;
	vec_each (a, one) {
		state_add(&file, &alarm_kind);
		json_write_string(&file, "key", one->key);
		json_write_u64(&file, "since_s", one->since_s);
		json_write_end(&file);
	}
	state_note(path, &file);
}

// ---- output -------------------------------------------------------------------------------------

// "weir -n edge attach eth0".
static void set_mend(struct out *o, const char *mend, const char *instance)
{
	CLEANUP_FREE char *named = NULL;

	if (mend && !strncmp(mend, "weir ", 5) && strncmp(mend, "weir -n ", 8) &&
	    strcmp(instance, "main"))
		named = mem_printf("weir -n %s %s", instance, mend + 5);
	out_set_string(o, "mend", named ? named : mend);
}

void alerts_show(const struct alerts *a, const char *instance, struct out *o)
{
	out_array(o, "alarms");
	vec_each (a, one) {
		out_item_string(o, one->text);
		out_line(o, "%salarm%s     %s", out_red(o), out_plain(o), one->text);
	}
	out_end(o);
	out_array(o, "alerts");
	vec_each (a, one) {
		out_object(o, NULL);
		out_set_string(o, "alarm", one->text);
		out_set_string(o, "about", one->about);
		set_mend(o, one->mend, instance);
		out_set_time(o, "since", one->since_s);
		out_end(o);
	}
	out_end(o);
}
