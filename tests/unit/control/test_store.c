// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/store.h on a kernel of the test's own: commits, owners, expiry, damaged files, and a
// kill before and after each step.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/sum.h"
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
enum step { ALIVE, BEFORE_STAGE, STAGED, FILE_BESIDE, EFFECTIVE, FILE_RENAMED };

// The overlay of a kernel, in memory shared with the process that is killed.
struct kernel {
	struct knobs knobs;
	struct clock clock;
	struct overlay_entry now[ENTRIES_MAX], next[ENTRIES_MAX];
	size_t n, next_n;
	bool full;
	enum step dies;
};

static struct kernel *kernel;
static char state_folder[] = "/tmp/weir-store-XXXXXX";
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

static int fake_stage(const struct instance *i, const struct overlay_want *want, size_t n,
		      struct overlay_plan *ret, struct err *err)
{
	may_die(BEFORE_STAGE);
	if (kernel->full)
		return err_refused(err, "the map is full");
	assert_true(n <= ENTRIES_MAX);
	for (size_t e = 0; e < n; e++) {
		assert_true(want[e].until > 0);
		kernel->next[e] = (struct overlay_entry){
			.prefix = want[e].prefix, .kind = want[e].kind, .until = want[e].until};
	}
	kernel->next_n = n;
	kernel->knobs.staging = i->knobs->epoch + 1;
	*ret = (struct overlay_plan){.epoch = kernel->knobs.staging};
	may_die(STAGED);
	return 0;
}

static void fake_commit(const struct instance *i, const struct overlay_plan *plan)
{
	may_die(FILE_BESIDE);
	assert_int_equal(plan->epoch, kernel->knobs.staging);
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

	may_die(FILE_RENAMED);
	return code;
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

static int fake_refresh(const struct instance *i, struct err *err)
{
	(void)i, (void)err;
	return 0;
}

#undef WEIR_STATE_FOLDER
#define WEIR_STATE_FOLDER   state_path
#define instance_clock      fake_clock
#define instance_open       fake_open
#define instance_free       fake_free
#define overlay_read        fake_read
#define overlay_stage_whole fake_stage
#define overlay_commit      fake_commit
#define overlay_tidy        fake_tidy
#define file_commit         fake_file_commit
#define bpffs_exist         fake_exist
#define lock_take           fake_lock_take
#define lock_share          fake_lock
#define device_sync         fake_refresh
#define macs_refresh        fake_refresh
#include "ctl/control/store.c"

// ---- helpers ------------------------------------------------------------------------------------

static int set_up(void **state)
{
	CLEANUP_FREE char *folder = mem_printf("%s/test", state_folder);

	(void)state;
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

static char *path_of(const char *name)
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

static void reopen(struct store **b)
{
	store_free(*b);
	*b = opened();
}

static void refer(struct store *b, const char *what, const char *origin, uint64_t until_s,
		  bool fleeting)
{
	struct owner owner = {.origin = (char *)origin, .fleeting = fleeting, .since_s = NOW_S};
	struct reference reference = {prefix(what), BLOCK, until_s,
				      records_owner(&b->records, &owner)};
	struct records_change change;

	records_add(&b->records, &reference, 1, &change);
}

static void commit(struct store *b)
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
	commit(b);
}

static size_t references(const struct store *b, const char *what)
{
	struct prefix p = prefix(what);
	size_t n = 0;

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

static void write_file(const char *path, const char *text, size_t len)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
}

// ---- tests --------------------------------------------------------------------------------------

static void test_empty(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	size_t n = 7;

	(void)state;
	assert_int_equal(b->records.list.n, 0);
	assert_int_equal(store_count("test", &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(store_restore(b, &n, NULL), 0);
	assert_int_equal(n, 0);
	assert_false(file_exists(path_of("overlay"))); // opening writes nothing
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
	assert_int_equal(stat(path_of("overlay"), &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_false(file_exists(path_of("overlay.new")));
	assert_int_equal(store_count("test", &n), 0);
	assert_int_equal(n, 2);

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(b->records.epoch, 3);
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
	commit(b);
	assert_int_equal(blocked_until("192.0.2.1"), kernel->clock.jiffies + 60 * HZ);
	records_remove_origin(&b->records, NULL, ALL, &removed);
	commit(b);
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

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(references(b, "192.0.2.1"), 0);
	assert_int_equal(references(b, "192.0.2.2"), 1);
	commit(b);
	assert_int_equal(kernel->n, 2);
	assert_int_equal(blocked_until("192.0.2.1"), 0);
}

// An entry without a record gets one; a record without an entry is dropped.
static void test_what_differs(void **state)
{
	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	block("192.0.2.2", "", RECORD_NEVER, false);
	kernel->now[0].prefix = prefix("192.0.2.0"); // instead of .1
	kernel->now[0].until = kernel->clock.jiffies + 5 * HZ;

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
	assert_false(b->records.owners.at[found->owner].fleeting);
}

// The file is lost: all entries are found in the kernel, and can be removed.
static void test_lost_file(void **state)
{
	size_t removed;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	assert_int_equal(unlink(path_of("overlay")), 0);

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(references(b, "192.0.2.1"), 1);
	records_remove_origin(&b->records, NULL, ALL, &removed);
	commit(b);
	assert_int_equal(kernel->n, 0);
}

// Every changed byte is refused with the name of the file; maps and file stay as they are.
static void test_damaged_file(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t len, n = 7;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	assert_int_equal(file_read(path_of("overlay"), 1 << 20, &text, &len, NULL), 0);
	for (size_t at = 0; at < len; at++) {
		struct store *b = NULL;
		struct err err = {0};

		text[at] ^= 1;
		write_file(path_of("overlay"), text, len);
		assert_true(store_open("test", "unit", &b, &err) < 0);
		text[at] ^= 1;
		assert_null(b);
		assert_int_equal(err.kind, ERR_SYSTEM); // the operator did not type it
		assert_non_null(strstr(err.text, path_of("overlay")));
		assert_true(err.hint[0] != '\0');
		assert_true(store_count("test", &n) < 0);
		assert_int_equal(kernel->n, 1);
		assert_int_equal(kernel->knobs.epoch, 2);
	}
	write_file(path_of("overlay"), text, len);
	store_free(opened());
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
	kernel->full = true;
	assert_true(store_commit(b, true, &plan, &err) < 0);
	assert_int_equal(err.kind, ERR_REFUSED);
	kernel->full = false;
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

static void assert_state(const struct store *b, bool after)
{
	assert_int_equal(b->records.list.n, after ? 2 : 1);
	assert_int_equal(references(b, "192.0.2.2"), after);
	assert_int_equal(kernel->n, after ? 2 : 1);
}

// After a kill at any step, state and owners are the old or the new ones. Readers see them at once and write nothing.
static void test_kills(void **state)
{
	(void)state;
	for (enum step at = BEFORE_STAGE; at <= FILE_RENAMED; at++) {
		CLEANUP_STORE struct store *b = NULL;
		bool after = at >= EFFECTIVE, beside = at == FILE_BESIDE || at == EFFECTIVE;

		set_up(NULL);
		block("192.0.2.1", "", RECORD_NEVER, false);
		in_a_process(block_another, at);
		assert_int_equal(store_read("test", &b, NULL), 0);
		assert_state(b, after);
		assert_int_equal(file_exists(path_of("overlay.new")), beside);
		reopen(&b);
		assert_state(b, after);
		assert_false(file_exists(path_of("overlay.new")));
		assert_int_equal(kernel->knobs.staging, kernel->knobs.epoch);
		block_another(); // the command again
		reopen(&b);
		assert_state(b, true);
		assert_string_equal(b->records.owners.at[b->records.list.at[1].owner].origin,
				    "ban");
	}
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
		write_file(path_of("overlay.new"), texts[i], strlen(texts[i]));
		assert_int_equal(store_read("test", &b, NULL), 0);
		assert_has_owner(b, "ban");
		assert_true(file_exists(path_of("overlay.new")));
		reopen(&b);
		assert_has_owner(b, "ban");
		assert_false(file_exists(path_of("overlay.new")));
	}
}

// After a boot the maps are empty: the records of the file are restored, except expired and fleeting ones.
static void test_restore(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	size_t n;

	(void)state;
	block("192.0.2.1", "", RECORD_NEVER, false);
	block("192.0.2.2", "", NOW_S + 60, false);
	block("192.0.2.3", "", NOW_S + 6000, false);
	block("192.0.2.4", "live", RECORD_NEVER, true);
	kernel->n = 0;
	kernel->knobs.epoch = kernel->knobs.staging = 0;
	pass_s(100);
	b = opened();
	assert_int_equal(b->records.list.n, 0);
	assert_int_equal(store_restore(b, &n, NULL), 0);
	assert_int_equal(n, 2);
	commit(b);
	assert_true(blocked_until("192.0.2.1") == OVERLAY_FOREVER);
	assert_int_equal(blocked_until("192.0.2.3"), kernel->clock.jiffies + 5900 * HZ);
	assert_int_equal(kernel->n, 2);
}

// Every entry is found among many, and no other one.
static void test_store_entry(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	char text[32];

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		snprintf(text, sizeof(text), "10.%u.0.0/%u", i, 16 + i % 17);
		refer(b, text, "", RECORD_NEVER, false);
	}
	commit(b);
	reopen(&b);
	for (unsigned i = 0; i < 200; i++) {
		struct prefix p;

		snprintf(text, sizeof(text), "10.%u.0.0/%u", i, 16 + i % 17);
		p = prefix(text);
		assert_non_null(store_entry(b, &p, BLOCK));
		assert_int_equal(prefix_compare(&store_entry(b, &p, BLOCK)->prefix, &p), 0);
		assert_null(store_entry(b, &p, OVERLAY_ALLOW_FROM));
		p.len++;
		assert_null(store_entry(b, &p, BLOCK));
	}
}

static int begin(void **state)
{
	(void)state;
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return kernel == MAP_FAILED || !mkdtemp(state_folder);
}

static int end(void **state)
{
	(void)state;
	munmap(kernel, sizeof(*kernel));
	return file_remove_tree(state_folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_empty, set_up),
		cmocka_unit_test_setup(test_commit, set_up),
		cmocka_unit_test_setup(test_owners, set_up),
		cmocka_unit_test_setup(test_expiry, set_up),
		cmocka_unit_test_setup(test_what_differs, set_up),
		cmocka_unit_test_setup(test_lost_file, set_up),
		cmocka_unit_test_setup(test_damaged_file, set_up),
		cmocka_unit_test_setup(test_full_map, set_up),
		cmocka_unit_test_setup(test_unwritable_folder, set_up),
		cmocka_unit_test_setup(test_adopted_stays_fleeting, set_up),
		cmocka_unit_test_setup(test_kills, set_up),
		cmocka_unit_test_setup(test_foreign_file_beside, set_up),
		cmocka_unit_test_setup(test_restore, set_up),
		cmocka_unit_test_setup(test_store_entry, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
