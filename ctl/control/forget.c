// SPDX-License-Identifier: GPL-2.0-only
// Removes state files, under the lock.
#include "ctl/control/forget.h"

#include <errno.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/feed_lists.h"
#include "ctl/control/feeds.h"
#include "ctl/control/quick.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

// Removes FILE, FILE.new and FILE.damaged of the state folder. *ret_was_there: one of the first two
// existed.
static int remove_file(const char *instance, const char *name, bool dry_run, bool *ret_was_there,
		       struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/%s", WEIR_STATE_FOLDER, instance, name);
	CLEANUP_FREE char *staged = mem_printf("%s.new", path);
	CLEANUP_FREE char *damaged = mem_printf("%s.damaged", path);

	*ret_was_there = file_exists(path) || file_exists(staged);
	if (dry_run)
		return 0;
	// The staged file is removed first, since without the other one it would be used as the
	// newer one.
	if (unlink(staged) && errno != ENOENT)
		return err_system(err, errno, "cannot remove '%s'", staged);
	if (unlink(path) && errno != ENOENT)
		return err_system(err, errno, "cannot remove '%s'", path);
	unlink(damaged);
	return 0;
}

static int forget_policy(const char *instance, bool dry_run, struct forgotten *ret, struct err *err)
{
	CLEANUP_QUICK struct quick_rules rules = {0};
	bool any;
	int code = revisions_remove(instance, dry_run, &ret->revisions, err);

	if (code)
		return code;
	if (!dry_run)
		feeds_forget(instance, NULL);
	if (!quick_read(instance, &rules, NULL))
		ret->quick = rules.n;
	if ((code = remove_file(instance, "rules", dry_run, &any, err)))
		return code;
	return remove_file(instance, "drains", dry_run, &ret->overrides, err);
}

static int forget_entries(const char *instance, bool dry_run, struct forgotten *ret,
			  struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s/overlay", WEIR_STATE_FOLDER, instance);
	bool was_there, any;

	ret->damaged = store_count(instance, &ret->entries) != 0;
	journal_forget_damaged(path, dry_run, &any);
	ret->damaged |= any;
	for (int allow = 0; allow < 2 && !dry_run; allow++)
		feed_lists_forget(instance, allow, NULL, NULL);
	return remove_file(instance, "overlay", dry_run, &was_there, err);
}

static int check_detached(const char *instance, struct err *err)
{
	if (!bpffs_exist(instance))
		return 0;
	err_refused(err, "instance '%s' is attached: its policy and its entries are in use",
		    instance);
	err_hint(err, "weir detach first");
	return -EBUSY;
}

int forget(const char *instance, const char *command, const struct forget_what *what, bool dry_run,
	   struct forgotten *ret, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, instance);
	CLEANUP_FREE char *feeds = mem_printf("%s/feeds", folder);
	CLEANUP_FD int lock = -1;
	int code = lock_take(instance, command, &lock, err);

	*ret = (struct forgotten){0};
	if (code)
		return code;
	if ((code = check_detached(instance, err)))
		return code;
	if (what->policy && (code = forget_policy(instance, dry_run, ret, err)))
		return code;
	if (what->entries && (code = forget_entries(instance, dry_run, ret, err)))
		return code;
	if (what->seed && (code = remove_file(instance, "seed", dry_run, &ret->seed, err)))
		return code;
	if (what->interfaces &&
	    (code = remove_file(instance, "interfaces", dry_run, &ret->interfaces, err)))
		return code;
	if (dry_run)
		return 0;
	rmdir(feeds); // fails if files are left
	rmdir(folder);
	if (what->interfaces)
		lock_forget(instance);
	return 0;
}
