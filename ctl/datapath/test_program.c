// SPDX-License-Identifier: GPL-2.0-only
// Test programs: a second program over the tables of a generation, for test packets.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/service.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/parts.h"

struct test_program {
	struct policy_bpf *skel;
	struct policy_test *answer; // mapped
	uint8_t *packet;
	size_t size;
};

#define PACKET_MAX 16384

void test_program_free(struct test_program *t)
{
	if (!t)
		return;
	if (t->answer)
		munmap(t->answer, sizeof(*t->answer));
	policy_bpf__destroy(t->skel);
	free(t->packet);
	free(t);
}

void test_program_cleanup(struct test_program **t)
{
	test_program_free(*t);
}

// The read-only data of the original, but for the switch that makes it a test program.
static int copy_rodata(struct policy_bpf *skel, const struct generation *g)
{
	CLEANUP_FREE void *rodata = mem_zalloc(1, sizeof(*skel->rodata));
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(g->fd[PART_RODATA], &zero, rodata))
		return -errno;
	memcpy(skel->rodata, rodata, sizeof(*skel->rodata));
	((struct config *)&skel->rodata->config)->test = 1;
	return 0;
}

static int share_tables(struct policy_bpf *skel, const struct generation *g)
{
	int code = 0;

	for (int p = PART_FIELDS; !code && p < PART_STAGES; p++)
		code = bpf_map__reuse_fd(part_map(skel, (enum part)p), g->fd[p]);
	return code;
}

// The second program of its own: that of the original would count.
static int link_stages(struct policy_bpf *skel)
{
	int balance = bpf_program__fd(skel->progs.weir_balance);
	uint32_t stage = 0;

	return bpf_map_update_elem(bpf_map__fd(skel->maps.stages), &stage, &balance, BPF_ANY)
		       ? -errno
		       : 0;
}

static int open_test_program(struct test_program *t, const struct instance *i,
			     const struct generation *g)
{
	int code;

	t->skel = policy_bpf__open();
	if (!t->skel)
		return -errno;
	parts_fit(t->skel, i);
	bpf_program__set_autoload(t->skel->progs.weir_balance, g->fd[PART_BALANCE] >= 0);
	code = copy_rodata(t->skel, g);
	if (!code)
		code = share_tables(t->skel, g);
	if (!code && i)
		code = parts_share(t->skel, i);
	if (!code)
		code = policy_bpf__load(t->skel);
	return code || g->fd[PART_BALANCE] < 0 ? code : link_stages(t->skel);
}

int test_program_open(const struct instance *i, const struct generation *g,
		      struct test_program **ret, struct err *err)
{
	CLEANUP_TEST_PROGRAM struct test_program *t = mem_new(struct test_program);
	int code = open_test_program(t, i, g);
	void *answer;

	if (code)
		return err_system(err, -code, "cannot make the policy's test program");
	answer = mmap(NULL, sizeof(*t->answer), PROT_READ | PROT_WRITE, MAP_SHARED,
		      bpf_map__fd(t->skel->maps.test), 0);
	if (answer == MAP_FAILED)
		return err_system(err, errno, "cannot map the test program's answer");
	t->answer = answer;
	t->packet = mem_zalloc(1, PACKET_MAX);
	*ret = TAKE_PTR(t);
	return 0;
}

int test_program_run(struct test_program *t, const uint8_t *frame, size_t length,
		     const struct policy_test *ask, struct test_result *ret, struct err *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)length,
		    .data_out = t->packet, .data_size_out = PACKET_MAX);

	*t->answer = *ask;
	t->answer->rule = -1;
	t->answer->counted = 0;
	t->answer->service = -1;
	t->answer->backend = BACKEND_NONE;
	t->answer->pinned = 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.weir_policy), &opts))
		return err_system(err, errno, "cannot run a test packet of %zu bytes", length);
	*ret = (struct test_result){
		.verdict = opts.retval,
		.rule = t->answer->rule,
		.reason = t->answer->reason,
		.counted = t->answer->counted,
		.service = t->answer->service,
		.passed = t->answer->passed,
		.backend = t->answer->backend,
		.slot = t->answer->slot,
		.slot_word = t->answer->slot_word,
		.pinned = t->answer->pinned != 0,
		.packet = t->packet,
		.length = opts.data_size_out,
	};
	memcpy(ret->first_counted, t->answer->first_counted, sizeof(ret->first_counted));
	return 0;
}
