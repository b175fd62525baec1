// SPDX-License-Identifier: GPL-2.0-only
// The files that record which list follows which feed.
#include "ctl/control/feed_lists.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/control/feeds.h"
#include "ctl/control/items.h"
#include "ctl/datapath/bpffs.h"

#define FILE_MAX 65536

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
	vec_free(lists);
}

char *feed_list_key(const struct feed_list *l)
{
	return mem_printf("%s %s/%s %s", l->allow ? "allow" : "block", l->origin, l->list, l->url);
}

// One list follows one feed, so its file does not depend on the URL.
static char *path_of(const char *instance, const struct feed_list *l)
{
	CLEANUP_FREE char *who =
		mem_printf("%s %s/%s", l->allow ? "allow" : "block", l->origin, l->list);

	return feed_path(instance, who, ".list");
}

static struct json *describe(const struct feed_list *l)
{
	struct json *j = json_object();

	json_set(j, "list", json_string(l->list));
	json_set(j, "origin", json_string(l->origin));
	json_set(j, "note", json_string(l->note));
	json_set(j, "url", json_string(l->url));
	if (l->ca)
		json_set(j, "ca", json_string(l->ca));
	json_set(j, "allow", json_u64(l->allow));
	json_set(j, "to", json_u64(l->to));
	json_set(j, "both", json_u64(l->both));
	json_set(j, "wide", json_u64(l->wide));
	json_set(j, "mask", json_u64(l->mask));
	json_set(j, "every_ms", json_u64(l->every_ms));
	json_set(j, "for_ms", json_u64(l->for_ms));
	return j;
}

int feed_list_save(const char *instance, const struct feed_list *l, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance, l);
	CLEANUP_JSON struct json *j = describe(l);
	CLEANUP_TEXT struct text text = {0};

	json_print(j, true, &text);
	return sum_write(path, text.at, text.len, err);
}

uint64_t feed_list_good_s(const char *instance, const struct feed_list *l)
{
	CLEANUP_FREE char *path = path_of(instance, l);
	CLEANUP_FREE char *key = feed_list_key(l);
	uint64_t copy_s = feed_time(instance, key) / 1000000000;
	struct stat info;
	uint64_t list_s = stat(path, &info) ? 0 : (uint64_t)info.st_mtim.tv_sec;

	return list_s > copy_s ? list_s : copy_s;
}

static bool read_one(const char *path, struct feed_list *ret)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON struct json *j = NULL;
	char why[160];
	size_t len;

	if (file_read(path, FILE_MAX, &text, &len, NULL) || sum_open(text, &len) ||
	    !(j = json_parse(text, len, why, sizeof(why))))
		return false;
	*ret = (struct feed_list){
		.list = json_get_copy(j, "list"),
		.origin = json_get_copy(j, "origin"),
		.note = json_get_copy(j, "note"),
		.url = json_get_copy(j, "url"),
		.ca = json_get_string(j, "ca") ? json_get_copy(j, "ca") : NULL,
		.allow = json_get_u64(j, "allow"),
		.to = json_get_u64(j, "to"),
		.both = json_get_u64(j, "both"),
		.wide = json_get_u64(j, "wide"),
		.mask = json_get_u64(j, "mask"),
		.every_ms = json_get_u64(j, "every_ms"),
		.for_ms = json_get_u64(j, "for_ms"),
	};
	return true;
}

void feed_lists_read(const char *instance, struct feed_lists *ret)
{
	CLEANUP_FREE char *pattern = mem_printf("%s/%s/feeds/*.list", WEIR_STATE_FOLDER, instance);
	glob_t found = {0};

	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++) {
			struct feed_list one;

			if (read_one(found.gl_pathv[i], &one))
				vec_push(ret, one);
		}
	globfree(&found);
}

void feed_lists_forget(const char *instance, bool allow, const char *origin, const char *list)
{
	CLEANUP_FEED_LISTS struct feed_lists lists = {0};

	feed_lists_read(instance, &lists);
	vec_each (&lists, one) {
		CLEANUP_FREE char *path = path_of(instance, one);
		CLEANUP_FREE char *key = feed_list_key(one);

		if (one->allow != allow || (origin && strcmp(origin, one->origin) != 0) ||
		    (list && strcmp(list, one->list) != 0))
			continue;
		unlink(path);
		feed_forget(instance, key);
	}
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
