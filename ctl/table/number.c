// SPDX-License-Identifier: GPL-2.0-only
// Renumbers the rows: rows of hosts first, by the number of their hosts, then the others in their
// order.
#include "ctl/table/number.h"

#include <stdlib.h>

#include "ctl/base/mem.h"

struct wanted {
	uint32_t row, hosts;
};

static int wanted_compare(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->hosts != y->hosts)
		return x->hosts > y->hosts ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static uint32_t *hosts_count(size_t n_rows, const struct number_regions *list, size_t n_list)
{
	uint32_t *hosts = mem_zalloc(n_rows, sizeof(*hosts));

	for (size_t l = 0; l < n_list; l++)
		for (size_t i = 0; list[l].lines && i < list[l].regions->n; i++)
			hosts[list[l].regions->at[i].row] +=
				lines_hosts(list[l].regions, i, list[l].family);
	return hosts;
}

// number[] holds hosts by row and gets the new numbers.
static void numbers_assign(uint32_t *number, size_t n_rows)
{
	VEC(struct wanted) wanted = {0};
	uint32_t next = POLICY_ROW_ALL + 1;

	for (uint32_t i = next; i < n_rows; i++)
		if (number[i])
			vec_push(&wanted, ((struct wanted){i, number[i]}));
	if (wanted.n)
		qsort(wanted.at, wanted.n, sizeof(*wanted.at), wanted_compare);
	for (uint32_t i = 0; i < n_rows; i++)
		number[i] = i <= POLICY_ROW_ALL ? i : 0;
	vec_each (&wanted, w)
		number[w->row] = next++;
	for (uint32_t i = POLICY_ROW_ALL + 1; i < n_rows; i++)
		if (!number[i])
			number[i] = next++;
	vec_free(&wanted);
}

void number_rows(struct rows *rows, __u32 *fields, size_t n_fields, struct number_regions *list,
		 size_t n_list)
{
	CLEANUP_FREE uint32_t *number = NULL;

	if (rows->n <= (size_t)UINT16_MAX + 1)
		return;
	number = hosts_count(rows->n, list, n_list);
	numbers_assign(number, rows->n);
	for (size_t i = 0; i < n_fields; i++)
		fields[i] = number[fields[i]];
	for (size_t l = 0; l < n_list; l++)
		vec_each (list[l].regions, region)
			region->row = number[region->row];
	rows_renumber(rows, number);
}
