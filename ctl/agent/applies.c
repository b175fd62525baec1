// SPDX-License-Identifier: GPL-2.0-only
// Counts the applies of the file, of the active policy and of the API, and logs their results.
#include "ctl/agent/applies.h"

#include <string.h>

#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

void applies_count(struct agent *a, enum applies_source source, bool ok)
{
	struct applies *applies = &a->applies[source];

	*(ok ? &applies->ok : &applies->failed) += 1;
	agent_changed(a);
}

static void add_warnings(const struct process_result *r, const char *key, struct text *to)
{
	const struct json *list = json_get(r->document, key);

	if (json_length(list))
		json_print(list, false, to);
}

// Keeps the warnings of this apply. True: there are some, and the last apply had the same.
static bool warns_again(struct agent *a, const struct process_result *r)
{
	CLEANUP_FREE char *before = TAKE_PTR(a->warned);
	CLEANUP_TEXT struct text now = {0};

	add_warnings(r, "diagnostics", &now);
	add_warnings(r, "warnings", &now);
	a->warned = mem_strdup(text_get(&now));
	return now.len && before && !strcmp(before, a->warned);
}

void applies_log(struct agent *a, const struct process_result *r, bool awaited)
{
	bool changed = json_is_yes(json_get(r->document, "changed"));

	process_log(r, warns_again(a, r), awaited || changed ? log_notice : log_info);
}

struct json *applies_report(const struct agent *a)
{
	static const char *const names[APPLIES_SOURCES] = {
		[APPLIES_FILE] = "file", [APPLIES_AGAIN] = "again", [APPLIES_API] = "api"};
	struct json *list = json_array();

	for (size_t n = 0; n < APPLIES_SOURCES; n++) {
		struct json *one = json_object();

		json_set(one, "source", json_string(names[n]));
		json_set(one, "ok", json_u64(a->applies[n].ok));
		json_set(one, "failed", json_u64(a->applies[n].failed));
		json_append(list, one);
	}
	return list;
}
