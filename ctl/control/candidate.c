// SPDX-License-Identifier: GPL-2.0-only
// Turns the text of a policy into a program that has been proved.
#include "ctl/control/candidate.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/base/text.h"
#include "ctl/base/trace.h"
#include "ctl/control/frame.h"
#include "ctl/control/tracking.h"
#include "ctl/control/unroutable.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/test_program.h"
#include "ctl/net/conntrack.h"
#include "ctl/policy/resolve.h"
#include "ctl/table/compile.h"

struct candidate *candidate_new(const struct dns_options *dns, const struct environment *last)
{
	struct candidate *c = mem_new(struct candidate);

	c->diag = diag_new();
	environment_live(&c->environment, dns, last);
	return c;
}

struct candidate *candidate_new_replay(void)
{
	struct candidate *c = mem_new(struct candidate);

	c->diag = diag_new();
	environment_replay(&c->environment);
	return c;
}

void candidate_free(struct candidate *c)
{
	if (!c)
		return;
	identities_free(&c->identities);
	test_program_free(c->test);
	generation_free(c->generation);
	lb_apply_free(&c->lb);
	image_free(c->image);
	resolved_free(c->resolved);
	diag_free(c->diag);
	environment_free(&c->environment);
	quick_free(&c->quick);
	vec_each (&c->broken, broken)
		free(broken->what);
	vec_free(&c->broken);
	candidate_free(c->plain);
	candidate_free(c->after);
	free(c);
}

void candidate_cleanup(struct candidate **c)
{
	candidate_free(*c);
}

// Lines that describe no packet: one error each.
static int check_frames(const struct candidate *c)
{
	int code = 0;

	for (size_t e = 0; e < c->resolved->n_expects; e++) {
		const struct resolved_expect *expect = &c->resolved->expects[e];
		struct err why = {0};
		size_t p = 0;

		while (p < expect->n_packets && !frame_check(&expect->packets[p], &why))
			p++;
		if (p == expect->n_packets)
			continue;
		diag_error(c->diag, expect->at, NULL, "expect: %s", why.text);
		code = -EINVAL;
	}
	return code;
}

const char *candidate_no_policy(struct candidate *c)
{
	static const char path[] = "policy";

	vec_push(&c->environment.files,
		 ((struct environment_file){.path = mem_strdup(path), .text = mem_strdup("")}));
	return path;
}

int candidate_resolve(struct candidate *c, const char *path, const char *const *ifaces, size_t n)
{
	CLEANUP_FREE struct policy_quick *quick = quick_texts(&c->quick);
	struct policy_env *env = &c->environment.env;

	c->path = path;
	c->ifaces = ifaces;
	c->n_ifaces = n;
	env->quick = quick;
	env->n_quick = c->quick.n;
	c->resolved = policy_load(path, env, ifaces, n, c->diag);
	env->n_quick = 0;
	return c->resolved ? check_frames(c) : -EINVAL;
}

static int compile_text(struct candidate *c, const char *path, const char *const *ifaces, size_t n)
{
	struct compile_options options = {.hz = clock_hz(), .keep_regions = c->dumped};

	if (candidate_resolve(c, path, ifaces, n))
		return -EINVAL;
	if (getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
		options.seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull;
	return compile(c->resolved, &options, c->diag, &c->image);
}

int candidate_compile(struct candidate *c, const char *path, const char *const *ifaces, size_t n)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("compiling the policy");
	int code;

	trace(compile__begin, path);
	code = compile_text(c, path, ifaces, n);
	trace(compile__end, path, code);
	return code;
}

int candidate_name(struct candidate *c, const char *path, const char *const *ifaces, size_t n)
{
	if (candidate_resolve(c, path, ifaces, n))
		return -EINVAL;
	c->image = compile_names(c->resolved);
	return 0;
}

// Devices by index of the device map; compile numbers them in the order of the rules.
static void find_redirects(const struct candidate *c, uint32_t *ret, size_t *ret_n)
{
	*ret_n = 0;
	for (size_t r = 0; r < c->image->n_rules; r++) {
		const struct policy_rule *rule = &c->image->rules[r];

		if (rule->action != ACTION_REDIRECT || rule->redirect >= WEIR_REDIRECTS)
			continue;
		ret[rule->redirect] = if_nametoindex(c->image->about[r].redirect);
		if (rule->redirect >= *ret_n)
			*ret_n = rule->redirect + 1;
	}
}

const struct image_rule *candidate_tracks(const struct candidate *c)
{
	for (size_t r = 0; r < c->image->n_rules; r++)
		if (c->image->rules[r].flags & RULE_TRACKING)
			return &c->image->about[r];
	return NULL;
}

// A kernel without the look-up refuses the program: that is the rule's fault.
static void blame_conntrack(struct candidate *c, struct err *err)
{
	const struct image_rule *rule = candidate_tracks(c);

	if (!rule)
		return;
	diag_error(c->diag, rule->at, "the kernel needs bpf_xdp_ct_lookup: nf_conntrack, with BTF",
		   "this kernel does not support 'established' in XDP");
	err_prefix(err, "'established' in rule \"%s\"", rule->identity);
}

int candidate_plan(struct candidate *c, const struct instance *i, uint32_t running, struct err *err)
{
	if (c->lb.lb || !c->resolved->n_services)
		return 0;
	return lb_apply_plan(&c->lb, c->resolved, i, running, c->diag, err);
}

// The table of connections of a policy without an instance.
static int prepare_connections(const struct candidate *c, struct err *err)
{
	struct instance own = {0};

	generation_own_nat(c->generation, &own);
	return nat_apply_prepare(&c->lb.nat, &own, &c->lb.clock, err);
}

// Services, and on trial the connections that the previous policy has begun.
static int plan_load(struct candidate *c, const struct instance *i, struct generation_options *o,
		     struct err *err)
{
	bool *answers = &c->image->answers;
	int code;

	if (c->resolved->n_services)
		code = candidate_plan(c, i, o->previous, err);
	else if (i && c->lb.options.trial_ms)
		code = lb_apply_plan_answers(&c->lb, c->resolved, i, answers, c->diag, err);
	else
		return 0;
	if (c->resolved->n_services || *answers)
		o->load = &c->lb.load;
	return code;
}

int candidate_load(struct candidate *c, const struct instance *i, struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("loading the policy");
	struct generation_set sets[POLICY_SETS_MAX];
	uint32_t redirects[WEIR_REDIRECTS] = {0};
	struct generation_options options = {
		.malformed_pass = c->resolved->malformed_pass,
		.general_only = c->general_only,
		.sets = sets,
		.redirects = redirects,
	};
	struct commit_state state = {0};
	int code;

	if (i && (code = identities_plan(i, c->image, &c->identities, err)))
		return code;
	if (i && (code = commit_read(i, &state, err)))
		return code;
	options.previous = state.in_force;
	for (; options.n_sets < c->resolved->n_dynamics; options.n_sets++)
		sets[options.n_sets] = (struct generation_set){
			.name = c->resolved->dynamics[options.n_sets].name,
			.max = c->resolved->dynamics[options.n_sets].max,
		};
	find_redirects(c, redirects, &options.n_redirects);
	if ((code = plan_load(c, i, &options, err)))
		return code;
	if ((code = generation_load(i, c->image, &options, &c->generation, &c->cost, err))) {
		blame_conntrack(c, err);
		return code;
	}
	if (!i && (code = prepare_connections(c, err)))
		return code;
	if ((code = test_program_open(i, c->generation, &c->test, err)))
		return code;
	snprintf(c->cost.test_refused, sizeof(c->cost.test_refused), "%s",
		 test_program_refused(c->test));
	return 0;
}

bool candidate_brings(const struct candidate *c, size_t rule, bool quick)
{
	size_t n = rule - c->resolved->n_always;
	bool is_quick = rule >= c->resolved->n_always && n < c->resolved->n_quick;

	return quick ? is_quick && c->quick.at[n].fresh : !is_quick;
}

int candidate_check_tracking(const struct candidate *c, bool quick, struct err *err)
{
	const struct resolved *all = c->resolved;
	const struct image_rule *rule;
	size_t r = 0;

	if (!tracking_fails_now(tracking_of(all)))
		return 0;
	while (r < all->n_rules &&
	       !(candidate_brings(c, r, quick) && tracking_fails_now(tracking_of_rule(all, r))))
		r++;
	if (r == all->n_rules)
		return 0;
	rule = &c->image->about[r];
	err_refused(
		err,
		"rule \"%s\" (%s) needs connection tracking, which is off in this network namespace: %s",
		rule->identity, rule->place,
		all->rules[r].established.negated ? "no packet would be established"
						  : "the rule would never match");
	err_hint(err, "%s", CONNTRACK_START);
	return -ENOTCONN;
}

int candidate_check_unroutable(const struct candidate *c, bool quick, struct err *err)
{
	uint32_t off = unroutable_off(unroutable_of(c->resolved));

	for (size_t r = 0; off && r < c->resolved->n_rules; r++) {
		uint32_t of_rule = off & unroutable_of_rule(c->resolved, r);
		const struct image_rule *rule = &c->image->about[r];

		if (!of_rule || !candidate_brings(c, r, quick))
			continue;
		err_refused(err,
			    "rule \"%s\" (%s) asks for routes by the loopback device, which does "
			    "not forward: the rule would match no packet%s",
			    rule->identity, rule->place, unroutable_packets(of_rule));
		err_hint(err, "%s", unroutable_mend(off));
		return -ENETUNREACH;
	}
	return 0;
}

void candidate_about(const struct candidate *c, struct generation_about *ret)
{
	*ret = (struct generation_about){.short_refused = c->cost.refused[0] != '\0',
					 .quick = c->quick.version,
					 .tracking = tracking_of(c->resolved),
					 .unroutable = unroutable_of(c->resolved),
					 .unroutable_on = unroutable_on(c->resolved)};
	for (size_t i = 0; i < c->resolved->n_interfaces && i < WEIR_IFACES; i++) {
		const struct resolved_interface *from = &c->resolved->interfaces[i];

		ret->optional |= (uint64_t)(from->pattern || from->optional) << i;
		ret->modes[i] = from->mode;
		snprintf(ret->ifaces[ret->n_ifaces++], sizeof(ret->ifaces[0]), "%s", from->name);
	}
	for (size_t n = 0; n < c->resolved->n_dynamics && n < POLICY_SETS_MAX; n++) {
		const struct resolved_dynamic *from = &c->resolved->dynamics[n];
		struct generation_about_set *to = &ret->sets[ret->n_sets++];

		snprintf(to->name, sizeof(to->name), "%s", from->name);
		to->max = from->max;
		to->mask4 = from->mask4;
		to->mask6 = from->mask6;
		to->expire_ms = from->expire_ms;
		to->count = from->count;
	}
}

int candidate_ask(struct candidate *c, const struct resolved_packet *p, bool live,
		  struct test_result *ret, struct err *err)
{
	struct policy_test ask = {
		.iface = p->iface + 1,
		.over = p->over,
		.established = p->established,
		.unroutable = p->unroutable,
		.live = live,
	};
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	size_t length;
	int code = frame_build(p, frame, &length, err);

	if (!c->resolved->n_interfaces)
		ask.iface = 0;
	return code ? code : test_program_run(c->test, frame, length, &ask, ret, err);
}

const struct quick_rule *candidate_quick(const struct candidate *c, const struct test_result *r)
{
	size_t n = (size_t)r->rule - c->resolved->n_always;

	return r->rule >= 0 && n < c->resolved->n_quick ? &c->quick.at[n] : NULL;
}

// The same policy with other quick rules, from what was read and answered for this one.
static int load_again(const struct candidate *c, struct candidate *again, struct err *err)
{
	const struct environment *from = &c->environment;
	struct environment *to = &again->environment;
	int code;

	to->files.at = from->files.at;
	to->files.n = from->files.n;
	to->names.at = from->names.at;
	to->names.n = from->names.n;
	to->geos.at = from->geos.at;
	to->geos.n = from->geos.n;
	code = candidate_compile(again, c->path, c->ifaces, c->n_ifaces);
	to->files.n = to->names.n = to->geos.n = 0;
	to->files.at = NULL;
	to->names.at = NULL;
	to->geos.at = NULL;
	if (code)
		return err_stated(err, EBADMSG, "the policy does not compile without quick rules");
	if ((code = lb_apply_find_nexthops(&again->lb, again->resolved, 0, err)))
		return code;
	return candidate_load(again, NULL, err);
}

int candidate_plain(struct candidate *c, struct candidate **ret, struct err *err)
{
	int code;

	if (!c->plain) {
		c->plain = candidate_new_replay();
		if ((code = load_again(c, c->plain, err)))
			return code;
	}
	*ret = c->plain;
	return 0;
}

int candidate_after(struct candidate *c, uint64_t time_s, struct candidate **ret, struct err *err)
{
	int code;

	if (!c->after || c->after_s != time_s) {
		candidate_free(c->after);
		c->after = candidate_new_replay();
		c->after_s = time_s;
		quick_remain(&c->quick, time_s, &c->after->quick);
		if ((code = load_again(c, c->after, err)))
			return code;
	}
	*ret = c->after;
	return 0;
}
