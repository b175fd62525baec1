// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/store.h on a kernel of the test's own: commits, owners, expiry,
// and a kill before and after each step.
#include "tests/unit/control/store_kernel.h"

static void copy_file(const char *from, const char *name)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	assert_int_equal(file_read(from, 1 << 20, &text, &len, NULL), 0);
	write_file(file_of(name), text, len);
}

// ---- tests --------------------------------------------------------------------------------------

static void test_empty(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	size_t n = 7;
	bool any = true;

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

// An entry lives while any owner refers to it, until its last reference ends.
static void test_owners(void **state)
{
	struct owner ban = {.origin = (char *)"ban"};
	struct prefix p = prefix("192.0.2.1");
	size_t removed;

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

// All references that expire now are looked up at once, since each look-up has to map the maps.
static void test_many_expire_now(void **state)
{
	CLEANUP_STORE struct store *b = NULL, *reader = NULL;

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
	const struct reference *found;
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

// Entries that --volatile put only into the kernel stay fleeting if the file is older than the
// maps.
static void test_adopted_stays_fleeting(void **state)
{
	block("192.0.2.1", "", RECORD_NEVER, false);
	kernel->now[kernel->n++] = (struct overlay_entry){
		.prefix = prefix("192.0.2.2"), .kind = BLOCK, .until = OVERLAY_FOREVER};
	kernel->knobs.epoch++;

	CLEANUP_STORE struct store *b = opened();

	assert_int_equal(b->records.list.n, 2);
	assert_false(b->records.owners.at[b->records.list.at[0].owner].fleeting);
	assert_true(b->records.owners.at[b->records.list.at[1].owner].fleeting);
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

// After a kill at any step, state and owners are the old or the new ones. Readers see them at once
// and write nothing.
static void test_kills(void **state)
{
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

// A killed command has appended a change, and a commit of --volatile could not cut it off: the file
// must not match the maps, whatever epoch it has.
static void test_volatile_after_a_kill(void **state)
{
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

// The file knows the entries with other ends: the ends in the kernel count, also after the next
// commit.
static void test_volatile_changes_ends(void **state)
{
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

// The same kills while the file is replaced, since it is older than the maps.
static void test_kills_of_a_replacement(void **state)
{
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

// A command that was killed in the write leaves half a change, which the next writer cuts off.
static void test_half_a_change(void **state)
{
	CLEANUP_FREE char *text = NULL;
	size_t before, len;

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

// A change reads and writes what it touches: the file grows by the change, the maps get one entry.
static void test_cost(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	size_t before;

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

// Many changes become one commit. Each loads what it touches, with the changes before it. No change
// is effective before the commit, and an abandoned commit leaves nothing.
static void test_changes_together(void **state)
{
	CLEANUP_STORE struct store *b = opened();
	struct owner no_owner = {0};
	struct prefix first = prefix("10.0.0.0");
	size_t removed;

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

// When an instance is removed, the file becomes a snapshot and the index is deleted.
static void test_part(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	CLEANUP_FREE char *index = index_path_of("test");
	struct instance *i;
	size_t before, n;

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

// Each commit removes some expired references of others, from the file and from the maps, and all
// if the maps are full.
static void test_others_expire(void **state)
{
	CLEANUP_STORE struct store *b = NULL;

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

// The agent asks how many references have expired, where the first one is, and when the next one
// expires.
static void test_next_expiry(void **state)
{
	struct store_expiry e;
	CLEANUP_STORE struct store *b = NULL;

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

// The wall clock is set: the remaining time of each entry does not change.
static void test_clock_is_set(void **state)
{
	CLEANUP_STORE struct store *b = NULL;

	block("192.0.2.1", "", NOW_S + 600, false);
	kernel->clock.wall_ms += 86400000;
	block("192.0.2.2", "", NOW_S + 86400 + 600, false);
	b = opened_whole();
	assert_int_equal(b->records.list.at[0].until_s, NOW_S + 86400 + 600);
	assert_int_equal(b->records.list.at[1].until_s, NOW_S + 86400 + 600);
	assert_int_equal(blocked_until("192.0.2.1"), kernel->clock.jiffies + 600 * HZ);
	assert_false(b->whole);
}

// After a boot the maps are empty: the records of the file are restored, except expired and
// fleeting ones.
static void test_restore(void **state)
{
	CLEANUP_STORE struct store *b = NULL;
	bool any = false;
	size_t n;

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
		cmocka_unit_test_setup(test_restore, set_up),
		cmocka_unit_test_setup(test_kills_of_a_replacement, set_up),
		cmocka_unit_test_setup(test_half_a_change, set_up),
		cmocka_unit_test_setup(test_cost, set_up),
		cmocka_unit_test_setup(test_changes_together, set_up),
		cmocka_unit_test_setup(test_snapshots, set_up),
		cmocka_unit_test_setup(test_part, set_up),
		cmocka_unit_test_setup(test_others_expire, set_up),
		cmocka_unit_test_setup(test_next_expiry, set_up),
		cmocka_unit_test_setup(test_clock_is_set, set_up),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
