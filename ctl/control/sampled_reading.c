// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/control/sampled_reading.h"

#include <stdio.h>

void sampled_reading_copy(const struct sampled_reading *from, struct sampled_reading *ret)
{
	*ret = *from;
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		ret->lists[by] = (struct sampled_list){0};
		vec_each (&from->lists[by].rows, row)
			vec_push(&ret->lists[by].rows, *row);
	}
}

void sampled_reading_free(struct sampled_reading *r)
{
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++)
		sampled_list_free(&r->lists[by]);
	*r = (struct sampled_reading){0};
}

static void take_row(const struct json *j, const char *word, double seconds,
		     struct sampled_list *ret)
{
	const char *text = json_get_string(j, word);
	struct sampled_row row = {
		.samples = json_get_u64(j, "samples"),
		.packets = json_get_real(j, "packets_per_s") * seconds,
		.bytes = json_get_real(j, "bytes_per_s") * seconds,
		.share = json_get_real(j, "share_percent") / 100,
		.error = json_get_real(j, "error_percent") / 100,
	};

	snprintf(row.text, sizeof(row.text), "%s", text ? text : "");
	vec_push(&ret->rows, row);
}

void sampled_reading_take(const struct json *document, struct sampled_reading *ret)
{
	*ret = (struct sampled_reading){
		.span_us = json_get_u64(document, "span_us"),
		.samples = json_get_u64(document, "samples"),
		.sampled = json_get_real(document, "sampled_percent") / 100,
		.lost = json_get_u64(document, "lost"),
	};
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		const struct json *rows = json_get(document, sampled_about[by].array);

		ret->known[by] = rows;
		for (size_t n = 0; n < json_length(rows); n++)
			take_row(json_at(rows, n), sampled_about[by].word,
				 (double)ret->span_us / 1e6, &ret->lists[by]);
	}
}
