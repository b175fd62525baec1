// SPDX-License-Identifier: GPL-2.0-only
// Loads and runs the program that sets source addresses.
#include "tests/bench/draw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/draw.skel.h"
#include "tests/bench/sets.h"

#define ETHER_BYTES 14
#define TAG_BYTES   4
#define FRAME_BYTES 192
#define LISTED      64

struct draw {
	struct draw_bpf *skel;
	struct draw_options options;
	int program;
	uint8_t frame[FRAME_BYTES]; // starts with room for the headers that the target adds
	size_t length;
	struct addr listed[LISTED]; // the first sources
};

static void put(struct draw *d, const void *bytes, size_t n)
{
	memcpy(d->frame + d->length, bytes, n);
	d->length += n;
}

static void put_ether(struct draw *d, const struct draw_options *o)
{
	static const uint8_t macs[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	static const uint8_t tag[] = {0x81, 0x00, 0, 7}, ip4[] = {8, 0}, ip6[] = {0x86, 0xdd};

	put(d, macs, sizeof(macs));
	if (o->vlan)
		put(d, tag, sizeof(tag));
	put(d, o->family == 4 ? ip4 : ip6, 2);
}

static void put_ip(struct draw *d, uint8_t family)
{
	static const uint8_t head4[] = {0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 0, 0, 0, 0};
	static const uint8_t dst4[] = {198, 18, 0, 1};
	static const uint8_t head6[24] = {0x60, 0, 0, 0, 0, 20, 6, 64};
	static const uint8_t dst6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};

	if (family == 4) {
		put(d, head4, sizeof(head4));
		put(d, dst4, sizeof(dst4));
	} else {
		put(d, head6, sizeof(head6));
		put(d, dst6, sizeof(dst6));
	}
}

// The checksum is not one that is left to a device.
static void put_tcp(struct draw *d, const struct draw_options *o)
{
	uint8_t tcp[20] = {40000 >> 8, 40000 & 0xff, 0,    80,   0,    0,    0,   1, 0, 0, 0,
			   0,          0x50,         0x02, 0xff, 0xff, 0x12, 0x34};

	if (o->ack)
		tcp[13] = 0x10;
	put(d, tcp, sizeof(tcp));
}

static void put_head(struct draw *d, const struct draw_options *o)
{
	if (o->head) {
		put(d, o->head, sizeof(*o->head));
		return;
	}
	put_ether(d, o);
	put_ip(d, o->family);
	put_tcp(d, o);
}

static size_t source_offset(const struct draw_options *o)
{
	return (size_t)(ETHER_BYTES + (o->vlan ? TAG_BYTES : 0) + (o->family == 4 ? 12 : 8));
}

static void fill_sources(const struct draw *d, const struct draw_options *o)
{
	size_t bytes = o->family == 4 ? 4 : 16;

	for (size_t i = 0; i < BENCH_SOURCES; i++)
		memcpy((uint8_t *)d->skel->bss->sources + i * bytes, o->sources[i].bytes, bytes);
}

static int load(struct draw *d, const struct draw_options *o)
{
	struct draw_bpf *skel = d->skel;
	struct bpf_program *p;

	*(uint32_t *)&skel->rodata->offset = (uint32_t)source_offset(o);
	*(uint32_t *)&skel->rodata->family = o->family;
	*(uint32_t *)&skel->rodata->flood = o->flood;
	// In 10.0.0.0/8: a service drops packets from 127.0.0.0/8 and other martian sources.
	*(uint32_t *)&skel->rodata->spread = o->spread ? htonl(~0u >> (32 - o->spread)) : ~0u;
	*(uint32_t *)&skel->rodata->base = o->spread ? htonl(10u << 24) : 0;
	*(uint32_t *)&skel->rodata->ifindex = o->ifindex;
	*(uint32_t *)&skel->rodata->restore = o->sent;
	*(uint32_t *)&skel->rodata->grown = o->grow;
	memcpy((void *)&skel->rodata->head, d->frame + o->grow, sizeof(skel->rodata->head));
	bpf_object__for_each_program(p, skel->obj)
	{
		bpf_program__set_expected_attach_type(p, 0);
		bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
	}
	return draw_bpf__load(skel);
}

struct draw *draw_new(const struct draw_options *o)
{
	struct draw *d = mem_new(struct draw);
	int code;

	d->options = *o;
	d->length = o->grow;
	put_head(d, o);
	d->length = d->length < 60u + o->grow ? 60u + o->grow : d->length; // minimum frame
	d->skel = draw_bpf__open();
	if (!d->skel || (code = load(d, o)))
		bench_fail(d->skel ? -code : errno, "cannot load the program that sets sources");
	draw_space(d, false);
	if (o->flood)
		return d;
	fill_sources(d, o);
	memcpy(d->listed, o->sources, sizeof(d->listed));
	return d;
}

void draw_free(struct draw *d)
{
	if (d)
		draw_bpf__destroy(d->skel);
	free(d);
}

const struct draw_options *draw_what(const struct draw *d)
{
	return &d->options;
}

// As the program draws it: a listed source, or random bits.
static void put_source(const struct draw *d, size_t n, uint8_t *at)
{
	const struct draw_options *o = &d->options;
	uint64_t state = n;
	uint32_t bits;

	if (!o->flood) {
		memcpy(at, d->listed[n % LISTED].bytes, o->family == 4 ? 4 : 16);
		return;
	}
	bits = (uint32_t)random_next(&state) & d->skel->rodata->spread;
	bits |= d->skel->rodata->base;
	memcpy(at, &bits, sizeof(bits));
}

size_t draw_packet(struct draw *d, size_t n, const uint8_t **ret_frame)
{
	size_t front = d->options.grow;

	put_source(d, n, d->frame + front + source_offset(&d->options));
	*ret_frame = d->frame + front;
	return d->length - front;
}

void draw_space(struct draw *d, bool spaced)
{
	d->program =
		bpf_program__fd(spaced ? d->skel->progs.bench_spaced : d->skel->progs.bench_draw);
}

void draw_target(struct draw *d, int program)
{
	uint32_t zero = 0;

	if (bpf_map_update_elem(bpf_map__fd(d->skel->maps.target), &zero, &program, BPF_ANY))
		bench_fail(errno, "cannot jump into the program under test");
}

uint64_t draw_run(const struct draw *d, uint32_t n, uint32_t *ret_verdict)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = d->frame,
		    .data_size_in = (uint32_t)d->length, .repeat = (int)n);
	uint64_t begin = bench_cpu_ns(), end;
	int code = bpf_prog_test_run_opts(d->program, &opts);

	end = bench_cpu_ns();
	// Without an output buffer the kernel returns ENOSPC, but it has run the program.
	if (code && code != -ENOSPC)
		bench_fail(-code, "cannot run packets");
	if (ret_verdict)
		*ret_verdict = opts.retval;
	return end - begin;
}

void draw_result(const struct draw *d, struct bench_head *ret)
{
	uint8_t frame[FRAME_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = d->frame,
		    .data_size_in = (uint32_t)d->length, .data_out = frame,
		    .data_size_out = sizeof(frame));
	int code = bpf_prog_test_run_opts(d->program, &opts);

	if (code)
		bench_fail(-code, "cannot run a packet");
	memcpy(ret, frame, sizeof(*ret));
}

uint64_t draw_send(const struct draw *d, uint32_t n)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = d->frame,
		    .data_size_in = (uint32_t)d->length, .repeat = (int)n,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES);
	uint64_t begin = bench_now_ns();
	int code = bpf_prog_test_run_opts(d->program, &opts);

	if (code)
		bench_fail(-code, "cannot send live packets");
	return bench_now_ns() - begin;
}
