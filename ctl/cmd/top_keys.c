// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/cmd/top_keys.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/top_table.h"
#include "ctl/net/geo_db.h"

// ---- keys ---------------------------------------------------------------------------------------

static int read_key(struct top_keys *k, const char *word, size_t len, struct err *err)
{
	CLEANUP_TEXT struct text known = {0};

	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		const char *name = sampled_about[by].word;

		if (strlen(name) == len && !memcmp(word, name, len)) {
			k->by[by] = true;
			return 0;
		}
		text_addf(&known, "%s%s", by ? ", " : "", name);
	}
	err_input(err, "--by '%.*s' is not a key", (int)len, word);
	return err_hint(err, "the keys are %s", text_get(&known));
}

int top_keys_read(struct top_keys *k, const char *words, struct err *err)
{
	k->all = !strcmp(words, "all");
	for (enum sampled_by by = 0; k->all && by < SAMPLED_BY_COUNT; by++)
		k->by[by] = true;
	while (!k->all) {
		size_t len = strcspn(words, ",");
		int code = read_key(k, words, len, err);

		if (code || !words[len])
			return code;
		words += len + 1;
	}
	return 0;
}

int top_keys_open(struct top_keys *k, struct err *err)
{
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		enum geo_kind kind = sampled_geo(by);
		int code;

		if (!kind || !k->by[by])
			continue;
		code = geo_look_open(kind, &k->looks[kind - 1], k->all ? NULL : err);
		if (code && !k->all)
			return code;
		k->by[by] = !code;
	}
	return 0;
}

void top_keys_free(struct top_keys *k)
{
	for (size_t n = 0; n < ARRAY_SIZE(k->looks); n++)
		geo_look_close(TAKE_PTR(k->looks[n]));
}

bool top_keys_place(void *ctx, enum geo_kind kind, const struct addr *a, struct geo *ret)
{
	const struct top_keys *k = ctx;

	return kind && k->looks[kind - 1] && geo_look_find(k->looks[kind - 1], a, ret);
}

// ---- tables -------------------------------------------------------------------------------------

static void show_count(struct out *o, const char *key, const char *column, double count)
{
	num_text text;

	out_set_real(o, key, count);
	out_cell_as(o, NULL, column, num_format_short(count, text), 0);
}

static void show_row(struct out *o, const struct sampled_about *about,
		     const struct sampled_row *row, const struct top_keys_view *view)
{
	char share[32];

	out_row(o);
	out_cell(o, about->word, about->column, row->text);
	if (view->counts) {
		show_count(o, "packets", "PACKETS", row->packets);
		show_count(o, "bytes", "BYTES", row->bytes);
	}
	if (view->seconds > 0) {
		top_show_rate(o, "packets_per_s", "PACKETS/S", row->packets / view->seconds);
		top_show_rate(o, "bytes_per_s", "BYTES/S", row->bytes / view->seconds);
	}
	out_set_real(o, "share_percent", row->share * 100);
	out_set_real(o, "error_percent", row->error * 100);
	out_set_u64(o, "samples", row->samples);
	snprintf(share, sizeof(share), "%.1f %% ±%.1f", row->share * 100, row->error * 100);
	out_cell_as(o, NULL, "SHARE", share, 0);
}

void top_keys_show(const struct top_keys *k, struct out *o, const struct sampled_reading *r,
		   const struct top_keys_view *view)
{
	bool any = false;

	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		const struct sampled_list *l = &r->lists[by];

		if (!k->by[by] || !r->known[by])
			continue;
		if (any && l->rows.n)
			out_line(o, "%s", "");
		any = any || l->rows.n;
		out_table(o, sampled_about[by].array);
		for (size_t n = 0; n < l->rows.n && n < k->most; n++)
			show_row(o, &sampled_about[by], &l->rows.at[n], view);
		out_table_end(o);
	}
}
