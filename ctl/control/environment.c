// SPDX-License-Identifier: GPL-2.0-only
// The answers of this host to the questions of resolve, and their record.
#include "ctl/control/environment.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/known.h"
#include "ctl/net/fetch_url.h"
#include "ctl/net/geo_db.h"
#include "ctl/net/route.h"
#include "ctl/policy/services.h"

#define FILE_BYTES_MAX (256u << 20)

const struct environment_file *environment_find_file(const struct environment *w, const char *path)
{
	vec_each (&w->files, file)
		if (!strcmp(file->path, path))
			return file;
	return NULL;
}

static void record_file(struct environment *w, const char *path, const char *text, size_t len)
{
	char *copy = mem_zalloc(len + 1, 1);

	if (environment_find_file(w, path)) {
		free(copy);
		return;
	}
	memcpy(copy, text, len);
	vec_push(&w->files,
		 ((struct environment_file){.path = mem_strdup(path), .text = copy, .len = len}));
}

static void copy_out(const char *text, size_t len, char **ret_text, size_t *ret_len)
{
	*ret_text = mem_zalloc(len + 1, 1);
	memcpy(*ret_text, text, len);
	*ret_len = len;
}

static int read_record(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		       struct err *err)
{
	struct environment_file *file = (void *)environment_find_file(ctx, path);
	int code;

	// A quick rule has the name of a port, and the policy of the record has none.
	if (!file && !strcmp(path, SERVICES_PATH))
		return file_read(path, max, ret_text, ret_len, err);
	if (!file) {
		err_input(err, "'%s' is not in the record", path);
		return -ENOENT;
	}
	if (!file->text && (code = environment_read_late(ctx, file, err)))
		return code;
	copy_out(file->text, file->len, ret_text, ret_len);
	return 0;
}

// A pattern of an include matches the recorded paths that it matched then: all that fit it.
static int glob_record(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	const struct environment *w = ctx;
	VEC(char *) found = {0};

	vec_each (&w->files, file)
		if (!fnmatch(pattern, file->path, FNM_PATHNAME | FNM_PERIOD))
			vec_push(&found, mem_strdup(file->path));
	*ret = found.at;
	*ret_n = found.n;
	return 0;
}

// Standard input can be read once, and a policy is loaded twice if that takes long.
static int read_disk(const struct environment *w, const char *path, size_t max, char **ret_text,
		     size_t *ret_len, struct err *err)
{
	struct text *kept = strcmp(path, "-") != 0 ? NULL : w->standard;
	int code;

	if (kept && kept->len) {
		copy_out(kept->at, kept->len, ret_text, ret_len);
		return 0;
	}
	code = file_read(path, max, ret_text, ret_len, err);
	if (code)
		return code;
	if (kept)
		text_addn(kept, *ret_text, *ret_len);
	return 0;
}

static int read_anywhere(struct environment *w, const char *path, size_t max, char **ret_text,
			 size_t *ret_len, struct err *err)
{
	if (w->staged && !strcmp(path, w->staged_as))
		return read_disk(w, w->staged, max, ret_text, ret_len, err);
	if (fetch_is_url(path))
		return environment_read_fetched(w, path, ret_text, ret_len, err);
	if (w->again)
		return read_record((void *)w->last, path, max, ret_text, ret_len, err);
	return read_disk(w, path, max, ret_text, ret_len, err);
}

static int read_live(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	int code = read_anywhere(ctx, path, max, ret_text, ret_len, err);

	if (code)
		return code;
	record_file(ctx, path, *ret_text, *ret_len);
	return 0;
}

static int glob_live(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	const struct environment *w = ctx;

	if (w->again)
		return glob_record((void *)w->last, pattern, ret, ret_n, err);
	return source_system.glob(source_system.ctx, pattern, ret, ret_n, err);
}

// guard: NULL, or what the answer was judged by.
static void give_answer(const struct environment_name *name, const struct guard *guard,
			struct policy_answer *answer)
{
	answer->addrs = environment_name_addresses(name, &answer->n);
	answer->ttl_s = name->ttl_s;
	environment_give_left_out(name, guard, answer);
}

static struct environment_name *record_answer(struct environment *w, const struct dns_answer *from,
					      const struct environment_name *last)
{
	struct environment_name *record = vec_add(&w->names);
	struct environment_followed followed;

	*record = w->overlap && last ? environment_copy_name(last)
				     : (struct environment_name){.name = mem_strdup(from->name)};
	environment_follow(record, from, (uint64_t)time(NULL), &followed);
	return record;
}

// A name without an answer keeps its last good one. NULL: it never had one.
static struct environment_name *record_last(struct environment *w, const char *name,
					    const struct environment_name *last)
{
	if (last && environment_has_addresses(last)) {
		vec_push(&w->names, environment_copy_name(last));
		return vec_last(&w->names);
	}
	// If the policy is valid nevertheless, a lax list has the name: whoever refreshes finds it
	// in the record.
	vec_push(&w->names, ((struct environment_name){.name = mem_strdup(name)}));
	return NULL;
}

static void describe_failure(const struct dns_answer *from, bool refused, struct policy_answer *to)
{
	to->error = refused ? -EPERM : from->error;
	if (refused)
		snprintf(to->why, sizeof(to->why), "all addresses of '%s' are protected",
			 from->name);
	else
		dns_describe(from, to->why, sizeof(to->why));
}

// Writes down what the name is used for. guard: NULL for POLICY_WHOLE.
static void record_use(struct environment_name *record, const struct policy_question *question,
		       const struct guard *guard, uint64_t refused_s)
{
	record->use = question->use;
	record->refused_s = refused_s;
	if (guard)
		environment_protect(record, guard);
	else
		vec_free(&record->left_out);
}

static uint64_t refused_since(const struct environment_name *last)
{
	return last && last->refused_s ? last->refused_s : (uint64_t)time(NULL);
}

// The resolver's answer, or the last good one if the resolver fails now.
static void take_answer(struct environment *w, const struct policy_question *question,
			struct dns_answer *from, const struct guard *guard,
			struct policy_answer *to)
{
	const struct environment_name *last =
		w->last ? environment_find_name(w->last, from->name) : NULL;
	bool refused = !from->error && question->use == POLICY_DROPPED &&
		       environment_refuses(POLICY_DROPPED, from, guard);
	struct environment_name *record;

	guard = question->use == POLICY_WHOLE ? NULL : guard;
	*to = (struct policy_answer){
		.v4_missing = from->v4_missing,
		.v6_missing = from->v6_missing,
		.v4_failed = from->v4_failed,
		.v6_failed = from->v6_failed,
	};
	if (from->error || refused) {
		describe_failure(from, refused, to);
		record = record_last(w, from->name, last);
		to->stale = record;
	} else {
		record = record_answer(w, from, last);
	}
	record_use(vec_last(&w->names), question, guard, refused ? refused_since(last) : 0);
	if (!record)
		return;
	give_answer(record, guard, to);
	to->error = 0;
}

static bool needs_guard(const struct policy_question *questions, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (questions[i].use != POLICY_WHOLE)
			return true;
	return false;
}

static int resolve_live(void *ctx, const struct policy_question *questions, size_t n,
			struct policy_answer *answers, struct err *err)
{
	struct environment *w = ctx;
	CLEANUP_FREE struct dns_answer *dns = mem_zalloc(n, sizeof(*dns));
	CLEANUP_FREE const char **names = mem_zalloc(n, sizeof(*names));
	const struct guard *guard = &w->guard;
	int code;

	if (needs_guard(questions, n) && (code = environment_guard(w, &guard, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		names[i] = questions[i].name;
	if ((code = dns_resolve(names, n, &w->dns, dns, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		take_answer(w, &questions[i], &dns[i], guard, &answers[i]);
	dns_answers_free(dns, n);
	return 0;
}

// The record decides, unless it was made for another use (by an older version), or is to be put
// into effect again.
static int protect_record(struct environment *w, struct environment_name *name,
			  const struct policy_question *question, const struct guard **ret,
			  struct err *err)
{
	int code;

	*ret = NULL;
	if (question->use == POLICY_WHOLE || (question->use <= name->use && !w->guard_again))
		return 0;
	if ((code = environment_guard(w, ret, err)))
		return code;
	record_use(name, question, *ret, name->refused_s);
	return 0;
}

static int resolve_record(void *ctx, const struct policy_question *questions, size_t n,
			  struct policy_answer *answers, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct environment_name *name = environment_find_name(ctx, questions[i].name);
		const struct guard *guard;
		int code;

		answers[i] = (struct policy_answer){.error = -ENOENT};
		if (!name || !environment_has_addresses(name))
			continue;
		if ((code = protect_record(ctx, name, &questions[i], &guard, err)))
			return code;
		answers[i].error = 0;
		give_answer(name, guard, &answers[i]);
	}
	return 0;
}

// ---- countries and autonomous systems -----------------------------------------------------------

static const struct environment_geo *find_geo(const struct environment *w, const struct geo *geo)
{
	for (size_t n = 0; w && n < w->geos.n; n++)
		if (geo_equal(&w->geos.at[n].geo, geo))
			return &w->geos.at[n];
	return NULL;
}

static struct prefix *copy_prefixes(const struct prefix *prefixes, size_t n)
{
	struct prefix *copy = mem_zalloc(n, sizeof(*copy));

	if (n)
		memcpy(copy, prefixes, n * sizeof(*copy));
	return copy;
}

static void record_geo(struct environment *w, const struct geo *geo,
		       const struct policy_ranges *answer)
{
	vec_push(&w->geos, ((struct environment_geo){
				   *geo, copy_prefixes(answer->prefixes, answer->n), answer->n}));
}

static void take_record(const struct environment_geo *record, struct policy_ranges *to)
{
	to->prefixes = copy_prefixes(record->prefixes, record->n);
	to->n = record->n;
	to->stale = true;
}

static void take_ranges(struct environment *w, const struct geo *geo, struct geo_ranges *from,
			struct policy_ranges *to)
{
	const struct environment_geo *last = from->prefixes.n ? NULL : find_geo(w->last, geo);
	geo_text name;

	*to = (struct policy_ranges){.n = from->prefixes.n,
				     .prefixes = TAKE_PTR(from->prefixes.at)};
	if (!to->n)
		snprintf(to->why, sizeof(to->why), "no prefix of %s in '%s'", geo_format(geo, name),
			 from->source);
	if (last)
		take_record(last, to);
	if (to->n)
		record_geo(w, geo, to);
}

// Without a database: the last good answers, if there is one for each.
static int take_last_ranges(struct environment *w, const struct geo *wanted, size_t n,
			    struct policy_ranges *answers, const struct err *why)
{
	for (size_t i = 0; i < n; i++)
		if (!find_geo(w->last, &wanted[i]))
			return -ENOENT;
	for (size_t i = 0; i < n; i++) {
		take_record(find_geo(w->last, &wanted[i]), &answers[i]);
		snprintf(answers[i].why, sizeof(answers[i].why), "%.511s", why->text);
		record_geo(w, &wanted[i], &answers[i]);
	}
	return 0;
}

static int ranges_live(void *ctx, const struct geo *wanted, size_t n, struct policy_ranges *answers,
		       struct err *err)
{
	CLEANUP_FREE struct geo_ranges *found = mem_zalloc(n, sizeof(*found));
	struct environment *w = ctx;
	int code = geo_find(wanted, n, found, err);

	if (code && err && !take_last_ranges(w, wanted, n, answers, err)) {
		err_clear(err);
		return 0;
	}
	for (size_t i = 0; i < (code ? 0 : n); i++)
		take_ranges(w, &wanted[i], &found[i], &answers[i]);
	geo_ranges_free(found, n);
	return code;
}

static int ranges_record(void *ctx, const struct geo *wanted, size_t n,
			 struct policy_ranges *answers, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct environment_geo *record = find_geo(ctx, &wanted[i]);
		geo_text name;

		answers[i] = (struct policy_ranges){0};
		snprintf(answers[i].why, sizeof(answers[i].why), "%s is not in the record",
			 geo_format(&wanted[i], name));
		if (record)
			take_record(record, &answers[i]);
		answers[i].stale = false;
	}
	return 0;
}

static int addresses_live(void *ctx, struct addr **ret, size_t *ret_n, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	struct environment *w = ctx;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	*ret = mem_zalloc(n, sizeof(**ret));
	for (*ret_n = 0; *ret_n < n; ++*ret_n) {
		(*ret)[*ret_n] = own[*ret_n].addr;
		vec_push(&w->own, own[*ret_n].addr);
	}
	return 0;
}

// The record keeps what is used, or the next command would take the bad content for the last good
// one.
static void replace_file(struct environment *w, const char *path, const char *text, size_t len)
{
	for (size_t n = 0; n < w->files.n; n++)
		if (!strcmp(w->files.at[n].path, path)) {
			free(w->files.at[n].path);
			free(w->files.at[n].text);
			w->files.at[n] = w->files.at[--w->files.n];
			break;
		}
	record_file(w, path, text, len);
}

static int last_list(void *ctx, const char *path, char **ret_text, size_t *ret_len)
{
	struct environment *w = ctx;
	int code = fetch_is_url(path) ? environment_read_copy(w, path, ret_text, ret_len) : -ENOENT;

	if (code && w->last)
		code = read_record((void *)w->last, path, 0, ret_text, ret_len, NULL);
	if (code)
		return code;
	if (!environment_fits(w, path, *ret_text, *ret_len)) {
		free(TAKE_PTR(*ret_text));
		return -ENOENT;
	}
	replace_file(w, path, *ret_text, *ret_len);
	return 0;
}

void environment_live(struct environment *w, const struct dns_options *dns,
		      const struct environment *last)
{
	*w = (struct environment){.dns = *dns, .last = last};
	w->reader = (struct source_reader){.read = read_live, .glob = glob_live, .ctx = w};
	w->env = (struct policy_env){
		.ctx = w,
		.files = &w->reader,
		.fetch = environment_fetch,
		.resolve = resolve_live,
		.ranges = ranges_live,
		.addresses = addresses_live,
		.last_list = last_list,
	};
}

void environment_replay(struct environment *w)
{
	*w = (struct environment){.replay = true};
	w->reader = (struct source_reader){.read = read_record, .glob = glob_record, .ctx = w};
	w->env = (struct policy_env){
		.ctx = w,
		.files = &w->reader,
		.resolve = resolve_record,
		.ranges = ranges_record,
		.addresses = addresses_live,
		.may_be_empty = true,
		.names_may_fail = true,
	};
}

void environment_free(struct environment *w)
{
	vec_each (&w->files, file) {
		free(file->path);
		free(file->text);
	}
	vec_each (&w->names, name)
		environment_free_name(name);
	vec_each (&w->geos, geo)
		free(geo->prefixes);
	environment_free_fetched(w);
	known_free(w->known);
	free(w->folder);
	vec_free(&w->geos);
	vec_free(&w->own);
	guard_free(&w->guard);
	vec_free(&w->files);
	vec_free(&w->names);
}

static bool same_file(const struct environment_file *a, const struct environment_file *b)
{
	return a && b && a->len == b->len && !memcmp(a->text, b->text, a->len);
}

static bool same_ranges(const struct environment_geo *a, const struct environment_geo *b)
{
	if (!b || a->n != b->n)
		return false;
	for (size_t n = 0; n < a->n; n++)
		if (prefix_compare(&a->prefixes[n], &b->prefixes[n]))
			return false;
	return true;
}

// Where a policy beside path_b would find what one beside path_a has found at `path`. The caller
// frees it.
static char *beside(const char *path, const char *path_a, const char *path_b)
{
	const char *slash_a = strrchr(path_a, '/'), *slash_b = strrchr(path_b, '/');
	size_t a = slash_a ? (size_t)(slash_a + 1 - path_a) : 0;
	size_t b = slash_b ? (size_t)(slash_b + 1 - path_b) : 0;

	if (!strcmp(path, path_a))
		return mem_strdup(path_b);
	if (strncmp(path, path_a, a) != 0 || (!a && path[0] == '/'))
		return mem_strdup(path);
	return mem_printf("%.*s%s", (int)b, path_b, path + a);
}

static bool has_file(const struct environment *b, const char *path_b,
		     const struct environment_file *file, const char *path_a)
{
	CLEANUP_FREE char *path = beside(file->path, path_a, path_b);

	return same_file(file, environment_find_file(b, path)) ||
	       same_file(file, environment_find_file(b, file->path));
}

bool environment_same(const struct environment *a, const char *path_a, const struct environment *b,
		      const char *path_b)
{
	if (a->files.n != b->files.n || a->names.n != b->names.n || a->geos.n != b->geos.n)
		return false;
	vec_each (&a->files, file)
		if (!has_file(b, path_b, file, path_a))
			return false;
	vec_each (&a->names, name) {
		const struct environment_name *other = environment_find_name(b, name->name);

		if (!other || !environment_same_name(name, other))
			return false;
	}
	vec_each (&a->geos, geo)
		if (!same_ranges(geo, find_geo(b, &geo->geo)))
			return false;
	return true;
}
