// SPDX-License-Identifier: GPL-2.0-only
// The whole compilation: bounds, rules, small fields, addresses, numbers of rows, tries and lines.
#include "ctl/table/compile.h"

#include <errno.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/policy/words.h"
#include "ctl/table/fields.h"
#include "ctl/table/lines.h"
#include "ctl/table/number.h"
#include "ctl/table/rules.h"
#include "ctl/table/sweep.h"
#include "ctl/table/trie.h"

#define ROWS_BYTES (128ull << 20)
#define WORST_SETS 3 // named when there are too many rows
#define SPACES     4 // two sides, two families

struct compilation {
	const struct resolved *in;
	const struct compile_options *options;
	struct diag *diag;
	struct image *out;
	uint64_t rows_max;
	struct rows rows;
	struct table_arrays tables;
	struct space {
		struct regions regions;
		size_t hosts; // 0: too few for lines
	} space[SPACES];
	uint64_t *new_rows; // by resolved.addresses
};

static enum policy_field space_field(int space)
{
	return space < 2 ? FIELD_SOURCE : FIELD_DESTINATION;
}

static int space_family(int space)
{
	return space % 2 ? 6 : 4;
}

// ---- limits and errors --------------------------------------------------------------------------

static int check_limits(const struct resolved *r, struct diag *d)
{
	size_t before = diag_errors(d);
	choice_text modes;
	CLEANUP_FREE char *hint = mem_printf("mode %s", choice_modes_that(0, MODE_LATER, modes));

	for (size_t i = 0; i < r->n_services; i++)
		if (service_mode_does(r->services[i].mode) & MODE_LATER)
			diag_error(d, r->services[i].at, hint,
				   "service '%s': mode %s is not supported yet",
				   r->services[i].name,
				   choice_word(&choice_modes, r->services[i].mode));
	if (r->n_rules > POLICY_RULES)
		diag_error(d, r->rules[POLICY_RULES].at, NULL, "more than %d rules", POLICY_RULES);
	else if (r->n_rules + r->n_services > POLICY_RULES)
		diag_error(d, r->services[POLICY_RULES - r->n_rules].at, NULL,
			   "more than %d rules and services together", POLICY_RULES);
	if (r->n_dynamics > POLICY_SETS_MAX)
		diag_error(d, r->dynamics[POLICY_SETS_MAX].at, NULL, "more than %d dynamic sets",
			   POLICY_SETS_MAX);
	if (r->n_interfaces > POLICY_INTERFACES)
		diag_error(d, r->interfaces[POLICY_INTERFACES].at, NULL, "more than %d interfaces",
			   POLICY_INTERFACES);
	return diag_errors(d) > before ? -EINVAL : 0;
}

// The set with the most new rows that is not named yet; n_addresses: none.
static size_t worst_set(const struct compilation *c, const bool *named)
{
	size_t worst = c->in->n_addresses;

	for (size_t i = 0; i < c->in->n_addresses; i++)
		if (!named[i] && c->new_rows[i] &&
		    (worst == c->in->n_addresses || c->new_rows[i] > c->new_rows[worst]))
			worst = i;
	return worst;
}

static void name_set(const struct compilation *c, size_t set, struct text *t)
{
	const struct resolved_addresses *s = &c->in->addresses[set];
	num_text rows;

	num_format_grouped(c->new_rows[set], rows);
	text_add(t, t->len ? ", " : "");
	if (s->name)
		text_addf(t, "'@%s' (%s)", s->name, rows);
	else
		text_addf(t, "the list at %s (%s)", diag_place(c->diag, s->at, true), rows);
}

static struct diag_at first_user(const struct resolved *r, size_t set)
{
	for (size_t i = 0; i < r->n_rules; i++) {
		const struct resolved_rule *rule = &r->rules[i];

		if (rule->impossible)
			continue;
		if ((rule->from.kind == RESOLVED_SET && rule->from.index == set) ||
		    (rule->to.kind == RESOLVED_SET && rule->to.index == set))
			return rule->at;
	}
	return r->rules[0].at;
}

// Names the sets at whose edges most rows began.
static int refuse_rows(const struct compilation *c)
{
	CLEANUP_FREE bool *named = mem_zalloc(c->in->n_addresses, sizeof(*named));
	size_t worst = worst_set(c, named);
	struct diag_at at = first_user(c->in, worst);
	struct text sets = {0};
	num_text bytes;

	for (int i = 0; i < WORST_SETS && worst < c->in->n_addresses; i++) {
		name_set(c, worst, &sets);
		named[worst] = true;
		worst = worst_set(c, named);
	}
	num_format_bytes(c->rows_max, bytes);
	diag_error(c->diag, at,
		   "rules that share a set, and sets that do not overlap, have fewer combinations",
		   "the rules have too many different combinations (more than %s)%s%s", bytes,
		   sets.len ? "; most come from " : "", text_get(&sets));
	text_free(&sets);
	return -EINVAL;
}

// ---- steps --------------------------------------------------------------------------------------

// Row 1: all rules that can match at all.
static int add_row_all(struct compilation *c)
{
	struct row row;

	row_init(&row, c->out->config.words);
	for (size_t i = 0; i < c->in->n_rules; i++)
		if (!c->in->rules[i].impossible)
			row_flip_rule(&row, i);
	return rows_add(&c->rows, &row) == POLICY_ROW_ALL ? 0 : -ENOSPC;
}

static int sweep_side(struct compilation *c, int first)
{
	struct sweep_side side;
	bool ok = true;

	if (!c->out->config.use[space_field(first)])
		return 0;
	side_init(&side, c->in, space_field(first), c->out->config.words);
	for (int i = first; i < first + 2 && ok; i++) {
		struct space *s = &c->space[i];

		ok = sweep(&side, space_family(i), &c->rows, c->new_rows, &s->regions);
		if (ok)
			s->hosts = lines_count(&s->regions, space_family(i));
		if (ok && !lines_pay(&s->regions, space_family(i), s->hosts))
			s->hosts = 0;
	}
	side_free(&side);
	return ok ? 0 : -ENOSPC;
}

static void number(struct compilation *c)
{
	struct number_regions list[SPACES];

	for (int i = 0; i < SPACES; i++)
		list[i] = (struct number_regions){&c->space[i].regions, space_family(i),
						  c->space[i].hosts > 0};
	number_rows(&c->rows, c->tables.fields.at, c->tables.fields.n, list, SPACES);
}

struct found { // the part of a family in struct policy_side
	bool trie, lines;
	policy_row none;
	uint32_t direct, first, count;
};

static void build_space(struct compilation *c, int index, struct found *f)
{
	struct space *s = &c->space[index];
	int family = space_family(index);

	if (s->hosts) {
		struct regions rest;

		lines_build(&s->regions, family, s->hosts, c->options->seed, &c->tables, &rest,
			    &f->first, &f->count);
		vec_free(&s->regions);
		s->regions = rest;
		f->lines = true;
	}
	f->none = s->regions.at[0].row;
	f->trie = s->regions.n > 1;
	if (f->trie)
		f->direct = trie_build(&s->regions, family, &c->tables);
	vec_free(&s->regions);
}

static void build_side(struct compilation *c, int first)
{
	struct policy_side *side = &c->out->config.side[first / 2];
	struct found v4 = {0}, v6 = {0};

	if (!c->out->config.use[space_field(first)])
		return;
	build_space(c, first, &v4);
	build_space(c, first + 1, &v6);
	*side = (struct policy_side){
		.trie4 = v4.trie,
		.lines4 = v4.lines,
		.none4 = v4.none,
		.direct4 = v4.direct,
		.first4 = v4.first,
		.count4 = v4.count,
		.trie6 = v6.trie,
		.lines6 = v6.lines,
		.none6 = v6.none,
		.direct6 = v6.direct,
		.first6 = v6.first,
		.count6 = v6.count,
	};
}

static void fill_fragments(const struct resolved *r, struct policy_config *config)
{
	// A later fragment of IPv6 may be of any protocol: it is dropped if any protocol drops, else passed if any passes.
	config->treatment6 = TREAT_FILTER;
	for (int proto = 0; proto < 256; proto++) {
		uint8_t t = config->treatment[proto] = r->fragments[proto];

		config->fragments |= t != TREAT_FILTER;
		if (t == TREAT_DROP || (t == TREAT_PASS && config->treatment6 == TREAT_FILTER))
			config->treatment6 = t;
	}
}

static void fill_config(const struct resolved *r, uint64_t seed, struct policy_config *config)
{
	config->words = (uint32_t)((r->n_rules + r->n_services + 63) / 64);
	config->services = (uint32_t)r->n_services;
	for (size_t i = 0; i < r->n_services; i++)
		config->modes |= 1u << r->services[i].mode;
	config->essentials_filter = r->essentials_filter;
	config->line_seed = seed;
	config->named = r->n_interfaces > 0;
	config->default_drop = !config->named && r->default_drop;
	for (size_t i = 0; i < r->n_interfaces; i++)
		config->default_drop |= (uint64_t)r->interfaces[i].default_drop << (i + 1);
	for (size_t i = 0; i < r->n_dynamics; i++) {
		config->set_mask4[i] = r->dynamics[i].mask4;
		config->set_mask6[i] = r->dynamics[i].mask6;
	}
	fill_fragments(r, config);
}

static void take_tables(struct compilation *c)
{
	struct image *i = c->out;

	i->rows = rows_take(&c->rows, &i->n_rows);
	i->n_fields = c->tables.fields.n;
	i->fields = TAKE_PTR(c->tables.fields.at);
	i->n_nodes = c->tables.nodes.n;
	i->nodes = TAKE_PTR(c->tables.nodes.at);
	i->n_lines = c->tables.lines.n;
	i->lines = TAKE_PTR(c->tables.lines.at);
}

static int build_tables(struct compilation *c)
{
	if (add_row_all(c) || !fields_build(c->in, &c->rows, &c->tables, &c->out->config) ||
	    sweep_side(c, 0) || sweep_side(c, 2))
		return refuse_rows(c);
	number(c);
	build_side(c, 0);
	build_side(c, 2);
	take_tables(c);
	return 0;
}

static void compilation_free(struct compilation *c)
{
	rows_free(&c->rows);
	vec_free(&c->tables.fields);
	vec_free(&c->tables.nodes);
	vec_free(&c->tables.lines);
	for (int i = 0; i < SPACES; i++)
		vec_free(&c->space[i].regions);
	free(c->new_rows);
}

// ---- services -----------------------------------------------------------------------------------

// The rule that the packets of a service would satisfy.
static struct resolved_rule member_rule(const struct resolved_service *s)
{
	return (struct resolved_rule){
		.service = true,
		.identity = s->name,
		.at = s->at,
		.place = s->place,
		.to = {.kind = RESOLVED_SET, .index = s->vip},
		.dport = s->any_port ? (struct resolved_ranges){0} : s->ports,
		.proto = s->proto,
	};
}

// The rules followed by the services, their second region, from which the tables are built. The caller frees
// *ret_rules.
static struct resolved with_members(const struct resolved *r, struct resolved_rule **ret_rules)
{
	struct resolved all = *r;

	*ret_rules = mem_zalloc(r->n_rules + r->n_services, sizeof(**ret_rules));
	for (size_t i = 0; i < r->n_rules; i++)
		(*ret_rules)[i] = r->rules[i];
	for (size_t i = 0; i < r->n_services; i++)
		(*ret_rules)[r->n_rules + i] = member_rule(&r->services[i]);
	all.rules = *ret_rules;
	all.n_rules += r->n_services;
	return all;
}

static void fill_services(const struct resolved *r, struct image *i)
{
	i->n_services = r->n_services;
	i->services = mem_zalloc(r->n_services, sizeof(*i->services));
	for (size_t n = 0; n < r->n_services; n++) {
		const struct resolved_service *from = &r->services[n];

		i->services[n] = (struct image_service){
			.name = mem_strdup(from->name),
			.place = rules_place(r, from->place),
			.at = from->at,
		};
	}
}

static int build(struct compilation *c)
{
	int code;

	c->rows_max = c->options->rows_max ? c->options->rows_max : ROWS_BYTES;
	c->new_rows = mem_zalloc(c->in->n_addresses, sizeof(*c->new_rows));
	rows_init(&c->rows, c->out->config.words, c->rows_max);
	code = build_tables(c);
	compilation_free(c);
	return code;
}

int compile(const struct resolved *r, const struct compile_options *options, struct diag *d,
	    struct image **ret)
{
	CLEANUP_IMAGE struct image *i = mem_new(struct image);
	CLEANUP_FREE struct resolved_rule *rules = NULL;
	struct compilation c = {.options = options, .diag = d, .out = i};
	struct resolved all;
	int code = check_limits(r, d);

	if (code)
		return code;
	all = with_members(r, &rules);
	c.in = &all;
	fill_config(r, options->seed, &i->config);
	fields_use(&all, &i->config);
	fill_services(r, i);
	if ((code = rules_build(r, options, d, i)))
		return code;
	if (all.n_rules && (code = build(&c)))
		return code;
	*ret = TAKE_PTR(i);
	return 0;
}
