// SPDX-License-Identifier: GPL-2.0-only
// Chooses how the IPv6 addresses of a side are stored: hosts in lines, the others as one row or in
// nodes.
#include "ctl/table/table6.h"

#include "ctl/table/table6_hosts.h"
#include "ctl/table/table6_nodes.h"

static int add_nodes(struct tables *t, enum table_side side, const struct regions *r)
{
	struct table6_nodes nodes;
	int code;

	if (r->n == 1) {
		tables_number(t, SIDE_CONSTANT(side, T6_KIND), TABLE6_ONE);
		tables_number(t, SIDE_CONSTANT(side, T6_NONE), r->at[0].row);
		return 0;
	}
	if ((code = table6_nodes_build(r, TABLES_BYTES_MAX, &nodes)))
		return code;
	code = table6_nodes_add(&nodes, t, side,
				table6_nodes_are_narrow(&nodes) ? TABLE6_NODES : TABLE6_WIDE);
	table6_nodes_free(&nodes);
	return code;
}

int table6_build(struct tables *t, enum table_side side, const struct regions *r, uint64_t seed)
{
	size_t hosts = table6_hosts_count(r);
	struct regions rest;
	int code;

	if (!table6_hosts_pay(r, hosts)) {
		tables_number(t, SIDE_CONSTANT(side, H6_LINES_N), 0);
		return add_nodes(t, side, r);
	}
	if ((code = table6_hosts_build(t, side, r, hosts, seed, &rest)))
		return code;
	code = add_nodes(t, side, &rest);
	vec_free(&rest);
	return code;
}
