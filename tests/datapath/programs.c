// SPDX-License-Identifier: GPL-2.0-only
// The programs of a generation: their markers, the way from one to the next, and their removal
// under traffic.
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/markers.h"
#include "ctl/datapath/parts.h"
#include "tests/datapath/balance_rig.h"
#include "tests/datapath/rig.h"

#define ENTRIES 64

static const char services[] =
	"service a { vip 192.0.2.1; port any; proto udp; mode dr; check none; backend 10.0.0.1 }\n";

// ---- markers ------------------------------------------------------------------------------------

static void destroy(struct policy_bpf **skel)
{
	policy_bpf__destroy(*skel);
}

static void test_marker_unset(struct test *t)
{
	CLEANUP(destroy) struct policy_bpf *skel = markers_open();
	static const struct markers none;
	struct err err = {0};
	bool refused;

	parts_choose(skel, (struct parts_wanted){.has_short = true});
	CHECK(t, markers_load(skel, &none, &refused, &err) == -EBADMSG, "it loads");
	CHECK(t, strstr(err.text, "the marker '") && strstr(err.text, "has no value"),
	      "the error is '%s'", err.text);
}

// Only markers_load() knows the values.
static void test_marker_by_others(struct test *t)
{
	CLEANUP(destroy) struct policy_bpf *skel = markers_open();

	parts_choose(skel, (struct parts_wanted){.has_short = true});
	CHECK(t, policy_bpf__load(skel) != 0,
	      "a program with markers is loaded as it was compiled");
}

static bool is_marker(const struct bpf_insn *insn)
{
	if (insn->code == (BPF_JMP | BPF_JEQ | BPF_K))
		return insn->dst_reg == BPF_REG_10;
	return insn[0].code == (BPF_LD | BPF_IMM | BPF_DW) && (uint32_t)insn[1].imm == MARKER_MAGIC;
}

static size_t count(const struct bpf_insn *insns, size_t n, bool (*is)(const struct bpf_insn *insn))
{
	size_t found = 0;

	for (size_t i = 0; i + 1 < n; i++)
		found += is(&insns[i]);
	return found;
}

// Instructions of the whole object, including functions that are linked at the load.
static size_t count_compiled(void)
{
	size_t size, found = 0;
	const uint8_t *object = markers_object(&size);

	for (size_t at = 0; at + 16 <= size; at += 8) {
		struct bpf_insn two[2];

		memcpy(two, object + at, sizeof(two));
		found += is_marker(two);
	}
	return found;
}

static size_t count_in_programs(void)
{
	CLEANUP(destroy) struct policy_bpf *skel = markers_open();
	struct bpf_program *program;
	size_t found = 0;

	bpf_object__for_each_program(program, skel->obj)
	{
		found += count(bpf_program__insns(program), bpf_program__insn_cnt(program),
			       is_marker);
	}
	return found;
}

static size_t count_loaded(int program, bool (*is)(const struct bpf_insn *insn))
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	CLEANUP_FREE struct bpf_insn *insns = NULL;
	struct err err = {0};

	if (bpf_obj_get_info_by_fd(program, &info, &size))
		goto failed;
	insns = mem_zalloc(1, info.xlated_prog_len);
	info = (struct bpf_prog_info){.xlated_prog_insns = (uintptr_t)insns,
				      .xlated_prog_len = info.xlated_prog_len};
	if (bpf_obj_get_info_by_fd(program, &info, &size))
		goto failed;
	return count(insns, info.xlated_prog_len / sizeof(*insns), is);
failed:
	err_system(&err, errno, "cannot read the instructions of a program");
	test_die(&err);
}

static void test_markers_in_functions(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct balance_rig *b = balance_rig_new(rig, services);

	CHECK(t, count_compiled() > count_in_programs(),
	      "no function that is not inlined has a marker: this test proves nothing");
	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++) {
		int fd = generation_program_of(b->c->generation, p);
		size_t left = fd < 0 ? 0 : count_loaded(fd, is_marker);

		CHECK(t, !left, "%zu markers are left in program %d", left, (int)p);
	}
	balance_rig_free(b);
}

// The middle one of the instructions that order two reads (xdp/order.bpf.h), as loaded.
static bool orders(const struct bpf_insn *insn)
{
	return insn->code == (BPF_ALU64 | BPF_AND | BPF_K) && !insn->imm;
}

static size_t count_orders(const struct rig *rig, bool reorders, enum generation_program program)
{
	static const struct image nothing;
	const struct generation_options options = {.reorders = reorders};
	CLEANUP_GENERATION struct generation *g = NULL;
	struct err err = {0};

	if (generation_load(rig->instance, &nothing, &options, &g, NULL, &err))
		test_die(&err);
	return count_loaded(generation_program_of(g, program), orders);
}

// Where reads are reordered, the programs have what orders them; elsewhere it costs nothing.
static void test_order(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);

	for (enum generation_program p = GENERATION_SHORT; p <= GENERATION_GENERAL; p++) {
		size_t with = count_orders(rig, true, p), without = count_orders(rig, false, p);

		CHECK(t, with >= 10, "program %d: %zu reads are ordered", (int)p, with);
#ifdef __x86_64__
		CHECK(t, !without, "program %d: %zu reads are ordered", (int)p, without);
#else
		CHECK(t, without == with, "program %d: %zu reads are ordered", (int)p, without);
#endif
	}
}

// ---- from one program to the next ---------------------------------------------------------------

static const struct frame *good(void)
{
	static struct frame f;

	frame_udp(&f, "192.0.2.7", "203.0.113.1", 0);
	return &f;
}

static void take_away(const struct generation *g, enum policy_stage which)
{
	uint32_t stage = which;
	struct err err = {0};

	if (!bpf_map_delete_elem(g->fd[PART_STAGES], &stage))
		return;
	err_system(&err, errno, "cannot take a program away");
	test_die(&err);
}

// A malformed packet is never the short program's.
static void test_missing_general(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	static struct frame bad;

	frame_malformed(&bad);
	EXPECT(t, rig, &bad, DROP_IP4_SHORT, bad.len);
	take_away(rig->policy, STAGE_GENERAL);
	EXPECT(t, rig, &bad, DROP_PROGRAM, bad.len);
}

static void test_missing_balancer(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct balance_rig *b = balance_rig_new(rig, services);
	static struct frame f;

	frame_udp(&f, "192.0.2.7", "192.0.2.1", 0);
	take_away(b->c->generation, STAGE_BALANCE);
	EXPECT(t, rig, &f, DROP_PROGRAM, 28);
	EXPECT(t, rig, good(), PASS_DEFAULT, 28);
	balance_rig_free(b);
}

// ---- removal ------------------------------------------------------------------------------------

#define COPY_BYTES (1u << 20)
#define COPIES     600 // copies of COPY_BYTES: 30 ms and more, and no RCU stall on a slow machine

enum { WORD_BEGUN, WORD_ENDED, WORDS };

// A program that copies a lot in one run, and marks its beginning and its end.
struct slow {
	int program, source, target, marks;
	struct mapping words;
};

static int array_of(size_t size)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "slow", sizeof(uint32_t), (uint32_t)size, 1,
			      &opts);
}

// Constants, which fit the four bits of a register.
#define LOAD_IMM64(at, reg, kind, fd)                                      \
	(*(*(at))++ = (struct bpf_insn){.code = BPF_LD | BPF_IMM | BPF_DW, \
					.dst_reg = (reg),                  \
					.src_reg = (kind),                 \
					.imm = (fd)},                      \
	 *(*(at))++ = (struct bpf_insn){0})

static void store_mark(struct bpf_insn **at, int marks, int which)
{
	LOAD_IMM64(at, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, marks);
	*(*at)++ = (struct bpf_insn){.code = BPF_ST | BPF_MEM | BPF_DW,
				     .dst_reg = BPF_REG_1,
				     .off = (int16_t)(which * 8),
				     .imm = 1};
}

// target[0] = source, by the helper.
static void copy_once(struct bpf_insn **at, const struct slow *s)
{
	LOAD_IMM64(at, BPF_REG_1, BPF_PSEUDO_MAP_FD, s->target);
	*(*at)++ = (struct bpf_insn){
		.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10};
	*(*at)++ = (struct bpf_insn){.code = BPF_ALU64 | BPF_ADD, .dst_reg = BPF_REG_2, .imm = -4};
	LOAD_IMM64(at, BPF_REG_3, BPF_PSEUDO_MAP_VALUE, s->source);
	*(*at)++ = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4};
	*(*at)++ = (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_update_elem};
}

static void slow_open(struct slow *s)
{
	CLEANUP_FREE struct bpf_insn *insns = mem_zalloc(COPIES * 10 + 16, sizeof(*insns));
	struct bpf_insn *at = insns;
	struct err err = {0};

	s->source = array_of(COPY_BYTES);
	s->target = array_of(COPY_BYTES);
	s->marks = array_of(WORDS * sizeof(uint64_t));
	store_mark(&at, s->marks, WORD_BEGUN);
	*at++ = (struct bpf_insn){
		.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4};
	for (size_t n = 0; n < COPIES; n++)
		copy_once(&at, s);
	store_mark(&at, s->marks, WORD_ENDED);
	*at++ = (struct bpf_insn){
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS};
	*at++ = (struct bpf_insn){.code = BPF_JMP | BPF_EXIT};
	s->program =
		bpf_prog_load(BPF_PROG_TYPE_XDP, "slow", "GPL", insns, (size_t)(at - insns), NULL);
	if (s->program < 0) {
		err_system(&err, -s->program, "cannot load a slow program");
		test_die(&err);
	}
	if (mapping_open(&s->words, s->marks, WORDS * sizeof(uint64_t), &err))
		test_die(&err);
}

static void slow_close(struct slow *s)
{
	mapping_close(&s->words);
	fd_close(s->program);
	fd_close(s->source);
	fd_close(s->target);
	fd_close(s->marks);
}

static uint64_t word(const struct slow *s, int which)
{
	return __atomic_load_n((const uint64_t *)s->words.at + which, __ATOMIC_ACQUIRE);
}

static void *slow_run(void *ctx)
{
	const struct slow *s = ctx;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = good()->at,
		    .data_size_in = (uint32_t)good()->len);

	bpf_prog_test_run_opts(s->program, &opts);
	return NULL;
}

// 1: the wait ended after the program; 0: before it; -1: the program was too fast to tell.
static int wait_once(struct slow *s)
{
	struct err err = {0};
	pthread_t thread;
	bool running;
	int ended;

	memset(s->words.at, 0, WORDS * sizeof(uint64_t));
	pthread_create(&thread, NULL, slow_run, s);
	while (!word(s, WORD_BEGUN))
		usleep(50);
	running = !word(s, WORD_ENDED);
	if (grace_wait(&err))
		test_die(&err);
	ended = word(s, WORD_ENDED) != 0;
	pthread_join(thread, NULL);
	return running ? ended : -1;
}

static void test_grace(struct test *t)
{
	struct slow s = {0};
	int told = 0;

	slow_open(&s);
	for (int n = 0; n < 20 && told < 3; n++) {
		int ended = wait_once(&s);

		told += ended >= 0;
		CHECK(t, ended, "a program that had begun before has not ended");
	}
	if (!told)
		test_skip(t, "the program always ended before the wait began");
	slow_close(&s);
}

struct sender {
	struct rig *rig;
	bool stop;
	uint64_t sent, wrong;
};

static void *send_on(void *ctx)
{
	struct sender *s = ctx;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		s->wrong += rig_verdict(s->rig, good(), 100) != XDP_PASS;
		s->sent += 100;
	}
	return NULL;
}

// As an apply and the next one: a new generation, the switch, the end of the former one.
static void replace(struct rig *rig)
{
	static const struct image nothing;
	static const struct generation_options options;
	struct generation *former = rig->policy;
	struct err err = {0};

	if (generation_load(rig->instance, &nothing, &options, &rig->policy, NULL, &err))
		test_die(&err);
	rig_policy(rig, PROG_ACTIVE, rig->policy);
	rig_policy(rig, PROG_PREVIOUS, rig->policy);
	if (grace_wait(&err))
		test_die(&err);
	generation_free(former);
}

static void test_removal(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ENTRIES);
	struct sender s = {.rig = rig};
	struct err err = {0};
	struct counter missing, passed;
	pthread_t thread;

	good();
	pthread_create(&thread, NULL, send_on, &s);
	for (size_t n = 0; n < suite_repeats(200); n++)
		replace(rig);
	__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (counters_read(rig->instance, rig->counters, &err))
		test_die(&err);
	missing = counters_reason(rig->counters, REASON_DROP_PROGRAM);
	passed = counters_reason(rig->counters, REASON_PASS_DEFAULT);
	CHECK(t, !missing.packets && !s.wrong, "%llu packets without their next program",
	      (unsigned long long)missing.packets);
	CHECK(t, passed.packets == s.sent, "%llu packets counted of %llu sent",
	      (unsigned long long)passed.packets, (unsigned long long)s.sent);
}

const struct named_test program_tests[] = {
	{"programs: a marker without a value", test_marker_unset},
	{"programs: markers and other loaders", test_marker_by_others},
	{"programs: markers in functions", test_markers_in_functions},
	{"programs: the order of reads", test_order},
	{"programs: the general program is missing", test_missing_general},
	{"programs: the balancer is missing", test_missing_balancer},
	{"programs: a grace period", test_grace},
	{"programs: removal under load", test_removal},
	{NULL, NULL},
};
