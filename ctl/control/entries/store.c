// SPDX-License-Identifier: GPL-2.0-only
// Keeps the journal and the maps of the overlay in agreement.
#include "ctl/control/entries/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/control/devices.h"
#include "ctl/control/entries/store_parts.h"
#include "ctl/control/macs.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/outgoing.h"

#define SLACK_S 2  // rounding between jiffies and wall-clock seconds
#define DRIFT_S 10 // more than the two clocks drift apart before they are compared again
#define LOOKED_AT \
	1024 // references that a commit looks at for expired ones, and as many for each change

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/overlay", WEIR_STATE_FOLDER, instance);
}

static char *index_path_of(const char *instance)
{
	return mem_printf("%s/%s/overlay.index", WEIR_RUN_FOLDER, instance);
}

static char *new_path(const char *path)
{
	return mem_printf("%s.new", path);
}

int store_stamp(const char *name, struct journal_stamp *ret)
{
	CLEANUP_FREE char *path = path_of(name);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : journal_stamp_of(fd, ret);
}

void store_free(struct store *b)
{
	if (!b)
		return;
	store_forget_loaded(b);
	store_snapshot_free(b->snapshot);
	journal_close(&b->journal);
	instance_free(b->instance);
	fd_close(b->lock);
	free(b->path);
	free(b);
}

void store_cleanup(struct store **b)
{
	store_free(*b);
}

static struct records_clock clock_of(const struct clock *c)
{
	struct records_clock clock = {.wall_s = c->wall_ms / 1000, .up_s = c->jiffies / c->hz};

	clock_boot(clock.boot);
	return clock;
}

// ---- what a killed command has left -------------------------------------------------------------

// Is the file that replaces `path` complete, and does it have the epoch of the maps?
static bool is_of_maps(const char *fresh, uint64_t epoch)
{
	CLEANUP_JOURNAL struct journal_file j = {.fd = -1};

	return epoch && !journal_open(fresh, "", epoch, false, &j, NULL) && j.fd >= 0 &&
	       !j.damage.text[0] && !j.old && journal_index_epoch(j.index) == epoch;
}

static int recover_file(const struct instance *i, const char *path, struct err *err)
{
	CLEANUP_FREE char *fresh = new_path(path);
	CLEANUP_FREE char *index = index_path_of(i->name);

	if (!file_exists(fresh))
		return 0;
	journal_index_remove_file(index);
	if (is_of_maps(fresh, i->knobs->epoch))
		return file_commit(path, err);
	unlink(fresh); // left by a command that did not reach the maps
	return 0;
}

// ---- journal and maps compared ------------------------------------------------------------------

static int compare_entry(const struct prefix *p, uint8_t kind, const struct overlay_entry *entry)
{
	int order = prefix_compare(p, &entry->prefix);

	return order ? order : (int)kind - (int)entry->kind;
}

static bool has_entry(const struct overlay_entries *entries, const struct reference *record)
{
	size_t from = 0, to = entries->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int order = compare_entry(&record->prefix, record->kind, &entries->at[middle]);

		if (!order)
			return true;
		if (order < 0)
			to = middle;
		else
			from = middle + 1;
	}
	return false;
}

// The kernel decides: drops the records whose entry the kernel no longer has. Members of a group
// have the entry of their group.
static void drop_lost(struct store *b, const struct overlay_entries *entries)
{
	CLEANUP_FREE bool *lost = mem_zalloc(b->records.list.n, sizeof(bool));
	size_t kept = 0;

	vec_each (&b->records.list, record) {
		const struct reference *group =
			records_group_of(&b->records, &b->records.list, record);

		lost[kept++] = !has_entry(entries, group ? group : record);
	}
	records_drop(&b->records, lost);
}

static uint32_t finder(struct store *b)
{
	uint64_t epoch = journal_index_epoch(b->journal.index);

	return records_owner(&b->records,
			     &(struct owner){
				     .note = (char *)"found in the kernel without a record",
				     .fleeting = epoch && !b->damaged.text[0] &&
						 epoch != b->instance->knobs->epoch,
				     .since_s = b->clock.wall_ms / 1000,
			     });
}

// Shortens the references of an entry, from *r on, to until_s, the end of the entry. Returns when
// the last reference ends.
static uint64_t end_by(struct record_list *list, size_t *r, const struct overlay_entry *entry,
		       uint64_t until_s)
{
	uint64_t last_s = 0;

	for (; *r < list->n && !compare_entry(&list->at[*r].prefix, list->at[*r].kind, entry);
	     ++*r) {
		struct reference *record = &list->at[*r];

		if (record->until_s > until_s && record->until_s - until_s > DRIFT_S)
			record->until_s = until_s;
		if (record->until_s > last_s)
			last_s = record->until_s;
	}
	return last_s;
}

// An effective entry that has no record, or that ends later than its records, gets a record, so
// that it can be listed and unblocked. Either the file was lost, or it is older than the maps
// because a --volatile command could not write it. Entries of such a command stay fleeting.
static void adopt_found(struct store *b, const struct overlay_entries *entries)
{
	CLEANUP_VEC VEC(struct reference) references = {0};
	struct record_list *list = &b->records.list;
	struct records_change change;
	size_t r = 0;

	vec_each (entries, entry) {
		uint64_t until_s = clock_to_wall_s(&b->clock, entry->until), last_s;

		while (r < list->n &&
		       compare_entry(&list->at[r].prefix, list->at[r].kind, entry) < 0)
			r++;
		last_s = end_by(list, &r, entry, until_s);
		if (last_s >= until_s || until_s - last_s <= DRIFT_S)
			continue;
		vec_push(&references, ((struct reference){
					      .prefix = entry->prefix,
					      .kind = entry->kind,
					      .until_s = until_s,
				      }));
	}
	if (references.n) {
		uint32_t owner = finder(b);

		vec_each (&references, reference)
			reference->owner = owner;
		records_add(&b->records, references.at, references.n, &change);
	}
}

// The kernel's clock decides, since the wall clock may be a second late.
static void drop_expired(const struct store *b, struct overlay_entries *entries)
{
	size_t kept = 0;

	vec_each (entries, entry)
		if (entry->until > b->clock.jiffies)
			entries->at[kept++] = *entry;
	entries->n = kept;
}

static int reconcile(struct store *b, struct err *err)
{
	struct overlay_entries entries = {0};
	int code = overlay_read(b->instance, &entries, err);

	if (code)
		return code;
	drop_expired(b, &entries);
	drop_lost(b, &entries);
	adopt_found(b, &entries);
	vec_free(&entries);
	return 0;
}

// ---- opening ------------------------------------------------------------------------------------

// Loads and compares all records if the journal does not match the maps, or if the clock was set
// since its times were written.
static int compare(struct store *b, struct err *err)
{
	const struct journal_file *j = &b->journal;
	int code;

	b->now = clock_of(&b->clock);
	b->clock_by = records_clock_set_by(journal_index_clock(j->index), &b->now);
	b->agree = !j->damage.text[0] && !j->old &&
		   journal_index_epoch(j->index) == b->instance->knobs->epoch;
	b->whole = false;
	store_begin_loading(b);
	if ((!b->agree || b->clock_by) && (code = store_load_all(b, err)))
		return code;
	b->whole = !b->agree || b->clock_by || j->fd < 0;
	if (!b->whole)
		return 0;
	if (b->clock_by || strcmp(b->records.clock.boot, b->now.boot) != 0)
		b->records.clock = b->now;
	return b->agree ? 0 : reconcile(b, err);
}

static int open_journal(struct store *b, const char *path, struct err *err)
{
	CLEANUP_FREE char *index = index_path_of(b->instance->name);
	int code;

	journal_close(&b->journal);
	code = journal_open(path, index, b->instance->knobs->epoch, b->to_write, &b->journal, err);
	if (!b->damaged.text[0])
		b->damaged = b->journal.damage;
	return code;
}

// A reader completes no interrupted commit: it reads the file that the next writer will use.
static int open_right_journal(struct store *b, struct err *err)
{
	CLEANUP_FREE char *fresh = b->to_write ? NULL : new_path(b->path);
	bool interrupted =
		fresh && file_exists(fresh) && is_of_maps(fresh, b->instance->knobs->epoch);

	return open_journal(b, interrupted ? fresh : b->path, err);
}

int store_begin(struct store *b, struct err *err)
{
	int code = instance_clock(b->instance, &b->clock, err);

	if (code)
		return code;
	store_forget_loaded(b);
	if (!b->journal.index && (code = open_right_journal(b, err)))
		return code;
	return compare(b, err);
}

static struct store *store_new(const char *name, bool to_write)
{
	struct store *b = mem_new(struct store);

	b->lock = -1;
	b->to_write = to_write;
	b->path = path_of(name);
	b->journal.fd = -1;
	return b;
}

static int open_with(struct store *b, struct instance *instance, struct err *err)
{
	int code = overlay_tidy(instance, err);

	b->instance = instance;
	if (code)
		return code;
	if ((code = recover_file(instance, b->path, err)))
		return code;
	return store_begin(b, err);
}

int store_open_with(struct instance *instance, int lock, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = store_new(instance->name, true);
	int code = open_with(b, instance, err);

	if (code) {
		b->instance = NULL; // the caller's
		return code;
	}
	b->lock = lock;
	*ret = TAKE_PTR(b);
	return 0;
}

int store_open(const char *name, const char *command, struct store **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *instance = NULL;
	CLEANUP_DEVICES struct devices devices = {0};
	CLEANUP_FD int lock = -1;
	int code;

	if (!bpffs_exist(name))
		return instance_open(name, &instance, err); // the error names what is missing
	if ((code = lock_take(name, command, &lock, err)))
		return code;
	if ((code = instance_open(name, &instance, err)))
		return code;
	if ((code = devices_sync(instance, &devices, err)))
		return code;
	macs_write(instance, &devices, NULL); // a failure does not refuse a block
	if ((code = store_open_with(instance, lock, ret, err)))
		return code;
	instance = NULL;
	lock = -1;
	return 0;
}

int store_begin_reading(struct store *b, struct err *err)
{
	int code = lock_share(b->instance->name, &b->lock, err);

	return code ? code : store_begin(b, err);
}

void store_unlock(struct store *b)
{
	b->lock = fd_close(b->lock);
}

void store_end_reading(struct store *b)
{
	journal_close(&b->journal); // a writer may change the index now
	b->lock = fd_close(b->lock);
}

int store_peek(const char *name, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = store_new(name, false);
	int code = instance_open(name, &b->instance, err);

	if (code)
		return code;
	if ((code = instance_clock(b->instance, &b->clock, err)))
		return code;
	*ret = TAKE_PTR(b);
	return 0;
}

int store_count(const char *instance, size_t *ret)
{
	CLEANUP_JOURNAL struct journal_file j = {.fd = -1};
	CLEANUP_FREE char *path = path_of(instance);
	int code = journal_open(path, "", 0, false, &j, NULL);

	*ret = j.index ? journal_index_count(j.index) : 0;
	return code ? code : j.damage.text[0] ? -EBADMSG : 0;
}

// ---- committing ---------------------------------------------------------------------------------

static int make_state_folder(const struct store *b, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, b->instance->name);

	return file_mkdirs(folder, 0700, err);
}

// Writes all records into a new file, which replaces the old one after the maps have changed.
static int write_beside(struct store *b, uint64_t epoch, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;
	int code = make_state_folder(b, err);

	if (code)
		return code;
	if ((code = journal_keep_damaged(&b->journal, err)))
		return code;
	text = store_print_all(b, epoch, &len);
	return file_stage(b->path, text, len, 0600, err);
}

static int append(struct store *b, const char *lines, size_t len, uint64_t epoch, char **ret_frame,
		  size_t *ret_len, struct err *err)
{
	bool dated = journal_index_clock(b->journal.index)->boot[0];
	struct text frame = {0};

	journal_print_change(&frame, lines, len, epoch,
			     dated ? &(struct records_clock){0} : &b->now);
	*ret_len = frame.len;
	*ret_frame = text_take(&frame);
	return journal_append(&b->journal, *ret_frame, *ret_len, err);
}

// Replaces the journal by the new file.
static int replace_file(struct store *b, struct err *err)
{
	int code;

	journal_index_remove_file(
		b->journal.index_path); // it may look like an index of the new file
	code = file_commit(b->path, err);
	journal_close(&b->journal);
	if (code)
		return code;
	if (open_journal(b, b->path, NULL)) // makes the index
		journal_close(&b->journal);
	return 0;
}

// Best effort: the journal has the same content.
static void write_snapshot(struct journal_file *j, const char *path)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (!(text = journal_print_snapshot(j, &len, NULL)))
		return;
	journal_index_remove_file(j->index_path);
	file_replace(path, text, len, 0600, NULL);
}

static void shrink(struct store *b)
{
	if (b->hurry || !journal_has_grown(&b->journal))
		return;
	write_snapshot(&b->journal, b->path);
	if (open_journal(b, b->path, NULL))
		journal_close(&b->journal);
}

// Loads expired references, so that the commit removes them: all, or a few more than the commit has
// changes.
static int load_expired(struct store *b, bool all, struct err *err)
{
	uint32_t slots = journal_index_slots(b->journal.index);
	size_t n = LOOKED_AT * (1 + b->records.list.n);

	if (b->whole)
		return 0;
	if (all || n >= slots)
		return store_load_expired(b, 0, slots, err);
	return store_load_expired(b, journal_index_walk(b->journal.index, (uint32_t)n), (uint32_t)n,
				  err);
}

static int stage(struct store *b, struct overlay_plan *ret, struct err *err)
{
	CLEANUP_FREE struct overlay_entry *want = NULL;
	size_t n;

	if (!b->agree) {
		want = store_wanted_entries(b, &n);
		return overlay_stage_whole(b->instance, want, n, ret, err);
	}
	want = store_changed_entries(b, &n);
	return overlay_stage(b->instance, want, n, ret, err);
}

// Makes room if the maps are full: expired entries that no command has met yet may occupy it.
static int stage_or_make_room(struct store *b, struct overlay_plan *ret, struct err *err)
{
	int code = stage(b, ret, err);

	if (code != -ENOSPC || !b->agree)
		return code;
	if (load_expired(b, true, NULL))
		return code;
	err_clear(err);
	return stage(b, ret, err);
}

// The commit is effective: enters the change into the index, or moves the new file into place.
static int settle(struct store *b, const char *frame, size_t len, struct err *err)
{
	if (b->whole)
		return replace_file(b, err);
	journal_enter(&b->journal, frame, len);
	shrink(b);
	return 0;
}

// Changes file and maps. `lines` are appended to the journal, unless it is written as a whole.
static int commit(struct store *b, bool fleeting_ok, const char *lines, size_t len,
		  struct overlay_plan *plan, struct err *err)
{
	CLEANUP_FREE char *frame = NULL;
	size_t frame_len = 0;
	int code;

	b->unsaved = (struct err){0};
	code = b->whole ? write_beside(b, plan->epoch, &b->unsaved)
			: append(b, lines, len, plan->epoch, &frame, &frame_len, &b->unsaved);
	if (code && !fleeting_ok) {
		overlay_tidy(b->instance, NULL);
		*err = b->unsaved;
		err_hint(err, "--volatile changes only the kernel");
		return code;
	}
	plan->epoch += code ? 1 : 0; // a killed command may have left a frame with the first epoch
	overlay_commit(b->instance, plan);
	// The change is effective. The next command finds a file that could not be renamed.
	code = code ? code : settle(b, frame, frame_len, &b->unsaved);
	if (code && !fleeting_ok) {
		*err = b->unsaved;
		return code;
	}
	return 0;
}

int store_commit(struct store *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_FREE char *lines = NULL;
	bool whole;
	size_t len = 0;
	int code = instance_clock(b->instance, &b->clock, err);

	if (code)
		return code;
	if ((code = store_gather(b, err)))
		return code;
	if ((code = load_expired(b, false, err)))
		return code;
	if ((code = store_regroup(b, err)))
		return code;
	if (!b->whole && !store_differs(b)) {
		*ret = plan;
		return 0;
	}
	if ((code = stage_or_make_room(b, &plan, err)))
		return code;
	if (!b->whole)
		lines = store_print_change(b, &len);
	if ((code = commit(b, fleeting_ok, lines, len, &plan, err)))
		return code;
	outgoing_follow(b->instance, &whole, NULL); // weir status reports a failure
	*ret = plan;
	ret->finish = NULL;
	return 0;
}

// ---- before and after the maps ------------------------------------------------------------------

int store_part(const struct instance *i, struct err *err)
{
	CLEANUP_JOURNAL struct journal_file j = {.fd = -1};
	CLEANUP_FREE char *path = path_of(i->name), *index = index_path_of(i->name);
	int code = recover_file(i, path, err);

	if (code)
		return code;
	if (!journal_open(path, index, i->knobs->epoch, true, &j, NULL) && j.fd >= 0 &&
	    !j.damage.text[0] && !j.old && journal_index_epoch(j.index) == i->knobs->epoch)
		write_snapshot(&j, path);
	journal_index_remove_file(index);
	return 0;
}

// The maps have no entry of the removed instance yet, so compare() has dropped every record: the
// records are loaded again.
int store_restore(struct store *b, size_t *ret_n, bool *ret_any, struct err *err)
{
	uint64_t now_s = b->clock.wall_ms / 1000 + SLACK_S;
	struct record_list *list = &b->records.list;
	size_t kept = 0;
	int code;

	*ret_n = 0;
	*ret_any = b->journal.fd >= 0;
	store_forget_loaded(b);
	store_begin_loading(b);
	b->whole = false;
	if ((code = store_load_all(b, err)))
		return code;
	b->whole = true;
	b->records.clock = b->now;
	vec_each (list, record)
		if (record->until_s > now_s && !b->records.owners.at[record->owner].fleeting)
			list->at[kept++] = *record;
	list->n = kept;
	*ret_n = kept;
	return 0;
}
