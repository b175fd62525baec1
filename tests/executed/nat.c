// SPDX-License-Identifier: GPL-2.0-only
// Rows of nat and fullnat: a packet of a connection that is known, to its backend and back, through
// a policy.
#include "tests/executed/nat.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/clock.h"
#include "tests/bench/bench.h"
#include "tests/datapath/nat_policy_rig.h"
#include "tests/executed/emulate.h"

#define SYN 0x02
#define ACK 0x10

static const struct nat_row {
	const char *id;
	uint8_t family, vip;
	bool answer;
} rows[] = {
	{"nat-forward", 4, VIP_NAT, false},
	{"nat-answer", 4, VIP_NAT, true},
	{"fullnat-forward", 4, VIP_FULLNAT, false},
	{"fullnat-answer", 4, VIP_FULLNAT, true},
	{"nat-forward-v6", 6, VIP_NAT, false},
	{"nat-answer-v6", 6, VIP_NAT, true},
	{"fullnat-forward-v6", 6, VIP_FULLNAT, false},
	{"fullnat-answer-v6", 6, VIP_FULLNAT, true},
};

static uint64_t jiffies(void)
{
	struct err err = {0};
	struct clock now;
	CLEANUP_FD int program = -1;

	if (clock_load(&program, &err) || clock_read(program, &now, &err))
		bench_die(&err);
	return now.jiffies;
}

// Runs the frame in the kernel, which notes it for the next packet.
static size_t run(struct nat_policy *w, const uint8_t *frame, size_t len, uint8_t *out)
{
	size_t sent = nat_policy_send(w, frame, len, out);

	if (!sent)
		bench_fail(EBADMSG, "a packet of a row was not sent");
	return sent;
}

// The frame of the row, after a connection was begun and talks.
static size_t prepare(struct nat_policy *w, const struct nat_row *row, uint8_t *ret)
{
	struct nat_names_of_frame n = nat_world_names(row->family, CLIENT, row->vip), to;
	size_t len = nat_world_frame(&n, SYN, ret);
	uint8_t out[NAT_WORLD_FRAME];

	run(w, ret, len, out);
	len = nat_world_frame(&n, ACK, ret);
	run(w, ret, len, out);
	if (!row->answer)
		return len;
	to = nat_world_read(out);
	n = (struct nat_names_of_frame){
		.family = row->family, .sport = to.dport, .dport = to.sport};
	memcpy(n.src, to.dst, sizeof(n.src));
	memcpy(n.dst, to.src, sizeof(n.dst));
	return nat_world_frame(&n, ACK, ret);
}

static void count_row(struct nat_policy *w, const struct nat_row *row, struct report *report)
{
	uint8_t frame[NAT_WORLD_FRAME];
	size_t len = prepare(w, row, frame);
	struct machine *m = emulate_new(jiffies(), nat_policy_ifindex(w));
	struct emulation e = {0};
	const char *why = emulate(m, nat_policy_program(w), frame, len, &e);
	uint8_t out[NAT_WORLD_FRAME];
	size_t sent = run(w, frame, len, out);

	if (why) {
		counts_fail(report, row->id, why);
	} else if (e.verdict != XDP_TX || e.bytes != sent || memcmp(e.frame, out, e.bytes) != 0) {
		counts_fail(report, row->id, "the kernel answers something else");
	} else {
		struct count c = {e.executed, e.executed, e.executed, e.lines, e.large};

		counts_add(report, row->id, &c, e.helpers, e.n_helpers);
	}
	emulate_free(m);
}

void nat_count_rows(const struct bench *b)
{
	struct nat_policy *w = nat_policy_new(false);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (bench_wants(b, rows[i].id))
			count_row(w, &rows[i], b->report);
	nat_policy_free(w);
}
