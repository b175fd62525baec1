// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/table/rules_connections.h"

#include <errno.h>

#include "common/connections.h"
#include "common/limits-policy.h"
#include "ctl/base/mem.h"

#define PORTS 65536

static void add_ports(const struct resolved_rule *from, uint32_t bit, uint32_t *ports)
{
	const struct range16 all = {0, PORTS - 1};
	const struct range16 *at = from->dport.given ? from->dport.at : &all;

	for (size_t i = 0; i < (from->dport.given ? from->dport.n : 1); i++)
		for (uint32_t port = at[i].first; port <= at[i].last; port++)
			ports[port] |= bit;
}

int rules_connections_add(const struct resolved_rule *from, struct policy_rule *to, struct image *i,
			  struct diag *d)
{
	const struct resolved_limit *limit = &from->limit;

	if (i->n_connection_rules == CONNECTION_RULES) {
		diag_error(d, from->at, NULL, "more than %d rules with a number of connections",
			   CONNECTION_RULES);
		return -EINVAL;
	}
	if (limit->max > POLICY_RATE_MAX - i->connection_sources) {
		diag_error(d, from->at, "write a smaller 'max'",
			   "the tables of connections of all rules take too much memory");
		return -EINVAL;
	}
	if (!i->rules_of_port)
		i->rules_of_port = mem_zalloc(PORTS, sizeof(*i->rules_of_port));
	to->flags |= RULE_CONNECTIONS | (limit->under ? RULE_UNDER : 0);
	to->per = limit->per;
	to->mask4 = limit->mask4;
	to->mask6 = limit->mask6;
	to->connections = (uint32_t)limit->count;
	to->connection_rule = i->n_connection_rules++;
	i->connection_sources += limit->max;
	i->connection_rules[to->connection_rule] = (struct connection_rule){
		.mask4 = to->mask4, .mask6 = to->mask6, .ports = to->per == PER_SOURCE_PORT};
	add_ports(from, 1u << to->connection_rule, i->rules_of_port);
	return 0;
}
