// SPDX-License-Identifier: GPL-2.0-only
// Adds rules to the policy, as exactly as it can express them.
#include <errno.h>
#include <string.h>

#include "ctl/import/translation.h"

#define VALUES 200     // a list of a policy has 256
#define STEPS  4000    // a policy has 4096 rules
#define PORTS  4096    // separate ranges of a set of pairs
#define PAIRS  32768   // of all sets
#define WORK   8000000 // intervals compared, about a second

#define FIN 1
#define SYN 2
#define RST 4
#define PSH 8
#define ACK 16

void emit_work(struct translation *w, size_t n)
{
	w->work += n;
	if (w->work > WORK && !w->code)
		w->code = err_input(w->err,
				    "the ruleset is too large with the chains that others call "
				    "written out");
}

const char *emit_clean(struct arena *arena, const char *text)
{
	size_t len = strnlen(text, 100);
	char *clean = arena_copy(arena, text, len + 1, 1);

	clean[len] = '\0';
	for (char *c = clean; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"')
			*c = '_';
	return clean;
}

static bool is_decided(struct translation *w, const struct match *m)
{
	emit_work(w, w->steps->n);
	vec_each (w->steps, s)
		if (s->action < STEP_COUNT && match_covers(&s->match, m))
			return true;
	return false;
}

// Rules that can never match are left out.
static void add_step(struct translation *w, enum step_action action, const struct match *m,
		     const char *name, bool log)
{
	if (w->code || (action != STEP_NOTE && is_decided(w, m)))
		return;
	if (w->steps->n >= STEPS) {
		w->code = err_input(w->err,
				    "the ruleset makes more than %d rules, with the chains that "
				    "others call written out",
				    STEPS);
		return;
	}
	vec_push(w->steps, ((struct import_rule){action, *m, name, log}));
}

// A comment that is not repeated for each alternative.
static void add_note(struct translation *w, const char *what, const struct at_rule *at)
{
	const char *text = arena_printf(w->arena, "%s: %s %zu: %s", what,
					emit_clean(w->arena, at->chain->name), at->number,
					original_text(w->options, w->arena, at->rule));
	const struct import_rule *last = w->steps->n ? vec_last(w->steps) : NULL;

	if (!last || last->action != STEP_NOTE || strcmp(last->name, text) != 0)
		add_step(w, STEP_NOTE, &match_any, text, false);
}

void emit_outcome(struct translation *w, const struct at_rule *at, uint8_t outcome)
{
	w->outcomes[at->chain->first + at->number - 1] |= outcome;
	if (outcome & OUTCOME_LEFT)
		add_note(w, "left to nft", at);
	else if (outcome & (OUTCOME_WIDER | OUTCOME_LACKING))
		add_note(w, "passes more than the original", at);
}

const char *emit_name(struct translation *w, const struct at_rule *at)
{
	const char *comment = json_get_string(at->rule, "comment");

	if (!comment || !comment[0] || strlen(comment) > 100)
		return arena_printf(w->arena, "%s %zu", emit_clean(w->arena, at->chain->name),
				    at->number);
	return emit_clean(w->arena, comment);
}

// ---- what Weir can express ----------------------------------------------------------------------

static bool is_unsteady(const struct match *m)
{
	return m->f[MATCH_TTL].n || m->f[MATCH_DSCP].n || m->f[MATCH_MAC].n;
}

static struct values protocols(struct arena *arena, const uint8_t *numbers, size_t n)
{
	struct interval *at = arena_zalloc(arena, n, sizeof(*at));

	for (size_t i = 0; i < n; i++)
		at[i] = (struct interval){numbers[i], numbers[i]};
	return (struct values){.at = at, .n = match_sort(at, n)};
}

static bool only_in(const struct match *m, const struct values *protos)
{
	const struct values *v = &m->f[MATCH_PROTO];

	for (size_t i = 0; i < v->n; i++)
		for (address_number p = v->at[i].first; p <= v->at[i].last; p++)
			if (!values_have(protos, p))
				return false;
	return v->n;
}

// After a rule for established connections nft asks about TTL, DSCP and MAC only for the first
// packet of a connection, but Weir asks for each packet that is not TCP or UDP. So it does before
// such a rule, which would accept the others: Weir does not know their connections.
static void steady(struct translation *w, struct match *m, bool drops)
{
	static const uint8_t numbers[] = {6, 17};
	struct values protos = protocols(w->arena, numbers, 2);

	if (!(drops ? w->tracked : w->ruleset->stateful) || !is_unsteady(m) || only_in(m, &protos))
		return;
	if (drops) {
		match_narrow(w->arena, m, MATCH_PROTO, protos);
		return;
	}
	m->f[MATCH_TTL] = m->f[MATCH_DSCP] = m->f[MATCH_MAC] = (struct values){0};
	match_omit(m);
}

static void omit_fields(struct match *m, enum match_field a, enum match_field b)
{
	if (m->f[a].n || m->f[b].n)
		match_omit(m);
	m->f[a] = m->f[b] = (struct values){0};
}

// The kernel merges segments of a connection, and the merged one has FIN and PSH of all.
static void fit_flags(struct match *m, bool drops)
{
	uint8_t unset = m->mask & (uint8_t)~m->flags;

	if (!m->flagged || m->flags & (SYN | RST) || unset & ACK)
		return;
	if (drops && unset & (FIN | PSH)) {
		match_omit(m);
	} else if (!drops && m->flags & (FIN | PSH)) {
		m->flags &= (uint8_t) ~(FIN | PSH);
		m->mask &= (uint8_t) ~(FIN | PSH);
		m->flagged = m->mask;
		m->loose = true;
	}
}

// This host may change packets before the hook.
static void fit_rewrites(const struct translation *w, struct match *m)
{
	const struct import_facts *facts = &w->options->facts;

	if (facts->ttl || w->options->forward) // a router counts it down first
		omit_fields(m, MATCH_TTL, MATCH_TTL);
	if (facts->dscp)
		omit_fields(m, MATCH_DSCP, MATCH_DSCP);
	if (facts->macs)
		omit_fields(m, MATCH_MAC, MATCH_MAC);
}

// Are the values of the field in pairs?
static bool has_pairs(const struct match *m, enum match_field field)
{
	return (field == MATCH_SPORT && m->pairs[0]) || (field == MATCH_DPORT && m->pairs[1]);
}

static void fit_lists(struct match *m)
{
	const struct values *type = &m->f[MATCH_TYPE];
	bool single = type->n == 1 && type->at[0].first == type->at[0].last;

	if (m->f[MATCH_CODE].n && !single)
		omit_fields(m, MATCH_CODE, MATCH_CODE);
	if (m->f[MATCH_TTL].n > 1)
		omit_fields(m, MATCH_TTL, MATCH_TTL);
	for (int i = MATCH_PROTO; i < MATCH_FIELDS; i++)
		if (m->f[i].n > VALUES && !has_pairs(m, (enum match_field)i))
			omit_fields(m, (enum match_field)i, (enum match_field)i);
}

// A list of a rule has addresses or a dynamic set.
static void fit_sets(struct match *m)
{
	for (int i = 0; i < 2; i++)
		if (m->in[i] && m->f[i].n)
			match_omit(m);
}

static void omit_pairs(struct match *m, int side)
{
	m->pairs[side] = NULL;
	match_omit(m);
}

static void omit_ports(struct match *m)
{
	m->pairs[0] = m->pairs[1] = NULL;
	omit_fields(m, MATCH_SPORT, MATCH_DPORT);
}

// Pairs are as exact as the fields beside them, before anything is left out: a policy has no
// addresses or ports beside a set of pairs.
static void fold_pairs(struct translation *w, struct match *m)
{
	for (int i = 0; i < 2; i++) {
		if (match_pairs_are_folded(m, i))
			continue;
		emit_work(w, 4 * m->pairs[i]->n);
		if (!match_fold_pairs(w->arena, m, i, PAIRS))
			omit_pairs(m, i);
	}
}

static void fit_pairs(struct translation *w, struct match *m)
{
	for (int i = 0; i < 2; i++) {
		const struct pairs *p = m->pairs[i];

		if (!p || m->never)
			continue;
		if (m->f[MATCH_SPORT + i].n > PORTS ||
		    (!p->use->counted && w->n_pairs + p->n > PAIRS)) {
			omit_pairs(m, i);
			continue;
		}
		w->n_pairs += p->use->counted ? 0 : p->n;
		p->use->counted = true;
	}
}

// Ports exist in three protocols, a code with one type; a TTL is one span, and lists have a limit.
void emit_fit(struct translation *w, struct match *m, bool drops)
{
	static const uint8_t numbers[] = {6, 17, 132};
	struct values protos = protocols(w->arena, numbers, 3);
	struct values tracked = protocols(w->arena, numbers, 2);
	bool ports = m->f[MATCH_SPORT].n || m->f[MATCH_DPORT].n;

	fold_pairs(w, m);
	if (ports && !only_in(m, &protos) && drops)
		match_narrow(w->arena, m, MATCH_PROTO, protos);
	else if (ports && !only_in(m, &protos))
		omit_ports(m);
	if (m->untracked && !only_in(m, &tracked))
		match_narrow(w->arena, m, MATCH_PROTO, tracked);
	fit_sets(m);
	fit_flags(m, drops);
	fit_rewrites(w, m);
	fit_pairs(w, m);
	fit_lists(m);
}

static bool may_have_returned(struct translation *w, const struct match *m)
{
	emit_work(w, w->returned.n - w->guarded);
	for (size_t i = w->guarded; i < w->returned.n; i++)
		if (match_meets(&w->returned.at[i], m))
			return true;
	return false;
}

// A dynamic set is empty at first, and has no prefixes.
static uint8_t drop_outcome(const struct match *m)
{
	uint8_t outcome = m->untracked ? OUTCOME_WIDER : OUTCOME_EXACT;

	return m->in[0] || m->in[1] ? outcome | OUTCOME_LACKING : outcome;
}

uint8_t emit_drop(struct translation *w, enum step_action action, struct match m, const char *name,
		  bool log)
{
	struct match whole;
	bool left, part;

	fold_pairs(w, &m);
	whole = m;
	if (m.never)
		return 0;
	for (int i = 0; i < MATCH_FIELDS; i++)
		if (m.parts >> i & 1)
			whole.f[i] = (struct values){0};
	if (m.parts & MATCH_PART_ON)
		whole.on = ~0ull;
	emit_fit(w, &m, true);
	steady(w, &m, true);
	left = m.loose || may_have_returned(w, &m);
	part = m.parts || m.never || !match_covers(&m, &whole);
	if (!left && !m.never)
		add_step(w, action, &m, name, log);
	return left || part ? OUTCOME_LEFT : drop_outcome(&m);
}

uint8_t emit_pass(struct translation *w, struct match m, const char *name, bool log)
{
	fold_pairs(w, &m);
	if (m.never)
		return 0;
	emit_fit(w, &m, false);
	steady(w, &m, false);
	w->tracked |= m.established;
	add_step(w, STEP_PASS, &m, name, log);
	return m.omitted ? OUTCOME_LACKING : m.loose ? OUTCOME_WIDER : OUTCOME_EXACT;
}

uint8_t emit_count(struct translation *w, struct match m, const char *name)
{
	struct match whole;

	fold_pairs(w, &m);
	whole = m;
	if (m.never)
		return 0;
	emit_fit(w, &m, true);
	if (m.loose || m.never)
		return OUTCOME_LEFT;
	add_step(w, STEP_COUNT, &m, name, true);
	return m.parts || !match_covers(&m, &whole) ? OUTCOME_LEFT : OUTCOME_EXACT;
}
