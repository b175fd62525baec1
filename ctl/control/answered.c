// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces the file of times.
#include "ctl/control/answered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

#define KEPT_S 86400

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/answered", WEIR_RUN_FOLDER, instance);
}

// The last answer of a name.
struct answered {
	char *name;
	uint64_t at_s;
	uint32_t ttl_s; // 0: not known
};

struct answered_all {
	VEC(struct answered) list;
};

static void answers_free(struct answered_all *a)
{
	vec_each (&a->list, one)
		free(one->name);
	vec_free(&a->list);
}

static int read_row(void *ctx, const struct json *row)
{
	struct answered_all *to = ctx;

	vec_push(&to->list, ((struct answered){.name = json_get_copy(row, "name"),
					       .at_s = json_get_u64(row, "at_s"),
					       .ttl_s = (uint32_t)json_get_u64(row, "ttl_s")}));
	return 0;
}

// A line for each: "moving.example 1795410026 300", without the last number where it is not known.
static int read_old(void *ctx, const char *text, size_t len)
{
	CLEANUP_FREE char *lines = mem_strndup(text, len);
	struct answered_all *to = ctx;
	char *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *name = strsep(&line, " "), *at = strsep(&line, " ");
		struct answered one = {0};

		if (!at || num_parse_u64(at, strlen(at), 0, UINT64_MAX, &one.at_s) ||
		    (line && num_parse_u32(line, strlen(line), 0, UINT32_MAX, &one.ttl_s)))
			return -EBADMSG;
		one.name = mem_strdup(name);
		vec_push(&to->list, one);
	}
	return 0;
}

static const struct state_kind answer_kind = {.name = "answer", .row = read_row, .old = read_old};

void answered_read(const char *instance, struct refresh *r)
{
	CLEANUP(answers_free) struct answered_all answers = {0};
	CLEANUP_FREE char *path = path_of(instance);

	if (r->n)
		state_read(path, &answer_kind, &answers, NULL);
	vec_each (&answers.list, a) {
		struct refresh_name *one = refresh_find(r, a->name);

		if (!one || a->at_s < one->since_s)
			continue;
		one->since_s = a->at_s;
		one->ttl_s = a->ttl_s;
	}
}

static bool is_answered(const struct refresh_name *one)
{
	return one && !one->error && !one->place && one->addresses;
}

static void add_answer(struct json_writer *file, const char *name, uint64_t at_s, uint32_t ttl_s)
{
	state_add(file, &answer_kind);
	json_write_string(file, "name", name);
	json_write_u64(file, "at_s", at_s);
	json_write_u64(file, "ttl_s", ttl_s);
	json_write_end(file);
}

int answered_note(const char *instance, const struct refresh *r, struct err *err)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};
	CLEANUP(answers_free) struct answered_all before = {0};
	CLEANUP_FREE char *path = path_of(instance);
	uint64_t now_s = (uint64_t)time(NULL);

	state_read(path, &answer_kind, &before, NULL);
	vec_each (&before.list, a)
		if (!is_answered(refresh_find(r, a->name)) && a->at_s + KEPT_S > now_s)
			add_answer(&file, a->name, a->at_s, a->ttl_s);
	vec_each (r, one)
		if (is_answered(one))
			add_answer(&file, one->name, now_s, one->ttl_s);
	return state_write(path, &file, err);
}
