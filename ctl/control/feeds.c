// SPDX-License-Identifier: GPL-2.0-only
// Reads, writes and judges copies of feeds.
#include "ctl/control/feeds.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/limits-policy.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/sum.h"
#include "ctl/base/text.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/fetch_url.h"
#include "ctl/policy/list.h"

void feed_free(struct feed *f)
{
	free(f->url);
	free(f->etag);
	free(f->modified);
	free(f->text);
	*f = (struct feed){0};
}

// ---- the file -----------------------------------------------------------------------------------

char *feed_path(const char *instance, const char *url, const char *suffix)
{
	sum_text key;

	sum_of(url, strlen(url), key);
	return mem_printf("%s/%s/feeds/%s%s", WEIR_STATE_FOLDER, instance, key, suffix);
}

static char *copy_of(const struct json *head, const char *key)
{
	const char *text = json_get_string(head, key);

	return text ? mem_strdup(text) : NULL;
}

static int read_row(void *ctx, const struct json *row)
{
	struct feed *f = ctx;

	feed_free(f);
	f->url = copy_of(row, "url");
	f->etag = copy_of(row, "etag");
	f->modified = copy_of(row, "modified");
	f->fetched_s = json_get_u64(row, "fetched_s");
	f->entries = json_get_u64(row, "entries");
	return f->url ? 0 : -EBADMSG;
}

static int read_text(void *ctx, const char *text, size_t len)
{
	struct feed *f = ctx;

	f->len = len;
	f->text = mem_zalloc(len + 1, 1);
	memcpy(f->text, text, len);
	return f->url ? 0 : -EBADMSG;
}

// A line with the same row, and the text.
static int read_old(void *ctx, const char *text, size_t len)
{
	const char *end = memchr(text, '\n', len);
	CLEANUP_JSON struct json *row =
		end ? json_parse(text, (size_t)(end - text), NULL, 0) : NULL;

	if (!row || read_row(ctx, row))
		return -EBADMSG;
	return read_text(ctx, end + 1, len - (size_t)(end + 1 - text));
}

static const struct state_kind feed_kind = {
	.name = "feed", .row = read_row, .text = read_text, .old = read_old};

int feed_load(const char *instance, const char *url, struct feed *ret, struct err *err)
{
	CLEANUP_FREE char *path = feed_path(instance, url, "");
	CLEANUP_FEED struct feed feed = {0};
	int code;

	if (!file_exists(path))
		return err_stated(err, ENOENT, "no copy of '%s'", url);
	code = state_read(path, &feed_kind, &feed, err);
	if (code && code != -EBADMSG)
		return code;
	if (code || !feed.text || strcmp(feed.url, url) != 0)
		return err_stated(err, EBADMSG, "the copy of '%s' is damaged", url);
	*ret = feed;
	feed = (struct feed){0};
	return 0;
}

uint64_t feed_time(const char *instance, const char *url)
{
	CLEANUP_FREE char *path = feed_path(instance, url, "");
	struct stat st;

	if (stat(path, &st))
		return 0;
	return (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}

static void add_text(struct json_writer *file, const char *key, const char *text)
{
	if (text)
		json_write_string(file, key, text);
}

int feed_save(const char *instance, const struct feed *f, struct err *err)
{
	CLEANUP_FREE char *path = feed_path(instance, f->url, "");
	CLEANUP(json_writer_free) struct json_writer file = {0};

	state_add(&file, &feed_kind);
	add_text(&file, "url", f->url);
	add_text(&file, "etag", f->etag);
	add_text(&file, "modified", f->modified);
	json_write_u64(&file, "fetched_s", f->fetched_s);
	json_write_u64(&file, "entries", f->entries);
	json_write_end(&file);
	state_add_text(&file, f->text, f->len);
	return state_write(path, &file, err);
}

void feed_forget(const char *instance, const char *url)
{
	CLEANUP_FREE char *path = feed_path(instance, url, "");

	unlink(path);
}

static bool is_meant(const char *path, const char *start)
{
	CLEANUP_FEED struct feed feed = {0};
	int code = state_read(path, &feed_kind, &feed, NULL);

	if (start)
		return feed.url && !strncmp(feed.url, start, strlen(start));
	return code ? code == -EBADMSG || code == -ENOTSUP : !feed.url || fetch_is_url(feed.url);
}

void feeds_forget(const char *instance, const char *start)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s/feeds", WEIR_STATE_FOLDER, instance);
	CLEANUP_FREE char *pattern = mem_printf("%s/????????????????", folder);
	glob_t found = {0};

	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			if (is_meant(found.gl_pathv[i], start))
				unlink(found.gl_pathv[i]);
	globfree(&found);
	rmdir(folder);
}

// ---- the text -----------------------------------------------------------------------------------

char *feed_public_url(const char *url)
{
	const char *host = strstr(url, "://");
	const char *user, *end;

	host = host ? host + 3 : url;
	end = host + strcspn(host, "?#");
	user = memchr(host, '@', strcspn(host, "/?#"));
	return mem_printf("%.*s%.*s", (int)(host - url), url, (int)(end - (user ? user + 1 : host)),
			  user ? user + 1 : host);
}

struct fetch_request feed_request(const struct policy_url *url, const struct feed *copy,
				  const struct dns_options *dns)
{
	return (struct fetch_request){
		.url = url->url,
		.ca = url->ca,
		.etag = copy->etag,
		.modified = copy->modified,
		.dns = dns,
	};
}

static uint64_t count_entries(const struct policy_url *url, const char *text, size_t len)
{
	struct list_options options = {.lax = url->lax, .wide = url->wide};
	struct list list = {0};
	uint64_t good;

	list_read(&list, text, len, &options);
	// Its reader reports errors in the text.
	good = list.refused || (list.bad && !url->lax) ? UINT64_MAX : list.good;
	list_free(&list);
	return good;
}

static int check_digest(const struct policy_url *url, const char *text, size_t len, struct err *err)
{
	char digest[FETCH_DIGEST];
	int code = url->sha256 ? fetch_digest(text, len, digest, err) : 0;

	if (code || !url->sha256 || !strcasecmp(url->sha256, digest))
		return code;
	err_input(err, "'%s' has another digest than it must have", url->url);
	return err_hint(err, "sha256 \"%s\"", digest);
}

int feed_check(const struct policy_url *url, const char *text, size_t len, const struct feed *copy,
	       bool force, struct err *err)
{
	uint64_t entries;
	int code = check_digest(url, text, len, err);

	if (code || force || !copy->entries)
		return code;
	entries = count_entries(url, text, len);
	if (entries > copy->entries / 2)
		return 0;
	err_refused(err, "'%s' would shrink from %" PRIu64 " to %" PRIu64 " %s", url->url,
		    copy->entries, entries, num_plural(entries, "entry", "entries"));
	err_hint(err, "--force accepts it");
	return -EPERM;
}

static int refuse_lines(const struct policy_url *url, const struct list *list, struct err *err)
{
	const struct list_problem *first = list->problems.at;
	uint64_t more = list->bad > 1 && !list->refused ? list->bad - 1 : 0;

	if (first->line)
		err_input(err, "'%s' line %u: %s", url->url, first->line, first->what);
	else
		err_input(err, "'%s': %s", url->url, first->what);
	if (more)
		err_hint(err, "and %" PRIu64 " more bad %s", more,
			 num_plural(more, "line", "lines"));
	else if (first->hint)
		err_hint(err, "%s", first->hint);
	return -EINVAL;
}

int feed_check_lines(const struct policy_url *url, const char *text, size_t len,
		     uint64_t *ret_entries, struct err *err)
{
	struct list_options options = {.lax = url->lax, .wide = url->wide};
	struct list list = {0};
	int code = 0;

	list_read(&list, text, len, &options);
	if (list.problems.n && (list.refused || !url->lax))
		code = refuse_lines(url, &list, err);
	else if (list.good < url->min)
		code = err_input(err, "'%s' has %" PRIu64 " good %s, fewer than its min %u",
				 url->url, list.good, num_plural(list.good, "line", "lines"),
				 url->min);
	*ret_entries = list.good;
	list_free(&list);
	return code;
}

struct feed feed_of(const char *url, struct fetch_result *r, uint64_t entries)
{
	struct feed feed = {
		.url = mem_strdup(url),
		.etag = TAKE_PTR(r->etag),
		.modified = TAKE_PTR(r->modified),
		.fetched_s = (uint64_t)time(NULL),
		.entries = entries,
		.text = TAKE_PTR(r->text),
		.len = r->len,
	};

	return feed;
}
