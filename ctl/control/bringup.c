// SPDX-License-Identifier: GPL-2.0-only
// Creating, attaching, restoring, removing: the order in which it is safe.
#include "ctl/control/bringup.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/book.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/pins.h"
#include "ctl/datapath/probe.h"
#include "ctl/net/link.h"

void bringup_close(struct bringup *b)
{
	instance_free(b->instance);
	fd_close(b->lock);
	b->instance = NULL;
	b->lock = -1;
}

// The book wants instance and lock for itself, so it gets its own.
static int restore(struct bringup *b, struct err *err)
{
	CLEANUP_BOOK struct book *book = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct instance *again = NULL;
	int code = instance_open(b->instance->name, &again, err);

	if (!code)
		code = book_open_with(again, -1, &book, err);
	if (!code)
		code = book_restore(book, &b->restored, err);
	return code || !b->restored ? code : book_commit(book, true, &plan, err);
}

static int create(struct bringup *b, const char *name, uint32_t max_entries, struct err *err)
{
	CLEANUP_FREE char *stale = mem_printf("%s/%s/overlay.new", PINS_STATE, name);
	int code;

	unlink(stale);
	code = instance_create(name, max_entries ? max_entries : WEIR_OVERLAY_MAX, &b->instance,
			       err);
	if (code)
		return code;
	b->created = true;
	if ((code = restore(b, err))) {
		instance_remove(name, NULL);
		err_hint(err, "move '%s/%s/overlay' away to begin without it", PINS_STATE, name);
	}
	return code;
}

static int check_size(const struct bringup *b, uint32_t max_entries, struct err *err)
{
	if (!max_entries || max_entries == b->instance->meta.max_entries)
		return 0;
	err_refused(err, "instance '%s' runs with --max-entries %u", b->instance->name,
		    b->instance->meta.max_entries);
	err_hint(err, "weir detach first; what is blocked is kept");
	return -EBUSY;
}

int bringup_open(const char *name, const char *command, uint32_t max_entries, struct bringup *ret,
		 struct err *err)
{
	struct bringup b = {.lock = -1};
	int code = pins_ready(err);

	if (!code)
		code = lock_take(name, command, &b.lock, err);
	if (!code)
		code = instance_sweep(name, err);
	if (!code && pins_exist(name)) {
		code = instance_open(name, &b.instance, err);
		if (!code)
			code = check_size(&b, max_entries, err);
	} else if (!code) {
		code = create(&b, name, max_entries, err);
	}
	if (code) {
		bringup_close(&b);
		return code;
	}
	*ret = b;
	return 0;
}

static int check_link(const struct link *link, struct err *err)
{
	if (link->type == ARPHRD_ETHER)
		return 0;
	if (link->type == ARPHRD_LOOPBACK)
		err_refused(err,
			    "'%s' is the loopback interface: nothing from outside comes in there",
			    link->name);
	else
		err_refused(err,
			    "'%s' is not an Ethernet device (%s): its packets start at the IP "
			    "header",
			    link->name, link->kind[0] ? link->kind : "type unknown");
	return -EOPNOTSUPP;
}

int bringup_attach(struct bringup *b, const char *ifname, enum attach_mode mode,
		   struct attach_result *ret, struct err *err)
{
	struct link link;
	int code = link_get(ifname, &link, err);

	if (!code)
		code = check_link(&link, err);
	return code ? code
		    : attach_interface(b->instance, ifname, link.index, link.driver, mode, ret,
				       err);
}

int bringup_remove_if_idle(struct bringup *b, bool *ret_removed, struct err *err)
{
	*ret_removed = !instance_has_ifaces(b->instance);
	return *ret_removed ? instance_remove(b->instance->name, err) : 0;
}
