// SPDX-License-Identifier: GPL-2.0-only
// Prints a reading of the table of connections.
#include "ctl/cmd/nat_show.h"

#include <stdio.h>

#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/cmd/service_show.h"

void nat_set_sum(struct out *o, struct nat_sum sum)
{
	out_set_u64(o, "connections", sum.living);
	out_set_u64(o, "connections_opening", sum.opening);
}

const char *nat_format_sum(struct nat_sum sum, nat_sum_text buf)
{
	num_text living, opening;

	snprintf(buf, sizeof(nat_sum_text), "%s %s, %s opening",
		 num_format_grouped(sum.living, living),
		 num_plural(sum.living, "connection", "connections"),
		 num_format_grouped(sum.opening, opening));
	return buf;
}

static bool is_fullnat(const struct nat_block_reading *b)
{
	return b->source.family != 0;
}

static const char *source_of(const struct nat_block_reading *b, addr_text buf)
{
	return is_fullnat(b) ? addr_format(&b->source, buf) : "";
}

static void show_block(struct out *o, const struct nat_block_reading *b)
{
	addr_text source;

	out_row(o);
	out_cell(o, "mode", "MODE",
		 service_mode_name(is_fullnat(b) ? SERVICE_FULLNAT : SERVICE_NAT));
	out_cell(o, "family", "FAMILY", b->family == 4 ? "ipv4" : "ipv6");
	out_cell_u64(o, "block", "BLOCK", b->block);
	out_cell(o, "source", "SOURCE", source_of(b, source));
	out_cell_u64(o, "connections", "CONNECTIONS", b->living);
	out_cell(o, NULL, "NEW ONES", b->newest ? "yes" : "no");
	out_set_bool(o, "takes_new", b->newest != 0);
}

static void show_blocks(struct out *o, const struct nat_reading *r)
{
	out_table(o, "nat_blocks");
	vec_each (&r->blocks, block)
		show_block(o, block);
	out_table_end(o);
}

static void set_blocks(struct out *o, const struct nat_reading *r)
{
	if (out_is_json(o))
		show_blocks(o, r);
}

void nat_show(struct out *o, const struct nat_reading *r, bool table)
{
	const struct nat_census *c = &r->census;
	nat_sum_text sum;

	if (!r->blocks.n)
		return;
	out_set_u64(o, "nat_connections", c->living);
	out_set_u64(o, "nat_opening", c->opening);
	out_set_u64(o, "nat_fullest_group", c->fullest);
	out_set_u64(o, "nat_group_places", NAT_GROUP);
	out_set_u64(o, "nat_peers", c->peers);
	out_set_u64(o, "nat_peers_max", NAT_PEERS - 1);
	if (table)
		out_line(o, "%s", "");
	out_line(o, "nat       %s in %zu %s; fullest group %zu of %d; %zu %s to clients",
		 nat_format_sum((struct nat_sum){c->living, c->opening}, sum), r->blocks.n,
		 num_plural(r->blocks.n, "block", "blocks"), c->fullest, NAT_GROUP, c->peers,
		 num_plural(c->peers, "way", "ways"));
	if (table)
		show_blocks(o, r);
	else
		set_blocks(o, r);
}

void nat_show_former(struct out *o, const struct nat_reading *r)
{
	num_text living;
	addr_text source;

	vec_each (&r->blocks, b)
		if (is_fullnat(b) && !b->newest && b->living)
			out_line(
				o,
				"          former source %s: %s %s; the address must remain on this "
				"host until the last one ends",
				source_of(b, source), num_format_grouped(b->living, living),
				num_plural(b->living, "connection", "connections"));
}
