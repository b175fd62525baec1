// SPDX-License-Identifier: GPL-2.0-only
// Runs a store on a kernel of the test's own: its maps are in memory that is shared with a process
// that the test kills. The header includes the sources of the store, whose calls of the kernel are
// replaced.
#pragma once

#include "tests/unit/base/unit.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/macs.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/outgoing.h"

// Each test uses a part of this.
#pragma GCC diagnostic ignored "-Wunused-function"

#define ENTRIES_MAX 512
#define HZ          100
#define NOW_S       1790000000 // wall clock at the beginning
#define KILLED      9          // exit status of a process that the test has killed
#define BLOCK       OVERLAY_BLOCK_FROM
#define ALL         ((1u << OVERLAY_KINDS) - 1)

// The step of a commit at which the process is killed.
enum step { ALIVE, BEFORE_STAGE, STAGED, WRITTEN, EFFECTIVE, ENTERED };

// The overlay of a kernel, in memory shared with the process that is killed.
struct kernel {
	struct knobs knobs;
	struct clock clock;
	struct overlay_entry now[ENTRIES_MAX], next[ENTRIES_MAX];
	size_t n, next_n;
	size_t room;                // 0: no limit
	size_t staged, staged_n;    // calls, and entries of the last one
	size_t read_one, read_many; // calls
	enum step dies;
};

static struct kernel *kernel;
static char state_folder[] = "/tmp/weir-store-XXXXXX";
static char run_folder[] = "/tmp/weir-run-XXXXXX";
static char *state_path = state_folder; // what the store takes for /var/lib/weir

static void may_die(enum step at)
{
	if (kernel->dies == at)
		_exit(KILLED);
}

static int fake_clock(const struct instance *i, struct clock *ret, struct err *err)
{
	(void)i, (void)err;
	*ret = kernel->clock;
	return 0;
}

static int fake_read(const struct instance *i, struct overlay_entries *ret, struct err *err)
{
	(void)i, (void)err;
	for (size_t e = 0; e < kernel->n; e++)
		vec_push(ret, kernel->now[e]);
	return 0;
}

static int find_next(const struct overlay_entry *want)
{
	for (size_t e = 0; e < kernel->next_n; e++)
		if (!prefix_compare(&kernel->next[e].prefix, &want->prefix) &&
		    kernel->next[e].kind == want->kind)
			return (int)e;
	return -1;
}

// Returns them in the order of the entries, as the real function does.
static void insert_next(const struct overlay_entry *want)
{
	size_t e = kernel->next_n++;

	assert_true(kernel->next_n <= ENTRIES_MAX);
	for (; e && (prefix_compare(&kernel->next[e - 1].prefix, &want->prefix) > 0 ||
		     (!prefix_compare(&kernel->next[e - 1].prefix, &want->prefix) &&
		      kernel->next[e - 1].kind > want->kind));
	     e--)
		kernel->next[e] = kernel->next[e - 1];
	kernel->next[e] = (struct overlay_entry){
		.prefix = want->prefix, .kind = want->kind, .until = want->until};
}

static void change_next(const struct overlay_entry *want)
{
	int at = find_next(want);

	if (at < 0 && want->until) {
		insert_next(want);
	} else if (at >= 0 && want->until) {
		kernel->next[at].until = want->until;
	} else if (at >= 0) {
		kernel->next_n--;
		memmove(&kernel->next[at], &kernel->next[at + 1],
			(kernel->next_n - (size_t)at) * sizeof(kernel->next[0]));
	}
}

static int stage_kernel(const struct instance *i, const struct overlay_entry *want, size_t n,
			struct overlay_plan *ret, struct err *err)
{
	may_die(BEFORE_STAGE);
	if (kernel->room) {
		if (n + kernel->next_n > kernel->room) {
			err_refused(err, "the map is full");
			return -ENOSPC;
		}
	}
	for (size_t e = 0; e < n; e++)
		change_next(&want[e]);
	kernel->staged++;
	kernel->staged_n = n;
	kernel->knobs.staging = i->knobs->epoch + 1;
	*ret = (struct overlay_plan){.epoch = kernel->knobs.staging};
	may_die(STAGED);
	return 0;
}

static int fake_stage(const struct instance *i, const struct overlay_entry *want, size_t n,
		      struct overlay_plan *ret, struct err *err)
{
	for (size_t e = 1; e < n; e++) {
		int order = prefix_compare(&want[e - 1].prefix, &want[e].prefix);

		assert_true(order < 0 || (!order && want[e - 1].kind < want[e].kind));
	}
	memcpy(kernel->next, kernel->now, sizeof(kernel->now));
	kernel->next_n = kernel->n;
	return stage_kernel(i, want, n, ret, err);
}

static int fake_stage_whole(const struct instance *i, const struct overlay_entry *want, size_t n,
			    struct overlay_plan *ret, struct err *err)
{
	kernel->next_n = 0;
	for (size_t e = 0; e < n; e++)
		assert_true(want[e].until > 0);
	return stage_kernel(i, want, n, ret, err);
}

static int fake_read_one(const struct instance *i, const struct prefix *p,
			 struct overlay_entry ret[OVERLAY_KINDS], size_t *ret_n, struct err *err)
{
	(void)i, (void)err;
	kernel->read_one++;
	*ret_n = 0;
	for (size_t e = 0; e < kernel->n; e++)
		if (!prefix_compare(&kernel->now[e].prefix, p))
			ret[(*ret_n)++] = kernel->now[e];
	return 0;
}

static int fake_read_many(const struct instance *i, struct overlay_entry *entries, size_t n,
			  struct err *err)
{
	(void)i, (void)err;
	kernel->read_many++;
	for (size_t e = 0; e < n; e++) {
		entries[e].until = 0;
		for (size_t k = 0; k < kernel->n; k++)
			if (!prefix_compare(&kernel->now[k].prefix, &entries[e].prefix) &&
			    kernel->now[k].kind == entries[e].kind)
				entries[e] = kernel->now[k];
	}
	return 0;
}

static void fake_commit(const struct instance *i, const struct overlay_plan *plan)
{
	may_die(WRITTEN);
	assert_true(plan->epoch >= kernel->knobs.staging);
	kernel->knobs.staging = plan->epoch;
	memcpy(kernel->now, kernel->next, sizeof(kernel->now));
	kernel->n = kernel->next_n;
	i->knobs->epoch = plan->epoch;
	may_die(EFFECTIVE);
}

static int fake_tidy(const struct instance *i, struct err *err)
{
	kernel->next_n = 0;
	kernel->knobs.staging = i->knobs->epoch;
	return 0;
}

static int fake_file_commit(const char *path, struct err *err)
{
	int code = file_commit(path, err);

	may_die(ENTERED);
	return code;
}

static void fake_enter(struct journal_file *j, const char *frame, size_t len)
{
	journal_enter(j, frame, len);
	may_die(ENTERED);
}

static int fake_open(const char *name, struct instance **ret, struct err *err)
{
	*ret = mem_new(struct instance);
	**ret = (struct instance){.knobs = &kernel->knobs};
	memcpy((*ret)->name, name, strlen(name) + 1);
	return 0;
}

static void fake_free(struct instance *i)
{
	free(i);
}

static void fake_cleanup(struct instance **i)
{
	fake_free(*i);
}

static bool fake_exist(const char *name)
{
	return true;
}

static int fake_lock(const char *name, int *ret, struct err *err)
{
	(void)name, (void)err;
	*ret = -1;
	return 0;
}

static int fake_lock_take(const char *name, const char *command, int *ret, struct err *err)
{
	return fake_lock(name, ret, err);
}

static int fake_devices(const struct instance *i, struct devices *ret, struct err *err)
{
	(void)i, (void)ret, (void)err;
	return 0;
}

static int fake_outgoing(const struct instance *i, bool *ret_whole, struct err *err)
{
	(void)i, (void)err;
	*ret_whole = true;
	return 0;
}

static int fake_macs(const struct instance *i, const struct devices *devices, struct err *err)
{
	(void)i, (void)devices, (void)err;
	return 0;
}

#undef WEIR_STATE_FOLDER
#undef WEIR_RUN_FOLDER
#define WEIR_STATE_FOLDER   state_path
#define WEIR_RUN_FOLDER     run_folder
#define instance_clock      fake_clock
#define instance_open       fake_open
#define instance_free       fake_free
#define instance_cleanup    fake_cleanup
#define overlay_read        fake_read
#define overlay_read_one    fake_read_one
#define overlay_read_many   fake_read_many
#define overlay_stage       fake_stage
#define overlay_stage_whole fake_stage_whole
#define overlay_commit      fake_commit
#define overlay_tidy        fake_tidy
#define file_commit         fake_file_commit
#define journal_enter       fake_enter
#define bpffs_exist         fake_exist
#define lock_take           fake_lock_take
#define lock_share          fake_lock
#define devices_sync        fake_devices
#define macs_write          fake_macs
#define outgoing_follow     fake_outgoing
#include "ctl/control/entries/store.c"
#include "ctl/control/entries/store_diff.c"
#include "ctl/control/entries/store_ends.c"
#include "ctl/control/entries/store_group.c"
#include "ctl/control/entries/store_load.c"
#include "ctl/control/entries/store_snapshot.c"
#include "ctl/control/entries/store_steps.c"

// ---- helpers ------------------------------------------------------------------------------------

static int set_up(void **state)
{
	CLEANUP_FREE char *folder = mem_printf("%s/test", state_folder);
	CLEANUP_FREE char *run = mem_printf("%s/test", run_folder);

	file_remove_tree(run, NULL);
	assert_int_equal(file_mkdirs(run, 0755, NULL), 0);
	*kernel = (struct kernel){.clock = {5000000, NOW_S * 1000ull, HZ}};
	kernel->knobs.epoch = kernel->knobs.staging = 1;
	state_path = state_folder;
	return file_remove_tree(folder, NULL);
}

static void pass_s(uint64_t seconds)
{
	kernel->clock.jiffies += seconds * HZ;
	kernel->clock.wall_ms += seconds * 1000;
}

static char *file_of(const char *name)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/test/%s", state_folder, name);
	return path;
}

static struct prefix prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse_quiet(text, strlen(text), &p, NULL), 0);
	return p;
}

static struct store *opened(void)
{
	struct store *b = NULL;
	struct err err = {0};

	if (store_open("test", "unit", &b, &err))
		fail_msg("%s (%s)", err.text, err.hint);
	return b;
}

static struct store *opened_whole(void)
{
	struct store *b = opened();

	assert_int_equal(store_load_all(b, NULL), 0);
	return b;
}

static void reopen(struct store **b)
{
	store_free(*b);
	*b = opened_whole();
}

// Returns the references that a reader sees, as records.
static struct store *seen(void)
{
	CLEANUP_VEC struct record_list list = {0};
	struct store *b = NULL;
	struct err err = {0};

	if (store_read("test", &b, &err))
		fail_msg("%s", err.text);
	for (size_t r = 0; r < b->snapshot->n; r++) {
		const struct store_ref *ref = &b->snapshot->refs[r];
		struct reference record = {.prefix = {.addr.family = ref->family, .len = ref->len},
					   .kind = ref->kind,
					   .until_s = ref->until_s};
		CLEANUP_FREE char *room = NULL;
		struct owner owner;

		memcpy(record.prefix.addr.bytes, ref->bytes, sizeof(ref->bytes));
		assert_int_equal(store_owner(b, ref->owner, &owner, &room), 0);
		record.owner = records_owner(&b->records, &owner);
		vec_push(&list, record);
	}
	vec_free(&b->records.list);
	records_load(&b->records, &b->records.list, list.at, list.n);
	return b;
}

static void refer(struct store *b, const char *what, const char *origin, uint64_t until_s,
		  bool fleeting)
{
	struct owner owner = {.origin = (char *)origin, .fleeting = fleeting, .since_s = NOW_S};
	struct reference reference = {prefix(what), BLOCK, 0, until_s};
	struct records_change change;

	assert_int_equal(store_load(b, &reference.prefix, 1, NULL), 0);
	reference.owner = records_owner(&b->records, &owner);
	records_add(&b->records, &reference, 1, &change);
}

static void commit_now(struct store *b)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct err err = {0};

	if (store_commit(b, false, &plan, &err))
		fail_msg("%s", err.text);
	assert_int_equal(b->unsaved.code, 0);
}

// Runs one command: opens the store, adds a reference, commits.
static void block(const char *what, const char *origin, uint64_t until_s, bool fleeting)
{
	CLEANUP_STORE struct store *b = opened();

	refer(b, what, origin, until_s, fleeting);
	commit_now(b);
}

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

static size_t size_of_file(const char *path)
{
	struct stat info;

	assert_int_equal(stat(path, &info), 0);
	return (size_t)info.st_size;
}

static size_t references(struct store *b, const char *what)
{
	struct prefix p = prefix(what);
	size_t n = 0;

	if (b->to_write)
		assert_int_equal(store_load(b, &p, 1, NULL), 0);
	records_find(&b->records, &p, BLOCK, &n);
	return n;
}

// Returns the jiffy until which the kernel blocks the address; 0: it is not blocked.
static uint64_t blocked_until(const char *what)
{
	struct prefix p = prefix(what);

	for (size_t e = 0; e < kernel->n; e++)
		if (!prefix_compare(&kernel->now[e].prefix, &p) && kernel->now[e].kind == BLOCK)
			return kernel->now[e].until;
	return 0;
}

static uint64_t seen_until(const char *what)
{
	CLEANUP_STORE struct store *b = seen();
	struct prefix p = prefix(what);
	uint64_t until_s = 0;

	vec_each (&b->records.list, record)
		if (!prefix_compare(&record->prefix, &p) && record->until_s > until_s)
			until_s = record->until_s;
	return until_s;
}

static void assert_has_owner(const struct store *b, const char *origin)
{
	assert_int_equal(b->records.list.n, 1);
	assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].origin, origin);
}

static int begin(void **state)
{
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return kernel == MAP_FAILED || !mkdtemp(state_folder) || !mkdtemp(run_folder);
}

static int end(void **state)
{
	munmap(kernel, sizeof(*kernel));
	file_remove_tree(run_folder, NULL);
	return file_remove_tree(state_folder, NULL);
}
