// SPDX-License-Identifier: GPL-2.0-only
// Finds the databases that have the wanted countries and autonomous systems.
#include "ctl/net/geo_db.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/mem.h"
#include "ctl/net/geo_tree.h"

static const char default_paths[] = "/var/lib/GeoIP,/usr/share/GeoIP";
static const char *used_paths; // of --geo

void geo_db_use(const char *paths)
{
	used_paths = paths;
}

const char *geo_db_used(void)
{
	return used_paths;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static char *pattern_of(const char *folder)
{
	return mem_printf("%s/*.mmdb", folder);
}

static void add_folder(struct geo_paths *paths, const char *folder)
{
	CLEANUP_FREE char *pattern = pattern_of(folder);
	glob_t found = {0};

	if (!glob(pattern, 0, NULL, &found))
		for (size_t i = 0; i < found.gl_pathc; i++)
			vec_push(&paths->paths, mem_strdup(found.gl_pathv[i]));
	globfree(&found);
}

void geo_paths_free(struct geo_paths *paths)
{
	vec_each (&paths->paths, path)
		free(*path);
	vec_free(&paths->paths);
}

// The next path of --geo; *at starts as NULL. NULL: no further path. The caller frees it.
static char *next_place(const char **at)
{
	const char *begin = *at ? *at : used_paths ? used_paths : default_paths, *end;

	if (!*begin)
		return NULL;
	end = strchrnul(begin, ',');
	*at = *end ? end + 1 : end;
	return mem_strndup(begin, (size_t)(end - begin));
}

// The files that geo_find opens. The caller frees them.
static int find_files(struct geo_paths *ret, struct err *err)
{
	const char *at = NULL;

	for (char *place; (place = next_place(&at)); free(place)) {
		if (is_folder(place))
			add_folder(ret, place);
		else if (used_paths)
			vec_push(&ret->paths, mem_strdup(place));
	}
	if (ret->paths.n)
		return 0;
	err_input(err, "no database of countries or autonomous systems in '%s'",
		  used_paths ? used_paths : default_paths);
	return err_hint(err,
			"install one, such as GeoLite2-Country.mmdb, or name it with --geo FILE");
}

// A default folder that does not exist yet still counts as a folder.
void geo_db_patterns(struct geo_paths *ret)
{
	const char *at = NULL;

	for (char *place; (place = next_place(&at)); free(place)) {
		if (!used_paths || is_folder(place))
			vec_push(&ret->paths, pattern_of(place));
		else
			vec_push(&ret->paths, mem_strdup(place));
	}
}

static const char *what(enum geo_kind kind)
{
	return kind == GEO_COUNTRY ? "countries" : "autonomous systems";
}

// Opens the first database that has values of this kind. A damaged one before it is the error where
// no other fits.
static int open_first(const struct geo_paths *paths, enum geo_kind kind, struct geo_tree *ret,
		      struct err *err)
{
	struct err first = {0}, other = {0};

	vec_each (&paths->paths, path) {
		CLEANUP(geo_tree_close) struct geo_tree tree = {0};
		struct err *why = first.kind ? &other : &first;
		bool fits = false;

		if (geo_tree_open(*path, &tree, why) || geo_tree_has(&tree, kind, &fits, why))
			continue;
		if (!fits)
			continue;
		*ret = tree;
		tree.path = NULL;
		return 0;
	}
	if (first.kind) {
		if (err)
			*err = first;
		return first.code ? -first.code : -EINVAL;
	}
	err_input(err, "'%s' %s no %s", paths->paths.at[0],
		  paths->paths.n > 1 ? "and the databases beside it have" : "has", what(kind));
	return err_hint(err, "name another database with --geo FILE");
}

static bool is_wanted(const struct geo *wanted, size_t n, enum geo_kind kind)
{
	for (size_t i = 0; i < n; i++)
		if (wanted[i].kind == kind)
			return true;
	return false;
}

static int find_kind(const struct geo_paths *paths, enum geo_kind kind, const struct geo *wanted,
		     size_t n, struct geo_ranges *ret, struct err *err)
{
	CLEANUP(geo_tree_close) struct geo_tree tree = {0};
	int code;

	if (!is_wanted(wanted, n, kind))
		return 0;
	if ((code = open_first(paths, kind, &tree, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		if (wanted[i].kind == kind)
			ret[i].source = mem_strdup(tree.path);
	return geo_tree_walk(&tree, kind, wanted, n, ret, err);
}

int geo_find(const struct geo *wanted, size_t n, struct geo_ranges *ret, struct err *err)
{
	CLEANUP(geo_paths_free) struct geo_paths paths = {0};
	int code = find_files(&paths, err);

	for (enum geo_kind kind = GEO_COUNTRY; kind <= GEO_ASN; kind++)
		code = code ? code : find_kind(&paths, kind, wanted, n, ret, err);
	if (code)
		geo_ranges_free(ret, n);
	return code;
}

struct geo_look {
	struct geo_tree tree;
	enum geo_kind kind;
};

int geo_look_open(enum geo_kind kind, struct geo_look **ret, struct err *err)
{
	CLEANUP(geo_paths_free) struct geo_paths paths = {0};
	struct geo_tree tree = {0};
	int code = find_files(&paths, err);

	if (code || (code = open_first(&paths, kind, &tree, err)))
		return code;
	*ret = mem_new(struct geo_look);
	**ret = (struct geo_look){.tree = tree, .kind = kind};
	(*ret)->tree.path = ""; // it belonged to `paths`
	return 0;
}

bool geo_look_find(const struct geo_look *look, const struct addr *a, struct geo *ret)
{
	return geo_tree_find(&look->tree, look->kind, a, ret);
}

void geo_look_close(struct geo_look *look)
{
	if (look)
		geo_tree_close(&look->tree);
	free(look);
}

void geo_ranges_free(struct geo_ranges *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		vec_free(&ranges[i].prefixes);
		free(TAKE_PTR(ranges[i].source));
	}
}
