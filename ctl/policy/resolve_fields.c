// SPDX-License-Identifier: GPL-2.0-only
// Resolves the fields, conditions and modifiers of a rule, except for addresses and ports.

#include <string.h>

#include "common/limits-policy.h"
#include "common/limits.h"
#include "ctl/base/mem.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/names.h"
#include "ctl/policy/resolver.h"
#include "ctl/policy/value_types.h"

struct field_work {
	struct resolver *r;
	const struct ast_rule *ast;
	struct resolved_rule *ret;
	bool ok;
};

static bool has(const struct field_work *k, enum ast_field field)
{
	return k->ast->fields[field].given;
}

static bool has_word(const struct field_work *k, enum ast_field field)
{
	return k->ast->field_at[field].file;
}

static struct value value_of(struct field_work *k, enum ast_field field)
{
	return resolve_value(k->r, k->ast->field_at[field]);
}

static void fail(struct field_work *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->r->diag, at, hint, "%s", what);
	k->ok = false;
}

static void keep_ranges(struct field_work *k, struct ranges *from, struct resolved_ranges *to)
{
	to->given = true;
	to->n = from->n;
	to->at = arena_copy(&k->r->r->memory, from->at, from->n, sizeof(*from->at));
	ranges_free(from);
}

// ---- protocols ----------------------------------------------------------------------------------

// A field that needs certain protocols: ports, flags, types, established.
struct need {
	uint64_t bits[4];
	const char *what; // "ports"
	struct diag_at at;
};

static void say_protocol(struct field_work *k, const struct need *need, unsigned proto)
{
	const char *name = names_of_proto((uint8_t)proto);
	struct diag_at at = k->ast->field_at[AST_PROTO];

	if (name)
		diag_error(k->r->diag, at, NULL, "protocol '%s' has no %s", name, need->what);
	else
		diag_error(k->r->diag, at, NULL, "protocol %u has no %s", proto, need->what);
	k->ok = false;
}

// A protocol that the rule names must have what the field needs; one that only remains after "not"
// is left out.
static void demand(struct field_work *k, const struct need *need)
{
	struct resolved_bits *proto = &k->ret->proto;
	const struct ast_list *list = &k->ast->fields[AST_PROTO];
	bool named = list->given && !list->negated && k->ok, any = false;

	for (unsigned n = 0; n < 256; n++) {
		if (proto->given && !bits_has(proto->bits, n))
			continue;
		if (bits_has(need->bits, n)) {
			any = true;
			continue;
		}
		if (named) {
			say_protocol(k, need, n);
			return;
		}
	}
	if (!any && k->ok)
		fail(k, need->at, "its fields need different protocols",
		     "no packet can match all fields of this rule");
	for (unsigned i = 0; i < 4; i++)
		proto->bits[i] = proto->given ? proto->bits[i] & need->bits[i] : need->bits[i];
	proto->given = true;
}

static bool has_pairs(struct field_work *k)
{
	bool negated;

	return resolve_pairs_of(k->r, &k->ast->fields[AST_FROM], &negated) != INDEX_NONE ||
	       resolve_pairs_of(k->r, &k->ast->fields[AST_TO], &negated) != INDEX_NONE;
}

static void demand_all(struct field_work *k)
{
	struct need ports = {.what = "ports", .at = k->ast->field_at[AST_DPORT]};
	struct need flags = {.what = "TCP flags", .at = k->ast->field_at[AST_FLAGS]};
	struct need established = {.what = "connections", .at = k->ast->field_at[AST_ESTABLISHED]};
	struct need counted = {.what = "connections", .at = k->ast->field_at[AST_LIMIT]};

	bits_set(ports.bits, PROTO_TCP);
	bits_set(ports.bits, PROTO_UDP);
	bits_set(ports.bits, PROTO_SCTP);
	bits_set(flags.bits, PROTO_TCP);
	bits_set(established.bits, PROTO_TCP);
	bits_set(established.bits, PROTO_UDP);
	if (!ports.at.file)
		ports.at = k->ast->field_at[AST_SPORT];
	if (!ports.at.file)
		ports.at = k->ast->at;
	if (has(k, AST_SPORT) || has(k, AST_DPORT) || has_pairs(k))
		demand(k, &ports);
	if (has(k, AST_FLAGS))
		demand(k, &flags);
	if (has_word(k, AST_ESTABLISHED))
		demand(k, &established);
	bits_set(counted.bits, PROTO_TCP);
	if (k->ast->limit.connections)
		demand(k, &counted);
}

static void read_proto(struct field_work *k)
{
	struct value v = value_of(k, AST_PROTO);

	if (has(k, AST_PROTO)) {
		k->ret->proto.given = true;
		if (value_bits(&v, &domain_proto, &k->ast->fields[AST_PROTO], k->ret->proto.bits) <
		    0) {
			k->ok = false;
			return;
		}
	}
	demand_all(k);
}

// ---- ICMP ---------------------------------------------------------------------------------------

static void add_types(struct field_work *k, uint8_t family, const struct ranges *types,
		      const struct ranges *codes, struct resolved_icmp **at)
{
	for (size_t i = 0; i < types->n; i++)
		for (unsigned type = types->at[i].first; type <= types->at[i].last; type++)
			for (size_t j = 0; j < codes->n; j++)
				*(*at)++ = (struct resolved_icmp){
					.family = family,
					.type = (uint8_t)type,
					.code_first = (uint8_t)codes->at[j].first,
					.code_last = (uint8_t)codes->at[j].last,
				};
	if (types->n)
		bits_set(k->ret->proto.bits, family == 4 ? PROTO_ICMP : PROTO_ICMP6);
}

static size_t count_types(const struct ranges *types)
{
	size_t n = 0;

	for (size_t i = 0; i < types->n; i++)
		n += (size_t)types->at[i].last - types->at[i].first + 1;
	return n;
}

static void fill_icmp(struct field_work *k, const struct ranges *types4,
		      const struct ranges *types6, const struct ranges *codes)
{
	size_t n = (count_types(types4) + count_types(types6)) * codes->n;
	struct resolved_icmp *at = arena_zalloc(&k->r->r->memory, n, sizeof(*at));

	k->ret->icmp.given = true;
	k->ret->icmp.at = at;
	k->ret->icmp.n = n;
	memset(k->ret->proto.bits, 0, sizeof(k->ret->proto.bits));
	k->ret->proto.given = true;
	add_types(k, 4, types4, codes, &at);
	add_types(k, 6, types6, codes, &at);
}

// The families that the rule's protocols leave; false with an error queued when others are among
// them.
static bool icmp_families(struct field_work *k, unsigned *ret)
{
	const struct resolved_bits *proto = &k->ret->proto;
	struct need need = {.what = "ICMP types", .at = k->ast->field_at[AST_TYPE]};

	bits_set(need.bits, PROTO_ICMP);
	bits_set(need.bits, PROTO_ICMP6);
	demand(k, &need);
	*ret = (bits_has(proto->bits, PROTO_ICMP) ? 1u << 4 : 0) |
	       (bits_has(proto->bits, PROTO_ICMP6) ? 1u << 6 : 0);
	return k->ok;
}

static bool read_codes(struct field_work *k, const struct ranges *types4,
		       const struct ranges *types6, struct ranges *ret)
{
	const struct ast_list *type = &k->ast->fields[AST_TYPE];
	struct value v = value_of(k, AST_CODE);

	if (!has(k, AST_CODE)) {
		ranges_add(ret, 0, 255);
		return true;
	}
	if (type->negated || count_types(types4) > 1 || count_types(types6) > 1) {
		fail(k, k->ast->field_at[AST_CODE], "write a rule for each type",
		     "'code' needs one type");
		return false;
	}
	return value_ranges(&v, &domain_code, &k->ast->fields[AST_CODE], ret) == 0;
}

static void warn_neighbour(struct field_work *k, const struct ranges *types6)
{
	const struct ast_list *type = &k->ast->fields[AST_TYPE];

	if (!type->negated || k->ast->action == ACTION_PASS || k->ast->action == ACTION_COUNT)
		return;
	for (uint16_t t = 133; t <= 136; t++)
		if (ranges_has(types6->at, types6->n, t)) {
			diag_warning(k->r->diag, type->at, "list the types to match",
				     "this also matches neighbour discovery, which IPv6 requires");
			return;
		}
}

static void read_types(struct field_work *k)
{
	struct value v = value_of(k, AST_TYPE);
	struct ranges types4 = {0}, types6 = {0}, codes = {0};
	unsigned families, found;

	if (!has(k, AST_TYPE) || !icmp_families(k, &families))
		return;
	if (value_types(&v, &k->ast->fields[AST_TYPE], has(k, AST_PROTO), families, &types4,
			&types6, &found) < 0 ||
	    !read_codes(k, &types4, &types6, &codes)) {
		k->ok = false;
	} else {
		fill_icmp(k, &types4, &types6, &codes);
		warn_neighbour(k, &types6);
	}
	ranges_free(&types4);
	ranges_free(&types6);
	ranges_free(&codes);
}

// ---- the other fields ---------------------------------------------------------------------------

static void read_list(struct field_work *k, enum ast_field field)
{
	const struct ast_list *list = &k->ast->fields[field];
	const struct domain *domain = fields[field].domain;
	struct value v = value_of(k, field);
	struct resolved_bits *bits = field_place(k->ret, field);
	struct ranges ranges = {0};

	if (fields[field].form == FORM_BITS) {
		bits->given = true;
		if (value_bits(&v, domain, list, bits->bits) < 0)
			k->ok = false;
		return;
	}
	if (value_ranges(&v, domain, list, &ranges) < 0)
		k->ok = false;
	keep_ranges(k, &ranges, field_place(k->ret, field));
}

static void read_span(struct field_work *k, enum ast_field field)
{
	const struct ast_span *span = &k->ast->spans[field];

	*(struct resolved_span *)field_place(k->ret, field) =
		(struct resolved_span){true, span->first, span->last};
}

static void read_flags(struct field_work *k)
{
	const struct ast_list *lists = k->ast->fields;
	struct value v = value_of(k, AST_FLAGS);
	struct resolved_flags *flags = &k->ret->flags;

	flags->given = true;
	if (value_flags(&v, &lists[AST_FLAGS], &lists[AST_FLAGS_MASK], &flags->set, &flags->mask) <
	    0)
		k->ok = false;
}

// The number of the list of these edges; equal lists are one.
static uint32_t keep_macs(struct resolver *r, const struct edges *edges)
{
	size_t bytes = edges->n * sizeof(*edges->at);

	for (uint32_t i = 0; i < r->macs.n; i++)
		if (r->macs.at[i].n == edges->n && !memcmp(r->macs.at[i].at, edges->at, bytes))
			return i;
	vec_push(&r->macs, ((struct resolved_edges){
				   .at = arena_copy(&r->r->memory, edges->at, 1, bytes),
				   .n = edges->n,
			   }));
	r->edges += edges->n;
	return (uint32_t)r->macs.n - 1;
}

static void read_macs(struct field_work *k)
{
	const struct ast_list *list = &k->ast->fields[AST_MAC];
	CLEANUP(edges_free) struct edges edges = {0};
	struct value v = value_of(k, AST_MAC);

	if (eval_list(&v, &domain_mac, list, domain_mac.last, &edges) < 0) {
		k->ok = false;
		return;
	}
	k->ret->mac = (struct resolved_macs){true, keep_macs(k->r, &edges)};
	if (k->r->edges / 2 <= POLICY_MACS || k->r->too_many_macs)
		return;
	k->r->too_many_macs = true;
	k->ok = false;
	diag_error(k->r->diag, list->at, "rules with equal lists share one",
		   "the rules have more than %d MAC addresses and ranges", POLICY_MACS);
}

static void read_field(struct field_work *k, enum ast_field field)
{
	switch (fields[field].form) {
	case FORM_WORD:
		*(bool *)field_place(k->ret, field) = true;
		return;
	case FORM_EITHER:
		*(struct resolved_word *)field_place(k->ret, field) =
			(struct resolved_word){true, k->ast->negated[field]};
		return;
	case FORM_SPAN:
		read_span(k, field);
		return;
	case FORM_FLAGS:
		read_flags(k);
		return;
	case FORM_PROBABILITY:
		k->ret->probability = (struct resolved_probability){true, k->ast->probability};
		return;
	case FORM_ADDRESS: // see resolve_rule.c
	case FORM_PAIRS:   // see resolve_pairs.c
	case FORM_TYPES:   // depend on the protocols, see read_types
	case FORM_LIMIT:   // see read_limit
		return;
	case FORM_MACS:
		read_macs(k);
		return;
	default:
		if (field != AST_PROTO && field != AST_SPORT && field != AST_DPORT)
			read_list(k, field);
	}
}

// ---- frames -------------------------------------------------------------------------------------

static bool only_ip(const struct resolved_ranges *types)
{
	static const struct range16 ip[] = {{0x0800, 0x0800}, {0x86dd, 0x86dd}};

	return ranges_cover(ip, ARRAY_SIZE(ip), types->at, types->n);
}

static void check_frame(struct field_work *k)
{
	const struct ast_rule *a = k->ast;

	if (!has(k, AST_ETHERTYPE) || only_ip(&k->ret->ethertype))
		return;
	if (a->limit.given && a->limit.per != PER_RULE)
		fail(k, a->limit.at, "per rule", "not every frame has an IP address to count by");
	if (a->add.given)
		fail(k, a->add.at, NULL, "not every frame has an IP address to add");
}

// ---- limit and modifiers ------------------------------------------------------------------------

// Only the first packet of a connection is compared with the number of the others.
static void read_first_packet(struct field_work *k)
{
	const uint8_t mask = FLAG_FIN | FLAG_SYN | FLAG_RST | FLAG_ACK;
	struct resolved_flags *flags = &k->ret->flags;

	if (flags->given && (flags->set != FLAG_SYN || flags->mask != mask))
		fail(k, k->ast->field_at[AST_FLAGS], "leave out 'flags'",
		     "connections are counted when a SYN arrives");
	*flags = (struct resolved_flags){.given = true, .set = FLAG_SYN, .mask = mask};
}

static void read_limit(struct field_work *k)
{
	const struct ast_limit *a = &k->ast->limit;
	struct resolved_limit *r = &k->ret->limit;

	if (!a->given)
		return;
	if (a->connections)
		read_first_packet(k);
	*r = (struct resolved_limit){
		.given = true,
		.under = a->under,
		.connections = a->connections,
		.bits = a->rate.bits,
		.count = a->rate.count,
		.period_ms = a->rate.period_ms,
		.burst = a->burst ? a->burst : a->rate.count,
		.per = a->per,
	};
	if (a->per == PER_RULE)
		return;
	r->mask4 = a->has_mask ? a->mask4 : 32;
	r->mask6 = a->has_mask ? a->mask6 : 64;
	r->max = a->has_max ? a->max : POLICY_RATE_DEFAULT;
}

static void read_log(struct field_work *k)
{
	const struct ast_log *a = &k->ast->log;

	if (!a->given)
		return;
	k->ret->log = (struct resolved_log){
		.given = true,
		.count = a->rate.given ? a->rate.count : 1,
		.period_ms = a->rate.given ? a->rate.period_ms : 1000,
		.snap = a->snap ? a->snap : WEIR_SNAP_DEFAULT,
	};
}

static bool takes_proto(const struct field_work *k, unsigned proto)
{
	return !k->ret->proto.given || bits_has(k->ret->proto.bits, proto);
}

// Warns of an 'add source' that a forged packet can trigger.
static void warn_forged(struct field_work *k)
{
	const struct resolved_flags *flags = &k->ret->flags;
	bool syn = !flags->given || ((flags->set & FLAG_SYN || !(flags->mask & FLAG_SYN)) &&
				     !(flags->set & FLAG_ACK));
	const char *what = NULL;

	if (k->ast->add.destination || k->ret->ethertype.given ||
	    (k->ret->established.given && !k->ret->established.negated))
		return;
	if (takes_proto(k, PROTO_UDP))
		what = "UDP packet";
	else if (takes_proto(k, PROTO_TCP) && syn)
		what = "SYN";
	if (what)
		diag_warning(
			k->r->diag, k->ast->add.at, NULL,
			"'add source' on a %s: a forged source address puts a third party into '@%s'",
			what, k->ast->add.set);
}

static void read_add(struct field_work *k)
{
	const struct ast_add *a = &k->ast->add;
	const struct resolved *r = k->r->r;
	uint32_t dynamic;

	if (!a->given)
		return;
	dynamic = resolve_dynamic(r, a->set);
	if (dynamic == r->n_dynamics) // too many, which is an error already
		return;
	k->ret->add = (struct resolved_add){
		.given = true,
		.destination = a->destination,
		.dynamic = dynamic,
		.for_ms = a->for_ms ? a->for_ms : r->dynamics[dynamic].expire_ms,
	};
	warn_forged(k);
}

bool resolve_fields(struct resolver *r, const struct ast_rule *ast, struct resolved_rule *ret)
{
	struct field_work k = {.r = r, .ast = ast, .ret = ret, .ok = true};

	read_proto(&k);
	read_types(&k);
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(&k, field))
			read_field(&k, field);
	check_frame(&k);
	read_limit(&k);
	read_log(&k);
	read_add(&k);
	return k.ok;
}
