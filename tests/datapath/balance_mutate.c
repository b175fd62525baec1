// SPDX-License-Identifier: GPL-2.0-only
// Breaks frames: none may be counted as `internal` or `service-forward`, no passed frame may
// change, every sent frame has the length that its headers have, and the general program by itself
// treats each in the same way.
#include "tests/datapath/balance_mutate.h"
#include "ctl/datapath/test_program.h"

#include <linux/bpf.h>
#include <string.h>

#define CHANGED     6  // frames made of each
#define CUT_EVERY   16 // is cut after every byte
#define CUT_MAX     160
#define ETH_BYTES   14
#define HEADERS_MAX 160 // where changes go

static uint64_t draw(uint64_t *state) // xorshift64 (Marsaglia 2003)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static bool is_answer(uint32_t reason)
{
	static const uint8_t verdicts[] = {
#define X(symbol, name, verdict, group, text) [REASON_##symbol] = VERDICT_##verdict,
		WEIR_REASONS(X)
#undef X
	};

	return verdicts[reason] == VERDICT_TX;
}

static uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

// Does the output frame have the whole IP packet?
static bool is_whole(const struct frame *f)
{
	size_t at = ETH_BYTES;
	uint32_t type = f->len < ETH_BYTES ? 0 : be16(f->at + 12);

	for (int tags = 0; tags < 4 && (type == 0x8100 || type == 0x88a8); tags++) {
		if (f->len < at + 4)
			return false;
		type = be16(f->at + at + 2);
		at += 4;
	}
	if (type == 0x0800)
		return f->len >= at + 20 && f->len >= at + be16(f->at + at + 2);
	return type == 0x86dd && f->len >= at + 40 && f->len >= at + 40 + be16(f->at + at + 4);
}

// The error of a verdict; NULL: no error.
static const char *problem(const struct outcome *o, const struct test_result *test)
{
	uint32_t reason = test->reason;

	if (reason >= WEIR_REASON_COUNT || reason == REASON_DROP_INTERNAL ||
	    reason == REASON_DROP_FORWARD)
		return "a reason that no frame should have";
	if (o->verdict == XDP_DROP && (reason_drops(reason) || is_answer(reason)))
		return NULL; // answers have budgets that the test program does not know
	if (o->verdict != test->verdict)
		return "another verdict than the test program's";
	if (o->out->len != test->length || memcmp(o->out->at, test->packet, test->length) != 0)
		return "another frame than the test program's";
	if (o->verdict == XDP_PASS)
		return o->changed ? "passed up, but changed" : NULL;
	if (reason != REASON_PASS_SERVICE && !is_answer(reason))
		return "sent for no reason";
	return is_whole(o->out) ? NULL : "sent, but longer than the frame";
}

static bool send_one(struct balance_rig *b, const struct frame *f, const char *how,
		     struct text *why)
{
	struct outcome o = rig_try(b->rig, f, 0);
	struct test_result test = balance_rig_ask(b, f), general = balance_rig_ask_general(b, f);
	const char *wrong = o.code ? "not run" : problem(&o, &test);

	if (!wrong)
		wrong = balance_rig_difference(&test, &general);
	if (!wrong)
		return true;
	text_addf(why, "%s: %s ('%s', verdict %u, test program %u); ", how, wrong,
		  reason_name((enum weir_reason)test.reason), o.verdict, test.verdict);
	print_hex(f->at, f->len);
	return false;
}

static void change(struct frame *f, uint64_t *state)
{
	size_t range = f->len < HEADERS_MAX ? f->len : HEADERS_MAX;

	for (uint64_t n = 1 + draw(state) % 3; n; n--) {
		size_t at = ETH_BYTES - 2 + draw(state) % (range - ETH_BYTES + 2);
		uint64_t bits = draw(state) >> 32;

		f->at[at] = bits & 1 ? (uint8_t)(bits >> 8)
				     : (uint8_t)(f->at[at] ^ 1u << (bits >> 8) % 8);
	}
	if (draw(state) % 4 == 0)
		f->len = ETH_BYTES + draw(state) % (f->len - ETH_BYTES + 1);
}

static void send_cut(struct balance_rig *b, const struct frame *f, struct text *why)
{
	static struct frame broken;
	bool good = true;

	broken = *f;
	broken.len = ETH_BYTES;
	for (; good && broken.len < f->len && broken.len < CUT_MAX; broken.len++)
		good = send_one(b, &broken, "cut", why);
}

void balance_mutate(struct balance_rig *b, const struct frame *f, uint64_t seed, struct text *why)
{
	static struct frame broken;
	uint64_t state = (seed + 1) * 0x9e3779b97f4a7c15ull;
	bool good = true;

	if (seed % CUT_EVERY == 0)
		send_cut(b, f, why);
	for (int n = 0; good && n < CHANGED; n++) {
		broken = *f;
		change(&broken, &state);
		good = send_one(b, &broken, "changed", why);
	}
}
