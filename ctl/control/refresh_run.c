// SPDX-License-Identifier: GPL-2.0-only
// Asks for the names of a list, wherever they are, and puts the answers into effect.
#include <errno.h>

#include "ctl/control/answered.h"
#include "ctl/control/refresh.h"

static void run_entries(const struct apply_options *o, unsigned where, struct refresh_guard *guard,
			struct refresh *r, struct err *err)
{
	struct dns_options dns = o->dns;

	dns.search = true;
	refresh_entries(o->instance, o->command, where, &dns, guard, r, err);
}

static void run_policy(struct candidate *c, const struct apply_options *o,
		       struct refresh_guard *guard, struct refresh *r, struct err *err)
{
	int code = refresh_policy(c, o, guard, r, err);

	if (!refresh_is_other_command(code))
		return;
	err_clear(err);
	r->trial = code == -EBUSY;
}

int refresh_run(struct candidate *c, const struct apply_options *o, unsigned where,
		struct refresh *r, struct refresh_refused *refused, struct err *err)
{
	CLEANUP(refresh_guard_free)
	struct refresh_guard guard = {.session = o->session, .dns = &o->dns};

	if (where & (REFRESH_ENTRIES | REFRESH_PLACES))
		run_entries(o, where, &guard, r, &refused->entries);
	if (where & REFRESH_POLICY && !refused->policy.text[0])
		run_policy(c, o, &guard, r, &refused->policy);
	return r->n ? answered_note(o->instance, r, err) : 0;
}
