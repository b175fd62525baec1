// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/store.h on a kernel of the test's own: commits, owners, expiry, damaged files, and a
// kill before and after each step.
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
#include "ctl/control/macs.h"
#include "ctl/control/store.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/lock.h"

#define ENTRIES_MAX 512
#define HZ          100
#define NOW_S       1790000000 // wall clock at the beginning
#define KILLED      9          // exit status of a process that the test has killed
#define BLOCK       OVERLAY_BLOCK_FROM
#define ALL         ((1u << OVERLAY_KINDS) - 1)

// Where the process is killed, in the order of a commit.
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

static int find_next(const struct overlay_want *want)
{
	for (size_t e = 0; e < kernel->next_n; e++)
		if (!prefix_compare(&kernel->next[e].prefix, &want->prefix) &&
		    kernel->next[e].kind == want->kind)
			return (int)e;
	return -1;
}

// In the order of the entries, as the real one returns them.
static void insert_next(const struct overlay_want *want)
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

static void change_next(const struct overlay_want *want)
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

static int stage_kernel(const struct instance *i, const struct overlay_want *want, size_t n,
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

static int fake_stage(const struct instance *i, const struct overlay_want *want, size_t n,
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

static int fake_stage_whole(const struct instance *i, const struct overlay_want *want, size_t n,
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
	(void)err;
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
	(void)err;
	*ret = mem_new(struct instance);
	**ret = (struct instance){.knobs = &kernel->knobs};
	memcpy((*ret)->name, name, strlen(name) + 1);
	return 0;
}

static void fake_free(struct instance *i)
{
	free(i);
}

static bool fake_exist(const char *name)
{
	(void)name;
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
	(void)command;
	return fake_lock(name, ret, err);
}

static int fake_devices(const struct instance *i, struct devices *ret, struct err *err)
{
	(void)i, (void)ret, (void)err;
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
#include "ctl/control/store.c"
#include "ctl/control/store_diff.c"
#include "ctl/control/store_ends.c"
#include "ctl/control/store_load.c"
#include "ctl/control/store_snapshot.c"
#include "ctl/control/store_steps.c"

// ---- helpers ------------------------------------------------------------------------------------

static int set_up(void **state)
{
	CLEANUP_FREE char *folder = mem_printf("%s/test", state_folder);
	CLEANUP_FREE char *run = mem_printf("%s/test", run_folder);

	(void)state;
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

	assert_int_equal(prefix_parse(text, strlen(text), &p, NULL, NULL), 0);
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

// What a reader sees, as records.
static struct store *seen(void)
{
	CLEANUP_VEC struct record_list list = {0};
	struct store *b = NULL;
	struct err err = {0};

	if (store_read("test", &b, &err))
		fail_msg("%s", err.text);
	for (size_t r = 0; r < b->snapshot->n; r++) {
		const struct store_ref *ref = &b->snapshot->refs[r];
		struct record record = {.prefix = {.addr.family = ref->family, .len = ref->len},
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
	struct reference reference = {prefix(what), BLOCK, until_s, 0};
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

// One command: opens the store, adds a reference, commits.
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

static void copy_file(const char *from, const char *name)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	assert_int_equal(file_read(from, 1 << 20, &text, &len, NULL), 0);
	write_file(file_of(name), text, len);
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

// The jiffy until which the kernel blocks it; 0: not blocked.
static uint64_t blocked_until(const char *what)
{
	struct prefix p = prefix(what);

	for (size_t e = 0; e < kernel->n; e++)
		if (!prefix_compare(&kernel->now[e].prefix, &p) && kernel->now[e].kind == BLOCK)
			return kernel->now[e].until;
	return 0;
}

// ---- tests --------------------------------------------------------------------------------------

static void test_empty(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	size_t n = 7;
	bool any = true;

	(void)state;
	assert_int_equal(b->records.list.n, 0);
	assert_int_equal(store_count("test", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_restore(b, &n, &any, NULL), 0);
	assert_int_equal(n, 0);
	assert_false(any);
	assert_false(file_exists(file_of("overlay"))); // opening writes nothing
}

static void test_commit(void **state)
{
	struct stat info;
	size_t n;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	block("2001:db8::/32", "ban", NOW_S + 60, false);
	assert_true(blocked_until("192.0.2.1") == OVERLAY_FOREVER);
	assert_int_equal(blocked_until("2001:db8::/32"), kernel->clock.jiffies + 60 * HZ);
	assert_int_equal(kernel->knobs.epoch, 3);
	assert_int_equal(stat(file_of("overlay"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_false(file_exists(file_of("overlay.new")));
	assert_int_equal(store_count("test", &n), 0);
	assert_int_equal(n, 2);

	CLEANUP_STORE struct store *b = opened_whole();

	assert_int_equal(journal_index_epoch(b->journal.index), 3);
	assert_int_equal(references(b, "192.0.2.1"), 1);
	assert_string_equal(b->records.owners.at[b->records.list.at[1].owner].origin, "ban");
}

// An entry lives while any owner refers to it, for as long as the longest reference says.
static void test_owners(void **state)
{
	struct owner ban = {.origin = (char *)"ban"};
	struct prefix p = prefix("192.0.2.1");
	size_t removed;

	(void)state;
	block("192.0.2.1", "", NOW_S + 60, false);
	block("192.0.2.1", "ban", NOW_S + 600, false);
	assert_int_equal(kernel->n, 1);
	assert_int_equal(blocked_until("192.0.2.1"), kernel->clock.jiffies + 600 * HZ);

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(references(b, "192.0.2.1"), 2);
	records_remove(&b->records, &ban, ALL, &p, 1, &removed);
	assert_int_equal(removed, 1);
	commit_now(b);
	assert_int_equal(blocked_until("192.0.2.1"), kernel->clock.jiffies + 60 * HZ);
	assert_int_equal(store_begin(b, NULL), 0); // the next command, under the same lock
	assert_int_equal(store_load_all(b, NULL), 0);
	records_remove_origin(&b->records, NULL, ALL, &removed);
	commit_now(b);
	assert_int_equal(kernel->n, 0);
}

// The kernel's clock decides whether an entry has expired, not the wall clock.
static void test_expiry(void **state)
{
	(void)state;
	block("192.0.2.1", "", NOW_S + 60, false);
	block("192.0.2.2", "", NOW_S + 61, false);
	block("192.0.2.3", "", RECORD_NEVER, false);
	pass_s(60);
	kernel->clock.wall_ms -= 900;

	CLEANUP_STORE struct store *b = opened_whole();

	assert_int_equal(references(b, "192.0.2.1"), 0);
	assert_int_equal(references(b, "192.0.2.2"), 1);
	commit_now(b);
	assert_int_equal(kernel->n, 2);
	assert_int_equal(blocked_until("192.0.2.1"), 0);
}

// The maps are asked about all that expire now at once: each time costs a mapping of them.
static void test_many_expire_now(void **state)
{
	CLEANUP_STORE struct store *b = NULL, *reader = NULL;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		CLEANUP_FREE char *text = mem_printf("10.0.0.%u", i);

		block(text, "", NOW_S + 60 + i % 2, false);
	}
	pass_s(60);
	kernel->clock.wall_ms -= 900;
	kernel->read_one = kernel->read_many = 0;
	b = opened_whole();
	assert_int_equal(b->records.list.n, 25);
	assert_int_equal(kernel->read_many, 1);
	reader = seen();
	assert_int_equal(reader->records.list.n, 25);
	assert_int_equal(kernel->read_many, 2);
	assert_int_equal(kernel->read_one, 0);
}

// An entry without a record gets one; a record without an entry is dropped.
static void test_what_differs(void **state)
{
	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	block("192.0.2.2", "", RECORD_NEVER, false);
	copy_file(file_of("overlay"), "older");
	block("192.0.2.3", "", RECORD_NEVER, false);
	kernel->n--;
	kernel->now[0].prefix = prefix("192.0.2.0"); // instead of .1
	kernel->now[0].until = kernel->clock.jiffies + 5 * HZ;
	unlink(file_of("overlay")); // the file of an older state
	copy_file(file_of("older"), "overlay");

	CLEANUP_STORE struct store *b = opened();
	const struct record *found;
	struct prefix p = prefix("192.0.2.0");
	size_t n;

	assert_int_equal(references(b, "192.0.2.1"), 0);
	assert_int_equal(references(b, "192.0.2.2"), 1);
	found = records_find(&b->records, &p, BLOCK, &n);
	assert_int_equal(n, 1);
	assert_int_equal(found->until_s, NOW_S + 5);
	assert_true(b->records.owners.at[found->owner].note[0] != '\0');
	assert_true(b->records.owners.at[found->owner].fleeting);
}

// The file is lost: all entries are found in the kernel, and can be removed.
static void test_lost_file(void **state)
{
	size_t removed;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	assert_int_equal(unlink(file_of("overlay")), 0);

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(references(b, "192.0.2.1"), 1);
	records_remove_origin(&b->records, NULL, ALL, &removed);
	commit_now(b);
	assert_int_equal(kernel->n, 0);
}

static void test_full_map(void **state)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_STORE struct store *b = NULL;
	struct err err = {0};

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	b = opened();
	refer(b, "192.0.2.2", "", RECORD_NEVER, false);
	kernel->room = 1;
	assert_true(store_commit(b, true, &plan, &err) < 0);
	assert_int_equal(err.kind, ERR_REFUSED);
	kernel->room = 0;
	reopen(&b);
	assert_int_equal(references(b, "192.0.2.1"), 1);
	assert_int_equal(references(b, "192.0.2.2"), 0);
}

// The state folder cannot be written: nothing changes, unless the caller accepts that.
static void test_unwritable_folder(void **state)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_STORE struct store *b = NULL;
	char no_folder[64];
	struct err err = {0};

	(void)state;
	snprintf(no_folder, sizeof(no_folder), "%s/file", state_folder);
	write_file(no_folder, "", 0);
	b = opened();
	state_path = no_folder;
	refer(b, "192.0.2.1", "", RECORD_NEVER, true);
	assert_true(store_commit(b, false, &plan, &err) < 0);
	assert_true(err.text[0] && err.hint[0]);
	assert_int_equal(kernel->n, 0);
	assert_int_equal(kernel->knobs.staging, kernel->knobs.epoch); // nothing is left staged
	assert_int_equal(store_commit(b, true, &plan, &err), 0);
	assert_true(b->unsaved.text[0] != '\0');
	assert_int_equal(kernel->n, 1);
	unlink(no_folder);
}

// Entries that --volatile put into the kernel alone stay fleeting if the file is older than the maps.
static void test_adopted_stays_fleeting(void **state)
{
	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	kernel->now[kernel->n++] = (struct overlay_entry){
		.prefix = prefix("192.0.2.2"), .kind = BLOCK, .until = OVERLAY_FOREVER};
	kernel->knobs.epoch++;

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(b->records.list.n, 2);
	assert_false(b->records.owners.at[b->records.list.at[0].owner].fleeting);
	assert_true(b->records.owners.at[b->records.list.at[1].owner].fleeting);
}

static void assert_has_owner(const struct store *b, const char *origin)
{
	assert_int_equal(b->records.list.n, 1);
	assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].origin, origin);
}

static void in_a_process(void (*run)(void), enum step dies)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		kernel->dies = dies;
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), dies ? KILLED : 0);
	kernel->dies = ALIVE;
}

static void block_another(void)
{
	block("192.0.2.2", "ban", RECORD_NEVER, false);
}

static void assert_state(struct store *b, bool after)
{
	assert_int_equal(b->records.list.n, after ? 2 : 1);
	assert_int_equal(references(b, "192.0.2.2"), after);
	assert_int_equal(kernel->n, after ? 2 : 1);
}

// After a kill at any step, state and owners are the old or the new ones. Readers see them at once and write nothing.
static void test_kills(void **state)
{
	(void)state;
	for (enum step at = BEFORE_STAGE; at <= ENTERED; at++) {
		CLEANUP_STORE struct store *b = NULL;
		bool after = at >= EFFECTIVE;

		set_up(NULL);
		block("192.0.2.1", "", RECORD_NEVER, false);
		in_a_process(block_another, at);
		b = seen();
		assert_state(b, after);
		reopen(&b);
		assert_state(b, after);
		assert_int_equal(kernel->knobs.staging, kernel->knobs.epoch);
		block_another(); // the command again
		reopen(&b);
		assert_state(b, true);
		assert_string_equal(b->records.owners.at[b->records.list.at[1].owner].origin,
				    "ban");
	}
}

// A commit of --volatile while there is no state folder.
static void block_without_a_folder(const char *what)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_STORE struct store *b = NULL;
	char absent[64], no_folder[64];

	snprintf(absent, sizeof(absent), "%s/absent", state_folder);
	snprintf(no_folder, sizeof(no_folder), "%s/file", state_folder);
	write_file(no_folder, "", 0);
	state_path = absent;
	b = opened();
	state_path = no_folder;
	refer(b, what, "", RECORD_NEVER, true);
	assert_int_equal(store_commit(b, true, &plan, NULL), 0);
	assert_true(b->unsaved.text[0] != '\0');
	state_path = state_folder;
	unlink(no_folder);
}

static void assert_listed(const char *what, size_t expected)
{
	CLEANUP_STORE struct store *b = seen();

	assert_int_equal(b->records.list.n, kernel->n);
	assert_int_equal(references(b, what), expected);
}

static void unblock_all(void)
{
	CLEANUP_STORE struct store *b = opened_whole();
	size_t removed;

	records_remove_origin(&b->records, NULL, ALL, &removed);
	commit_now(b);
}

// What a killed command has appended, and a commit of --volatile that could not cut it off: the file does not become
// that of the maps, whatever it says.
static void test_volatile_after_a_kill(void **state)
{
	(void)state;
	for (unsigned commits = 1; commits <= 3; commits++) {
		set_up(NULL);
		block("192.0.2.1", "", RECORD_NEVER, false);
		in_a_process(block_another, WRITTEN);
		for (unsigned n = 0; n < commits; n++)
			block_without_a_folder(n % 2 ? "192.0.2.4" : "192.0.2.3");
		assert_listed("192.0.2.2", 0);
		assert_listed("192.0.2.3", 1);
		unblock_all();
		assert_int_equal(kernel->n, 0);
	}
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

// The file knows the entries, with other ends: those of the kernel count, also after the next commit.
static void test_volatile_changes_ends(void **state)
{
	(void)state;
	block("192.0.2.1", "", NOW_S + 60, false);
	block("192.0.2.2", "", NOW_S + 600, false);
	kernel->now[0].until = OVERLAY_FOREVER;
	kernel->now[1].until = kernel->clock.jiffies + 60 * HZ;
	kernel->knobs.staging = kernel->knobs.epoch += 2;
	assert_int_equal(seen_until("192.0.2.1"), RECORD_NEVER);
	assert_int_equal(seen_until("192.0.2.2"), NOW_S + 60);
	block("192.0.2.3", "", RECORD_NEVER, false);
	assert_int_equal(blocked_until("192.0.2.1"), OVERLAY_FOREVER);
	assert_int_equal(blocked_until("192.0.2.2"), kernel->clock.jiffies + 60 * HZ);
	assert_int_equal(seen_until("192.0.2.1"), RECORD_NEVER);
	assert_int_equal(seen_until("192.0.2.2"), NOW_S + 60);
}

// The same where the file is replaced, since it is an older one.
static void test_kills_of_a_replacement(void **state)
{
	(void)state;
	for (enum step at = BEFORE_STAGE; at <= ENTERED; at++) {
		CLEANUP_STORE struct store *b = NULL;
		bool after = at >= EFFECTIVE, beside = at == WRITTEN || at == EFFECTIVE;

		set_up(NULL);
		block("192.0.2.1", "", RECORD_NEVER, false);
		kernel->knobs.staging = ++kernel->knobs.epoch;
		in_a_process(block_another, at);
		b = seen();
		assert_state(b, after);
		assert_int_equal(file_exists(file_of("overlay.new")), beside);
		reopen(&b);
		assert_state(b, after);
		assert_false(file_exists(file_of("overlay.new")));
		block_another();
		reopen(&b);
		assert_state(b, true);
	}
}

// Half of a change, of a command that was killed in the write, is cut off by the next one that writes.
static void test_half_a_change(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t before, len;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	before = size_of_file(file_of("overlay"));
	in_a_process(block_another, WRITTEN);
	assert_int_equal(file_read(file_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	for (size_t half = before; half <= len; half++) {
		CLEANUP_STORE struct store *b = NULL;

		write_file(file_of("overlay"), text, half);
		b = seen();
		assert_int_equal(b->records.list.n, 1);
		assert_int_equal(b->damaged.text[0], 0);
		store_free(b);
		b = opened_whole();
		assert_int_equal(b->records.list.n, 1);
		assert_int_equal(b->damaged.text[0], 0);
		assert_int_equal(size_of_file(file_of("overlay")), before);
	}
}

// A change reads and writes what it touches: the file grows by it, the maps get one entry.
static void test_cost(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	size_t before;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.0/24", i);
		block(text, "", RECORD_NEVER, false);
	}
	before = size_of_file(file_of("overlay"));
	kernel->staged = 0;
	block("192.0.2.1", "", RECORD_NEVER, false);
	assert_int_equal(kernel->staged, 1);
	assert_int_equal(kernel->staged_n, 1);
	assert_true(size_of_file(file_of("overlay")) - before < 200);
	b = opened();
	assert_int_equal(b->records.list.n, 0);
	assert_int_equal(references(b, "192.0.2.1"), 1);
	assert_int_equal(b->records.list.n, 1);
	assert_int_equal(b->records.owners.n, 1);
	kernel->staged = 0;
	commit_now(b); // without a difference
	assert_int_equal(kernel->staged, 0);
}

// Of many changes in one commit, each loads what it touches, as those before have left it. Nothing is in force until
// the commit, and a commit that is given up leaves nothing.
static void test_changes_together(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	struct owner no_owner = {0};
	struct prefix first = prefix("10.0.0.0");
	size_t removed;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		CLEANUP_FREE char *text = mem_printf("10.0.%u.%u", i / 256, i % 256);

		if (i)
			store_next(b);
		refer(b, text, "", NOW_S + 1 + i % 2,
		      false); // not in the maps, and yet not expired
		assert_int_equal(b->records.list.n, 1);
	}
	store_next(b);
	assert_int_equal(references(b, "10.0.1.3"), 1);
	store_next(b);
	assert_int_equal(store_load(b, &first, 1, NULL), 0);
	records_remove(&b->records, &no_owner, ALL, &first, 1, &removed);
	assert_int_equal(removed, 1);
	assert_int_equal(store_gather(b, NULL), 0);
	assert_int_equal(b->records.list.n, 299);
	assert_int_equal(b->before.n, 0);
	reopen(&b);
	assert_int_equal(b->records.list.n, 0);
	refer(b, "10.0.0.1", "", RECORD_NEVER, false);
	store_next(b);
	refer(b, "10.0.0.2", "", RECORD_NEVER, false);
	kernel->staged = 0;
	commit_now(b);
	assert_int_equal(kernel->staged, 1);
	assert_int_equal(kernel->n, 2);
}

// The file does not grow without end, and a snapshot changes nothing.
static void test_snapshots(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	size_t shrunk = 0, last = 0, removed;

	(void)state;
	block("192.0.2.1", "ban", RECORD_NEVER, false);
	b = opened();
	for (unsigned i = 0; i < 2000; i++) {
		size_t now;

		assert_int_equal(store_begin(b, NULL), 0);
		assert_int_equal(store_load_all(b, NULL), 0);
		if (i % 2)
			records_remove_origin(&b->records, "", ALL, &removed);
		else
			refer(b, "192.0.2.2", "", RECORD_NEVER, false);
		commit_now(b);
		now = size_of_file(file_of("overlay"));
		shrunk += now < last;
		last = now;
		assert_true(now < 200000);
	}
	assert_true(shrunk > 1);
	reopen(&b);
	assert_has_owner(b, "ban");
}

// At the end of an instance the file is a snapshot and the index is gone.
static void test_part(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	CLEANUP_FREE char *index = index_path_of("test");
	struct instance *i;
	size_t before, n;

	(void)state;
	for (unsigned k = 0; k < 20; k++) {
		block("192.0.2.1", k % 2 ? "a" : "b", NOW_S + 100 + k, false);
	}
	before = size_of_file(file_of("overlay"));
	in_a_process(block_another, WRITTEN);
	assert_true(file_exists(index));
	fake_open("test", &i, NULL);
	kernel->knobs.staging = kernel->knobs.epoch;
	assert_int_equal(store_part(i, NULL), 0);
	fake_free(i);
	assert_false(file_exists(index));
	assert_true(size_of_file(file_of("overlay")) < before);
	assert_int_equal(store_count("test", &n), 0);
	assert_int_equal(n, 2);
}

// Expired references of others are removed along the way, from the file and from the maps, and make room in full maps.
static void test_others_expire(void **state)
{
	CLEANUP_STORE struct store *b = NULL;

	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u", i);
		block(text, "", NOW_S + 60, false);
	}
	pass_s(61);
	block("192.0.2.1", "", RECORD_NEVER, false);
	assert_int_equal(kernel->n, 1);
	b = opened_whole();
	assert_int_equal(b->before.n, 1);
}

// What the agent asks: how many have expired, where the first is, when the next one will.
static void test_next_expiry(void **state)
{
	struct store_expiry e;
	CLEANUP_STORE struct store *b = NULL;

	(void)state;
	block("192.0.2.9", "", RECORD_NEVER, false);
	assert_int_equal(store_expiry("test", &e, NULL), 0);
	assert_true(!e.due && e.next_s == RECORD_NEVER);
	block("192.0.2.1", "", NOW_S + 60, false);
	block("192.0.2.2", "", NOW_S + 30, false);
	block("192.0.2.3", "", NOW_S + 20, false);
	assert_int_equal(store_expiry("test", &e, NULL), 0);
	assert_true(!e.due && e.next_s == NOW_S + 20 && e.wall_ms == NOW_S * 1000ull);
	pass_s(35);
	assert_int_equal(store_expiry("test", &e, NULL), 0);
	assert_int_equal(e.due, 2);
	assert_int_equal(e.next_s, NOW_S + 60);
	b = opened();
	assert_int_equal(store_load_expired(b, e.first, 1000, NULL), 0);
	assert_int_equal(b->before.n, 2);
	assert_int_equal(b->records.list.n, 0);
	commit_now(b);
	assert_int_equal(kernel->n, 2);
	assert_int_equal(store_expiry("test", &e, NULL), 0);
	assert_int_equal(e.due, 0);
}

static void write_damaged(const char *text, size_t len, size_t at)
{
	CLEANUP_FREE char *copy = mem_realloc(NULL, len, 1);
	CLEANUP_FREE char *index = index_path_of("test");

	memcpy(copy, text, len);
	if (at < len)
		copy[at] ^= 1;
	write_file(file_of("overlay"), copy, len);
	journal_index_remove_file(index);
}

// What the kernel has is kept; the file is used up to the damage, is kept as it is, and is replaced.
static void assert_recovers(size_t at, size_t first_end)
{
	CLEANUP_STORE struct store *b = opened_whole();
	CLEANUP_FREE char *where = mem_printf("at byte %zu ", at);

	assert_true(b->damaged.text[0] != '\0');
	assert_non_null(strstr(b->damaged.text, file_of("overlay")));
	if (at >= first_end)
		assert_non_null(strstr(b->damaged.text, where));
	assert_int_equal(b->records.list.n, 2);
	assert_int_equal(references(b, "192.0.2.1"), 1);
	if (at >= first_end)
		assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].origin, "a");
	refer(b, "192.0.2.3", "", RECORD_NEVER, false);
	commit_now(b);
	assert_true(file_exists(file_of("overlay.damaged")));
	reopen(&b);
	assert_int_equal(b->damaged.text[0], 0);
	assert_int_equal(b->records.list.n, 3);
	assert_int_equal(kernel->n, 3);
}

static void test_damaged_file(void **state)
{
	CLEANUP_FREE char *text = NULL;
	struct kernel *saved = mem_new(struct kernel);
	size_t len, first_end;

	(void)state;
	block("192.0.2.1", "a", RECORD_NEVER, false);
	first_end = size_of_file(file_of("overlay"));
	block("192.0.2.2", "b", RECORD_NEVER, false);
	assert_int_equal(file_read(file_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	*saved = *kernel;
	for (size_t at = 0; at < len; at++) {
		if (at == strlen(JOURNAL_HEAD) - 2) // "weir-overlay 3" is refused
			continue;
		*kernel = *saved;
		unlink(file_of("overlay.damaged"));
		write_damaged(text, len, at);
		assert_recovers(at < first_end ? at : first_end, first_end);
		*kernel = *saved;
		if (at == first_end) // that is an older file, not a damaged one
			continue;
		unlink(file_of("overlay.damaged"));
		write_damaged(text, at, at);
		assert_recovers(at < first_end ? at : first_end, first_end);
	}
	free(saved);
}

// A damaged file of version 1, or one of a newer version, is refused and left alone.
static void test_refused_files(void **state)
{
	static const char *const texts[] = {
		"weir-overlay 1 epoch 2\nend 1\n",
		"weir-overlay 1 epoch 2\nend 0\nsum 0123456789abcdef\n",
		"weir-overlay 3\n",
	};
	size_t n;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct store *b = NULL;
		struct err err = {0};

		write_file(file_of("overlay"), texts[i], strlen(texts[i]));
		assert_true(store_open("test", "unit", &b, &err) < 0);
		assert_null(b);
		assert_int_equal(err.kind, ERR_SYSTEM); // the operator did not type it
		assert_non_null(strstr(err.text, file_of("overlay")));
		assert_true(err.hint[0] != '\0');
		assert_true(store_count("test", &n) < 0);
		assert_int_equal(kernel->n, 1);
		assert_int_equal(size_of_file(file_of("overlay")), strlen(texts[i]));
	}
}

// A file of version 1 is read and replaced.
static void test_old_file(void **state)
{
	static const char old[] =
		"weir-overlay 1 epoch 1\n"
		"holder 0 since 5 origin \"ban\" list \"\" name \"\" note \"n\" by \"\"\n"
		"block from 192.0.2.1 by 0 until never\n"
		"end 1\n";
	CLEANUP_FREE char *folder = mem_printf("%s/test", state_folder);
	CLEANUP_FREE char *text = NULL;
	CLEANUP_STORE struct store *b = NULL;
	size_t len;

	(void)state;
	assert_int_equal(file_mkdirs(folder, 0700, NULL), 0);
	write_file(file_of("overlay"), old, strlen(old));
	kernel->now[kernel->n++] = (struct overlay_entry){
		.prefix = prefix("192.0.2.1"), .kind = BLOCK, .until = OVERLAY_FOREVER};
	b = opened_whole();
	assert_has_owner(b, "ban");
	refer(b, "192.0.2.2", "", RECORD_NEVER, false);
	commit_now(b);
	assert_int_equal(file_read(file_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	assert_memory_equal(text, JOURNAL_HEAD, strlen(JOURNAL_HEAD));
	reopen(&b);
	assert_int_equal(b->records.list.n, 2);
	assert_string_equal(b->records.owners.at[b->records.list.at[0].owner].note, "n");
}

// The wall clock is set: what is left of each entry stays.
static void test_clock_is_set(void **state)
{
	CLEANUP_STORE struct store *b = NULL;

	(void)state;
	block("192.0.2.1", "", NOW_S + 600, false);
	kernel->clock.wall_ms += 86400000;
	block("192.0.2.2", "", NOW_S + 86400 + 600, false);
	b = opened_whole();
	assert_int_equal(b->records.list.at[0].until_s, NOW_S + 86400 + 600);
	assert_int_equal(b->records.list.at[1].until_s, NOW_S + 86400 + 600);
	assert_int_equal(blocked_until("192.0.2.1"), kernel->clock.jiffies + 600 * HZ);
	assert_false(b->whole);
}

// An overlay.new that is damaged, or of another epoch, is never used.
static void test_foreign_file_beside(void **state)
{
	static const char *const texts[] = {"", "damaged", "weir-overlay 1 epoch 7\nend 0\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP_STORE struct store *b = NULL;

		set_up(NULL);
		block("192.0.2.1", "ban", RECORD_NEVER, false);
		write_file(file_of("overlay.new"), texts[i], strlen(texts[i]));
		b = seen();
		assert_has_owner(b, "ban");
		assert_true(file_exists(file_of("overlay.new")));
		reopen(&b);
		assert_has_owner(b, "ban");
		assert_false(file_exists(file_of("overlay.new")));
	}
}

// After a boot the maps are empty: the records of the file are restored, except expired and fleeting ones.
static void test_restore(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	bool any = false;
	size_t n;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	block("192.0.2.2", "", NOW_S + 60, false);
	block("192.0.2.3", "", NOW_S + 6000, false);
	block("192.0.2.4", "live", RECORD_NEVER, true);
	kernel->n = 0;
	kernel->knobs.epoch = kernel->knobs.staging = 0;
	pass_s(100);
	b = opened_whole();
	assert_int_equal(b->records.list.n, 0);
	assert_int_equal(store_restore(b, &n, &any, NULL), 0);
	assert_int_equal(n, 2);
	assert_true(any);
	commit_now(b);
	assert_true(blocked_until("192.0.2.1") == OVERLAY_FOREVER);
	assert_int_equal(blocked_until("192.0.2.3"), kernel->clock.jiffies + 5900 * HZ);
	assert_int_equal(kernel->n, 2);
}

// Whatever commands do, in whichever order they come and go: the journal holds what records in memory hold, and the
// maps have the entries of that.
struct history {
	struct records model;
	struct store *b;
	uint64_t seed;
};

static struct prefix random_prefix(uint64_t *seed)
{
	struct addr a = addr_from_v4(htobe32(0x0a000000 + unit_below(seed, 12) * 8));

	return prefix_of(&a, (uint8_t)(32 - unit_below(seed, 4)));
}

static struct owner random_owner(uint64_t *seed)
{
	static char *const origins[] = {(char *)"", (char *)"ban"};
	static char *const lists[] = {(char *)"", (char *)"feed"};
	static char *const notes[] = {(char *)"", (char *)"quote \" and \\", (char *)"later"};

	return (struct owner){
		.origin = origins[unit_below(seed, 2)],
		.list = lists[unit_below(seed, 2)],
		.note = notes[unit_below(seed, 3)],
		.since_s = NOW_S + unit_below(seed, 100),
		.fleeting = !unit_below(seed, 4),
	};
}

static void step_add(struct history *h, bool replace)
{
	struct owner owner = random_owner(&h->seed);
	struct reference references[20];
	struct prefix prefixes[20];
	struct records_change one, other;
	size_t n = unit_below(&h->seed, 20);
	uint64_t who = journal_who(owner.list, "");

	for (size_t i = 0; i < n; i++) {
		prefixes[i] = random_prefix(&h->seed);
		references[i] = (struct reference){
			.prefix = prefixes[i],
			.kind = (uint8_t)unit_below(&h->seed, OVERLAY_KINDS),
			.until_s = unit_below(&h->seed, 3) ? kernel->clock.wall_ms / 1000 + 5 +
								     unit_below(&h->seed, 300)
							   : RECORD_NEVER,
			.owner = records_owner(&h->model, &owner),
		};
	}
	assert_int_equal(store_load(h->b, prefixes, n, NULL), 0);
	assert_int_equal(store_load_who(h->b, &who, 1, NULL), 0);
	if (replace)
		records_replace(&h->model, &owner, ALL, references, n, &one);
	else
		records_add(&h->model, references, n, &one);
	for (size_t i = 0; i < n; i++)
		references[i].owner = records_owner(&h->b->records, &owner);
	if (replace)
		records_replace(&h->b->records, &owner, ALL, references, n, &other);
	else
		records_add(&h->b->records, references, n, &other);
	assert_memory_equal(&one, &other, sizeof(one));
}

static void step_remove(struct history *h)
{
	struct owner owner = random_owner(&h->seed);
	struct prefix prefixes[10];
	size_t n = unit_below(&h->seed, 10), one, other;

	for (size_t i = 0; i < n; i++)
		prefixes[i] = random_prefix(&h->seed);
	assert_int_equal(store_load(h->b, prefixes, n, NULL), 0);
	records_remove(&h->model, &owner, ALL, prefixes, n, &one);
	records_remove(&h->b->records, &owner, ALL, prefixes, n, &other);
	assert_int_equal(one, other);
}

static void step_remove_origin(struct history *h)
{
	const char *origin = unit_below(&h->seed, 2) ? "ban" : "";
	size_t one, other;

	assert_int_equal(store_load_all(h->b, NULL), 0);
	records_remove_origin(&h->model, origin, 1u << BLOCK, &one);
	records_remove_origin(&h->b->records, origin, 1u << BLOCK, &other);
	assert_int_equal(one, other);
}

static void expire_model(struct records *r)
{
	size_t kept = 0;

	vec_each (&r->list, record)
		if (record->until_s > kernel->clock.wall_ms / 1000)
			r->list.at[kept++] = *record;
	r->list.n = kept;
}

static void assert_like_model(const struct history *h, const struct records *r)
{
	const struct records *m = &h->model;

	assert_int_equal(r->list.n, m->list.n);
	for (size_t i = 0; i < m->list.n; i++) {
		const struct record *x = &m->list.at[i], *y = &r->list.at[i];
		const struct owner *a = &m->owners.at[x->owner], *b = &r->owners.at[y->owner];

		assert_int_equal(prefix_compare(&x->prefix, &y->prefix), 0);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->until_s, y->until_s);
		assert_string_equal(a->origin, b->origin);
		assert_string_equal(a->list, b->list);
		assert_string_equal(a->note, b->note);
		assert_int_equal(a->since_s, b->since_s);
		assert_int_equal(a->fleeting, b->fleeting);
	}
}

static void assert_kernel_is_model(const struct history *h)
{
	struct records_entries entries;

	records_entries(&h->model.list, &entries);
	assert_int_equal(kernel->n, entries.n);
	for (size_t e = 0; e < entries.n; e++) {
		assert_int_equal(prefix_compare(&entries.at[e].prefix, &kernel->now[e].prefix), 0);
		assert_int_equal(entries.at[e].kind, kernel->now[e].kind);
	}
	free(entries.at);
}

static void next_command(struct history *h)
{
	CLEANUP_FREE char *index = index_path_of("test");

	switch (unit_below(&h->seed, 6)) {
	case 0: // the index is lost
		store_free(h->b);
		journal_index_remove_file(index);
		h->b = opened();
		break;
	case 1:
	case 2:
		store_free(h->b);
		h->b = opened();
		break;
	default: // a batch
		assert_int_equal(store_begin(h->b, NULL), 0);
	}
}

// A question about one prefix gives the records that contain it.
static void assert_covers(struct history *h)
{
	CLEANUP_STORE struct store *b = NULL;
	struct prefix p = random_prefix(&h->seed);
	size_t n = 0;

	assert_int_equal(store_peek("test", &b, NULL), 0);
	assert_int_equal(store_load_covering(b, &p, 1, NULL), 0);
	vec_each (&h->model.list, record)
		n += prefix_contains(&record->prefix, &p);
	assert_int_equal(b->records.list.n, n);
}

static void change(struct history *h)
{
	switch (unit_below(&h->seed, 5)) {
	case 0:
		step_remove(h);
		break;
	case 1:
		step_remove_origin(h);
		break;
	default:
		step_add(h, unit_below(&h->seed, 2));
	}
}

static void run_step(struct history *h)
{
	CLEANUP_STORE struct store *all = NULL;

	if (!unit_below(&h->seed, 8))
		pass_s(unit_below(&h->seed, 100));
	expire_model(&h->model);
	next_command(h);
	change(h);
	for (uint32_t more = unit_below(&h->seed, 4); more; more--) {
		store_next(h->b);
		change(h);
	}
	commit_now(h->b);
	all = seen();
	assert_like_model(h, &all->records);
	assert_covers(h);
	assert_kernel_is_model(h);
}

static void test_against_memory(void **state)
{
	(void)state;
	for (uint64_t round = 1; round <= 60; round++) {
		struct history h = {.seed = round};

		set_up(NULL);
		h.b = opened();
		for (unsigned i = 0; i < 60; i++)
			run_step(&h);
		records_free(&h.model);
		store_free(h.b);
	}
}

static int begin(void **state)
{
	(void)state;
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return kernel == MAP_FAILED || !mkdtemp(state_folder) || !mkdtemp(run_folder);
}

static int end(void **state)
{
	(void)state;
	munmap(kernel, sizeof(*kernel));
	file_remove_tree(run_folder, NULL);
	return file_remove_tree(state_folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_empty, set_up),
		cmocka_unit_test_setup(test_commit, set_up),
		cmocka_unit_test_setup(test_owners, set_up),
		cmocka_unit_test_setup(test_expiry, set_up),
		cmocka_unit_test_setup(test_many_expire_now, set_up),
		cmocka_unit_test_setup(test_what_differs, set_up),
		cmocka_unit_test_setup(test_lost_file, set_up),
		cmocka_unit_test_setup(test_full_map, set_up),
		cmocka_unit_test_setup(test_unwritable_folder, set_up),
		cmocka_unit_test_setup(test_volatile_after_a_kill, set_up),
		cmocka_unit_test_setup(test_volatile_changes_ends, set_up),
		cmocka_unit_test_setup(test_adopted_stays_fleeting, set_up),
		cmocka_unit_test_setup(test_kills, set_up),
		cmocka_unit_test_setup(test_foreign_file_beside, set_up),
		cmocka_unit_test_setup(test_restore, set_up),
		cmocka_unit_test_setup(test_kills_of_a_replacement, set_up),
		cmocka_unit_test_setup(test_half_a_change, set_up),
		cmocka_unit_test_setup(test_cost, set_up),
		cmocka_unit_test_setup(test_changes_together, set_up),
		cmocka_unit_test_setup(test_snapshots, set_up),
		cmocka_unit_test_setup(test_part, set_up),
		cmocka_unit_test_setup(test_others_expire, set_up),
		cmocka_unit_test_setup(test_next_expiry, set_up),
		cmocka_unit_test_setup(test_damaged_file, set_up),
		cmocka_unit_test_setup(test_refused_files, set_up),
		cmocka_unit_test_setup(test_old_file, set_up),
		cmocka_unit_test_setup(test_clock_is_set, set_up),
		cmocka_unit_test_setup(test_against_memory, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
