// SPDX-License-Identifier: GPL-2.0-only
// Describes the result of a change, for `weir changes` and for the records of the agent.
#include "ctl/cmd/change_text.h"

#include <inttypes.h>

#include "ctl/base/num.h"

void change_result(struct text *t, const struct changelog_change *c)
{
	text_add(t, c->result);
	if (c->text[0])
		text_addf(t, ": %s", c->text);
	if (c->entries && c->added)
		text_addf(t, ", %" PRIu64 " added", c->added);
	if (c->entries && c->removed)
		text_addf(t, ", %" PRIu64 " removed", c->removed);
	if (c->changes > 1)
		text_addf(t, " (%" PRIu64 " %s)", c->changes,
			  num_plural(c->changes, "change", "changes"));
}
