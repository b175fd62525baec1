// SPDX-License-Identifier: GPL-2.0-only
// weir capture: writes whole packets, with what became of them, as pcapng.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/event.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/capture_files.h"
#include "ctl/cmd/capture_wish.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/culprits.h"
#include "ctl/cmd/stop.h"
#include "ctl/control/capture_comment.h"
#include "ctl/control/capture_share.h"
#include "ctl/control/packet.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/captures.h"
#include "ctl/datapath/counters.h"

#define POLL_NS    20000000ull
#define MEASURE_NS 100000000ull
#define FOR_MOST   (7ull * 24 * 3600 * 1000)
#define FILE_MB    1000000ull
#define FILES_MOST 10000
#define RATE_MOST  10000000

struct capture {
	struct context *ctx;
	struct instance *instance;
	struct capture_wish wish;
	struct capture_files files;
	struct captures *captures;
	struct culprits culprits;
	struct capture_share share;
	uint32_t least;              // share so far
	uint64_t left;               // packets until the end; UINT64_MAX: no end
	uint64_t for_ns;             // 0: no end
	uint64_t polled_ns, wall_ns; // the last poll's; what to add to times of packets
	uint64_t seen, written;      // packets
	uint64_t lost_before, lost;
	int failed; // to write, with `why` set
	struct err why;
};

static void capture_free(struct capture *c)
{
	captures_close(c->captures);
	capture_files_free(&c->files);
	capture_wish_free(&c->wish);
	culprits_free(&c->culprits);
	instance_free(c->instance);
}

// ---- options ------------------------------------------------------------------------------------

static int read_rate(const char *word, uint64_t *ret, struct err *err)
{
	size_t len = word ? strlen(word) : 0;

	if (!word)
		return 0;
	if (len > 2 && !strcmp(word + len - 2, "/s") &&
	    !num_parse_count(word, len - 2, 1, RATE_MOST, ret))
		return 0;
	err_input(err, "--rate '%s' is not a number of packets per second", word);
	return err_hint(err, "for example --rate 100/s");
}

static int read_files(struct capture_files *f, const struct args *args, struct err *err)
{
	const char *size = args_value(args, "file-size"), *ring = args_value(args, "files");

	f->path = args_value(args, "write");
	f->force = args_has(args, "force");
	if (!f->path) {
		err_input(err, "missing -w FILE");
		return err_hint(err, "-w - writes to a pipe: weir capture -w - | tcpdump -nr -");
	}
	if (!f->path[0])
		return err_input(err, "-w requires the name of a file, or -");
	if (size && num_parse_u64(size, strlen(size), 1, UINT32_MAX, &f->most))
		return err_input(err, "--file-size '%s' is not a number of millions of bytes",
				 size);
	if (ring && num_parse_u64(ring, strlen(ring), 1, FILES_MOST, &f->ring))
		return err_input(err, "--files '%s' is not a number from 1 to %d", ring,
				 FILES_MOST);
	f->most *= FILE_MB;
	if (ring && !size)
		return err_input(err, "-W requires -C");
	if (size && !strcmp(f->path, "-"))
		return err_input(err, "-C cannot be combined with -w -");
	return 0;
}

static int read_options(struct capture *c, const struct args *args, struct err *err)
{
	const char *count = args_value(args, "count"), *length = args_value(args, "for");
	uint64_t ms = 0;
	int code = read_files(&c->files, args, err);

	if (code)
		return code;
	if (c->ctx->json && !strcmp(c->files.path, "-"))
		return err_input(err, "-j cannot be combined with -w -");
	c->left = UINT64_MAX;
	if (count && num_parse_count(count, strlen(count), 1, UINT32_MAX, &c->left))
		return err_input(err, "--count '%s' is not a count of 1 or more", count);
	if (length && num_parse_time_ms(length, strlen(length), 1, FOR_MOST, &ms)) {
		err_input(err, "--for '%s' is not a time of at most a week", length);
		return err_hint(err, "for example --for 10s");
	}
	c->for_ns = ms * 1000000;
	return read_rate(args_value(args, "rate"), &c->share.rate, err);
}

// ---- packets ------------------------------------------------------------------------------------

static void add_entry(struct capture *c, const struct captured *packet, const uint8_t *frame,
		      struct text *t)
{
	bool to = packet->reason == REASON_DROP_BLOCK_TO;
	const struct prefix *entry;
	struct packet_fields p;
	addr_text text;

	if (!to && packet->reason != REASON_DROP_BLOCK_FROM)
		return;
	packet_read(frame, packet->captured, &p);
	if (!p.ip)
		return;
	entry = culprits_entry(&c->culprits, to ? &p.to : &p.from,
			       to ? OVERLAY_BLOCK_TO : OVERLAY_BLOCK_FROM);
	if (entry)
		text_addf(t, ", entry %s", prefix_format(entry, text));
}

static void add_comment(struct capture *c, const struct captured *packet, const uint8_t *frame,
			struct text *t)
{
	struct capture_comment comment = {.reason = packet->reason, .share = packet->share};
	CLEANUP_TEXT struct text what = {0};
	struct sampled_packet read;

	if (packet->rule != EVENT_NO_RULE)
		text_addf(&what, ", rule \"%s\"", culprits_rule(&c->culprits, packet->rule));
	add_entry(c, packet, frame, &what);
	capture_read(packet, frame, &read);
	comment.front = read.front;
	capture_comment_write(&comment, text_get(&what), t);
}

static int keep(void *ctx, const struct captured *packet, const uint8_t *frame)
{
	CLEANUP_TEXT struct text comment = {0};
	struct capture *c = ctx;
	struct pcapng_packet p = {
		.captured = packet->captured,
		.length = packet->length,
		.time_ns = packet->time_ns + c->wall_ns,
		.bytes = frame,
	};

	c->seen++;
	if (!capture_wish_has(&c->wish, packet, frame))
		return 0;
	add_comment(c, packet, frame, &comment);
	p.comment = text_get(&comment);
	c->failed = capture_files_add(&c->files, packet->ifindex, &p, &c->why);
	if (c->failed)
		return c->failed;
	c->written++;
	c->left -= c->left != UINT64_MAX;
	return !c->left || c->files.ended;
}

static int read_lost(struct capture *c, uint64_t *ret, struct err *err)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	int code = counters_read_of(c->instance, 0, now, err);

	if (code)
		return code;
	*ret = now->tally[TALLY_CAPTURED_LOST];
	return 0;
}

// Takes what has arrived.
static int take(struct capture *c, size_t *ret_bytes, struct err *err)
{
	int code;

	c->wall_ns = time_ns(CLOCK_REALTIME) - time_ns(CLOCK_MONOTONIC);
	if ((code = captures_take(c->captures, ret_bytes, err)))
		return code;
	if (c->failed) {
		*err = c->why;
		return c->failed;
	}
	return capture_files_flush(&c->files, err);
}

// Takes what has arrived, and sets the share for the packets that arrive now.
static int poll_packets(struct capture *c, struct err *err)
{
	uint64_t now_ns = time_ns(CLOCK_MONOTONIC), lost = 0, seen = c->seen;
	struct capture_seen s;
	size_t bytes;
	int code;

	if ((code = take(c, &bytes, err)) || (code = read_lost(c, &lost, err)))
		return code;
	lost -= c->lost_before;
	s = (struct capture_seen){
		.full = (double)bytes / WEIR_CAPTURED_BYTES,
		.lost = lost - c->lost,
		.packets = c->seen - seen,
		.span_ns = now_ns - c->polled_ns,
	};
	c->lost = lost;
	c->polled_ns = now_ns;
	capture_share_next(&c->share, &s);
	c->least = c->share.share < c->least ? c->share.share : c->least;
	return captures_want(c->captures, c->share.share, err);
}

// The packets of all interfaces, for a rate that is not to be exceeded at the beginning.
static int measure(struct capture *c, double *ret_per_s, struct err *err)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	uint64_t packets[2] = {0}, at_ns[2];
	int code;

	for (size_t n = 0; n < 2; n++) {
		if (n)
			stop_sleep_until(at_ns[0] + MEASURE_NS);
		if ((code = counters_read(c->instance, now, err)))
			return code;
		at_ns[n] = time_ns(CLOCK_MONOTONIC);
		for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
			packets[n] += counters_reason(now, r).packets;
	}
	*ret_per_s = (double)(packets[1] - packets[0]) * 1e9 / (double)(at_ns[1] - at_ns[0]);
	return 0;
}

static int begin(struct capture *c, struct err *err)
{
	double per_s = 0;
	int code = c->share.rate ? measure(c, &per_s, err) : 0;

	if (code || (code = read_lost(c, &c->lost_before, err)))
		return code;
	capture_share_begin(&c->share, per_s);
	c->least = c->share.share;
	c->polled_ns = time_ns(CLOCK_MONOTONIC);
	return captures_want(c->captures, c->share.share, err);
}

static int loop(struct capture *c, struct err *err)
{
	uint64_t end_ns;
	int code = begin(c, err);

	if (code)
		return code;
	end_ns = c->for_ns ? c->polled_ns + c->for_ns : UINT64_MAX;
	while (!stop_asked && c->left && !c->files.ended && c->polled_ns < end_ns) {
		uint64_t next_ns = c->polled_ns + POLL_NS;

		stop_sleep_until(next_ns < end_ns ? next_ns : end_ns);
		if ((code = poll_packets(c, err)))
			return code;
	}
	return 0;
}

// Packets that the ring still has belong to the capture.
static int end(struct capture *c, struct err *err)
{
	uint64_t lost = 0;
	size_t bytes;
	int code;

	captures_stop(c->captures);
	if (c->left && !c->files.ended && (code = take(c, &bytes, err)))
		return code;
	if ((code = read_lost(c, &lost, err)))
		return code;
	c->lost = lost - c->lost_before;
	return capture_files_end(&c->files, c->lost, err);
}

// Standard output may have the packets.
static void tell(struct capture *c, const char *line)
{
	if (!strcmp(c->files.path, "-"))
		log_notice("%s", line);
	else
		out_line(c->ctx->out, "%s", line);
}

static void show(struct capture *c)
{
	CLEANUP_TEXT struct text result = {0}, fell = {0};
	struct out *o = c->ctx->out;
	capture_share_text least;
	num_text n;

	out_set_string(o, "file", c->files.path);
	out_set_u64(o, "files", c->files.number + 1);
	out_set_u64(o, "packets", c->written);
	out_set_u64(o, "filtered", c->seen - c->written);
	out_set_u64(o, "lost", c->lost);
	out_set_real(o, "least_share_percent", c->least / 4294967296.0 * 100);
	if (c->ctx->quiet)
		return;
	text_addf(&result, "%s %s written, %llu lost", num_format_grouped(c->written, n),
		  num_plural(c->written, "packet", "packets"), (unsigned long long)c->lost);
	tell(c, text_get(&result));
	if (c->least == CAPTURE_ALL)
		return;
	text_addf(&fell, "the share fell to %s packets; the comment of each packet has its share",
		  capture_share_format(c->least, least));
	tell(c, text_get(&fell));
}

// ---- the command --------------------------------------------------------------------------------

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(capture_free) struct capture c = {.ctx = ctx};
	int code = read_options(&c, args, err);

	if (code || (code = bpffs_ready(err)) ||
	    (code = instance_open(ctx->instance, &c.instance, err)) ||
	    (code = capture_wish_read(&c.wish, args, c.instance, err)))
		return code;
	c.culprits.instance = c.instance;
	c.files.snap = c.wish.kernel.snap;
	if ((code = captures_open(c.instance, &c.wish.kernel, keep, &c, &c.captures, err)) ||
	    (code = capture_files_open(&c.files, err)))
		return code;
	stop_catch();
	signal(SIGPIPE, SIG_IGN); // the reader of a pipe may end first
	if ((code = loop(&c, err)) || (code = end(&c, err)))
		return code;
	show(&c);
	return 0;
}

static const struct args_option options[] = {
	{.name = "write",
	 .letter = 'w',
	 .arg = "FILE",
	 .help = "write pcapng to FILE; -: to a pipe"},
	{.name = "interface",
	 .letter = 'i',
	 .arg = "IFACE",
	 .help = "packets that arrive on IFACE"},
	{.name = "snap",
	 .letter = 's',
	 .arg = "BYTES",
	 .help = "at most so many bytes of a packet (262144)"},
	{.name = "rule", .arg = "RULE", .help = "packets that this rule decides: its name or text"},
	{.name = "reason",
	 .arg = "REASON",
	 .help = "packets of this reason (weir stats)",
	 .repeated = true},
	{.name = "drops", .help = "dropped packets"},
	{.name = "service", .arg = "SERVICE", .help = "packets to this service, also dropped ones"},
	{.name = "count", .letter = 'c', .arg = "N", .help = "stop after N packets"},
	{.name = "for", .arg = "TIME", .help = "stop after TIME"},
	{.name = "rate", .arg = "N/s", .help = "a share of the packets, about N per second"},
	{.name = "file-size",
	 .letter = 'C',
	 .arg = "MB",
	 .help = "begin another file after so many millions of bytes"},
	{.name = "files",
	 .letter = 'W',
	 .arg = "N",
	 .help = "with -C: keep N files, replace the oldest"},
	{.name = "force", .help = "replace an existing FILE"},
	{0},
};

const struct command cmd_capture = {
	.name = "capture",
	.usage = "-w FILE|- [OPTIONS] [FILTER]",
	.summary = "write whole packets to a file, with what became of them",
	.text = "Passed, sent and dropped packets, as pcapng. The comment of each one has the verdict, the\n"
		"reason, the rule or entry, and the share of packets that was captured: it falls while the\n"
		"reader is too slow. FILTER is a filter of tcpdump: pcap-filter(7).\n"
		"\n"
		"  weir capture -w drops.pcapng --drops --for 10s\n"
		"  weir capture -w - -i eth0 udp port 53 | wireshark -k -i -",
	.options = options,
	.run = run,
};
