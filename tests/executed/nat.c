// SPDX-License-Identifier: GPL-2.0-only
// Rows of nat and fullnat through a policy: a packet of a connection that is known, to its backend
// and back, and one that opens a connection.
#include "tests/executed/nat.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/clock.h"
#include "tests/bench/bench.h"
#include "tests/datapath/nat_world.h"
#include "tests/executed/emulate.h"

#define SYN 0x02
#define ACK 0x10

static const struct nat_row {
	const char *id;
	uint8_t family, vip;
	enum { FORWARD, ANSWER, OPEN } kind;
} rows[] = {
	{"nat-forward", 4, VIP_NAT, FORWARD},
	{"nat-answer", 4, VIP_NAT, ANSWER},
	{"nat-open", 4, VIP_NAT, OPEN},
	{"fullnat-forward", 4, VIP_FULLNAT, FORWARD},
	{"fullnat-answer", 4, VIP_FULLNAT, ANSWER},
	{"fullnat-open", 4, VIP_FULLNAT, OPEN},
	{"nat-forward-v6", 6, VIP_NAT, FORWARD},
	{"nat-answer-v6", 6, VIP_NAT, ANSWER},
	{"nat-open-v6", 6, VIP_NAT, OPEN},
	{"fullnat-forward-v6", 6, VIP_FULLNAT, FORWARD},
	{"fullnat-answer-v6", 6, VIP_FULLNAT, ANSWER},
	{"fullnat-open-v6", 6, VIP_FULLNAT, OPEN},
};

// A rule, and VIPs whose port the backends have.
static const char policy[] =
	"default pass\n"
	"drop from 10.0.0.66\n"
	"\"noisy\" pass from 10.0.0.77 log 1/s\n"
	"service near4 { vip 10.0.0.1; port 80; mode nat; connections 1024; backend 10.0.0.3 }\n"
	"service far4 { vip 10.0.0.2; port 80; mode fullnat; source 10.0.0.4; backend 10.0.0.3 }\n"
	"service near6 { vip fd00::1; port 80; mode nat; connections 1024; backend fd00::3 }\n"
	"service far6 { vip fd00::2; port 80; mode fullnat; source fd00::4; backend fd00::3 }\n";

static uint64_t jiffies(void)
{
	struct err err = {0};
	struct clock now;
	CLEANUP_FD int program = -1;

	if (clock_load(&program, &err) || clock_read(program, &now, &err))
		bench_die(&err);
	return now.jiffies;
}

// Runs the frame in the kernel, which notes it for the next packet. Returns its length as it was
// sent back.
static size_t run(const struct nat_rig *r, const uint8_t *frame, size_t len, uint8_t *out)
{
	size_t sent = NAT_WORLD_FRAME;

	if (nat_rig_send(r, frame, len, out, &sent) != XDP_TX)
		bench_fail(EBADMSG, "a packet of a row was not sent");
	return sent;
}

// The frame of the row; before, a connection was begun and talks.
static size_t prepare(const struct nat_rig *r, const struct nat_row *row, uint8_t *ret)
{
	struct nat_names_of_frame n = nat_world_names(row->family, CLIENT, row->vip), to;
	size_t len = nat_world_frame(&n, SYN, ret);
	uint8_t out[NAT_WORLD_FRAME];

	run(r, ret, len, out);
	len = nat_world_frame(&n, ACK, ret);
	run(r, ret, len, out);
	if (row->kind == FORWARD)
		return len;
	if (row->kind == OPEN) {
		n.sport++;
		return nat_world_frame(&n, SYN, ret);
	}
	to = nat_world_read(out);
	n = nat_world_turned(&to);
	return nat_world_frame(&n, ACK, ret);
}

static void count_row(const struct nat_rig *r, const struct nat_row *row, struct report *report)
{
	uint8_t frame[NAT_WORLD_FRAME];
	size_t len = prepare(r, row, frame);
	struct machine *m = emulate_new(jiffies(), r->rig->ifindex);
	struct emulation e = {0};
	const char *why = emulate(m, r->rig->entry_prog, frame, len, &e);
	uint8_t out[NAT_WORLD_FRAME];
	size_t sent = run(r, frame, len, out);

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
	struct nat_rig *r = nat_rig_new(policy, false);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (bench_wants(b, rows[i].id))
			count_row(r, &rows[i], b->report);
	nat_rig_free(r);
}
