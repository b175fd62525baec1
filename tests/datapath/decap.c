// SPDX-License-Identifier: GPL-2.0-only
// Runs frames through the decapsulating program and compares the output frame byte for byte.
//
//     decap-begin PORT           resets all settings; PORT: of GUE
//     decap-here PREFIX          addresses of this host; decap-from PREFIX: tunnels are accepted from there;
//                                decap-forward 1: with packets to any host. Before the first case
//                                of a block
//     decap-case NAME            begins a case, `decap-expect` runs it
//     decap-linear N             bytes in the first buffer; skipped where the kernel has no such test
//     decap-frame HEX            from the Ethernet header on
//     decap-out HEX              the output frame; without: the input frame
//     decap-expect COUNTER BYTES the one counter that changes, by 1 packet and BYTES; none 0: no counter.
//                                The counter gives the verdict
#include "tests/datapath/decap.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/datapath/decap.h"
#include "tests/datapath/frame.h"

#define PREFIXES_MAX 8

static struct {
	struct prefix here[PREFIXES_MAX], from[PREFIXES_MAX];
	struct decap_end end;
	struct decap *program; // loaded by the first case of a block
	struct decap_counter counted[DECAP_REASON_COUNT];
	const char *name;
	struct frame in, out;
	bool has_out;
	uint32_t linear;
} all;

static bool read_number(const char *text, uint32_t *ret)
{
	return !num_parse_u32(text, strlen(text), 0, UINT32_MAX, ret);
}

static bool add_prefix(const char *text, struct prefix *to, size_t *n)
{
	return *n < PREFIXES_MAX && !prefix_parse_quiet(text, strlen(text), &to[(*n)++], NULL);
}

static void forget(void)
{
	decap_free(all.program);
	all.program = NULL;
	all.end = (struct decap_end){.here = all.here, .from = all.from};
	memset(all.counted, 0, sizeof(all.counted));
}

static bool begin(const char *text)
{
	uint32_t port;

	if (!read_number(text, &port))
		return false;
	forget();
	all.end.port = (uint16_t)port;
	return true;
}

static bool set_forward(const char *text)
{
	all.end.forward = !strcmp(text, "1");
	return true;
}

static void load(void)
{
	struct err err = {0};

	if (!all.program && decap_load(&all.end, &all.program, &err))
		test_die(&err);
}

struct result {
	int code;
	uint32_t verdict;
	struct frame out;
	size_t moved; // counters
	enum decap_reason reason;
	struct decap_counter by;
};

static void read_moved(struct result *r)
{
	struct decap_counter now[DECAP_REASON_COUNT];
	struct err err = {0};

	if (decap_counts(all.program, now, &err))
		test_die(&err);
	for (enum decap_reason reason = 0; reason < DECAP_REASON_COUNT; reason++) {
		struct decap_counter by = {now[reason].packets - all.counted[reason].packets,
					   now[reason].bytes - all.counted[reason].bytes};

		if (!by.packets && !by.bytes)
			continue;
		r->moved++;
		r->reason = reason;
		r->by = by;
	}
	memcpy(all.counted, now, sizeof(now));
}

static void send_frame(struct result *r)
{
	struct xdp_md ctx = {
		.data_end = all.linear ? all.linear : (uint32_t)all.in.len,
		.ingress_ifindex = if_nametoindex("lo"),
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = all.in.at,
		    .data_size_in = (uint32_t)all.in.len, .data_out = r->out.at,
		    .data_size_out = FRAME_MAX, .ctx_in = &ctx, .ctx_size_in = sizeof(ctx));

	r->code = bpf_prog_test_run_opts(decap_program(all.program), &opts);
	r->verdict = opts.retval;
	r->out.len = opts.data_size_out;
	read_moved(r);
}

static void check_counter(const struct result *r, const char *reason, uint32_t bytes,
			  struct text *why)
{
	if (!strcmp(reason, "none")
		    ? !r->moved
		    : r->moved == 1 && !strcmp(decap_reason_name(r->reason), reason) &&
			      r->by.packets == 1 && r->by.bytes == bytes)
		return;
	text_addf(why,
		  "%zu counters moved, the last '%s' by %llu packets, %llu bytes; expected '%s' "
		  "by %u bytes; ",
		  r->moved, decap_reason_name(r->reason), (unsigned long long)r->by.packets,
		  (unsigned long long)r->by.bytes, reason, bytes);
}

static bool drops(const char *reason)
{
	for (enum decap_reason r = 0; r < DECAP_REASON_COUNT; r++)
		if (!strcmp(decap_reason_name(r), reason))
			return !strcmp(decap_reason_effect(r), "drop");
	return false;
}

static void check_frame(const struct result *r, const char *reason, struct text *why)
{
	const struct frame *want = all.has_out ? &all.out : &all.in;
	uint32_t verdict = drops(reason) ? XDP_DROP : XDP_PASS;

	if (r->verdict != verdict)
		text_addf(why, "verdict %u, expected %u; ", r->verdict, verdict);
	if (r->out.len != want->len || memcmp(r->out.at, want->at, want->len) != 0)
		text_addf(why, "another output frame, of %zu bytes, expected %zu; ", r->out.len,
			  want->len);
}

static void print_failure(const struct result *r, const char *why)
{
	printf("FAIL case '%s': %s\n", all.name, why);
	print_hex(all.in.at, all.in.len);
	if (!r->code) {
		printf("     came out\n");
		print_hex(r->out.at, r->out.len);
	}
}

static void run_case(const char *reason, uint32_t bytes, struct tally *tally)
{
	static struct result r;
	struct text why = {0};

	load();
	r = (struct result){0};
	send_frame(&r);
	if (r.code) {
		text_addf(&why, "not run: %s; ", err_name(r.code));
	} else {
		check_counter(&r, reason, bytes, &why);
		check_frame(&r, reason, &why);
	}
	if (r.code == -EINVAL && all.linear) {
		tally->skipped++;
	} else if (why.len) {
		tally->failed++;
		print_failure(&r, text_get(&why));
	} else {
		tally->passed++;
	}
	text_free(&why);
}

static bool expect(char *value, const char *only, struct tally *tally)
{
	const char *reason = strsep(&value, " ");
	uint32_t bytes;

	if (!all.name || !value || !read_number(value, &bytes))
		return false;
	if (!only || strstr(all.name, only))
		run_case(reason, bytes, tally);
	return true;
}

bool decap_case_line(const char *word, char *value, const char *only, struct tally *tally)
{
	if (!strcmp(word, "begin"))
		return begin(value);
	if (!strcmp(word, "here"))
		return add_prefix(value, all.here, &all.end.n_here);
	if (!strcmp(word, "from"))
		return add_prefix(value, all.from, &all.end.n_from);
	if (!strcmp(word, "forward"))
		return set_forward(value);
	if (!strcmp(word, "case")) {
		all.name = value;
		all.has_out = false;
		all.linear = 0;
		return true;
	}
	if (!strcmp(word, "linear"))
		return read_number(value, &all.linear);
	if (!strcmp(word, "frame"))
		return frame_read_hex(value, &all.in);
	if (!strcmp(word, "out"))
		return all.has_out = frame_read_hex(value, &all.out);
	return !strcmp(word, "expect") && expect(value, only, tally);
}

void decap_cases_end(void)
{
	forget();
}
