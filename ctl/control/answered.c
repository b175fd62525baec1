// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces the file of times.
#include "ctl/control/answered.h"

#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

#define KEPT_S 86400

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/answered", WEIR_RUN_FOLDER, instance);
}

static int read_row(void *ctx, const struct json *row)
{
	const char *name = json_get_string(row, "name");
	struct refresh_name *one = name ? refresh_find(ctx, name) : NULL;
	uint64_t at_s = json_get_u64(row, "at_s");

	if (!one || at_s < one->since_s)
		return 0;
	one->since_s = at_s;
	one->ttl_s = (uint32_t)json_get_u64(row, "ttl_s");
	return 0;
}

static const struct state_kind answer_kind = {.name = "answer", .row = read_row};

void answered_read(const char *instance, struct refresh *r)
{
	CLEANUP_FREE char *path = path_of(instance);

	if (r->n)
		state_read(path, &answer_kind, r, NULL);
}

static bool is_answered(const struct refresh_name *one)
{
	return one && !one->error && !one->place && one->addresses;
}

// The next file, with what remains of the previous one.
struct next {
	const struct refresh *r;
	uint64_t now_s;
	struct text file;
};

static void add(struct next *to, const char *name, uint64_t at_s, uint64_t ttl_s)
{
	struct json *row = json_object();

	json_set(row, "name", json_string(name));
	json_set(row, "at_s", json_u64(at_s));
	json_set(row, "ttl_s", json_u64(ttl_s)); // 0: not known
	state_add(&to->file, &answer_kind, row);
}

static int add_other(void *ctx, const struct json *row)
{
	struct next *to = ctx;
	const char *name = json_get_string(row, "name");
	uint64_t at_s = json_get_u64(row, "at_s");

	if (name && !is_answered(refresh_find(to->r, name)) && at_s + KEPT_S > to->now_s)
		add(to, name, at_s, json_get_u64(row, "ttl_s"));
	return 0;
}

int answered_note(const char *instance, const struct refresh *r, struct err *err)
{
	static const struct state_kind others = {.name = "answer", .row = add_other};
	CLEANUP_FREE char *path = path_of(instance);
	struct next next = {.r = r, .now_s = (uint64_t)time(NULL)};
	int code;

	state_read(path, &others, &next, NULL);
	vec_each (r, one)
		if (is_answered(one))
			add(&next, one->name, next.now_s, one->ttl_s);
	code = state_write(path, &next.file, err);
	text_free(&next.file);
	return code;
}
