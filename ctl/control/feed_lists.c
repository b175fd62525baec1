// SPDX-License-Identifier: GPL-2.0-only
// The files that record which list follows which feed.
#include "ctl/control/feed_lists.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/control/entries/items.h"
#include "ctl/control/feeds.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

void feed_list_free(struct feed_list *l)
{
	free(l->list);
	free(l->origin);
	free(l->note);
	free(l->url);
	free(l->ca);
	*l = (struct feed_list){0};
}

void feed_lists_free(struct feed_lists *lists)
{
	vec_each (lists, one)
		feed_list_free(one);
	vec_each (&lists->unread, one)
		free(one->path);
	vec_free(&lists->unread);
	vec_free(lists);
}

static const char *verb_of(bool allow)
{
	return allow ? "allow" : "block";
}

char *feed_list_key(const struct feed_list *l)
{
	return mem_printf("%s %s/%s %s", verb_of(l->allow), l->origin, l->list, l->url);
}

// One list follows one feed, so its file does not depend on the URL.
static char *path_of(const char *instance, bool allow, const char *origin, const char *list)
{
	CLEANUP_FREE char *who = mem_printf("%s %s/%s", verb_of(allow), origin, list);

	return feed_path(instance, who, ".list");
}

static char *path_of_list(const char *instance, const struct feed_list *l)
{
	return path_of(instance, l->allow, l->origin, l->list);
}

static int read_row(void *ctx, const struct json *row)
{
	struct feed_list *l = ctx;

	feed_list_free(l);
	*l = (struct feed_list){
		.list = json_get_copy(row, "list"),
		.origin = json_get_copy(row, "origin"),
		.note = json_get_copy(row, "note"),
		.url = json_get_copy(row, "url"),
		.ca = json_get_string(row, "ca") ? json_get_copy(row, "ca") : NULL,
		.allow = json_get_u64(row, "allow"),
		.to = json_get_u64(row, "to"),
		.both = json_get_u64(row, "both"),
		.wide = json_get_u64(row, "wide"),
		.mask = json_get_u64(row, "mask"),
		.every_ms = json_get_u64(row, "every_ms"),
		.for_ms = json_get_u64(row, "for_ms"),
	};
	return l->url[0] ? 0 : -EBADMSG;
}

// The same row as a document.
static int read_old(void *ctx, const char *text, size_t len)
{
	CLEANUP_JSON struct json *j = json_parse(text, len, NULL, 0);

	return j ? read_row(ctx, j) : -EBADMSG;
}

static const struct state_kind list_kind = {.name = "list", .row = read_row, .old = read_old};

int feed_list_save(const char *instance, const struct feed_list *l, struct err *err)
{
	CLEANUP_FREE char *path = path_of_list(instance, l);
	CLEANUP(json_writer_free) struct json_writer file = {0};

	state_add(&file, &list_kind);
	json_write_string(&file, "list", l->list);
	json_write_string(&file, "origin", l->origin);
	json_write_string(&file, "note", l->note);
	json_write_string(&file, "url", l->url);
	if (l->ca)
		json_write_string(&file, "ca", l->ca);
	json_write_u64(&file, "allow", l->allow);
	json_write_u64(&file, "to", l->to);
	json_write_u64(&file, "both", l->both);
	json_write_u64(&file, "wide", l->wide);
	json_write_u64(&file, "mask", l->mask);
	json_write_u64(&file, "every_ms", l->every_ms);
	json_write_u64(&file, "for_ms", l->for_ms);
	json_write_end(&file);
	return state_write(path, &file, err);
}

uint64_t feed_list_good_s(const char *instance, const struct feed_list *l)
{
	CLEANUP_FREE char *path = path_of_list(instance, l);
	CLEANUP_FREE char *key = feed_list_key(l);
	uint64_t copy_s = feed_time(instance, key) / 1000000000;
	struct stat info;
	uint64_t list_s = stat(path, &info) ? 0 : (uint64_t)info.st_mtim.tv_sec;

	return list_s > copy_s ? list_s : copy_s;
}

static void read_one(const char *path, struct feed_lists *to)
{
	struct feed_list one = {0};
	struct err why = {0};
	int code = state_read(path, &list_kind, &one, &why);

	if (!one.url)
		code = code ? code
			    : err_stated(&why, EBADMSG, "'%s' is damaged: it has no list", path);
	if (code) {
		feed_list_free(&one);
		vec_push(&to->unread, ((struct feed_list_unread){mem_strdup(path), code, why}));
		return;
	}
	vec_push(to, one);
}

void feed_lists_read(const char *instance, struct feed_lists *ret)
{
	CLEANUP_FREE char *pattern = mem_printf("%s/%s/feeds/*.list", WEIR_STATE_FOLDER, instance);
	glob_t found = {0};

	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			read_one(found.gl_pathv[i], ret);
	globfree(&found);
}

// Only the owner knows which list a file is of that cannot be read: its name is a hash. So is that
// of the copy of its text, which is found by what is in it.
static void forget_unread(const char *instance, const struct feed_lists *lists, bool allow,
			  const char *origin, const char *list)
{
	CLEANUP_FREE char *path = list ? path_of(instance, allow, origin, list) : NULL;
	CLEANUP_FREE char *copies = list ? mem_printf("%s %s/%s ", verb_of(allow), origin, list)
					 : mem_printf("%s ", verb_of(allow));

	vec_each (&lists->unread, one) {
		bool passing = one->code != -EBADMSG && one->code != -ENOTSUP;

		if (path ? strcmp(path, one->path) != 0 : passing)
			continue;
		unlink(one->path);
		feeds_forget(instance, copies);
	}
}

void feed_lists_forget(const char *instance, bool allow, const char *origin, const char *list)
{
	CLEANUP_FEED_LISTS struct feed_lists lists = {0};

	feed_lists_read(instance, &lists);
	vec_each (&lists, one) {
		CLEANUP_FREE char *path = path_of_list(instance, one);
		CLEANUP_FREE char *key = feed_list_key(one);

		if (one->allow != allow || (origin && strcmp(origin, one->origin) != 0) ||
		    (list && strcmp(list, one->list) != 0))
			continue;
		unlink(path);
		feed_forget(instance, key);
	}
	if (list || !origin)
		forget_unread(instance, &lists, allow, origin, list);
}

static size_t add_option(const char **ret, const char *name, const char *value)
{
	if (!value[0])
		return 0;
	ret[0] = name;
	ret[1] = value;
	return 2;
}

size_t feed_list_words(const struct feed_list *l, const char *path, feed_list_time time,
		       const char **ret)
{
	size_t n = 0;

	time[0] = '\0';
	if (l->for_ms)
		snprintf(time, sizeof(feed_list_time), "%llums", (unsigned long long)l->for_ms);
	ret[n++] = l->allow ? "allow" : "block";
	n += add_option(ret + n, "-f", path);
	n += add_option(ret + n, "--sync", l->list);
	n += add_option(ret + n, "--origin", l->origin);
	n += add_option(ret + n, "--note", l->note);
	n += add_option(ret + n, "--for", time);
	if (l->to)
		ret[n++] = "--to";
	if (l->both)
		ret[n++] = "--both";
	if (l->wide)
		ret[n++] = "--wide";
	if (l->mask)
		ret[n++] = "--mask";
	return n;
}

static bool has_ends(const struct items *items)
{
	vec_each (&items->items, item)
		if (item->for_ms)
			return true;
	return false;
}

uint64_t feed_list_entries(const struct feed_list *l, const char *text, size_t len, bool *ret_plain)
{
	struct items items = {.mask = l->mask};
	uint64_t entries;

	items_add_text(&items, text, len, l->wide);
	entries = items.items.n;
	*ret_plain = !l->for_ms && !items.names && !items.geos && !has_ends(&items);
	items_free(&items);
	return entries;
}
