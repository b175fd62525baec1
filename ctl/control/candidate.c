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
#include "ctl/base/text.h"
#include "ctl/control/frame.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/test_program.h"
#include "ctl/net/conntrack.h"
#include "ctl/policy/resolve.h"
#include "ctl/policy/words.h"
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

int candidate_compile(struct candidate *c, const char *path, const char *const *ifaces, size_t n)
{
	struct compile_options options = {.hz = clock_hz(), .keep_regions = c->dumped};

	if (candidate_resolve(c, path, ifaces, n))
		return -EINVAL;
	if (getrandom(&options.seed, sizeof(options.seed), 0) != sizeof(options.seed))
		options.seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull;
	return compile(c->resolved, &options, c->diag, &c->image);
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

int candidate_load(struct candidate *c, const struct instance *i, struct err *err)
{
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
	if (c->resolved->n_services) {
		if ((code = candidate_plan(c, i, options.previous, err)))
			return code;
		options.load = &c->lb.load;
	}
	if ((code = generation_load(i, c->image, &options, &c->generation, &c->cost, err))) {
		blame_conntrack(c, err);
		return code;
	}
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
	const struct image_rule *rule;
	size_t r = 0;

	while (r < c->image->n_rules &&
	       !(c->image->rules[r].flags & RULE_TRACKING && candidate_brings(c, r, quick)))
		r++;
	if (r == c->image->n_rules || conntrack_active())
		return 0;
	rule = &c->image->about[r];
	err_refused(
		err,
		"rule \"%s\" (%s) needs connection tracking, which is off in this network namespace: %s",
		rule->identity, rule->place,
		c->image->rules[r].flags & RULE_UNTRACKED ? "no packet would be established"
							  : "the rule would never match");
	err_hint(err, "%s", CONNTRACK_START);
	return -ENOTCONN;
}

void candidate_about(const struct candidate *c, struct generation_about *ret)
{
	*ret = (struct generation_about){.short_refused = c->cost.refused[0] != '\0',
					 .quick = c->quick.version};
	for (size_t i = 0; i < c->resolved->n_interfaces && i < WEIR_IFACES; i++) {
		const struct resolved_interface *from = &c->resolved->interfaces[i];

		ret->optional |= (uint64_t)(from->pattern || from->optional) << i;
		ret->modes[i] = from->mode;
		snprintf(ret->ifaces[ret->n_ifaces++], sizeof(ret->ifaces[0]), "%s", from->name);
	}
	for (size_t r = 0; r < c->resolved->n_rules; r++)
		ret->tracking |= c->resolved->rules[r].established.given;
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
		.live = live,
	};
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	size_t length;
	int code = frame_build(p, frame, &length, err);

	if (!c->resolved->n_interfaces)
		ask.iface = 0;
	return code ? code : test_program_run(c->test, frame, length, &ask, ret, err);
}

// A service's packet that no backend would ever get; whether there is a way to one is not for the
// policy.
static bool is_packets_fault(uint32_t reason)
{
	return reason == REASON_DROP_SERVICE_FRAGMENT || reason == REASON_DROP_TTL ||
	       reason == REASON_PASS_TTL;
}

static enum expect_verdict verdict_of(const struct candidate *c, const struct test_result *r)
{
	if (r->service >= 0)
		return is_packets_fault(r->reason) ? EXPECT_DROP : EXPECT_SERVICE;
	if (r->rule >= 0 && c->image->rules[r->rule].action == ACTION_REJECT)
		return EXPECT_REJECT;
	if (r->rule >= 0 && c->image->rules[r->rule].action == ACTION_REDIRECT)
		return EXPECT_REDIRECT;
	return reason_drops(r->reason) ? EXPECT_DROP : EXPECT_PASS;
}

static enum expect_via via_of(const struct test_result *r)
{
	if (r->rule >= 0)
		return VIA_RULE;
	return group_via(reason_group(r->service >= 0 ? r->passed : r->reason));
}

static const char *service_name(const struct candidate *c, int32_t service)
{
	return (size_t)service < c->image->n_services ? c->image->services[service].name : "?";
}

static const char *verdict_word(enum expect_verdict v)
{
	return v == EXPECT_SERVICE ? "service" : choice_word(&choice_expects, v);
}

static void describe_via(const struct candidate *c, const struct test_result *r, struct text *t)
{
	const struct image_rule *about = r->rule >= 0 ? &c->image->about[r->rule] : NULL;

	if (about)
		text_addf(t, " (rule \"%s\", %s)", about->identity, about->place);
	else if (via_of(r) == VIA_DEFAULT && c->resolved->default_at.file)
		text_addf(t, " (default, %s)", diag_place(c->diag, c->resolved->default_at, false));
	else if (via_of(r) == VIA_DEFAULT)
		text_add(t, " (default)");
	else
		text_addf(t, " (%s)", reason_name(r->reason));
}

void candidate_describe(const struct candidate *c, const struct test_result *r, char *buf,
			size_t size)
{
	CLEANUP_TEXT struct text t = {0};

	if (r->service >= 0)
		text_addf(&t, "service %s", service_name(c, r->service));
	else
		text_add(&t, verdict_word(verdict_of(c, r)));
	if (verdict_of(c, r) == EXPECT_REDIRECT)
		text_addf(&t, " %s", c->image->about[r->rule].redirect);
	describe_via(c, r, &t);
	snprintf(buf, size, "%s", text_get(&t));
}

static bool as_expected(const struct candidate *c, const struct resolved_expect *e,
			const struct test_result *r)
{
	enum expect_verdict verdict = verdict_of(c, r);

	// A service's packet has passed the rules.
	if (verdict != e->verdict && !(verdict == EXPECT_SERVICE && e->verdict == EXPECT_PASS))
		return false;
	if (e->verdict == EXPECT_SERVICE && r->service != (int32_t)e->service)
		return false;
	if (e->verdict == EXPECT_REDIRECT && strcmp(e->redirect, c->image->about[r->rule].redirect))
		return false;
	if (e->via == VIA_ANY)
		return true;
	return via_of(r) == e->via && (e->via != VIA_RULE || r->rule == (int32_t)e->rule);
}

static void describe_wish(const struct candidate *c, const struct resolved_expect *e,
			  struct text *t)
{
	if (e->verdict == EXPECT_SERVICE)
		text_addf(t, "service %s", service_name(c, (int32_t)e->service));
	else
		text_add(t, verdict_word((enum expect_verdict)e->verdict));
	if (e->verdict == EXPECT_REDIRECT)
		text_addf(t, " %s", e->redirect);
	if (e->via == VIA_RULE)
		text_addf(t, " via \"%s\"", c->image->about[e->rule].identity);
	else if (e->via != VIA_ANY)
		text_addf(t, " via %s", choice_word(&choice_vias, e->via));
}

// "tcp from 192.0.2.1 to 198.51.100.1": which of the line's packets it was.
static void describe_packet(const struct resolved_packet *p, struct text *t)
{
	addr_text from, to;

	if (p->ip)
		text_addf(t, " for %s > %s", addr_format(&p->from, from), addr_format(&p->to, to));
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

static int load_plain(struct candidate *c, struct err *err)
{
	c->plain = candidate_new_replay();
	return load_again(c, c->plain, err);
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

// Does the packet of line number `line` get what it expects without quick rules?
static int ask_plain(struct candidate *c, size_t line, size_t p, bool *ret, char *got, size_t size,
		     struct err *err)
{
	const struct resolved_expect *e;
	struct test_result result;
	int code = c->plain ? 0 : load_plain(c, err);

	if (code)
		return code;
	e = &c->plain->resolved->expects[line];
	if ((code = candidate_ask(c->plain, &e->packets[p], false, &result, err)))
		return code;
	*ret = as_expected(c->plain, e, &result);
	candidate_describe(c->plain, &result, got, size);
	return 0;
}

static void note_broken(struct candidate *c, const struct resolved_expect *e,
			const struct quick_rule *by, const char *got, const char *wish)
{
	vec_push(&c->broken,
		 ((struct candidate_broken){
			 .expect = e,
			 .by = by,
			 .what = mem_printf("expect at %s: got %s, expected %s",
					    diag_place(c->diag, e->at, false), got, wish),
		 }));
}

static int prove_packet(struct candidate *c, size_t line, size_t p, bool *ret_failed,
			struct err *err)
{
	const struct resolved_expect *e = &c->resolved->expects[line];
	const struct quick_rule *by;
	CLEANUP_TEXT struct text wish = {0};
	struct test_result result;
	char got[512], got_plain[512];
	bool holds, plain;
	int code = candidate_ask(c, &e->packets[p], false, &result, err);

	if (code)
		return code;
	by = candidate_quick(c, &result);
	holds = as_expected(c, e, &result);
	if (holds && !by)
		return 0;
	candidate_describe(c, &result, got, sizeof(got));
	describe_wish(c, e, &wish);
	if (e->n_packets > 1)
		describe_packet(&e->packets[p], &wish);
	if (by && (code = ask_plain(c, line, p, &plain, got_plain, sizeof(got_plain), err)))
		return code;
	if (by && plain) {
		if (!holds)
			note_broken(c, e, by, got, text_get(&wish));
		return 0;
	}
	if (by)
		memcpy(got, got_plain, sizeof(got));
	diag_error(c->diag, e->at, NULL, "expect: got %s, expected %s", got, text_get(&wish));
	*ret_failed = true;
	return 0;
}

// The first packet that fails is enough.
static int prove_one(struct candidate *c, size_t line, struct err *err)
{
	bool failed = false;

	for (size_t p = 0; p < c->resolved->expects[line].n_packets && !failed; p++) {
		int code = prove_packet(c, line, p, &failed, err);

		if (code)
			return code;
	}
	return 0;
}

int candidate_prove(struct candidate *c, const struct instance *i, struct err *err)
{
	size_t before = diag_errors(c->diag);
	int code;

	for (size_t e = 0; e < c->resolved->n_expects; e++)
		if ((code = prove_one(c, e, err)))
			return code;
	return diag_errors(c->diag) > before
		       ? err_input(err, "%zu expect %s failed", diag_errors(c->diag) - before,
				   diag_errors(c->diag) - before == 1 ? "line" : "lines")
		       : 0;
}
