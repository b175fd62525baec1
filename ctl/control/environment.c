// SPDX-License-Identifier: GPL-2.0-only
// Answers the questions of resolve from this host, and records the answers.
#include "ctl/control/environment.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/net/route.h"

#define FILE_BYTES_MAX (256u << 20)

const struct environment_file *environment_find_file(const struct environment *w, const char *path)
{
	vec_each (&w->files, file)
		if (!strcmp(file->path, path))
			return file;
	return NULL;
}

static const struct environment_name *find_name(const struct environment *w, const char *name)
{
	for (size_t n = 0; w && n < w->names.n; n++)
		if (!strcmp(w->names.at[n].name, name))
			return &w->names.at[n];
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
	vec_push(&w->files, ((struct environment_file){mem_strdup(path), copy, len}));
}

static int read_live(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err)
{
	int code = file_read(path, max, ret_text, ret_len, err);

	if (code)
		return code;
	record_file(ctx, path, *ret_text, *ret_len);
	return 0;
}

static int glob_live(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	(void)ctx;
	return source_system.glob(source_system.ctx, pattern, ret, ret_n, err);
}

static int read_record(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_len,
		       struct err *err)
{
	const struct environment_file *file = environment_find_file(ctx, path);

	(void)max;
	if (!file) {
		err_input(err, "'%s' is not in the record", path);
		return -ENOENT;
	}
	*ret_text = mem_zalloc(file->len + 1, 1);
	memcpy(*ret_text, file->text, file->len);
	*ret_len = file->len;
	return 0;
}

// A pattern of an include matches the recorded paths that it matched then: all that fit it.
static int glob_record(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	const struct environment *w = ctx;
	VEC(char *) found = {0};

	(void)err;
	vec_each (&w->files, file)
		if (!fnmatch(pattern, file->path, FNM_PATHNAME | FNM_PERIOD))
			vec_push(&found, mem_strdup(file->path));
	*ret = found.at;
	*ret_n = found.n;
	return 0;
}

static void copy_answer(const struct environment_name *name, struct policy_answer *answer)
{
	answer->addrs = mem_zalloc(name->n, sizeof(*answer->addrs));
	memcpy(answer->addrs, name->addrs, name->n * sizeof(*answer->addrs));
	answer->n = name->n;
	answer->ttl_s = name->ttl_s;
}

static void record_name(struct environment *w, const char *name, const struct policy_answer *answer)
{
	struct environment_name *record = vec_add(&w->names);

	*record = (struct environment_name){
		.name = mem_strdup(name), .n = answer->n, .ttl_s = answer->ttl_s};
	record->addrs = mem_zalloc(answer->n, sizeof(*record->addrs));
	memcpy(record->addrs, answer->addrs, answer->n * sizeof(*record->addrs));
}

// The resolver's answer, or the last good one if the resolver fails now.
static void take_answer(struct environment *w, struct dns_answer *from, struct policy_answer *to)
{
	const struct environment_name *last = from->error ? find_name(w->last, from->name) : NULL;

	*to = (struct policy_answer){
		.error = from->error,
		.ttl_s = from->ttl_s,
		.v4_missing = from->v4_missing,
		.v6_missing = from->v6_missing,
		.v4_failed = from->v4_failed,
		.v6_failed = from->v6_failed,
	};
	if (from->error)
		dns_describe(from, to->why, sizeof(to->why));
	if (last) {
		copy_answer(last, to);
		to->error = 0;
		to->stale = true;
	} else if (!from->error) {
		to->n = from->n;
		to->addrs = TAKE_PTR(from->addrs);
		from->n = 0;
	}
	if (!to->error)
		record_name(w, from->name, to);
}

static int resolve_live(void *ctx, const char *const *names, size_t n,
			struct policy_answer *answers, struct err *err)
{
	struct environment *w = ctx;
	CLEANUP_FREE struct dns_answer *dns = mem_zalloc(n, sizeof(*dns));
	int code = dns_resolve(names, n, &w->dns, dns, err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++)
		take_answer(w, &dns[i], &answers[i]);
	dns_answers_free(dns, n);
	return 0;
}

static int resolve_record(void *ctx, const char *const *names, size_t n,
			  struct policy_answer *answers, struct err *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++) {
		const struct environment_name *name = find_name(ctx, names[i]);

		answers[i] = (struct policy_answer){.error = name ? 0 : -ENOENT};
		if (name)
			copy_answer(name, &answers[i]);
	}
	return 0;
}

static int own_addresses(struct addr **ret, size_t *ret_n, struct err *err)
{
	CLEANUP_FREE struct own_addr *own = NULL;
	size_t n = 0;
	int code = route_own_addrs(&own, &n, err);

	if (code)
		return code;
	*ret = mem_zalloc(n, sizeof(**ret));
	for (*ret_n = 0; *ret_n < n; ++*ret_n)
		(*ret)[*ret_n] = own[*ret_n].addr;
	return 0;
}

static int gateway_addresses(struct addr **ret, size_t *ret_n, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	size_t n = 0, kept = 0;
	int code = route_gateways(&gateways, &n, err);

	if (code)
		return code;
	*ret = mem_zalloc(n, sizeof(**ret));
	for (size_t g = 0; g < n; g++)
		if (gateways[g].addr.family)
			(*ret)[kept++] = gateways[g].addr;
	*ret_n = kept;
	return 0;
}

static int find_addresses(const struct environment *w, enum policy_addresses which,
			  struct addr **ret, size_t *ret_n, struct err *err)
{
	if (which == POLICY_SELF)
		return own_addresses(ret, ret_n, err);
	if (which == POLICY_GATEWAY)
		return gateway_addresses(ret, ret_n, err);
	return dns_servers(&w->dns, ret, ret_n, err);
}

static int addresses_live(void *ctx, enum policy_addresses which, struct addr **ret, size_t *ret_n,
			  struct err *err)
{
	struct environment *w = ctx;
	struct environment_addresses *record;
	int code = find_addresses(w, which, ret, ret_n, err);

	if (code)
		return code;
	record = vec_add(&w->addresses);
	*record = (struct environment_addresses){.which = which, .n = *ret_n};
	record->addrs = mem_zalloc(*ret_n, sizeof(*record->addrs));
	if (*ret_n)
		memcpy(record->addrs, *ret, *ret_n * sizeof(*record->addrs));
	return 0;
}

// The record keeps what is used, or the next command would take the bad content for the last good one.
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
	int code =
		w->last ? read_record((void *)w->last, path, 0, ret_text, ret_len, NULL) : -ENOENT;

	if (code)
		return code;
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
		.resolve = resolve_live,
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
		.addresses = addresses_live,
		.names_may_fail = true,
	};
}

void environment_free(struct environment *w)
{
	vec_each (&w->files, file) {
		free(file->path);
		free(file->text);
	}
	vec_each (&w->names, name) {
		free(name->name);
		free(name->addrs);
	}
	vec_each (&w->addresses, one)
		free(one->addrs);
	vec_free(&w->addresses);
	vec_free(&w->files);
	vec_free(&w->names);
}

static bool same_file(const struct environment_file *a, const struct environment_file *b)
{
	return a && b && a->len == b->len && !memcmp(a->text, b->text, a->len);
}

bool environment_same_answer(const struct environment_name *a, const struct environment_name *b)
{
	if (a->n != b->n)
		return false;
	for (size_t n = 0; n < a->n; n++)
		if (addr_compare(&a->addrs[n], &b->addrs[n]))
			return false;
	return true;
}

bool environment_same(const struct environment *a, const char *path_a, const struct environment *b,
		      const char *path_b)
{
	if (a->files.n != b->files.n || a->names.n != b->names.n)
		return false;
	vec_each (&a->files, file)
		if (!same_file(file, environment_find_file(
					     b, strcmp(file->path, path_a) ? file->path : path_b)))
			return false;
	vec_each (&a->names, name) {
		const struct environment_name *other = find_name(b, name->name);

		if (!other || !environment_same_answer(name, other))
			return false;
	}
	return true;
}
