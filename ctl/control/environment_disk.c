// SPDX-License-Identifier: GPL-2.0-only
// The record of an environment as a folder: `index` (JSON) and the files by number.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/lines.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/base/text.h"
#include "ctl/control/environment.h"
#include "ctl/control/known.h"
#include "ctl/control/state.h"

#define FILE_BYTES_MAX (256u << 20)

static char *numbered(const char *folder, size_t n)
{
	return mem_printf("%s/%zu", folder, n);
}

static struct json *describe_files(const struct environment *w)
{
	struct json *files = json_array();

	vec_each (&w->files, file)
		json_append(files, json_string(file->path));
	return files;
}

static struct json *describe_sums(const struct environment *w)
{
	struct json *sums = json_array();
	sum_text sum;

	vec_each (&w->files, file) {
		sum_of(file->text, file->len, sum);
		json_append(sums, json_string(sum));
	}
	return sums;
}

static struct json *describe_leaving(const struct environment_name *name)
{
	struct json *leaving = json_array();

	vec_each (&name->leaving, one) {
		struct json *row = json_object();
		addr_text text;

		json_set(row, "address", json_string(addr_format(&one->addr, text)));
		json_set(row, "until_s", json_u64(one->until_s));
		json_append(leaving, row);
	}
	return leaving;
}

static struct json *describe_addrs(const struct addr *addrs, size_t n)
{
	struct json *rows = json_array();
	addr_text text;

	for (size_t a = 0; a < n; a++)
		json_append(rows, json_string(addr_format(&addrs[a], text)));
	return rows;
}

static const char *const uses[] = {
	[POLICY_WHOLE] = "whole", [POLICY_EXPECTED] = "expected", [POLICY_DROPPED] = "dropped"};

static struct json *describe_name(const struct environment_name *name)
{
	struct json *one = json_object();

	json_set(one, "name", json_string(name->name));
	json_set(one, "ttl_s", json_u64(name->ttl_s));
	json_set(one, "answered_s", json_u64(name->answered_s));
	json_set(one, "addresses", describe_addrs(name->addrs, name->n));
	if (name->leaving.n)
		json_set(one, "leaving", describe_leaving(name));
	if (name->use != POLICY_WHOLE)
		json_set(one, "use", json_string(uses[name->use]));
	if (name->left_out.n)
		json_set(one, "left_out", describe_addrs(name->left_out.at, name->left_out.n));
	if (name->refused_s)
		json_set(one, "refused_s", json_u64(name->refused_s));
	return one;
}

static struct json *describe_names(const struct environment *w)
{
	struct json *names = json_array();

	vec_each (&w->names, name)
		json_append(names, describe_name(name));
	return names;
}

// A file for each, a prefix a line: a country may have a hundred thousand.
static char *print_ranges(const struct environment_geo *geo, size_t *ret_len)
{
	struct text t = {0};
	addr_text prefix;

	for (size_t n = 0; n < geo->n; n++)
		text_addf(&t, "%s\n", prefix_format(&geo->prefixes[n], prefix));
	*ret_len = t.len;
	return text_take(&t);
}

static char *geo_path(const char *folder, const struct geo *geo)
{
	CLEANUP_FREE char *path = NULL;
	geo_text name;

	path = mem_printf("%s/%s", folder, geo_format(geo, name));
	*strrchr(path, ' ') = '-';
	return TAKE_PTR(path);
}

static int write_ranges(const struct environment *w, const char *folder, struct json *ret,
			struct err *err)
{
	vec_each (&w->geos, geo) {
		CLEANUP_FREE char *path = geo_path(folder, &geo->geo);
		size_t len;
		CLEANUP_FREE char *text = print_ranges(geo, &len);
		struct json *one = json_object();
		geo_text name;
		sum_text sum;
		int code = file_replace(path, text, len, 0600, err);

		sum_of(text, len, sum);
		json_set(one, "name", json_string(geo_format(&geo->geo, name)));
		json_set(one, "sum", json_string(sum));
		json_append(ret, one);
		if (code)
			return code;
	}
	return 0;
}

static int write_index(const char *folder, const struct json *index, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/index", folder);
	CLEANUP_TEXT struct text text = {0};

	json_print(index, true, &text);
	return sum_write(path, text.at, text.len, err);
}

static int write_files(const struct environment *w, const char *folder, struct err *err)
{
	int code = file_mkdirs(folder, 0700, err);

	if (code)
		return code;
	for (size_t n = 0; n < w->files.n; n++) {
		const struct environment_file *file = &w->files.at[n];
		CLEANUP_FREE char *path = numbered(folder, n);

		if ((code = file_replace(path, file->text, file->len, 0600, err)))
			return code;
	}
	return 0;
}

int environment_save(const struct environment *w, const char *folder, struct json *meta,
		     struct err *err)
{
	CLEANUP_JSON struct json *index = meta;
	CLEANUP_JSON struct json *ranges = json_array();
	int code = write_files(w, folder, err);

	if (code)
		return code;
	if ((code = write_ranges(w, folder, ranges, err)))
		return code;
	if (w->geos.n)
		json_set(index, "ranges", TAKE_PTR(ranges));
	json_set(index, "files", describe_files(w));
	json_set(index, "sums", describe_sums(w));
	json_set(index, "names", describe_names(w));
	return write_index(folder, index, err);
}

int environment_save_names(const struct environment *w, const char *folder, uint64_t number,
			   struct err *err)
{
	CLEANUP_JSON struct json *index = NULL;
	int code = environment_load_index(folder, &index, err);

	if (code)
		return code;
	json_set(index, "names", describe_names(w));
	json_set(index, "answers", json_u64(number));
	return write_index(folder, index, err);
}

static bool is_as_written(const struct environment_file *file)
{
	sum_text sum;

	sum_of(file->text, file->len, sum);
	return !file->sum[0] || !strcmp(sum, file->sum);
}

// File n of the record.
static int read_text(const char *folder, size_t n, struct environment_file *file, struct err *err)
{
	CLEANUP_FREE char *path = numbered(folder, n);
	int code = file_read(path, FILE_BYTES_MAX, &file->text, &file->len, err);

	if (code || is_as_written(file))
		return code;
	return err_stated(err, EBADMSG, "'%s' is damaged: checksum mismatch", path);
}

// late: their texts are read when they are asked for.
static int read_files(struct environment *w, const char *folder, const struct json *index,
		      bool late, struct err *err)
{
	const struct json *paths = json_get(index, "files"), *sums = json_get(index, "sums");

	for (size_t n = 0; n < json_length(paths); n++) {
		const char *name = json_text(json_at(paths, n)), *sum = json_text(json_at(sums, n));
		struct environment_file file = {.path = mem_strdup(name ? name : "")};
		int code;

		snprintf(file.sum, sizeof(file.sum), "%s", sum ? sum : "");
		vec_push(&w->files, file);
		if (!late && (code = read_text(folder, n, vec_last(&w->files), err)))
			return code;
	}
	return 0;
}

int environment_read_late(const struct environment *w, struct environment_file *file,
			  struct err *err)
{
	return read_text(w->folder, (size_t)(file - w->files.at), file, err);
}

static void read_leaving(struct environment_name *name, const struct json *rows)
{
	for (size_t n = 0; n < json_length(rows); n++) {
		const char *addr = json_get_string(json_at(rows, n), "address");
		struct environment_leaving one = {
			.until_s = json_get_u64(json_at(rows, n), "until_s")};

		if (addr && !addr_parse(addr, strlen(addr), &one.addr, NULL))
			vec_push(&name->leaving, one);
	}
}

static enum policy_use read_use(const char *word)
{
	for (size_t use = 0; word && use < ARRAY_SIZE(uses); use++)
		if (!strcmp(word, uses[use]))
			return (enum policy_use)use;
	return POLICY_WHOLE;
}

static struct environment_addrs read_addrs(const struct json *rows)
{
	struct environment_addrs addrs = {0};

	for (size_t n = 0; n < json_length(rows); n++) {
		const char *text = json_text(json_at(rows, n));
		struct addr a;

		if (text && !addr_parse(text, strlen(text), &a, NULL))
			vec_push(&addrs, a);
	}
	return addrs;
}

static void read_name(struct environment *w, const struct json *one)
{
	struct environment_addrs addrs = read_addrs(json_get(one, "addresses"));
	struct environment_name name = {.name = json_get_copy(one, "name")};

	name.ttl_s = (uint32_t)json_get_u64(one, "ttl_s");
	name.answered_s = json_get_u64(one, "answered_s");
	name.addrs = addrs.at;
	name.n = addrs.n;
	name.use = read_use(json_get_string(one, "use"));
	name.left_out = read_addrs(json_get(one, "left_out"));
	name.refused_s = json_get_u64(one, "refused_s");
	read_leaving(&name, json_get(one, "leaving"));
	vec_push(&w->names, name);
}

static void read_names(struct environment *w, const struct json *index)
{
	const struct json *names = json_get(index, "names");

	for (size_t n = 0; n < json_length(names); n++)
		read_name(w, json_at(names, n));
}

static void parse_ranges(const char *text, size_t len, struct environment_geo *ret)
{
	VEC(struct prefix) prefixes = {0};

	for (struct lines in = lines_of(text, len); lines_next(&in);) {
		struct word line = lines_word(&in);
		struct prefix p;

		if (!prefix_parse_quiet(line.at, line.len, &p, NULL))
			vec_push(&prefixes, p);
	}
	ret->prefixes = prefixes.at;
	ret->n = prefixes.n;
}

static int read_ranges(struct environment *w, const char *folder, const struct json *one,
		       struct err *err)
{
	const char *name = json_get_string(one, "name"), *wanted = json_get_string(one, "sum");
	CLEANUP_FREE char *path = NULL;
	CLEANUP_FREE char *text = NULL;
	struct environment_geo geo = {0};
	sum_text sum;
	size_t len;
	int code;

	if (!name || !geo_parse_name(name, &geo.geo))
		return err_stated(err, EBADMSG, "'%s/index' is damaged: ranges without a name",
				  folder);
	path = geo_path(folder, &geo.geo);
	if ((code = file_read(path, FILE_BYTES_MAX, &text, &len, err)))
		return code;
	sum_of(text, len, sum);
	if (!wanted || strcmp(sum, wanted) != 0)
		return err_stated(err, EBADMSG, "'%s' is damaged: checksum mismatch", path);
	parse_ranges(text, len, &geo);
	vec_push(&w->geos, geo);
	return 0;
}

int environment_load_index(const char *folder, struct json **ret, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/index", folder);

	return state_read_document(path, ret, err);
}

// The answers: names and ranges.
static int read_answers(struct environment *w, const char *folder, const struct json *index,
			struct err *err)
{
	const struct json *ranges = json_get(index, "ranges");

	read_names(w, index);
	for (size_t n = 0; n < json_length(ranges); n++) {
		int code = read_ranges(w, folder, json_at(ranges, n), err);

		if (code)
			return code;
	}
	return 0;
}

int environment_load(struct environment *w, const char *folder, struct json **ret_meta,
		     struct err *err)
{
	CLEANUP_JSON struct json *index = NULL;
	int code = environment_load_index(folder, &index, err);

	if (code || (code = read_files(w, folder, index, false, err)) ||
	    (code = read_answers(w, folder, index, err)))
		return code;
	*ret_meta = TAKE_PTR(index);
	return 0;
}

int environment_load_known(struct environment *w, const char *folder, bool whole,
			   struct json **ret_meta, struct err *err)
{
	CLEANUP_JSON struct json *index = NULL;
	int code;

	if (!(w->known = known_read(folder, whole)))
		return environment_load(w, folder, ret_meta, err);
	w->env.known = known_policy(w->known);
	w->folder = mem_strdup(folder);
	if ((code = environment_load_index(folder, &index, err)) ||
	    (code = read_files(w, folder, index, true, err)) ||
	    (code = read_answers(w, folder, index, err)))
		return code;
	*ret_meta = TAKE_PTR(index);
	return 0;
}

int environment_load_names(struct environment *w, const char *folder, struct json **ret_meta,
			   struct err *err)
{
	int code = environment_load_index(folder, ret_meta, err);

	if (code)
		return code;
	read_names(w, *ret_meta);
	return 0;
}
