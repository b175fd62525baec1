// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces the file of times.
#include "ctl/control/answered.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/lines.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"

#define FILE_MAX (256u << 20)
#define KEPT_S   86400

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/answered", WEIR_RUN_FOLDER, instance);
}

// A line of the file: "moving.example 1795410026 300".
struct answered {
	const char *name;
	uint64_t at_s;
	uint32_t ttl_s; // 0: not known
};

// Splits a line in place. False if it is damaged.
static bool read_line(char *line, struct answered *ret)
{
	char *rest = line, *name = strsep(&rest, " "), *at = strsep(&rest, " ");

	*ret = (struct answered){.name = name};
	if (!at || num_parse_u64(at, strlen(at), 0, UINT64_MAX, &ret->at_s))
		return false;
	return !rest || !num_parse_u32(rest, strlen(rest), 0, UINT32_MAX, &ret->ttl_s);
}

static char *read_text(const char *instance)
{
	CLEANUP_FREE char *path = path_of(instance);
	char *text = NULL;
	size_t len;

	return file_read(path, FILE_MAX, &text, &len, NULL) ? NULL : text;
}

void answered_read(const char *instance, struct refresh *r)
{
	CLEANUP_FREE char *text = r->n ? read_text(instance) : NULL;
	char *rest = NULL;
	struct answered a;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct refresh_name *one = read_line(line, &a) ? refresh_find(r, a.name) : NULL;

		if (!one || a.at_s < one->since_s)
			continue;
		one->since_s = a.at_s;
		one->ttl_s = a.ttl_s;
	}
}

static bool is_answered(const struct refresh_name *one)
{
	return one && !one->error && !one->place && one->addresses;
}

static void add_line(struct text *to, const struct answered *a)
{
	text_addf(to, "%s %" PRIu64 " %" PRIu32 "\n", a->name, a->at_s, a->ttl_s);
}

static void add_others(const char *instance, const struct refresh *r, uint64_t now_s,
		       struct text *to)
{
	CLEANUP_FREE char *text = read_text(instance);
	char *rest = NULL;
	struct answered a;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		if (read_line(line, &a) && !is_answered(refresh_find(r, a.name)) &&
		    a.at_s + KEPT_S > now_s)
			add_line(to, &a);
}

int answered_note(const char *instance, const struct refresh *r, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_TEXT struct text t = {0};
	uint64_t now_s = (uint64_t)time(NULL);

	add_others(instance, r, now_s, &t);
	vec_each (r, one)
		if (is_answered(one))
			add_line(&t, &(struct answered){one->name, now_s, one->ttl_s});
	return file_replace(path, text_get(&t), t.len, 0600, err);
}
