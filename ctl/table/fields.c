// SPDX-License-Identifier: GPL-2.0-only
// Builds the tables of the small fields: ranges by a sweep over their edges, the others value by
// value.
#include "ctl/table/fields.h"

#include <stdlib.h>

#include "common/matrix.h"

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define NEIGHBOUR_TYPE 133 // the first of four
#define NEIGHBOURS     4

// ---- which rule tests which field ---------------------------------------------------------------

bool fields_needs(const struct resolved_rule *rule, enum policy_field field)
{
	const struct matrix_field *f = &matrix_fields[field];

	if (rule->ethertype.given && !f->frame)
		return false;
	for (size_t i = 0; i < f->n; i++)
		if (field_given(rule, f->rule[i]) && !field_is_condition(rule, f->rule[i]))
			return true;
	return false;
}

void fields_use(const struct resolved *r, struct field_rows *ret)
{
	bool impossible = false, any = false;

	for (size_t i = 0; i < r->n_rules; i++) {
		const struct resolved_rule *rule = &r->rules[i];

		impossible |= rule->impossible;
		for (int field = 0; field < POLICY_FIELDS && !rule->impossible; field++)
			ret->use[field] |= fields_needs(rule, (enum policy_field)field);
	}
	for (int field = 0; field < POLICY_FIELDS; field++)
		any |= ret->use[field];
	// If no row is looked up, every rule matches; rules that cannot match need a row without
	// them.
	if (impossible && !any)
		ret->use[FIELD_PROTO] = 1;
}

// ---- ranges -------------------------------------------------------------------------------------

struct edge {
	uint32_t at;
	uint32_t rule;
};

struct fields_builder {
	const struct resolved *in;
	struct rows *rows;
	VEC(struct edge) edges; // where a rule's bit changes
};

static void edges_add(struct fields_builder *b, uint32_t first, uint32_t last, size_t rule)
{
	vec_push(&b->edges, ((struct edge){first, (uint32_t)rule}));
	vec_push(&b->edges, ((struct edge){last + 1, (uint32_t)rule}));
}

static int edge_compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

// Fills to[0 … size - 1] from b->edges, which are used up; `row` is what holds before the first.
static bool edges_sweep(struct fields_builder *b, struct row *row, __u32 *to, size_t size)
{
	size_t at = 0, e = 0;

	if (b->edges.n)
		qsort(b->edges.at, b->edges.n, sizeof(*b->edges.at), edge_compare);
	while (at < size) {
		policy_row number;
		size_t end;

		for (; e < b->edges.n && b->edges.at[e].at <= at; e++)
			row_flip_rule(row, b->edges.at[e].rule);
		end = e < b->edges.n && b->edges.at[e].at < size ? b->edges.at[e].at : size;
		number = rows_add(b->rows, row);
		if (!number)
			return false;
		while (at < end)
			to[at++] = number;
	}
	b->edges.n = 0;
	return true;
}

static void edges_add_ranges(struct fields_builder *b, const struct resolved_ranges *ranges,
			     size_t rule)
{
	for (size_t i = 0; i < ranges->n; i++)
		edges_add(b, ranges->at[i].first, ranges->at[i].last, rule);
}

// The rules that do not test the field.
static void row_without(const struct fields_builder *b, enum policy_field field, struct row *row)
{
	row_init(row, b->rows->words);
	for (size_t i = 0; i < b->in->n_rules; i++)
		if (!b->in->rules[i].impossible && !fields_needs(&b->in->rules[i], field))
			row_flip_rule(row, i);
}

static bool build_ranges(struct fields_builder *b, enum policy_field field, __u32 *to, size_t size)
{
	struct row row;

	row_without(b, field, &row);
	for (size_t i = 0; i < b->in->n_rules; i++) {
		const struct resolved_rule *rule = &b->in->rules[i];

		if (!rule->impossible && fields_needs(rule, field))
			edges_add_ranges(b, field_at(rule, matrix_fields[field].rule[0]), i);
	}
	return edges_sweep(b, &row, to, size);
}

// A later fragment has no port and belongs to a service by its address and protocol.
static void add_portless(const struct fields_builder *b, enum policy_field field, struct row *row)
{
	for (size_t i = 0; i < b->in->n_rules; i++)
		if (b->in->rules[i].service && fields_needs(&b->in->rules[i], field))
			row_flip_rule(row, i);
}

static bool build_ports(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	struct row row;

	row_without(b, field, &row);
	add_portless(b, field, &row);
	to[POLICY_NO_PORT] = rows_add(b->rows, &row);
	return to[POLICY_NO_PORT] && build_ranges(b, field, to, POLICY_NO_PORT);
}

static bool build_ethertypes(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	struct row row;

	row_init(&row, b->rows->words);
	for (size_t i = 0; i < b->in->n_rules; i++) {
		const struct resolved_rule *rule = &b->in->rules[i];

		if (rule->impossible)
			continue;
		if (rule->ethertype.given) {
			edges_add_ranges(b, &rule->ethertype, i);
		} else {
			edges_add(b, ETHERTYPE_IPV4, ETHERTYPE_IPV4, i);
			edges_add(b, ETHERTYPE_IPV6, ETHERTYPE_IPV6, i);
		}
	}
	return edges_sweep(b, &row, to, ROOM_ETHERTYPE);
}

// ---- value by value -----------------------------------------------------------------------------

typedef bool satisfies(const struct resolved_rule *rule, uint32_t value);

// The rules that do not test the field, and the rules that the value satisfies.
static bool build_values(struct fields_builder *b, enum policy_field field, satisfies *test,
			 __u32 *to, uint32_t size)
{
	CLEANUP_VEC VEC(size_t) looking = {0}; // the rules that test it
	struct row base, row;

	row_without(b, field, &base);
	for (size_t i = 0; i < b->in->n_rules; i++)
		if (!b->in->rules[i].impossible && fields_needs(&b->in->rules[i], field))
			vec_push(&looking, i);
	for (uint32_t value = 0; value < size; value++) {
		row = base;
		vec_each (&looking, i)
			if (test(&b->in->rules[*i], value))
				row_flip_rule(&row, *i);
		to[value] = rows_add(b->rows, &row);
		if (!to[value])
			return false;
	}
	return true;
}

static bool satisfies_proto(const struct resolved_rule *rule, uint32_t value)
{
	uint32_t proto = value % 256;

	if (rule->fragment && value < 512)
		return false; // `fragment` speaks of later fragments
	return !rule->proto.given || rule->proto.bits[proto / 64] >> (proto % 64) & 1;
}

static bool satisfies_iface(const struct resolved_rule *rule, uint32_t value)
{
	return value && rule->on.bits[0] >> (value - 1) & 1;
}

// A rule with types is never satisfied by flags.
static bool satisfies_flags(const struct resolved_rule *rule, uint32_t value)
{
	return !rule->icmp.given && (value & rule->flags.mask) == rule->flags.set;
}

// ---- flags and types ----------------------------------------------------------------------------

// Index of an ICMP type among the entries from POLICY_L4_ICMP or POLICY_L4_NEIGHBOUR on; -1: none.
static int icmp_index(const struct resolved_icmp *icmp, bool neighbour)
{
	if (!neighbour)
		return (icmp->family == 6 ? POLICY_L4_ICMP6 - POLICY_L4_ICMP : 0) +
		       icmp->type * 256;
	if (icmp->family != 6 || icmp->type < NEIGHBOUR_TYPE ||
	    icmp->type >= NEIGHBOUR_TYPE + NEIGHBOURS)
		return -1;
	return (icmp->type - NEIGHBOUR_TYPE) * 256;
}

static void icmp_edges(struct fields_builder *b, bool neighbour)
{
	for (size_t i = 0; i < b->in->n_rules; i++) {
		const struct resolved_rule *rule = &b->in->rules[i];

		if (rule->impossible || rule->flags.given || !fields_needs(rule, FIELD_L4))
			continue;
		for (size_t k = 0; k < rule->icmp.n; k++) {
			int at = icmp_index(&rule->icmp.at[k], neighbour);

			if (at >= 0)
				edges_add(b, (uint32_t)at + rule->icmp.at[k].code_first,
					  (uint32_t)at + rule->icmp.at[k].code_last, i);
		}
	}
}

static bool build_l4(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	struct row row;

	if (!build_values(b, field, satisfies_flags, to + POLICY_L4_FLAGS, 256))
		return false;
	row_without(b, field, &row);
	to[POLICY_L4_NONE] = rows_add(b->rows, &row);
	icmp_edges(b, false);
	if (!to[POLICY_L4_NONE] || !edges_sweep(b, &row, to + POLICY_L4_ICMP, 2 * 65536))
		return false;
	row_init(&row, b->rows->words); // only `type` satisfies neighbour discovery
	icmp_edges(b, true);
	return edges_sweep(b, &row, to + POLICY_L4_NEIGHBOUR, NEIGHBOURS * 256);
}

// ---- all ----------------------------------------------------------------------------------------

static bool build_proto(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	return build_values(b, field, satisfies_proto, to, POLICY_PROTOS);
}

static bool build_vlan(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	return build_ranges(b, field, to, ROOM_VLAN);
}

static bool build_iface(struct fields_builder *b, enum policy_field field, __u32 *to)
{
	return build_values(b, field, satisfies_iface, to, POLICY_IFACES);
}

// ---- common packets -----------------------------------------------------------------------------

static int base_proto(int family, uint32_t cell)
{
	if (cell < BASE_UDP)
		return PROTO_TCP;
	if (cell == BASE_UDP)
		return PROTO_UDP;
	return family == 4 ? PROTO_ICMP : PROTO_ICMP6;
}

static int base_l4(int family, uint32_t cell)
{
	if (cell < BASE_UDP)
		return POLICY_L4_FLAGS + (int)cell;
	return cell == BASE_UDP ? POLICY_L4_NONE : -1;
}

static int base_ethertype(int family, uint32_t cell)
{
	return family == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
}

int fields_base(enum policy_field field, int family, uint32_t cell)
{
	return matrix_fields[field].base ? matrix_fields[field].base(family, cell) : -1;
}

// ---- the table ----------------------------------------------------------------------------------

const struct matrix_field matrix_fields[POLICY_FIELDS] = {
	[FIELD_SOURCE] = {.name = "source", .rule = {AST_FROM}, .n = 1},
	[FIELD_DESTINATION] = {.name = "destination", .rule = {AST_TO}, .n = 1},
	[FIELD_SPORT] = {.name = "sport",
			 .rule = {AST_SPORT},
			 .n = 1,
			 .build = build_ports,
			 .parts = {{"", POLICY_NO_PORT}, {.size = 1}}},
	[FIELD_DPORT] = {.name = "dport",
			 .rule = {AST_DPORT},
			 .n = 1,
			 .build = build_ports,
			 .parts = {{"", POLICY_NO_PORT}, {.size = 1}}},
	[FIELD_PROTO] = {.name = "proto",
			 .rule = {AST_PROTO, AST_FRAGMENT},
			 .n = 2,
			 .build = build_proto,
			 .base = base_proto,
			 .parts = {{"whole", 256},
				   {"first fragment", 256},
				   {"later fragment", 256}}},
	[FIELD_L4] = {.name = "l4",
		      .rule = {AST_FLAGS, AST_TYPE},
		      .n = 2,
		      .build = build_l4,
		      .base = base_l4,
		      .parts = {{"flags", 256, 2},
				{.size = 1},
				{"icmp type and code", 65536, 4},
				{"icmp6 type and code", 65536, 4},
				{"neighbour discovery", NEIGHBOURS * 256, 4}}},
	[FIELD_VLAN] = {.name = "vlan",
			.rule = {AST_VLAN},
			.n = 1,
			.frame = true,
			.build = build_vlan,
			.parts = {{"", ROOM_VLAN}}},
	[FIELD_IFACE] = {.name = "iface",
			 .rule = {AST_ON},
			 .n = 1,
			 .frame = true,
			 .build = build_iface,
			 .parts = {{"", POLICY_IFACES}}},
	[FIELD_ETHERTYPE] = {.name = "ethertype",
			     .rule = {AST_ETHERTYPE},
			     .n = 1,
			     .frame = true,
			     .build = build_ethertypes,
			     .base = base_ethertype,
			     .parts = {{"", ROOM_ETHERTYPE, 4}}},
};
_Static_assert(POLICY_L4_NONE == 256 && POLICY_L4_COUNT == 257 + 2 * 65536 + NEIGHBOURS * 256,
	       "parts of FIELD_L4");

size_t fields_size(enum policy_field field)
{
	const struct matrix_field *f = &matrix_fields[field];
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(f->parts); i++)
		size += f->parts[i].size;
	return size;
}

bool fields_build(const struct resolved *r, struct rows *rows, struct field_rows *f)
{
	struct fields_builder b = {.in = r, .rows = rows};
	bool ok = true;

	for (int field = FIELD_SPORT; field < POLICY_FIELDS && ok; field++) {
		size_t size = fields_size((enum policy_field)field);

		if (!f->use[field])
			continue;
		f->base[field] = (uint32_t)f->cells.n;
		vec_reserve(&f->cells, size);
		f->cells.n += size;
		ok = matrix_fields[field].build(&b, (enum policy_field)field,
						f->cells.at + f->base[field]);
	}
	vec_free(&b.edges);
	return ok;
}
