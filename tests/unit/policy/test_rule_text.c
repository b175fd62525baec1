// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/policy/rule_text.h: rules that differ in any value differ in their text, as the
// golden tests print it.
#include "tests/unit/policy/world.h"

#include "ctl/policy/fields.h"
#include "tests/golden/rule-print.h"

// The head of each policy; the rule follows.
#define HEAD                                    \
	"interface eth0, eth1, eth2\n"          \
	"set one { 192.0.2.1 }\n"               \
	"set two { 192.0.2.2 }\n"               \
	"set slow dynamic expire 10m\n"         \
	"set fast dynamic expire 10m\n"         \
	"set low pairs { 192.0.2.1 port 80 }\n" \
	"set high pairs { 2001:db8::1 port 80-90 }\n"

struct loaded {
	struct environment environment;
	struct resolved *r;
	struct resolved_rule rule; // a copy to change
};

static void load(struct loaded *l, const char *rule)
{
	CLEANUP_FREE char *text = mem_printf(HEAD "%s\n", rule);

	*l = (struct loaded){0};
	l->r = environment_load(&l->environment, text);
	if (!l->r)
		fail_msg("%s", l->environment.messages);
	assert_int_equal(l->r->n_rules, 1);
	l->rule = l->r->rules[0];
}

static void unload(struct loaded *l)
{
	resolved_free(l->r);
	environment_free(&l->environment);
}

static char *print(const struct resolved *r, const struct resolved_rule *rule)
{
	struct text t = {0};

	text_add(&t, "");
	print_whole_rule(&t, r, rule);
	return text_take(&t);
}

// Fails unless the changed copy has another text; restores the copy.
static void differs(struct loaded *l, const char *what)
{
	CLEANUP_FREE char *before = print(l->r, &l->r->rules[0]);
	CLEANUP_FREE char *after = print(l->r, &l->rule);

	if (!strcmp(before, after))
		fail_msg("another %s is not printed: %s", what, after);
	l->rule = l->r->rules[0];
}

#define CHANGE(l, member, value)          \
	do {                              \
		(l)->rule.member = value; \
		differs(l, #member);      \
	} while (0)

// ---- each form ----------------------------------------------------------------------------------

static void change_ranges(struct loaded *l, size_t field)
{
	const struct resolved_ranges *ranges = field_at(&l->rule, field);
	struct resolved_ranges *changed = field_place(&l->rule, field);
	size_t n = ranges->n;

	for (size_t i = 0; i < n; i++)
		for (int end = 0; end < 2; end++) {
			struct range16 at[8];

			assert_true(n <= ARRAY_SIZE(at));
			memcpy(at, ranges->at, n * sizeof(*at));
			*(end ? &at[i].last : &at[i].first) += 1;
			changed->at = at;
			differs(l, "end of a range");
		}
	changed->n--;
	differs(l, "number of ranges");
}

static void change_bits(struct loaded *l, size_t field)
{
	struct resolved_bits *bits = field_place(&l->rule, field);
	unsigned last =
		(unsigned)(field == AST_ON ? l->r->n_interfaces - 1 : fields[field].domain->last);

	for (unsigned bit = 0; bit <= last; bit++) {
		bits->bits[bit / 64] ^= (uint64_t)1 << bit % 64;
		differs(l, "bit");
	}
}

static void change_types(struct loaded *l)
{
	const struct resolved_types *types = &l->rule.icmp;
	struct resolved_icmp at[16];

	assert_true(types->n <= ARRAY_SIZE(at));
	for (size_t i = 0; i < types->n; i++)
		for (int part = 0; part < 3; part++) {
			memcpy(at, types->at, types->n * sizeof(*at));
			*(part == 0   ? &at[i].type
			  : part == 1 ? &at[i].code_first
				      : &at[i].code_last) ^= 1;
			l->rule.icmp.at = at;
			differs(l, "type or code");
		}
	l->rule.icmp.n--;
	differs(l, "number of types");
}

static void change_flags(struct loaded *l)
{
	for (unsigned bit = 0; bit < 8; bit++) {
		CHANGE(l, flags.set, l->rule.flags.set ^ (uint8_t)(1u << bit));
		CHANGE(l, flags.mask, l->rule.flags.mask ^ (uint8_t)(1u << bit));
	}
}

static void change_limit(struct loaded *l)
{
	CHANGE(l, limit.under, !l->rule.limit.under);
	CHANGE(l, limit.connections, !l->rule.limit.connections);
	CHANGE(l, limit.bits, !l->rule.limit.bits);
	CHANGE(l, limit.count, l->rule.limit.count + 1);
	CHANGE(l, limit.period_ms, 60000);
	CHANGE(l, limit.period_ms, 3600000);
	CHANGE(l, limit.burst, l->rule.limit.burst + 1);
	CHANGE(l, limit.per, PER_DESTINATION);
	CHANGE(l, limit.per, PER_RULE);
	CHANGE(l, limit.per, l->rule.limit.per == PER_SOURCE_PORT ? PER_SOURCE : PER_SOURCE_PORT);
	CHANGE(l, limit.mask4, l->rule.limit.mask4 - 1);
	CHANGE(l, limit.mask6, l->rule.limit.mask6 - 1);
	CHANGE(l, limit.max, l->rule.limit.max + 1);
}

static void change_address(struct loaded *l, size_t field)
{
	struct resolved_address *a = field_place(&l->rule, field);

	a->index ^= 1;
	differs(l, "set");
	a->kind = a->kind == RESOLVED_SET ? RESOLVED_DYNAMIC : RESOLVED_SET;
	differs(l, "kind of set");
}

static void change_span(struct loaded *l, size_t field)
{
	struct resolved_span *span = field_place(&l->rule, field);

	span->first++;
	differs(l, "begin");
	span->last++;
	differs(l, "end");
}

// Another list, with another edge.
static void change_macs(struct loaded *l)
{
	struct resolved_edges *macs = l->r->macs, lists[2] = {macs[0], macs[0]};
	uint64_t at[8];

	assert_true(macs[0].n <= ARRAY_SIZE(at));
	lists[1].at = at;
	l->r->macs = lists;
	for (size_t i = 0; i < macs[0].n; i++) {
		memcpy(at, macs[0].at, macs[0].n * sizeof(*at));
		at[i] += i % 2 ? 1 : UINT64_MAX;
		CHANGE(l, mac.index, 1);
	}
	l->r->macs = macs;
}

static void change_pairs(struct loaded *l, size_t field)
{
	struct resolved_pairs *pairs = field_place(&l->rule, field);

	pairs->negated = !pairs->negated;
	differs(l, "negation");
	pairs->index ^= 1;
	differs(l, "set of pairs");
}

static void change_word(struct loaded *l, size_t field)
{
	struct resolved_word *word = field_place(&l->rule, field);

	word->negated = !word->negated;
	differs(l, "negation");
}

static void change_value(struct loaded *l, size_t field)
{
	switch (fields[field].form) {
	case FORM_ADDRESS:
		change_address(l, field);
		return;
	case FORM_RANGES:
	case FORM_FRAMES:
		change_ranges(l, field);
		return;
	case FORM_BITS:
		change_bits(l, field);
		return;
	case FORM_TYPES:
		change_types(l);
		return;
	case FORM_FLAGS:
		change_flags(l);
		return;
	case FORM_PAIRS:
		change_pairs(l, field);
		return;
	case FORM_MACS:
		change_macs(l);
		return;
	case FORM_SPAN:
		change_span(l, field);
		return;
	case FORM_EITHER:
		change_word(l, field);
		return;
	case FORM_PROBABILITY:
		CHANGE(l, probability.share, l->rule.probability.share + (1 << 20));
		return;
	case FORM_LIMIT:
		change_limit(l);
		return;
	case FORM_WORD: // given or not
	case FORMS:
		return;
	}
}

// ---- tests --------------------------------------------------------------------------------------

// Together they have every field, which the test checks; that every form is above, the compiler
// does.
static const char *const rules[] = {
	"drop from @one port 1-5, 7 to @two port 80 proto tcp, udp",
	"drop from @slow to @fast",
	"drop proto icmp type 40, 42-50",
	"drop proto icmp type 3 code 2-4",
	"drop proto icmp6 type 100-105",
	"drop proto not 7 on eth0, eth2 vlan 7, 9-12 fragment",
	"drop flags syn, ack/syn, ack, fin",
	"drop ethertype 0x88b5, 0x88f7 length 60-100",
	"drop length 100-200 ttl 3-5 dscp 1, 3-10, 46 probability 25%",
	"drop over 10/s burst 20 per source mask 24/48 max 1000",
	"drop under 10mbit/s per source",
	"drop over 10/s per source and port mask 24/48",
	"pass mac 02:00:00:00:00:01, 02:00:00:00:00:05-02:00:00:00:00:09 ttl 3",
	"pass from @low to not @high",
	"pass established",
	"pass not established",
	"drop unroutable",
};

static void test_every_field(void **state)
{
	bool seen[AST_RULE_FIELDS] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct loaded l;

		load(&l, rules[i]);
		for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
			if (!field_given(&l.rule, field))
				continue;
			seen[field] = true;
			change_value(&l, field);
			*(uint8_t *)field_place(&l.rule, field) = 0;
			differs(&l, "field");
		}
		unload(&l);
	}
	for (size_t field = 0; field < AST_RULE_FIELDS; field++)
		if (!seen[field])
			fail_msg("no rule has %s: add one to `rules` in " __FILE__,
				 field == AST_SPORT   ? "'port' after 'from'"
				 : field == AST_DPORT ? "'port' after 'to'"
						      : fields[field].keyword);
}

static void test_modifiers(void **state)
{
	struct loaded l;

	load(&l, "drop from @one log 5/min snap 64 add source @slow for 5m");
	CHANGE(&l, always, true);
	for (uint8_t action = 0; action < 4; action++)
		if (action != l.rule.action)
			CHANGE(&l, action, action);
	CHANGE(&l, redirect, "eth0");
	CHANGE(&l, log.given, false);
	CHANGE(&l, log.count, 6);
	CHANGE(&l, log.period_ms, 1000);
	CHANGE(&l, log.snap, 65);
	CHANGE(&l, add.given, false);
	CHANGE(&l, add.destination, true);
	CHANGE(&l, add.dynamic, 1);
	CHANGE(&l, add.for_ms, l.rule.add.for_ms + 1);
	CHANGE(&l, add.for_ms, 600000); // the set's own: left out
	unload(&l);
}

static const struct {
	const char *rule, *text;
} texts[] = {
	{"drop from any", "drop"},
	{"drop from 10.0.0.0/8, not 10.1.0.0/16", "drop from 10.0.0.0/8,not 10.1.0.0/16"},
	{"drop from not 192.0.2.0/24, 2001:db8::/32",
	 "drop from 0.0.0.0/0,not 192.0.2.0/24,::/0,not 2001:db8::/32"},
	{"drop port 53", "drop to port 53 proto tcp,udp,sctp"},
	{"drop from any port 53 to any", "drop from port 53 proto tcp,udp,sctp"},
	{"drop proto not udp", "drop proto 0-16,18-255"},
	{"drop proto 0, 1, 2, 4", "drop proto 0,icmp,igmp,ipip"},
	{"drop on not eth0", "drop on eth1,eth2"},
	{"drop on eth0, eth1, eth2", "drop on eth0,eth1,eth2"},
	{"drop type echo-request", "drop proto icmp,icmp6 type echo-request"},
	{"drop proto icmp type 3 code 4", "drop proto icmp type destination-unreachable code 4"},
	{"drop flags none", "drop proto tcp flags none/fin,syn,rst,psh,ack,urg"},
	{"drop vlan not none", "drop vlan 1-4095"},
	{"drop ethertype not arp", "drop ethertype 0x0000-0x0805,0x0807-0xffff"},
	{"drop dscp 0, 1, ef", "drop dscp 0-1,46"},
	{"drop over 1500kbit/s", "drop over 1500kbit/s"},
	{"drop log", "drop log"},
	{"drop add source @slow for 90s", "drop add source @slow for 90s"},
	{"always redirect eth1 to 192.0.2.1", "always redirect eth1 to 192.0.2.1"},
};

static void test_texts(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP_FREE char *text = NULL;
		struct loaded l;

		load(&l, texts[i].rule);
		text = print(l.r, &l.rule);
		assert_string_equal(text, texts[i].text);
		unload(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_field),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
