// SPDX-License-Identifier: GPL-2.0-only
// Brings answers for the names of the active policy into the record of its revision and into the
// kernel.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/control/active.h"
#include "ctl/control/recover.h"
#include "ctl/control/refresh.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/lock.h"

// Without a record nothing is known of its names; `weir status` has an alarm.
static int read_names(const char *instance, struct in_effect *p, struct err *err)
{
	int code = in_effect_find(instance, p, err);

	if (code || p->trial || !p->about.revision[0])
		return code;
	return revisions_load_names(instance, p->about.revision, &p->record, &p->revision, err);
}

int refresh_list_policy(const char *instance, const struct refresh_wanted *wanted,
			struct refresh *ret, struct err *err)
{
	CLEANUP_IN_EFFECT struct in_effect *p = in_effect_new();
	int code = read_names(instance, p, err);

	if (code)
		return code;
	ret->trial = p->trial;
	vec_each (&p->record.names, name)
		if (refresh_is_wanted(wanted, name->name))
			vec_push(ret, ((struct refresh_name){
					      .name = mem_strdup(name->name),
					      .policy = true,
					      .empty = !environment_has_addresses(name),
					      .since_s = name->answered_s ? name->answered_s
									  : name->refused_s,
					      .ttl_s = name->ttl_s,
					      .ends_s = environment_name_ends(name,
									      (uint64_t)time(NULL)),
				      }));
	return 0;
}

// ---- answers ------------------------------------------------------------------------------------

// Changes by the answers: in the record, and in the active addresses.
struct policy_change {
	struct environment_followed *names; // of each answer
	size_t record, in_force;
	size_t marks; // in the record: names whose answers are refused, or no more
};

static void change_free(struct policy_change *change)
{
	free(change->names);
}

// An answer without a new address need not be compared with the protected addresses, unless one of
// its addresses was protected.
static bool needs_guard(const struct environment_name *name, const struct dns_answer *answer)
{
	struct environment_name found = {.addrs = answer->addrs, .n = answer->n};

	return name->use != POLICY_WHOLE &&
	       (name->left_out.n || !environment_same_answer(name, &found));
}

static size_t changes(const struct environment_followed *f)
{
	return f->added + f->leaving + f->back + f->released + f->decided;
}

// A sinkhole, or an owner who wants to cut us off, is no answer to follow.
static void follow_one(struct refresh_name *one, struct environment_name *name,
		       const struct dns_answer *answer, const struct guard *guard,
		       struct environment_followed *f, struct policy_change *ret)
{
	bool judged = name->use != POLICY_DROPPED || guard;
	bool refused = judged && environment_refuses(name->use, answer, guard);
	uint64_t now_s = (uint64_t)time(NULL);

	if (refused)
		refresh_refuse(one);
	else
		environment_follow(name, answer, now_s, f);
	if (guard && name->use != POLICY_WHOLE)
		f->decided = environment_protect(name, guard);
	ret->marks += refused != (name->refused_s != 0);
	name->refused_s = !refused ? 0 : name->refused_s ? name->refused_s : now_s;
	one->ends_s = environment_name_ends(name, now_s);
	ret->in_force += f->added + f->released + f->decided;
	ret->record += changes(f);
}

static int follow(struct in_effect *p, const struct refresh_answers *a, struct refresh_guard *guard,
		  struct policy_change *ret, struct err *err)
{
	const struct guard *collected = NULL;
	int code;

	for (size_t n = 0; n < a->n; n++) {
		struct refresh_name *one = a->at[n];
		struct environment_name *name = environment_find_name(&p->record, one->name);

		if (!name || a->answers[n].error)
			continue;
		if (needs_guard(name, &a->answers[n]) &&
		    (code = refresh_guard_get(guard, &collected, err)))
			return code;
		follow_one(one, name, &a->answers[n], collected, &ret->names[n], ret);
	}
	return 0;
}

static void count(const struct refresh_answers *a, const struct policy_change *change,
		  struct refresh *r)
{
	for (size_t n = 0; n < a->n; n++) {
		const struct environment_followed *f = &change->names[n];

		a->at[n]->added += f->added;
		a->at[n]->leaving += f->leaving;
		a->at[n]->back += f->back;
		a->at[n]->released += f->released;
	}
	r->changed += change->record;
}

static void keep_all(struct refresh *r, int code, const struct err *why)
{
	vec_each (r, one)
		if (one->policy)
			refresh_keep(one, REFRESH_POLICY, code, why);
}

static void keep(const struct refresh_answers *a, const struct policy_change *change, int code,
		 const struct err *why)
{
	for (size_t n = 0; n < a->n; n++)
		if (changes(&change->names[n]))
			refresh_keep(a->at[n], REFRESH_POLICY, code, why);
}

static void take_names(struct environment *to, struct environment *from)
{
	vec_each (&to->names, name)
		environment_free_name(name);
	to->names.n = 0;
	vec_each (&from->names, name) {
		vec_push(&to->names, *name);
		*name = (struct environment_name){0};
	}
	from->names.n = 0;
}

static int apply_them(struct candidate *c, const struct apply_options *options, struct in_effect *p,
		      struct refresh *r, struct err *err)
{
	CLEANUP(revision_free) struct revision loaded = {0};
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	const char *ifaces[WEIR_IFACES];
	struct apply_options o = *options;
	int code =
		in_effect_ifaces(o.instance, p->revision.id, &p->about, ifaces, &o.n_ifaces, err);

	if (code)
		return code;
	if ((code = revisions_load(o.instance, p->revision.id, &c->environment, &loaded, err)))
		return code;
	c->environment.dns = o.dns;
	c->environment.session = o.session;
	c->environment.must_guard = true;
	take_names(&c->environment, &p->record);
	o.answers = true;
	o.ifaces = ifaces;
	o.path = p->revision.path;
	o.fleeting = p->revision.fleeting;
	code = apply_same(c, &o, &p->revision, &result, err);
	r->switched = result.generation;
	return code;
}

// No active address changes: writes only the record.
static int note_them(const struct apply_options *o, struct in_effect *p, struct err *err)
{
	CLEANUP_IN_EFFECT struct in_effect *now = in_effect_new();
	CLEANUP_FD int lock = -1;
	int code = lock_take(o->instance, o->command, &lock, err);

	if (code)
		return code;
	if ((code = read_names(o->instance, now, err)))
		return code;
	if (strcmp(now->revision.id, p->revision.id) != 0 ||
	    now->revision.answers != p->revision.answers)
		return 0; // another command was first; the next refresh completes the work
	return revisions_save_names(o->instance, &p->revision, &p->record, err);
}

static int change_policy(struct candidate *c, const struct apply_options *o, struct in_effect *p,
			 const struct policy_change *change, struct refresh *r, struct err *err)
{
	if (change->in_force)
		return apply_them(c, o, p, r, err);
	return change->record || change->marks ? note_them(o, p, err) : 0;
}

static int ask(struct in_effect *p, const struct apply_options *o, struct refresh_guard *guard,
	       struct refresh *r, struct refresh_answers *ret, struct policy_change *ret_change,
	       struct err *err)
{
	int code = refresh_ask(r, REFRESH_POLICY, &o->dns, ret, err);

	if (code)
		return code;
	ret_change->names = mem_zalloc(ret->n, sizeof(*ret_change->names));
	return follow(p, ret, guard, ret_change, err);
}

int refresh_policy(struct candidate *c, const struct apply_options *o, struct refresh_guard *guard,
		   struct refresh *r, struct err *err)
{
	CLEANUP_IN_EFFECT struct in_effect *p = in_effect_new();
	CLEANUP_REFRESH_ANSWERS struct refresh_answers a = {0};
	CLEANUP(change_free) struct policy_change change = {0};
	int code = read_names(o->instance, p, err);

	r->trial = p->trial;
	if (code) {
		keep_all(r, code, err);
		return code;
	}
	if (p->trial || !p->record.names.n)
		return 0;
	if ((code = ask(p, o, guard, r, &a, &change, err))) {
		keep_all(r, code, err);
		return code;
	}
	code = change_policy(c, o, p, &change, r, err);
	if (code && !refresh_is_other_command(code))
		keep(&a, &change, code, err);
	if (code && !r->switched)
		return code;
	count(&a, &change, r);
	return code;
}
