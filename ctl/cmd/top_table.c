// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/cmd/top_table.h"

#include <stdint.h>
#include <string.h>

#include "ctl/base/best.h"
#include "ctl/base/num.h"

int top_read_counts(const struct args *args, size_t *ret_most, uint64_t *left, struct err *err)
{
	const char *most = args_value(args, "top"), *count = args_value(args, "count");
	uint64_t n;

	*ret_most = BEST_ALL;
	if (most && num_parse_u64(most, strlen(most), 1, SIZE_MAX - 1, &n))
		return err_input(err, "--top '%s' is not a number of rows, 1 or more", most);
	if (most)
		*ret_most = (size_t)n;
	if (count && num_parse_count(count, strlen(count), 1, UINT32_MAX, left))
		return err_input(err, "--count '%s' is not a count of 1 or more", count);
	return 0;
}

void top_show_rate(struct out *o, const char *key, const char *column, double rate)
{
	num_text text;

	out_set_real(o, key, rate);
	out_cell_as(o, NULL, column, num_format_short(rate, text), 0);
}
