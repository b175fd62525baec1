// SPDX-License-Identifier: GPL-2.0-only
// Counts hosts, and decides whether they get lines.
#include "ctl/table/lines.h"

size_t lines_count(const struct regions *r, int family)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += lines_hosts(r, i, family);
	return n;
}

// Is everything but the hosts one row, so that no trie is needed beside the lines?
static bool is_flat(const struct regions *r, int family)
{
	policy_row row = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (lines_hosts(r, i, family))
			continue;
		if (row && r->at[i].row != row)
			return false;
		row = r->at[i].row;
	}
	return true;
}

bool lines_pay(const struct regions *r, int family, size_t hosts)
{
	return hosts && (family == 6 || hosts > LINES_FEW4 || is_flat(r, family));
}
