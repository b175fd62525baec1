// SPDX-License-Identifier: GPL-2.0-only
// One engine for all lists of small numbers; a field supplies the function that reads its words.
#include "ctl/policy/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/policy/names.h"
#include "ctl/policy/services.h"

#define SHOWN_MAX 60
// A word's ranges; which word they come from matters for "the same with and without not".
struct reading {
	struct range16 range;
	bool negated;
	const struct ast_item *item;
};

struct eval {
	struct value *v;
	const char *what; // "a port"
	const struct ast_item *item;
	bool negated;
	VEC(struct reading) readings;
	const uint64_t *protos;    // ports
	struct services *services; // ports
	unsigned families, known;  // types: those asked for, those that know some word
	unsigned family;           // types: the one being read
	uint64_t emitted[2];       // interfaces: each is read once, and once with "not"
	int result;
};

// Reads e->item: calls emit, or fail.
typedef void read_fn(struct eval *e, const char *word);

static void emit(struct eval *e, uint32_t first, uint32_t last)
{
	struct range16 range = {.first = (uint16_t)first, .last = (uint16_t)last};

	vec_push(&e->readings,
		 ((struct reading){.range = range, .negated = e->negated, .item = e->item}));
}

// The item's place is where the word is written; when that is a definition, the hint says who uses it.
__attribute__((format(printf, 3, 4))) static void fail(struct eval *e, const char *hint,
						       const char *fmt, ...)
{
	CLEANUP(text_free) struct text text = {0}, full = {0};
	struct diag_at at = e->item->at, use = e->v->use;
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&text, fmt, ap);
	va_end(ap);
	text_add(&full, hint ? hint : "");
	if (use.file && (use.file != at.file || diag_line(use) != diag_line(at)))
		text_addf(&full, "%sused as %s at %s", hint ? "; " : "", e->what,
			  diag_place(e->v->diag, use, false));
	diag_error(e->v->diag, at, full.len ? text_get(&full) : NULL, "%s", text_get(&text));
	e->result = -EINVAL;
}

// ---- the engine ---------------------------------------------------------------------------------

static bool is_word(struct eval *e)
{
	switch (e->item->kind) {
	case AST_WORD:
		return true;
	case AST_SET:
		e->result = -EINVAL; // an unknown one is reported with all unknown names
		if (index_find(&e->v->expander->ast->set_index, e->item->word) == INDEX_NONE)
			return false;
		fail(e, NULL, "'@%s' is a set of addresses, not %s", e->item->word, e->what);
		return false;
	default:
		fail(e, NULL, "a host is not %s", e->what);
		return false;
	}
}

static int compare(const void *a, const void *b)
{
	const struct reading *x = a, *y = b;

	if (x->range.first != y->range.first)
		return (int)x->range.first - y->range.first;
	if (x->range.last != y->range.last)
		return (int)x->range.last - y->range.last;
	return (int)x->negated - y->negated;
}

static void find_contradiction(struct eval *e)
{
	if (e->readings.n)
		qsort(e->readings.at, e->readings.n, sizeof(*e->readings.at), compare);
	for (size_t i = 1; i < e->readings.n; i++) {
		if (!compare(&e->readings.at[i - 1], &e->readings.at[i]) ||
		    memcmp(&e->readings.at[i - 1].range, &e->readings.at[i].range,
			   sizeof(struct range16)) != 0 ||
		    strchr(e->readings.at[i - 1].item->word, '*') ||
		    strchr(e->readings.at[i].item->word, '*'))
			continue; // one interface of a pattern is not the pattern
		e->item = e->readings.at[i].item;
		fail(e, NULL, "'%.*s' stands with and without 'not'", SHOWN_MAX, e->item->word);
		return;
	}
}

// What is left: the words, less the exceptions, or what a negated list leaves of the domain.
static void collect(struct eval *e, bool negated, uint16_t first, uint16_t last, struct ranges *ret)
{
	struct ranges out = {0};

	vec_each (&e->readings, r) {
		ranges_add(r->negated ? &out : ret, r->range.first, r->range.last);
	}
	ranges_sort(ret);
	ranges_sort(&out);
	if (negated)
		ranges_complement(ret, first, last);
	ranges_subtract(ret, &out);
	ranges_free(&out);
}

static void read_leaves(struct eval *e, const struct leaves *leaves, read_fn *read)
{
	vec_each (&leaves->all, leaf) {
		e->item = leaf->item;
		e->negated = leaf->negated;
		if (is_word(e))
			read(e, leaf->item->word);
	}
	find_contradiction(e);
}

static int evaluate(struct eval *e, const struct ast_list *list, read_fn *read, uint16_t first,
		    uint16_t last, struct ranges *ret)
{
	struct leaves leaves = {0};

	if (expand(e->v->expander, list, POLICY_SHORT_ITEMS, e->v->diag, &leaves) < 0)
		e->result = -EINVAL;
	read_leaves(e, &leaves, read);
	if (!leaves.all.n)
		e->result = -EINVAL; // what became of the items has been said
	if (!e->result) {
		collect(e, leaves.negated, first, last, ret);
		if (!ret->n) {
			diag_error(e->v->diag, list->at, NULL, "this list leaves nothing to match");
			e->result = -EINVAL;
		}
	}
	leaves_free(&leaves);
	vec_free(&e->readings);
	return e->result;
}

// A number or FIRST-LAST up to max; false: it has another form.
static bool read_span(struct eval *e, const char *word, uint32_t max)
{
	const char *dash = strchr(word, '-');
	uint32_t first, last;
	int r;

	if (strspn(word, "0123456789-") != strlen(word))
		return false;
	r = num_parse_u32(word, dash ? (size_t)(dash - word) : strlen(word), 0, max, &first);
	last = first;
	if (!r && dash)
		r = num_parse_u32(dash + 1, strlen(dash + 1), 0, max, &last);
	if (r < 0) {
		char hint[64];

		snprintf(hint, sizeof(hint), "a number is 0 to %u, a span FIRST-LAST", max);
		fail(e, hint, "'%.*s' is not %s", SHOWN_MAX, word, e->what);
	} else if (first > last) {
		fail(e, NULL, "'%.*s' ends before it begins", SHOWN_MAX, word);
	} else {
		emit(e, first, last);
	}
	return true;
}

static void unknown(struct eval *e, enum names_table table, const char *word)
{
	const char *near = names_nearest(table, word);

	if (near)
		fail(e, NULL, "'%.*s' is not %s, did you mean '%s'?", SHOWN_MAX, word, e->what,
		     near);
	else
		fail(e, NULL, "'%.*s' is not %s", SHOWN_MAX, word, e->what);
}

// ---- protocols ----------------------------------------------------------------------------------

bool proto_has(const uint64_t bits[4], unsigned proto)
{
	return bits[proto / 64] >> proto % 64 & 1;
}

void proto_set(uint64_t bits[4], unsigned proto)
{
	bits[proto / 64] |= (uint64_t)1 << proto % 64;
}

static void read_proto(struct eval *e, const char *word)
{
	uint8_t proto;
	int r = names_proto(word, &proto);

	if (r == -ERANGE)
		fail(e, "a protocol is 0 to 255", "'%.*s' is not a protocol", SHOWN_MAX, word);
	else if (r < 0)
		unknown(e, NAMES_PROTOS, word);
	else
		emit(e, proto, proto);
}

int value_protos(struct value *v, const struct ast_list *list, uint64_t ret[4])
{
	struct eval e = {.v = v, .what = "a protocol"};
	struct ranges ranges = {0};
	int r = evaluate(&e, list, read_proto, 0, 255, &ranges);

	vec_each (&ranges, range) {
		for (unsigned proto = range->first; proto <= range->last; proto++)
			proto_set(ret, proto);
	}
	ranges_free(&ranges);
	return r;
}

// ---- plain numbers ------------------------------------------------------------------------------

static void read_code(struct eval *e, const char *word)
{
	if (!read_span(e, word, 255))
		fail(e, "a code is a number", "'%.*s' is not an ICMP code", SHOWN_MAX, word);
}

int value_codes(struct value *v, const struct ast_list *list, struct ranges *ret)
{
	struct eval e = {.v = v, .what = "an ICMP code"};

	return evaluate(&e, list, read_code, 0, 255, ret);
}

static void read_vlan(struct eval *e, const char *word)
{
	if (!strcmp(word, "none"))
		emit(e, 0, 0);
	else if (!read_span(e, word, 4095))
		fail(e, "a VLAN is a number, a span or none", "'%.*s' is not a VLAN", SHOWN_MAX,
		     word);
}

int value_vlans(struct value *v, const struct ast_list *list, struct ranges *ret)
{
	struct eval e = {.v = v, .what = "a VLAN"};

	// "not 7" needs a packet that has a tag.
	return evaluate(&e, list, read_vlan, 1, 4095, ret);
}

static void read_dscp(struct eval *e, const char *word)
{
	uint8_t dscp;

	if (!names_dscp(word, &dscp))
		emit(e, dscp, dscp);
	else if (!read_span(e, word, 63))
		unknown(e, NAMES_DSCP, word);
}

// A bit for each value up to 63.
static uint64_t bits_of(const struct ranges *ranges)
{
	uint64_t bits = 0;

	vec_each (ranges, range) {
		for (unsigned i = range->first; i <= range->last; i++)
			bits |= (uint64_t)1 << i;
	}
	return bits;
}

int value_dscp(struct value *v, const struct ast_list *list, uint64_t *ret)
{
	struct eval e = {.v = v, .what = "a DSCP value"};
	struct ranges ranges = {0};
	int r = evaluate(&e, list, read_dscp, 0, 63, &ranges);

	if (!r)
		*ret = bits_of(&ranges);
	ranges_free(&ranges);
	return r;
}

static void read_ethertype(struct eval *e, const char *word)
{
	uint16_t values[2];
	size_t n = 0;
	uint32_t hex;

	if (!names_ethertype(word, values, &n)) {
		for (size_t i = 0; i < n; i++)
			emit(e, values[i], values[i]);
		if (!n)
			emit(e, 0, UINT16_MAX);
	} else if (strncmp(word, "0x", 2) != 0 && strncmp(word, "0X", 2) != 0) {
		unknown(e, NAMES_ETHERTYPES, word);
	} else if (num_parse_hex32(word, strlen(word), &hex) < 0 || hex > UINT16_MAX) {
		fail(e, "0x and up to four hexadecimal digits", "'%.*s' is not an ethertype",
		     SHOWN_MAX, word);
	} else if (hex < 0x600) { // IEEE 802.3 clause 3.2.6
		fail(e, "numbers below 0x600 are lengths", "'%s' is not an ethertype", word);
	} else if (hex == 0x8100 || hex == 0x88a8) {
		fail(e, "use vlan", "'%s' is a VLAN tag; the type behind it counts", word);
	} else {
		emit(e, hex, hex);
	}
}

int value_ethertypes(struct value *v, const struct ast_list *list, struct ranges *ret)
{
	struct eval e = {.v = v, .what = "an ethertype"};

	return evaluate(&e, list, read_ethertype, 0, UINT16_MAX, ret);
}

// ---- interfaces ---------------------------------------------------------------------------------

// The name itself, or a name that begins like the pattern "veth*".
static bool on_matches(const char *word, const char *name)
{
	size_t len = strlen(word);

	return !strcmp(word, name) ||
	       (len && word[len - 1] == '*' && !strncmp(word, name, len - 1));
}

static void read_on(struct eval *e, const char *word)
{
	const struct resolved *r = e->v->r;
	size_t found = 0;

	for (size_t i = 0; i < r->n_interfaces; i++)
		if (on_matches(word, r->interfaces[i].name)) {
			if (!(e->emitted[e->negated] >> i & 1))
				emit(e, (uint32_t)i, (uint32_t)i);
			e->emitted[e->negated] |= (uint64_t)1 << i;
			found++;
		}
	if (!found)
		fail(e, "'interface' lists them", "'%.*s' is not an interface of this policy",
		     SHOWN_MAX, word);
}

int value_on(struct value *v, const struct ast_list *list, uint64_t *ret)
{
	size_t n = v->r->n_interfaces;
	struct eval e = {.v = v, .what = "an interface"};
	struct ranges ranges = {0};
	int r = evaluate(&e, list, read_on, 0, (uint16_t)(n ? n - 1 : 0), &ranges);

	if (!r)
		*ret = bits_of(&ranges);
	ranges_free(&ranges);
	return r;
}

// ---- ports --------------------------------------------------------------------------------------

static const struct {
	unsigned number;
	const char *name;
} with_ports[] = {{PROTO_TCP, "tcp"}, {PROTO_UDP, "udp"}, {PROTO_SCTP, "sctp"}};

static void missing_port(struct eval *e, const char *word, const char *proto, const char *other)
{
	char hint[96];

	if (other) {
		snprintf(hint, sizeof(hint), "it has one for %s: write proto %s, or the number",
			 other, other);
		fail(e, hint, "port '%.*s' has no number for %s in %s", SHOWN_MAX, word, proto,
		     e->services->path);
		return;
	}
	fail(e, "a port is 0 to 65535, FIRST-LAST, or a name of /etc/services",
	     "'%.*s' is not a port", SHOWN_MAX, word);
}

static void read_port_name(struct eval *e, const char *word)
{
	const char *missing = NULL, *has = NULL;
	uint16_t port = 0;
	bool differs = false;

	for (size_t i = 0; i < ARRAY_SIZE(with_ports); i++) {
		uint16_t n;

		if (!proto_has(e->protos, with_ports[i].number))
			continue;
		if (services_find(e->services, word, with_ports[i].name, &n) < 0) {
			missing = missing ? missing : with_ports[i].name;
			continue;
		}
		differs = differs || (has && n != port);
		has = has ? has : with_ports[i].name;
		port = n;
	}
	if (missing)
		missing_port(e, word, missing, has);
	else if (differs)
		fail(e, "write a rule for each protocol",
		     "port '%s' has not the same number for each protocol", word);
	else
		emit(e, port, port);
}

static void read_port(struct eval *e, const char *word)
{
	if (!read_span(e, word, UINT16_MAX))
		read_port_name(e, word);
}

int value_ports(struct value *v, const struct ast_list *list, const uint64_t protos[4],
		struct services *services, struct ranges *ret)
{
	struct eval e = {.v = v, .what = "a port", .protos = protos, .services = services};

	return evaluate(&e, list, read_port, 0, UINT16_MAX, ret);
}

// ---- flags --------------------------------------------------------------------------------------

static int read_flags(struct value *v, const struct ast_list *list, uint8_t *ret)
{
	struct eval e = {.v = v, .what = "a TCP flag"};

	vec_each (&list->items, item) {
		uint8_t flag;

		e.item = item;
		if (!names_flag(item->word, &flag))
			*ret |= flag;
		else if (strcmp(item->word, "none") != 0)
			unknown(&e, NAMES_FLAGS, item->word);
		else if (list->items.n > 1)
			fail(&e, NULL, "'none' stands alone");
	}
	return e.result;
}

static bool is_none(const struct ast_list *list)
{
	return list->items.n && !strcmp(list->items.at[0].word, "none");
}

int value_flags(struct value *v, const struct ast_list *set, const struct ast_list *mask,
		uint8_t *ret_set, uint8_t *ret_mask)
{
	uint8_t bits = 0, among = 0;

	if (read_flags(v, set, &bits) < 0 || (mask->given && read_flags(v, mask, &among) < 0))
		return -EINVAL;
	if (mask->given && is_none(mask)) {
		diag_error(v->diag, set->at, NULL, "the mask of flags is empty");
		return -EINVAL;
	}
	if (!mask->given)
		among = is_none(set)
				? FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_PSH | FLAG_ACK | FLAG_URG
				: (uint8_t)(bits | FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK);
	if (bits & ~among) {
		diag_error(v->diag, set->at, "the mask names every flag that is looked at",
			   "a flag stands before '/' but not behind it");
		return -EINVAL;
	}
	*ret_set = bits;
	*ret_mask = among;
	return 0;
}

// ---- ICMP types ---------------------------------------------------------------------------------

static void read_type(struct eval *e, const char *word)
{
	uint8_t type4, type6;
	unsigned knows;

	if (word[0] >= '0' && word[0] <= '9' && strspn(word, "0123456789-") == strlen(word)) {
		if (e->families != 1u << 4 && e->families != 1u << 6)
			fail(e, "say proto icmp or proto icmp6",
			     "the number '%.*s' means another type in each family", SHOWN_MAX,
			     word);
		else
			read_span(e, word, 255);
		e->known |= e->families;
		return;
	}
	knows = (names_icmp(word, 4, &type4) ? 0 : 1u << 4) |
		(names_icmp(word, 6, &type6) ? 0 : 1u << 6);
	if (!knows) {
		unknown(e, NAMES_ICMP, word);
	} else if (!(knows & e->families)) {
		fail(e, NULL, "'%s' is a type of %s only", word,
		     knows & 1u << 4 ? "icmp" : "icmp6");
	} else if (knows & 1u << e->family) {
		uint8_t type = e->family == 4 ? type4 : type6;

		emit(e, type, type);
	}
	e->known |= knows & e->families;
}

// The families that all words together are known in; errors are queued.
static int known_families(struct value *v, const struct leaves *leaves, unsigned families,
			  bool given, unsigned *ret)
{
	struct eval e = {.v = v, .what = "an ICMP type", .families = families, .family = 4};

	// Numbers need one family, which only the rule's protocols can name.
	if (!given)
		e.families = 1u << 4 | 1u << 6;
	read_leaves(&e, leaves, read_type);
	vec_free(&e.readings);
	*ret = e.known;
	return e.result;
}

static void types_of(struct value *v, const struct leaves *leaves, unsigned families,
		     unsigned family, struct ranges *ret)
{
	struct eval e = {.v = v, .what = "an ICMP type", .families = families, .family = family};

	vec_each (&leaves->all, leaf) {
		e.item = leaf->item;
		e.negated = leaf->negated;
		read_type(&e, leaf->item->word);
	}
	collect(&e, leaves->negated, 0, 255, ret);
	vec_free(&e.readings);
}

int value_types(struct value *v, const struct ast_list *list, bool given, unsigned families,
		struct ranges *ret4, struct ranges *ret6, unsigned *ret_families)
{
	struct leaves leaves = {0};
	unsigned known = 0;
	int r = expand(v->expander, list, POLICY_SHORT_ITEMS, v->diag, &leaves);

	if (known_families(v, &leaves, families, given, &known) < 0)
		r = -EINVAL;
	if (!r && given && known != families && !leaves.negated) {
		diag_error(v->diag, list->at, NULL, "%s knows none of these types",
			   known == 1u << 4 ? "icmp6" : "icmp");
		r = -EINVAL;
	}
	if (!r) {
		*ret_families = given ? families : known;
		if (*ret_families & 1u << 4)
			types_of(v, &leaves, families, 4, ret4);
		if (*ret_families & 1u << 6)
			types_of(v, &leaves, families, 6, ret6);
		if (!ret4->n && !ret6->n) {
			diag_error(v->diag, list->at, NULL, "this list leaves nothing to match");
			r = -EINVAL;
		}
	}
	leaves_free(&leaves);
	return r;
}
