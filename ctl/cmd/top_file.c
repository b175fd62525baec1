// SPDX-License-Identifier: GPL-2.0-only
// Counts the packets of a file by the keys of weir top --by. A packet with a share in its comment
// stands for several.
#include "ctl/cmd/top_file.h"

#include "ctl/base/num.h"
#include "ctl/cmd/top_keys.h"
#include "ctl/cmd/top_table.h"
#include "ctl/control/capture_comment.h"
#include "ctl/control/capture_share.h"
#include "ctl/control/sampled_packet.h"
#include "ctl/net/capture_file.h"

#define KEYS "source,destination,port"

struct top_file {
	struct context *ctx;
	const char *path;
	struct top_keys keys;
	struct sampled_window window;
	uint64_t from_us, until_us; // times of the packets
	uint64_t lost;              // by the statistics of the file
	size_t shared;              // packets that were chosen by a share
};

static void top_file_free(struct top_file *t)
{
	sampled_free(&t->window);
	top_keys_free(&t->keys);
}

// ---- packets ------------------------------------------------------------------------------------

static void add(struct top_file *t, const struct captured_packet *p)
{
	struct capture_comment comment = {.reason = REASON_PASS_DEFAULT, .share = CAPTURE_ALL};
	struct sampled sample = {.length = (uint32_t)p->length};

	capture_comment_read(p->note.comment.at, p->note.comment.len, &comment);
	sample.reason = (uint16_t)comment.reason;
	sample.share = comment.share;
	sampled_fill(&sample, p->bytes, p->captured, comment.front);
	sampled_add(&t->window, &sample);
	t->shared += comment.share != CAPTURE_ALL;
	t->from_us = p->time_us < t->from_us ? p->time_us : t->from_us;
	t->until_us = p->time_us > t->until_us ? p->time_us : t->until_us;
}

static int read_file(struct top_file *t, struct err *err)
{
	CLEANUP_CAPTURE_FILE struct capture_file file = {0};
	struct captured_packet packet;
	int more, code = capture_file_open(t->path, &file, err);

	if (code)
		return code;
	t->from_us = UINT64_MAX;
	while ((more = capture_file_next(&file, &packet, err)) > 0)
		add(t, &packet);
	if (more) {
		err_prefix(err, "'%s'", t->path);
		return more;
	}
	t->lost = file.notes.lost;
	return 0;
}

// ---- output -------------------------------------------------------------------------------------

// Prints the rest: estimates, lost packets.
static void show_rest(const struct top_file *t)
{
	size_t n = sampled_n(&t->window);
	struct out *o = t->ctx->out;
	num_text all, shared;

	if (t->ctx->quiet)
		return;
	if (!n)
		out_line(o, "'%s' contains no packet", t->path);
	if (t->shared)
		out_line(o, "%s of %s %s were captured by a share: the counts are estimated",
			 num_format_grouped(t->shared, shared), num_format_grouped(n, all),
			 num_plural(n, "packet", "packets"));
	if (t->lost)
		out_line(o, "%s %s lost: the counts are too low", num_format_grouped(t->lost, all),
			 num_plural(t->lost, "packet was", "packets were"));
}

static void show(struct top_file *t)
{
	size_t n = sampled_n(&t->window);
	uint64_t span_us = n ? t->until_us - t->from_us : 0;
	const struct top_keys_view view = {.seconds = (double)span_us / 1e6, .counts = true};
	struct sampled_reading reading = {0};
	struct out *o = t->ctx->out;

	out_set_string(o, "file", t->path);
	out_set_time(o, "from", n ? t->from_us / 1000000 : UINT64_MAX);
	out_set_u64(o, "span_us", span_us);
	out_set_u64(o, "samples", n);
	out_set_u64(o, "shared", t->shared);
	out_set_u64(o, "lost", t->lost);
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		reading.known[by] = t->keys.by[by];
		if (t->keys.by[by])
			sampled_rows(&t->window, by, &reading.lists[by]);
	}
	top_keys_show(&t->keys, o, &reading, &view);
	sampled_reading_free(&reading);
	show_rest(t);
}

static int refuse_others(const struct args *args, struct err *err)
{
	static const char *const others[] = {"every", "all", "batch", "for", "count"};

	for (size_t n = 0; n < ARRAY_SIZE(others); n++)
		if (args_has(args, others[n]))
			return err_input(err, "--%s cannot be combined with --read", others[n]);
	return 0;
}

int top_file_run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(top_file_free)
	struct top_file t = {.ctx = ctx, .path = args_value(args, "read"), .window.exact = true};
	const char *by = args_value(args, "by");
	uint64_t unused = 0;
	int code = refuse_others(args, err);

	if (code || (code = top_read_counts(args, &t.keys.most, &unused, err)) ||
	    (code = top_keys_read(&t.keys, by ? by : KEYS, err)) ||
	    (code = top_keys_open(&t.keys, err)) || (code = read_file(&t, err)))
		return code;
	t.window.place = top_keys_place;
	t.window.place_ctx = &t.keys;
	show(&t);
	return 0;
}
