// SPDX-License-Identifier: GPL-2.0-only
// Shows each instance in its network namespace.
#include "ctl/cmd/status_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/netns.h"

struct instance_names {
	char **at;
	size_t n, cap;
};

static void names_free(struct instance_names *names)
{
	vec_each (names, name)
		free(*name);
	vec_free(names);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// The name of its network namespace; NULL: it is the present one, or has no name.
static char *home_of(const char *instance)
{
	__u64 cookie, inode, home;

	if (instance_home(instance, &home, NULL) || instance_netns(&cookie, &inode, NULL) ||
	    home == inode)
		return NULL;
	return netns_name((ino_t)home);
}

static int show_there(struct context *ctx, const struct args *args, status_show *show,
		      size_t *ret_alarms, struct err *err)
{
	CLEANUP_FREE char *home = home_of(ctx->instance);
	CLEANUP_FD int back = -1;
	int code;

	if (!home)
		return show(ctx, args, ret_alarms, err);
	ctx->netns = home;
	if ((code = netns_enter(home, &back, err)))
		return code;
	code = show(ctx, args, ret_alarms, err);
	return netns_leave(back, code ? NULL : err) ? -EIO : code;
}

static size_t show_one(struct context *ctx, const struct args *args, status_show *show)
{
	struct err err = {0};
	err_full_text full;
	size_t alarms = 0;

	out_object(ctx->out, NULL);
	out_set_string(ctx->out, "name", ctx->instance);
	if (show_there(ctx, args, show, &alarms, &err)) {
		out_set_string(ctx->out, "error", err.text);
		out_line(ctx->out, "%s%-9s%s %s", out_bold(ctx->out), ctx->instance,
			 out_plain(ctx->out), err_full(&err, full));
		alarms = 1;
	}
	out_end(ctx->out);
	return alarms;
}

int status_all(struct context *ctx, const struct args *args, status_show *show, size_t *ret_alarms,
	       struct err *err)
{
	CLEANUP(names_free) struct instance_names names = {0};
	int code = bpffs_list(&names.at, &names.n, err);

	if (code)
		return code;
	if (!names.n) {
		err_input(err, "no instance exists: nothing is attached");
		err_hint(err, "weir attach IFACE");
		return -ENOENT;
	}
	qsort(names.at, names.n, sizeof(*names.at), compare);
	out_array(ctx->out, "instances");
	vec_each (&names, name) {
		struct context one = *ctx;

		one.instance = *name;
		if (name != names.at)
			out_line(ctx->out, "%s", "");
		*ret_alarms += show_one(&one, args, show);
	}
	out_end(ctx->out);
	return 0;
}
