// SPDX-License-Identifier: GPL-2.0-only
// Names rules: the kernel has indexes of counters, the record of the revision has the text.
#include "ctl/cmd/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/control/active.h"
#include "ctl/datapath/identities.h"

static int load(const struct instance *i, enum active_part part, struct candidate **ret,
		struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code = active_record(i, part, c, about, err);

	if (code)
		return code;
	if (candidate_name(c, about->path, NULL, 0))
		return active_broken(about, err);
	*ret = TAKE_PTR(c);
	return 0;
}

int rules_load(const struct instance *i, bool addresses, struct candidate **ret, struct err *err)
{
	struct err why = {0};
	int code = load(i, addresses ? ACTIVE_KNOWN : ACTIVE_NAMES, ret, &why);

	if (code == -EBADMSG) // where the record has not all that it could have, the texts have it
		return load(i, ACTIVE_ALL, ret, err);
	if (code && err)
		*err = why;
	return code;
}

static int show_rule(struct context *ctx, const struct instance *i, const struct image_rule *about,
		     struct err *err)
{
	struct counter counter;
	int code = identities_count(i, about->identity, &counter, err);

	if (code)
		return code;
	out_row(ctx->out);
	out_cell(ctx->out, "place", "PLACE", about->place);
	out_cell_u64(ctx->out, "packets", "PACKETS", counter.packets);
	out_cell_u64(ctx->out, "bytes", "BYTES", counter.bytes);
	out_cell(ctx->out, "rule", "RULE", about->identity);
	return 0;
}

static int show_each(struct context *ctx, const struct instance *i, const struct image *image,
		     struct err *err)
{
	for (size_t r = 0; r < image->n_rules; r++) {
		int code = show_rule(ctx, i, &image->about[r], err);

		if (code)
			return code;
	}
	return 0;
}

int rules_show(struct context *ctx, const struct instance *i, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	struct err why = {0};
	int code = rules_load(i, false, &c, &why);

	if (code == -ENOENT && !why.kind)
		return 0;
	if (code) {
		*err = why;
		return code;
	}
	if (c->image->n_rules)
		out_line(ctx->out, "%s", "");
	out_table(ctx->out, "rules");
	code = show_each(ctx, i, c->image, err);
	out_table_end(ctx->out);
	return code;
}
