// SPDX-License-Identifier: GPL-2.0-only
// Keeps the file and the maps of the overlay in agreement.
#include "ctl/control/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/sum.h"
#include "ctl/control/macs.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/lock.h"

#define STORE_BYTES_MAX (1u << 30)
#define SLACK_S         2 // rounding between jiffies and wall-clock seconds

void store_free(struct store *b)
{
	if (!b)
		return;
	instance_free(b->instance);
	records_free(&b->records);
	vec_free(&b->entries);
	fd_close(b->lock);
	free(b->path);
	free(b);
}

void store_cleanup(struct store **b)
{
	store_free(*b);
}

static char *new_path(const struct store *b)
{
	return mem_printf("%s.new", b->path);
}

// A file of ours that is no good is not the operator's mistake.
static int not_typed(int code, struct err *err)
{
	if (code && err)
		err->kind = ERR_SYSTEM;
	return code;
}

static int parse(const char *text, size_t len, struct records *ret, struct err *err)
{
	int code = sum_open(text, &len);

	return code ? err_system(err, -code, "checksum mismatch")
		    : records_parse(text, len, ret, err);
}

static int load(const char *path, struct records *ret, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;
	int code = file_read(path, STORE_BYTES_MAX, &text, &len, err);

	if (code)
		return code;
	code = parse(text, len, ret, err);
	if (code) {
		err_prefix(err, "'%s'", path);
		err_hint(err, "move it away to continue without it");
	}
	return not_typed(code, err);
}

static struct records_clock clock_of(const struct clock *c)
{
	struct records_clock clock = {.wall_s = c->wall_ms / 1000, .up_s = c->jiffies / c->hz};

	clock_boot(clock.boot);
	return clock;
}

// A file of the maps' epoch that had not taken its place when its command was killed is the true one.
static bool load_interrupted(struct store *b, struct records *ret)
{
	CLEANUP_FREE char *path = new_path(b);
	struct records found = {0};

	if (!b->instance->knobs->epoch || load(path, &found, NULL))
		return false;
	if (found.epoch != b->instance->knobs->epoch) {
		records_free(&found);
		return false;
	}
	*ret = found;
	return true;
}

int store_recover(const struct instance *i, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/overlay", WEIR_STATE_FOLDER, i->name);
	CLEANUP_FREE char *fresh = mem_printf("%s.new", path);
	CLEANUP_FREE char *text = NULL;
	struct records found = {0};
	size_t len;
	struct err why = {0};
	bool commit;
	int code = file_read(fresh, STORE_BYTES_MAX, &text, &len, &why);

	if (code == -ENOENT)
		return 0;
	if (code && why.kind == ERR_SYSTEM) { // not to know is no reason to throw it away
		if (err)
			*err = why;
		return code;
	}
	commit = text && i->knobs->epoch && !parse(text, len, &found, NULL) &&
		 found.epoch == i->knobs->epoch;
	records_free(&found);
	if (commit)
		return file_commit(path, err);
	unlink(fresh); // of a command that did not get as far as the maps
	return 0;
}

static int load_records(struct store *b, struct err *err)
{
	int code;

	if (load_interrupted(b, &b->records))
		return 0;
	code = load(b->path, &b->records, err);
	if (code != -ENOENT)
		return code;
	err_clear(err);
	return 0;
}

static int compare_entry(const struct prefix *p, uint8_t kind, const struct overlay_entry *entry)
{
	int order = prefix_compare(p, &entry->prefix);

	return order ? order : (int)kind - (int)entry->kind;
}

const struct overlay_entry *store_entry(const struct store *b, const struct prefix *p, uint8_t kind)
{
	size_t low = 0, high = b->entries.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_entry(p, kind, &b->entries.at[middle]);

		if (!order)
			return &b->entries.at[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

// Records of what the kernel does not have any more are not true.
static void drop_lost(struct store *b)
{
	size_t kept = 0, r = 0;

	vec_each (&b->records.list, record) {
		while (r < b->entries.n &&
		       compare_entry(&record->prefix, record->kind, &b->entries.at[r]) > 0)
			r++;
		if (r < b->entries.n &&
		    !compare_entry(&record->prefix, record->kind, &b->entries.at[r]))
			b->records.list.at[kept++] = *record;
	}
	b->records.list.n = kept;
}

// An entry in force without a record gets one, so that it can be listed and unblocked: the file was lost, or it
// is older than the maps because a --volatile command could not write it, whose entries stay fleeting.
static void adopt_found(struct store *b)
{
	CLEANUP_VEC VEC(struct reference) references = {0};
	struct records_change change;
	size_t r = 0;

	vec_each (&b->entries, entry) {
		while (r < b->records.list.n &&
		       compare_entry(&b->records.list.at[r].prefix, b->records.list.at[r].kind,
				     entry) < 0)
			r++;
		if (r < b->records.list.n && !compare_entry(&b->records.list.at[r].prefix,
							    b->records.list.at[r].kind, entry))
			continue;
		vec_push(&references, ((struct reference){
					      .prefix = entry->prefix,
					      .kind = entry->kind,
					      .until_s = clock_to_wall_s(&b->clock, entry->until),
				      }));
	}
	if (references.n) {
		uint32_t owner = records_owner(
			&b->records,
			&(struct owner){
				.origin = (char *)"",
				.list = (char *)"",
				.name = (char *)"",
				.note = (char *)"found in the kernel without a record",
				.fleeting = b->records.epoch &&
					    b->records.epoch != b->instance->knobs->epoch,
				.by = (char *)"",
				.since_s = b->clock.wall_ms / 1000,
			});

		vec_each (&references, reference)
			reference->owner = owner;
		records_add(&b->records, references.at, references.n, &change);
	}
}

static void drop_expired(struct store *b)
{
	size_t kept = 0;

	vec_each (&b->entries, entry)
		if (entry->until > b->clock.jiffies)
			b->entries.at[kept++] = *entry;
	b->entries.n = kept;
}

static int fill(struct store *b, struct err *err)
{
	struct records_clock now;
	size_t removed;
	int code = instance_clock(b->instance, &b->clock, err);

	if (code)
		return code;
	if ((code = load_records(b, err)))
		return code;
	if ((code = overlay_read(b->instance, &b->entries, err)))
		return code;
	now = clock_of(&b->clock);
	records_follow_clock(&b->records, &now);
	records_expire(&b->records, b->clock.wall_ms / 1000, &removed);
	drop_expired(b); // the kernel's clock decides, the wall clock may be a second late
	drop_lost(b);
	adopt_found(b);
	return 0;
}

static struct store *store_new(const char *name)
{
	struct store *b = mem_new(struct store);

	b->lock = -1;
	b->path = mem_printf("%s/%s/overlay", WEIR_STATE_FOLDER, name);
	return b;
}

int store_open_with(struct instance *instance, int lock, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = store_new(instance->name);
	int code;

	b->instance = instance;
	b->lock = lock;
	if ((code = overlay_tidy(b->instance, err)))
		return code;
	if ((code = store_recover(b->instance, err)))
		return code;
	if ((code = fill(b, err)))
		return code;
	*ret = TAKE_PTR(b);
	return 0;
}

int store_open(const char *name, const char *command, struct store **ret, struct err *err)
{
	CLEANUP_INSTANCE struct instance *instance = NULL;
	CLEANUP_FD int lock = -1;
	int code;

	if (!bpffs_exist(name))
		return instance_open(name, &instance, err); // the error names what is missing
	if ((code = lock_take(name, command, &lock, err)))
		return code;
	if ((code = instance_open(name, &instance, err)))
		return code;
	if ((code = device_sync(instance, err)))
		return code;
	macs_refresh(instance, NULL); // a failure does not refuse a block
	return store_open_with(TAKE_PTR(instance), TAKE_FD(lock), ret, err);
}

int store_read(const char *name, struct store **ret, struct err *err)
{
	CLEANUP_STORE struct store *b = store_new(name);
	int code = instance_open(name, &b->instance, err);

	if (code)
		return code;
	if ((code = lock_share(name, &b->lock, err)))
		return code;
	code = fill(b, err);
	b->lock = fd_close(b->lock);
	if (code)
		return code;
	*ret = TAKE_PTR(b);
	return 0;
}

int store_count(const char *instance, size_t *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/overlay", WEIR_STATE_FOLDER, instance);
	CLEANUP_RECORDS struct records records = {0};
	int code = load(path, &records, NULL);

	*ret = records.list.n;
	return code == -ENOENT ? 0 : code;
}

static int make_state_folder(const struct store *b, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, b->instance->name);

	return file_mkdirs(folder, 0700, err);
}

static int write_beside(struct store *b, uint64_t epoch, struct err *err)
{
	CLEANUP_FREE char *text = NULL, *sealed = NULL;
	size_t len;
	int code = make_state_folder(b, err);

	if (code)
		return code;
	b->records.epoch = epoch;
	text = records_print(&b->records, &len);
	sealed = sum_seal(text, len, &len);
	return file_stage(b->path, sealed, len, 0600, err);
}

static struct overlay_want *wanted(const struct store *b, size_t *ret_n)
{
	struct records_entries entries = {0};
	struct overlay_want *want;

	records_entries(&b->records, &entries);
	want = mem_zalloc(entries.n, sizeof(*want));
	for (size_t e = 0; e < entries.n; e++)
		want[e] = (struct overlay_want){
			.prefix = entries.at[e].prefix,
			.kind = entries.at[e].kind,
			.until = clock_to_jiffies(&b->clock, entries.at[e].until_s),
		};
	*ret_n = entries.n;
	free(entries.at);
	return want;
}

int store_commit(struct store *b, bool fleeting_ok, struct overlay_plan *ret, struct err *err)
{
	CLEANUP_FREE struct overlay_want *want = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	size_t n;
	int code = instance_clock(b->instance, &b->clock, err);

	if (code)
		return code;
	want = wanted(b, &n);
	if ((code = overlay_stage_whole(b->instance, want, n, &plan, err)))
		return code;
	b->unsaved = (struct err){0};
	code = write_beside(b, plan.epoch, &b->unsaved);
	if (code && !fleeting_ok) {
		overlay_tidy(b->instance, NULL);
		*err = b->unsaved;
		err_hint(err, "--volatile changes only the kernel");
		return code;
	}
	overlay_commit(b->instance, &plan);
	*ret = plan;
	ret->dead = NULL;
	// The change is committed; the next command finds a file that could not be renamed.
	code = code ? code : file_commit(b->path, &b->unsaved);
	if (code && !fleeting_ok) {
		*err = b->unsaved;
		return code;
	}
	return 0;
}

// No entry of the former life is in the maps yet, so fill() has dropped every record: read them again.
int store_restore(struct store *b, size_t *ret_n, struct err *err)
{
	struct records_clock now = clock_of(&b->clock);
	struct records saved = {0};
	size_t kept = 0, removed;
	int code = load(b->path, &saved, err);

	*ret_n = 0;
	if (code == -ENOENT) {
		err_clear(err);
		return 0;
	}
	if (code)
		return code;
	records_follow_clock(&saved, &now);
	records_expire(&saved, b->clock.wall_ms / 1000 + SLACK_S, &removed);
	vec_each (&saved.list, record)
		if (!saved.owners.at[record->owner].fleeting)
			saved.list.at[kept++] = *record;
	saved.list.n = kept;
	records_free(&b->records);
	b->records = saved;
	*ret_n = kept;
	return 0;
}
