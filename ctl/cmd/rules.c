// SPDX-License-Identifier: GPL-2.0-only
// Names rules: the kernel has indexes of counters, the record of the revision has the text.
#include "ctl/cmd/rules.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/identities.h"

// The active policy was recorded when it was applied: a missing record is a fault of the system, not of the caller.
static int load_record(const char *instance, const struct generation_about *about,
		       struct environment *e, struct revision *ret, struct err *err)
{
	int code = revisions_load(instance, about->revision, e, ret, err);

	if (code != -ENOENT)
		return code;
	err_input(err, "the record of revision %s is missing: its rules have no names",
		  about->revision);
	err_hint(err, "weir apply %s writes it again", about->path);
	if (err)
		err->kind = ERR_SYSTEM;
	return -ENODATA;
}

int rules_load(const struct instance *i, struct candidate **ret, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP(revision_free) struct revision revision = {0};
	struct commit_state state;
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	if ((code = generation_read_about(i, state.in_force, about, err)))
		return code;
	if (!about->revision[0])
		return -ENOENT;
	if ((code = load_record(i->name, about, &c->environment, &revision, err)))
		return code;
	if (candidate_compile(c, about->path, NULL, 0))
		return err_system(err, EBADMSG, "the record of revision %s does not compile",
				  about->revision);
	*ret = TAKE_PTR(c);
	return 0;
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
	int code = rules_load(i, &c, &why);

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
