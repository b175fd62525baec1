// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/store.h on a kernel of the test's own: commits, owners, expiry,
// damaged files, and a kill before and after each step.
#include "tests/unit/control/store_kernel.h"

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

// Returns the jiffy until which the kernel blocks the address; 0: it is not blocked.
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

// The entries in the kernel are kept; the file is used up to the damage, is kept as it is, and is
// replaced.
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

// A damaged file of version 1, or one of a newer version, is refused and not changed.
static void test_refused_files(void **state)
{
	static const char *const texts[] = {
		"weir-overlay 1 epoch 2\nend 1\n",
		"weir-overlay 1 epoch 2\nend 0\nsum 0123456789abcdef\n",
		"weir-overlay 3\n",
	};
	size_t n;

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

// An overlay.new that is damaged, or of another epoch, is never used.
static void test_foreign_file_beside(void **state)
{
	static const char *const texts[] = {"", "damaged", "weir-overlay 1 epoch 7\nend 0\n"};

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

// Commands run in random order: the journal must hold the same records as memory, and the maps the
// entries of these records.
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
		const struct reference *x = &m->list.at[i], *y = &r->list.at[i];
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
	struct record_list entries;

	records_entries(&h->model, &h->model.list, &entries);
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

// A question about one prefix returns the records that contain the prefix.
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
