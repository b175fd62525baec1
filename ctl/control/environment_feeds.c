// SPDX-License-Identifier: GPL-2.0-only
// The feeds of a policy: fetched side by side, with the copies on disk for what fails.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/control/environment.h"

static struct environment_fetched *find(const struct environment *w, const char *url)
{
	vec_each (&w->fetched, one)
		if (!strcmp(one->url.url, url))
			return one;
	return NULL;
}

static void fetch_now(struct environment *w)
{
	CLEANUP_FREE struct fetch_request *requests = mem_zalloc(w->fetched.n, sizeof(*requests));
	CLEANUP_FREE struct fetch_result *results = mem_zalloc(w->fetched.n, sizeof(*results));
	struct err err = {0};
	int code;

	for (size_t i = 0; i < w->fetched.n; i++)
		requests[i] = feed_request(&w->fetched.at[i].url, &w->fetched.at[i].copy, &w->dns);
	code = fetch_all(requests, w->fetched.n, results, &err);
	for (size_t i = 0; i < w->fetched.n; i++) {
		w->fetched.at[i].result = results[i];
		if (code)
			w->fetched.at[i].result = (struct fetch_result){.code = code, .err = err};
	}
}

static void judge(const struct environment *w, struct environment_fetched *one)
{
	struct fetch_result *r = &one->result;

	if (r->code)
		return;
	if (!r->same)
		r->code = feed_check(&one->url, r->text, r->len, &one->copy, w->force, &r->err);
	else if (one->copy.text &&
		 !environment_fits(w, one->url.url, one->copy.text, one->copy.len))
		r->code = err_input(&r->err, "'%s' has another digest than it must have",
				    one->url.url);
}

static const char *copy_of(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

static struct policy_url copy_url(const struct policy_url *url)
{
	struct policy_url copy = *url;

	copy.url = copy_of(url->url);
	copy.sha256 = copy_of(url->sha256);
	copy.ca = copy_of(url->ca);
	return copy;
}

void environment_fetch(void *environment, const struct policy_url *urls, size_t n)
{
	struct environment *w = environment;

	environment_free_fetched(w);
	for (size_t i = 0; i < n; i++) {
		struct environment_fetched *one = vec_add(&w->fetched);

		*one = (struct environment_fetched){.url = copy_url(&urls[i])};
		if (w->instance)
			feed_load(w->instance, urls[i].url, &one->copy, NULL);
		one->result.same = w->offline;
	}
	if (!w->offline)
		fetch_now(w);
	vec_each (&w->fetched, one)
		judge(w, one);
}

static int give(const char *text, size_t len, char **ret_text, size_t *ret_len)
{
	*ret_text = mem_zalloc(len + 1, 1);
	memcpy(*ret_text, text, len);
	*ret_len = len;
	return 0;
}

int environment_read_copy(struct environment *w, const char *url, char **ret_text, size_t *ret_len)
{
	struct environment_fetched *one = find(w, url);

	if (one)
		one->refused = true;
	if (!one || !one->copy.text)
		return -ENOENT;
	return give(one->copy.text, one->copy.len, ret_text, ret_len);
}

int environment_read_fetched(struct environment *w, const char *url, char **ret_text,
			     size_t *ret_len, struct err *err)
{
	const struct environment_fetched *one = find(w, url);

	if (!one)
		return err_stated(err, ENOENT, "'%s' is not fetched here", url);
	if (one->result.code) {
		*err = one->result.err;
		return one->result.code;
	}
	if (!one->result.same)
		return give(one->result.text, one->result.len, ret_text, ret_len);
	if (!one->copy.text)
		return err_input(err, "no copy of '%s' on disk", url);
	return give(one->copy.text, one->copy.len, ret_text, ret_len);
}

bool environment_fits(const struct environment *w, const char *url, const char *text, size_t len)
{
	const struct environment_fetched *one = find(w, url);
	char digest[FETCH_DIGEST];

	if (!one || !one->url.sha256)
		return true;
	return !fetch_digest(text, len, digest, NULL) && !strcasecmp(digest, one->url.sha256);
}

static int keep(const struct environment *w, const struct environment_fetched *one, struct err *err)
{
	struct fetch_result copy = {0};
	CLEANUP_FEED struct feed feed = {0};
	uint64_t entries = 0;

	if (one->refused || one->result.code || one->result.same)
		return 0;
	feed_check_lines(&one->url, one->result.text, one->result.len, &entries, NULL);
	give(one->result.text, one->result.len, &copy.text, &copy.len);
	copy.etag = one->result.etag ? mem_strdup(one->result.etag) : NULL;
	copy.modified = one->result.modified ? mem_strdup(one->result.modified) : NULL;
	feed = feed_of(one->url.url, &copy, entries);
	return feed_save(w->instance, &feed, err);
}

int environment_keep_feeds(const struct environment *w, struct err *err)
{
	vec_each (&w->fetched, one) {
		int code = w->instance ? keep(w, one, err) : 0;

		if (code)
			return code;
	}
	return 0;
}

void environment_free_fetched(struct environment *w)
{
	vec_each (&w->fetched, one) {
		fetch_result_free(&one->result);
		free((char *)one->url.url);
		free((char *)one->url.sha256);
		free((char *)one->url.ca);
		feed_free(&one->copy);
	}
	vec_free(&w->fetched);
}
