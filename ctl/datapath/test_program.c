// SPDX-License-Identifier: GPL-2.0-only
// The test program: loaded around the maps of the original, run with one packet.
#include "ctl/datapath/test_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/service.h"
#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/markers.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/program_load.h"

struct test_program {
	struct policy_bpf *skel; // NULL: it was found pinned
	int program;             // the first one; belongs to skel, if there is one
	int stages;              // found pinned: the kernel empties the array when nothing holds it
	int folder;              // folder of the pins, locked for each packet; -1: only ours
	struct policy_test *answer; // mapped
	uint8_t *packet;
	size_t size;
	program_refused refused;
	bool asks_mac; // its policy; found pinned: not known
};

#define PACKET_MAX 16384

void test_program_free(struct test_program *t)
{
	if (!t)
		return;
	if (t->answer)
		munmap(t->answer, sizeof(*t->answer));
	if (!t->skel)
		fd_close(t->program);
	fd_close(t->stages);
	fd_close(t->folder);
	policy_bpf__destroy(t->skel);
	free(t->packet);
	free(t);
}

void test_program_cleanup(struct test_program **t)
{
	test_program_free(*t);
}

// The read-only data of the original, which is of the same build.
static int copy_rodata(struct policy_bpf *skel, const struct generation *g)
{
	size_t size;
	CLEANUP_FREE void *rodata = parts_rodata(g, &size);

	if (!rodata)
		return -errno;
	if (size != bpf_map__value_size(skel->maps.rodata))
		return -EINVAL;
	memcpy(skel->rodata, rodata, size);
	return 0;
}

static int share_tables(struct policy_bpf *skel, const struct generation *g)
{
	for (enum part p = PART_RODATA + 1; p < PART_STAGES; p++) {
		int code = bpf_map__reuse_fd(part_map(skel, p), g->fd[p]);

		if (code)
			return code;
	}
	return 0;
}

// Without an instance.
static int share_nat(struct policy_bpf *skel, const struct generation *g)
{
	struct bpf_map *const maps[NAT_MAPS] = {
		[NAT_TABLE] = skel->maps.nat_table,
		[NAT_BLOCKS4] = skel->maps.nat4,
		[NAT_BLOCKS6] = skel->maps.nat6,
	};
	int code;

	for (int m = 0; m < NAT_MAPS; m++)
		if (g->nat[m] >= 0 && (code = bpf_map__reuse_fd(maps[m], g->nat[m])))
			return code;
	return 0;
}

static int prepare(struct policy_bpf *skel, const struct instance *i, const struct generation *g,
		   bool has_short)
{
	int code;

	parts_fit(skel, i);
	parts_choose(skel, (struct parts_wanted){
				   .has_short = has_short,
				   .balances = generation_program_of(g, GENERATION_BALANCE) >= 0,
				   .translates = generation_program_of(g, GENERATION_NAT) >= 0,
			   });
	if ((code = copy_rodata(skel, g)) || (code = share_tables(skel, g)))
		return code;
	return i ? instance_share_maps(i, skel->obj) : share_nat(skel, g);
}

// The programs of the test program are linked by an array of their own: the programs of the
// original would count.
static int load(struct test_program *t, const struct instance *i, const struct generation *g,
		bool has_short, bool *ret_short, struct err *err)
{
	struct markers markers;
	int code = markers_read(g->fd[PART_MARKERS], &markers, err);

	if (code)
		return code;
	markers_number(&markers, MARK_TEST, 1);
	t->asks_mac = markers.at[MARK_MACS].value;
	if ((code = prepare(t->skel, i, g, has_short)))
		return err_system(err, -code, "cannot prepare the policy's test program");
	if ((code = program_load(t->skel, &markers, ret_short, err)))
		return code;
	code = parts_link(t->skel);
	return code ? err_system(err, -code, "cannot link the policy's test program") : 0;
}

static int open_way(struct test_program *t, const struct instance *i, const struct generation *g,
		    bool has_short, bool *ret_short, struct err *err)
{
	policy_bpf__destroy(t->skel);
	t->skel = markers_open();
	if (!t->skel)
		return err_system(err, errno, "cannot open the policy program");
	return load(t, i, g, has_short, ret_short, err);
}

// The short program has more to verify as a test program. If the kernel refuses it, only the
// general one answers.
static int open_either(struct test_program *t, const struct instance *i, const struct generation *g,
		       struct err *err)
{
	bool has_short = generation_program_of(g, GENERATION_SHORT) >= 0, short_refused = false;
	struct err refusal = {0};
	int code = open_way(t, i, g, has_short, &short_refused, &refusal);

	if (!code)
		return 0;
	if (!short_refused) {
		*err = refusal;
		return code;
	}
	program_refusal(&refusal, t->refused);
	return open_way(t, i, g, false, &short_refused, err);
}

const char *test_program_refused(const struct test_program *t)
{
	return t->refused;
}

bool test_program_asks_mac(const struct test_program *t)
{
	return t->asks_mac;
}

static struct test_program *test_program_new(void)
{
	struct test_program *t = mem_new(struct test_program);

	t->program = t->stages = t->folder = -1;
	t->packet = mem_zalloc(1, PACKET_MAX);
	return t;
}

static int map_answer(struct test_program *t, int fd, struct err *err)
{
	void *answer = mmap(NULL, sizeof(*t->answer), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (answer == MAP_FAILED)
		return err_system(err, errno, "cannot map the result of the test program");
	t->answer = answer;
	return 0;
}

int test_program_open(const struct instance *i, const struct generation *g,
		      struct test_program **ret, struct err *err)
{
	CLEANUP_TEST_PROGRAM struct test_program *t = test_program_new();
	int code;

	if ((code = open_either(t, i, g, err)) ||
	    (code = map_answer(t, bpf_map__fd(t->skel->maps.test), err)))
		return code;
	t->program = parts_first_program(t->skel);
	*ret = TAKE_PTR(t);
	return 0;
}

// ---- pinned -------------------------------------------------------------------------------------

static char *folder_of(const struct instance *i, uint32_t generation)
{
	CLEANUP_FREE char *folder = generation_folder(i->folder, generation);

	return mem_printf("%s/test", folder);
}

// The program last: without it the others are ignored.
void test_program_pin(const struct test_program *t, const struct instance *i, uint32_t generation)
{
	CLEANUP_FREE char *folder = folder_of(i, generation);

	if (t->refused[0] || file_mkdirs(folder, 0700, NULL))
		return;
	if (bpffs_put(folder, "stages", bpf_map__fd(t->skel->maps.stages), NULL) ||
	    bpffs_put(folder, "answer", bpf_map__fd(t->skel->maps.test), NULL) ||
	    bpffs_put(folder, "program", t->program, NULL))
		file_remove_tree(folder, NULL);
}

int test_program_find(const struct instance *i, uint32_t generation, struct test_program **ret,
		      struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(i, generation);
	CLEANUP_TEST_PROGRAM struct test_program *t = test_program_new();
	CLEANUP_FD int answer = -1;
	int code = bpffs_get(folder, "program", &t->program, err);

	if (code || (code = bpffs_get(folder, "stages", &t->stages, err)) ||
	    (code = bpffs_get(folder, "answer", &answer, err)))
		return code;
	t->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->folder < 0)
		return err_system(err, errno, "cannot open '%s'", folder);
	if ((code = map_answer(t, answer, err)))
		return code;
	*ret = TAKE_PTR(t);
	return 0;
}

// ---- packets ------------------------------------------------------------------------------------

static int run_locked(struct test_program *t, const uint8_t *frame, size_t length,
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
	t->answer->general = 0;
	if (bpf_prog_test_run_opts(t->program, &opts))
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
		.general = t->answer->general != 0,
		.packet = t->packet,
		.length = opts.data_size_out,
	};
	memcpy(ret->first_counted, t->answer->first_counted, sizeof(ret->first_counted));
	return 0;
}

int test_program_run(struct test_program *t, const uint8_t *frame, size_t length,
		     const struct policy_test *ask, struct test_result *ret, struct err *err)
{
	int code;

	if (t->folder >= 0 && flock(t->folder, LOCK_EX))
		return err_system(err, errno, "cannot lock the test program");
	code = run_locked(t, frame, length, ask, ret, err);
	if (t->folder >= 0)
		flock(t->folder, LOCK_UN);
	return code;
}
