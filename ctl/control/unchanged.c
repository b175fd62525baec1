// SPDX-License-Identifier: GPL-2.0-only
// Compares a candidate with the active policy: the texts one by one, the rest by its sum.
#include "ctl/control/unchanged.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/connections.h"
#include "ctl/datapath/generation_load.h"

static int compare_addrs(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static void add_addresses(struct text *t, const struct environment *w)
{
	CLEANUP_FREE struct addr *sorted = mem_zalloc(w->own.n, sizeof(*sorted));
	addr_text text;

	if (!w->own.n)
		return;
	memcpy(sorted, w->own.at, w->own.n * sizeof(*sorted));
	qsort(sorted, w->own.n, sizeof(*sorted), compare_addrs);
	text_add(t, "addresses");
	for (size_t n = 0; n < w->own.n; n++)
		text_addf(t, " %s", addr_format(&sorted[n], text));
	text_add(t, "\n");
}

static void add_devices(struct text *t, const struct candidate *c)
{
	for (size_t r = 0; r < c->image->n_rules; r++)
		if (c->image->rules[r].action == ACTION_REDIRECT)
			text_addf(t, "device %s %u\n", c->image->about[r].redirect,
				  if_nametoindex(c->image->about[r].redirect));
}

static void add_programs(struct text *t, const void *object, size_t size)
{
	sum_text programs;

	sum_of_words(object, size, programs);
	text_addf(t, "programs %s\n", programs);
}

void unchanged_sum(const struct candidate *c, sum_text ret)
{
	CLEANUP_TEXT struct text t = {0};
	size_t size;
	const void *object = markers_object(&size);

	add_programs(&t, object, size);
	if (c->image->n_connection_rules) {
		object = connections_object(&size);
		add_programs(&t, object, size);
	}
	add_addresses(&t, &c->environment);
	add_devices(&t, c);
	sum_of(text_get(&t), t.len, ret);
}

static bool same_interfaces(const struct candidate *c, const struct generation_about *about)
{
	CLEANUP_FREE struct generation_about *wanted = mem_new(struct generation_about);

	candidate_about(c, wanted);
	return wanted->n_ifaces == about->n_ifaces &&
	       !memcmp(wanted->ifaces, about->ifaces, sizeof(wanted->ifaces));
}

static bool is_accepted(const char *instance, const char *revision)
{
	char current[REVISION_ID] = "";

	return !revisions_current(instance, current, NULL) && !strcmp(current, revision);
}

// The record of what runs, which is what an attach would bring back, if it is the same.
static bool same_record(const char *instance, const char *revision, const struct candidate *c,
			const char *path, struct revision *ret)
{
	CLEANUP_ENVIRONMENT struct environment record;
	CLEANUP(revision_free) struct revision r = {0};

	environment_replay(&record);
	if (revisions_load(instance, revision, &record, &r, NULL) ||
	    !environment_same(&c->environment, path, &record, r.path))
		return false;
	*ret = r;
	r = (struct revision){0};
	return true;
}

// The policy that packets meet: *ret_active and *ret_about of a policy with a record, while no
// trial runs.
static bool find_active(const struct instance *i, uint32_t *ret_active,
			struct generation_about *ret_about)
{
	struct commit_state state;

	if (commit_read(i, &state, NULL) || state.deadline || !state.active ||
	    generation_read_about(i, state.active, ret_about, NULL) || !ret_about->revision[0])
		return false;
	*ret_active = state.active;
	return true;
}

bool unchanged_record(const struct instance *i, const struct candidate *c, const char *path,
		      bool fleeting, struct revision *ret)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	uint32_t active;

	return find_active(i, &active, about) &&
	       (fleeting || is_accepted(i->name, about->revision)) &&
	       same_record(i->name, about->revision, c, path, ret);
}

// Someone may have detached the programs that count its connections.
static bool counts(const struct generation *g)
{
	struct connections_state s;

	return !connections_read(g, &s, NULL) && (!s.present || s.attached);
}

bool unchanged_find(const struct instance *i, const struct candidate *c, const char *path,
		    bool fleeting, struct in_force *ret)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_GENERATION struct generation *whole = NULL;
	CLEANUP(revision_free) struct revision r = {0};
	uint32_t active;
	sum_text sum;

	if (!find_active(i, &active, about) || generation_open(i, active, &whole, NULL) ||
	    !counts(whole))
		return false;
	unchanged_sum(c, sum);
	if (strcmp(about->made_of, sum) != 0 || about->quick != c->quick.version ||
	    !same_interfaces(c, about) || (!fleeting && !is_accepted(i->name, about->revision)) ||
	    !same_record(i->name, about->revision, c, path, &r))
		return false;
	ret->generation = active;
	snprintf(ret->revision, sizeof(ret->revision), "%s", about->revision);
	return true;
}

static bool read_in_force(const struct instance *i, struct generation_about *ret,
			  uint32_t *ret_number, bool *ret_trial)
{
	struct commit_state state;

	if (commit_read(i, &state, NULL))
		return false;
	*ret_number = state.in_force;
	*ret_trial = state.deadline && !state.expired;
	return !generation_read_about(i, state.in_force, ret, NULL);
}

static bool stopped_counting(const struct instance *i, uint32_t number)
{
	CLEANUP_GENERATION struct generation *g = NULL;
	struct connections_state s;

	return !generation_open(i, number, &g, NULL) && !connections_read(g, &s, NULL) &&
	       s.present && !s.attached;
}

bool unchanged_state(const char *instance, const char *revision, const struct candidate *c,
		     char *state, size_t size)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_INSTANCE struct instance *i = NULL;
	struct err why = {0};
	uint32_t number = 0;
	bool trial = false;
	sum_text sum;

	if (c)
		unchanged_sum(c, sum);
	state[0] = '\0';
	if (bpffs_exist(instance) && instance_open(instance, &i, &why))
		snprintf(state, size, "%s", why.text);
	else if (!i || !instance_has_ifaces(i))
		snprintf(state, size, "instance '%s' is not attached to any interface", instance);
	else if (!read_in_force(i, about, &number, &trial))
		snprintf(state, size, "cannot read which policy is active");
	else if (strcmp(about->revision, revision) != 0)
		snprintf(state, size, "%s%s is%s", about->revision[0] ? "revision " : "",
			 about->revision[0] ? about->revision : "the empty policy",
			 trial ? ", on trial" : "");
	else if (c && strcmp(about->made_of, sum) != 0)
		snprintf(state, size,
			 "addresses of this host, devices or Weir's programs have changed");
	else if (stopped_counting(i, number))
		snprintf(state, size, "programs that count connections are detached (weir apply)");
	return !state[0];
}
