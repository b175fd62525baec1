// SPDX-License-Identifier: GPL-2.0-only
// Compiles a policy: bounds, configuration, rules, the matrix of the rules and of the services.
#include "ctl/table/compile.h"

#include <errno.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/table/edges.h"
#include "ctl/table/rules.h"
#include "ctl/table/vips.h"

// ---- limits and errors --------------------------------------------------------------------------

static int check_limits(const struct resolved *r, struct diag *d)
{
	size_t before = diag_errors(d);

	for (size_t i = 0; i < r->n_services; i++)
		if (r->services[i].check.via_path && r->services[i].check.kind == CHECK_EXEC)
			diag_error(d, r->services[i].check.at, NULL,
				   "service '%s': a check by a program cannot go 'via path'",
				   r->services[i].name);
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

// ---- configuration ------------------------------------------------------------------------------

static void fill_fragments(const struct resolved *r, struct policy_config *config)
{
	// A later fragment of IPv6 may be of any protocol: it is dropped if any protocol drops,
	// else passed if any passes.
	config->treatment6 = TREAT_FILTER;
	for (int proto = 0; proto < 256; proto++) {
		uint8_t t = config->treatment[proto] = r->fragments[proto];

		config->fragments |= t != TREAT_FILTER;
		if (t == TREAT_DROP || (t == TREAT_PASS && config->treatment6 == TREAT_FILTER))
			config->treatment6 = t;
	}
}

static void fill_config(const struct resolved *r, struct policy_config *config)
{
	config->services = (uint32_t)r->n_services;
	for (size_t i = 0; i < r->n_services; i++) {
		config->modes |= 1u << r->services[i].mode;
		config->answers |= r->services[i].check.via_path;
	}
	config->essentials_filter = r->essentials_filter;
	config->named = r->n_interfaces > 0;
	config->default_drop = !config->named && r->default_drop;
	for (size_t i = 0; i < r->n_interfaces; i++)
		config->default_drop |= (uint64_t)r->interfaces[i].default_drop << (i + 1);
	for (size_t i = 0; i < r->n_dynamics; i++) {
		config->set_mask4[i] = r->dynamics[i].mask4;
		config->set_mask6[i] = r->dynamics[i].mask6;
		config->set_counts[i] = r->dynamics[i].count;
	}
	fill_fragments(r, config);
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

// The matrix of the services, whose rules are the members. The caller frees *ret_rules.
static struct resolved members(const struct resolved *r, struct resolved_rule **ret_rules)
{
	struct resolved all = *r;

	*ret_rules = mem_zalloc(r->n_services, sizeof(**ret_rules));
	for (size_t i = 0; i < r->n_services; i++)
		(*ret_rules)[i] = member_rule(&r->services[i]);
	all.rules = *ret_rules;
	all.n_rules = r->n_services;
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

static int build_members(const struct resolved *r, const struct compile_options *options,
			 struct diag *d, struct image *i)
{
	CLEANUP_FREE struct resolved_rule *rules = NULL;
	struct resolved of_services = members(r, &rules);

	return matrix_build(&of_services, MATRIX_MEMBERS, options, d, &i->tables,
			    &i->matrix[MATRIX_MEMBERS]);
}

int compile(const struct resolved *r, const struct compile_options *options, struct diag *d,
	    struct image **ret)
{
	CLEANUP_IMAGE struct image *i = mem_new(struct image);
	int code = check_limits(r, d);

	if (code)
		return code;
	fill_config(r, &i->config);
	fill_services(r, i);
	if ((code = rules_build(r, options, d, i)) ||
	    (code = matrix_build(r, MATRIX_RULES, options, d, &i->tables,
				 &i->matrix[MATRIX_RULES])) ||
	    (code = build_members(r, options, d, i)))
		return code;
	vips_build(r, options->seed, &i->tables);
	edges_build(r, &i->tables);
	*ret = TAKE_PTR(i);
	return 0;
}

struct image *compile_names(const struct resolved *r)
{
	struct image *i = mem_new(struct image);

	rules_name(r, i);
	fill_services(r, i);
	return i;
}
