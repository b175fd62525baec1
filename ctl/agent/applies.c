// SPDX-License-Identifier: GPL-2.0-only
// Counts the applies of the file, of the policy in effect and of the API, and logs their results.
#include "ctl/agent/applies.h"

#include "ctl/agent/agent.h"
#include "ctl/agent/exchange.h"
#include "ctl/base/log.h"

void applies_count(struct agent *a, enum applies_source source, bool ok)
{
	struct applies *applies = &a->applies[source];

	*(ok ? &applies->ok : &applies->failed) += 1;
	agent_changed(a);
}

void applies_log(const struct exchange_result *r, bool awaited)
{
	bool changed = json_is_yes(json_get(r->document, "changed"));

	exchange_log(r, awaited || changed ? log_notice : log_info);
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
