// SPDX-License-Identifier: GPL-2.0-only
// Loads the programs privately and runs them.
#include "tests/datapath/rig.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/instance_create.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/root_program.h"
#include "ctl/datapath/sharing.h"
#include "tests/ways.h"

_Noreturn static void die(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	test_die(&err);
}

// Programs

static bool general_only;

void rig_general_only(void)
{
	general_only = true;
}

bool rig_is_general_only(void)
{
	return general_only;
}

static bool reorders;

void rig_reorders(void)
{
	reorders = true;
}

bool rig_is_reordering(void)
{
	return reorders;
}

static struct generation *load_empty(const struct instance *i, bool malformed_pass)
{
	static const struct image nothing;
	const struct generation_options options = {
		.malformed_pass = malformed_pass,
		.general_only = general_only,
		.reorders = reorders,
	};
	struct generation *g = NULL;
	struct err err = {0};

	if (generation_load(i, &nothing, &options, &g, NULL, &err))
		test_die(&err);
	return g;
}

static void load_entry(struct rig *rig)
{
	struct err err = {0};

	if (root_open(rig->instance, &rig->entry, &err))
		test_die(&err);
	rig->entry_prog = root_load(rig->entry);
	if (rig->entry_prog < 0)
		die(-rig->entry_prog, "cannot load the root program");
}

struct rig *rig_new(uint32_t max_entries)
{
	struct rig *rig = mem_new(struct rig);
	CLEANUP_GENERATION struct generation *first = NULL;
	struct err err = {0};

	rig->counters = mem_new(struct counters);
	if (instance_create_private(max_entries, &rig->instance, &first, &err))
		test_die(&err);
	rig->policy = general_only || reorders ? load_empty(rig->instance, false) : TAKE_PTR(first);
	rig_policy(rig, PROG_ACTIVE, rig->policy);
	rig_policy(rig, PROG_PREVIOUS, rig->policy);
	load_entry(rig);
	rig->ifindex = if_nametoindex("lo");
	rig_iface(rig, RIG_IFACE);
	return rig;
}

uint64_t rig_handed_on(const struct rig *rig)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	struct err err = {0};

	if (counters_read(rig->instance, now, &err))
		test_die(&err);
	return now->tally[TALLY_GENERAL];
}

bool rig_sees_both_ways(const struct rig *rig)
{
	uint64_t general = rig_handed_on(rig) - rig->aside;
	uint64_t least = rig->sent * WAYS_LEAST_PERCENT / 100;

	printf("%llu frames took the short way, %llu the general way\n",
	       (unsigned long long)(rig->sent - general), (unsigned long long)general);
	return general >= least && rig->sent - general >= least;
}

void rig_free(struct rig *rig)
{
	if (!rig)
		return;
	root_free(rig->entry);
	generation_free(rig->policy);
	generation_free(rig->lenient);
	instance_free(rig->instance);
	free(rig->counters);
	free(rig);
}

void rig_cleanup(struct rig **rig)
{
	rig_free(*rig);
}

const struct generation *rig_lenient(struct rig *rig)
{
	if (!rig->lenient)
		rig->lenient = load_empty(rig->instance, true);
	return rig->lenient;
}

void rig_program(const struct rig *rig, enum weir_prog which, int prog)
{
	uint32_t key = which;

	if (prog < 0 ? bpf_map_delete_elem(rig->instance->progs, &key)
		     : bpf_map_update_elem(rig->instance->progs, &key, &prog, BPF_ANY))
		die(errno, "cannot write the program array");
}

void rig_policy(const struct rig *rig, enum weir_prog which, const struct generation *g)
{
	rig_program(rig, which, generation_program(g));
}

int rig_tiny(const struct rig *rig, uint32_t verdict)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K,
		 .dst_reg = BPF_REG_0,
		 .imm = (int32_t)verdict},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = sharing_flags(rig->instance));
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "weir_tiny", "GPL", insns, ARRAY_SIZE(insns),
			       &opts);

	if (fd < 0)
		die(-fd, "cannot load a program of two instructions");
	return fd;
}

void rig_iface(const struct rig *rig, uint32_t number)
{
	struct iface iface = {.name = "lo", .ifindex = rig->ifindex, .state = IFACE_ATTACHED};
	struct err err = {0};

	if (number && instance_set_iface(rig->instance, number, &iface, &err))
		test_die(&err);
	iface_table_set(rig->instance->knobs, rig->ifindex, number);
}

// Time

struct clock rig_clock(const struct rig *rig)
{
	struct err err = {0};
	struct clock clock;

	if (instance_clock(rig->instance, &clock, &err))
		test_die(&err);
	return clock;
}

uint64_t rig_after_ms(const struct rig *rig, uint64_t ms)
{
	struct clock clock = rig_clock(rig);

	return clock_after_ms(&clock, ms);
}

void rig_wait(const struct rig *rig, uint64_t jiffies)
{
	while (rig_clock(rig).jiffies < jiffies)
		usleep(1000);
}

// Frames

static int run(const struct rig *rig, const struct frame *f, uint32_t linear, void *out,
	       struct bpf_test_run_opts *opts)
{
	struct xdp_md ctx = {
		.data_end = linear ? linear : (uint32_t)f->len,
		.ingress_ifindex = rig->ifindex,
	};

	opts->data_in = f->at;
	opts->data_size_in = (uint32_t)f->len;
	opts->data_out = out;
	opts->data_size_out = out ? FRAME_MAX : 0;
	opts->ctx_in = &ctx;
	opts->ctx_size_in = sizeof(ctx);
	return bpf_prog_test_run_opts(rig->entry_prog, opts);
}

static void note_moved(struct outcome *o, uint32_t number, enum weir_reason reason,
		       const struct counter *before, const struct counter *after)
{
	struct counter by = {after->packets - before->packets, after->bytes - before->bytes};

	if (!by.packets && !by.bytes)
		return;
	if (o->moved_n < ARRAY_SIZE(o->moved))
		o->moved[o->moved_n] = (struct moved){.number = number, .reason = reason, .by = by};
	o->moved_n++;
}

static void read_moved(struct rig *rig, struct outcome *o)
{
	struct counters *now = mem_new(struct counters);
	struct err err = {0};

	if (counters_read(rig->instance, now, &err))
		test_die(&err);
	for (uint32_t number = 0; number < WEIR_IFACES; number++)
		for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++)
			note_moved(o, number, r, &rig->counters->at[number][r],
				   &now->at[number][r]);
	free(rig->counters);
	rig->counters = now;
	rig->stale = false;
}

static void read_moved_on(struct rig *rig, uint32_t number, struct outcome *o)
{
	CLEANUP_FREE struct counter *counters = NULL;
	struct counter *before = rig->counters->at[number];
	struct err err = {0};
	size_t cpus;
	int code = percpu_values(WEIR_REASON_COUNT, sizeof(*counters), &counters, &cpus, &err);

	if (code)
		test_die(&err);
	if (percpu_read(rig->instance->counters, number * WEIR_REASON_COUNT, WEIR_REASON_COUNT,
			counters))
		die(errno, "cannot read the counters of an interface");
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++) {
		struct counter now = {0};

		for (size_t cpu = 0; cpu < cpus; cpu++) {
			now.packets += counters[r * cpus + cpu].packets;
			now.bytes += counters[r * cpus + cpu].bytes;
		}
		note_moved(o, number, r, &before[r], &now);
		before[r] = now;
	}
}

struct outcome rig_try(struct rig *rig, const struct frame *f, uint32_t linear)
{
	static struct frame out;
	struct outcome o = {.out = &out};
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	rig->stale = true;
	o.code = run(rig, f, linear, out.at, &opts);
	if (o.code)
		return o;
	rig->sent++;
	out.len = opts.data_size_out;
	o.verdict = opts.retval;
	o.changed = out.len != f->len || memcmp(out.at, f->at, f->len) != 0;
	return o;
}

// Frames that were sent without reading the counters are not counted for the next one.
static void forget_moved(struct rig *rig)
{
	struct outcome o = {0};

	if (rig->stale)
		read_moved(rig, &o);
}

struct outcome rig_send(struct rig *rig, const struct frame *f, uint32_t linear)
{
	struct outcome o;

	forget_moved(rig);
	o = rig_try(rig, f, linear);
	if (!o.code)
		read_moved(rig, &o);
	return o;
}

struct outcome rig_send_on(struct rig *rig, uint32_t number, const struct frame *f, uint32_t linear)
{
	struct outcome o;

	forget_moved(rig);
	o = rig_try(rig, f, linear);
	if (o.code)
		return o;
	read_moved_on(rig, number, &o);
	rig->stale = false;
	return o;
}

struct outcome rig_look(struct rig *rig)
{
	struct outcome o = {0};

	read_moved(rig, &o);
	return o;
}

uint32_t rig_verdict(struct rig *rig, const struct frame *f, uint32_t repeat)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .repeat = (int)repeat);
	int code = run(rig, f, 0, NULL, &opts);

	rig->stale = true;
	// The kernel returns this where the frame does not fit the empty buffer, but it has run the
	// program.
	if (code && code != -ENOSPC)
		die(-code, "cannot run a frame");
	return opts.retval;
}

uint32_t rig_verdict_from(struct rig *rig, const char *src)
{
	return rig_verdict(rig, frame_source(src), 1);
}

bool rig_expect(struct test *t, const char *file, int line, struct rig *rig, const struct frame *f,
		enum weir_reason reason, uint64_t bytes)
{
	struct outcome o = rig_send(rig, f, 0);
	const struct moved *m = &o.moved[0];

	if (!o.code && o.moved_n == 1 && m->reason == reason && m->by.packets == 1 &&
	    m->by.bytes == bytes && !o.changed &&
	    o.verdict == (reason_drops(reason) ? XDP_DROP : XDP_PASS))
		return true;
	test_fail(t, file, line,
		  "expected '%s' and %llu bytes, got verdict %u, %zu counters, first '%s' by %llu "
		  "packets and %llu bytes%s%s",
		  reason_name(reason), (unsigned long long)bytes, o.verdict, o.moved_n,
		  o.moved_n ? reason_name(m->reason) : "", (unsigned long long)m->by.packets,
		  (unsigned long long)m->by.bytes, o.changed ? ", frame changed" : "",
		  o.code ? ", not run" : "");
	return false;
}

// Overlay entries

static const char *const kinds[OVERLAY_KINDS] = {
	[OVERLAY_BLOCK_FROM] = "block-from",
	[OVERLAY_ALLOW_FROM] = "allow-from",
	[OVERLAY_BLOCK_TO] = "block-to",
	[OVERLAY_ALLOW_TO] = "allow-to",
	[OVERLAY_ALLOW_OUT] = "allow-out",
	[OVERLAY_BLOCK_OUT] = "block-out",
	[OVERLAY_BLOCK_OUT_REFUSED] = "block-out-refused",
	[OVERLAY_BLOCK_OUT_UNREACHABLE] = "block-out-unreachable",
	[OVERLAY_BLOCK_OUT_ALL] = "block-out-all",
	[OVERLAY_BLOCK_OUT_ALL_REFUSED] = "block-out-all-refused",
	[OVERLAY_BLOCK_OUT_ALL_UNREACHABLE] = "block-out-all-unreachable",
};

const char *kind_name(unsigned kind)
{
	return kind < OVERLAY_KINDS ? kinds[kind] : "?";
}

void wants_cleanup(struct wants *w)
{
	vec_free(w);
}

static int parse_words(const char *text, size_t len, uint64_t until, struct overlay_entry *ret,
		       struct err *err)
{
	const char *blank = memchr(text, ' ', len);
	size_t word = blank ? (size_t)(blank - text) : len;

	for (uint8_t kind = 0; blank && kind < OVERLAY_KINDS; kind++) {
		*ret = (struct overlay_entry){.kind = kind, .until = until};
		if (strlen(kinds[kind]) == word && !memcmp(kinds[kind], text, word))
			return prefix_parse(blank + 1, len - word - 1, &ret->prefix, NULL, err);
	}
	return err_input(err, "'%.*s' is not an overlay entry", (int)len, text);
}

int want_parse(const char *text, uint64_t until, struct overlay_entry *ret, struct err *err)
{
	return parse_words(text, strlen(text), until, ret, err);
}

int wants_parse(struct wants *w, const char *text, uint64_t until, struct err *err)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		int code = parse_words(text, len, until, vec_add(w), err);

		if (code)
			return code;
		text += len;
		text += strspn(text, ", ");
	}
	return 0;
}

void wants_add(struct wants *w, const char *text, uint64_t until)
{
	struct err err = {0};

	if (wants_parse(w, text, until, &err))
		test_die(&err);
}

static int compare_wants(const void *a, const void *b)
{
	const struct overlay_entry *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order ? order : (int)x->kind - (int)y->kind;
}

void wants_sort(struct wants *w)
{
	if (w->n)
		qsort(w->at, w->n, sizeof(*w->at), compare_wants);
}

void rig_stage(const struct rig *rig, struct wants *w, struct overlay_plan *ret)
{
	struct err err = {0};

	wants_sort(w);
	if (overlay_stage_whole(rig->instance, w->at, w->n, ret, &err))
		test_die(&err);
}

void rig_overlay(const struct rig *rig, struct wants *w)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};

	rig_stage(rig, w, &plan);
	overlay_commit(rig->instance, &plan);
}

void rig_overlay_text(const struct rig *rig, const char *entries)
{
	CLEANUP_WANTS struct wants w = {0};

	wants_add(&w, entries, OVERLAY_FOREVER);
	rig_overlay(rig, &w);
}

struct overlay_hits rig_hits(const struct rig *rig, const char *entry)
{
	struct overlay_entry entries[OVERLAY_KINDS] = {0};
	struct overlay_entry want = {0};
	struct err err = {0};
	size_t n = 0;

	if (want_parse(entry, 0, &want, &err) ||
	    overlay_read_one(rig->instance, &want.prefix, entries, &n, &err))
		test_die(&err);
	for (size_t r = 0; r < n; r++)
		if (entries[r].kind == want.kind)
			return entries[r].hits;
	return (struct overlay_hits){0};
}
