// SPDX-License-Identifier: GPL-2.0-only
// Reads the prefixes of countries and autonomous systems that a user has named.
#include <errno.h>
#include <string.h>

#include "ctl/control/entries/targets.h"

struct geos {
	struct geo *at;
	size_t n, cap;
};

static void add_geo(struct geos *to, const struct geo *geo)
{
	vec_each (to, other)
		if (geo_equal(other, geo))
			return;
	*vec_add(to) = *geo;
}

static void collect(const struct targets *t, struct geos *ret)
{
	struct geo geo;

	vec_each (&t->items.items, item)
		if (item->name && geo_parse_name(item->name, &geo))
			add_geo(ret, &geo);
}

static void copy_ranges(struct targets *t, const struct geos *all, const struct geo_ranges *found)
{
	struct geos own = {0};

	collect(t, &own);
	t->geos = own.at;
	t->geos_n = own.n;
	t->ranges = mem_zalloc(own.n, sizeof(*t->ranges));
	for (size_t i = 0; i < own.n; i++)
		for (size_t k = 0; k < all->n; k++) {
			if (!geo_equal(&own.at[i], &all->at[k]))
				continue;
			t->ranges[i].source = mem_strdup(found[k].source);
			vec_each (&found[k].prefixes, prefix)
				vec_push(&t->ranges[i].prefixes, *prefix);
		}
}

int targets_find_ranges(struct targets *const *list, size_t n, struct err *err)
{
	CLEANUP_VEC struct geos all = {0};
	CLEANUP_FREE struct geo_ranges *found = NULL;
	int code;

	for (size_t i = 0; i < n; i++)
		collect(list[i], &all);
	if (!all.n)
		return 0;
	found = mem_zalloc(all.n, sizeof(*found));
	if ((code = geo_find(all.at, all.n, found, err)))
		return code;
	for (size_t i = 0; i < n; i++)
		copy_ranges(list[i], &all, found);
	geo_ranges_free(found, all.n);
	return 0;
}

int targets_check_ranges(const struct targets *t, struct err *err)
{
	geo_text name;

	for (size_t i = 0; i < t->geos_n; i++)
		if (!t->ranges[i].prefixes.n)
			return err_input(err, "no prefix of %s in '%s'",
					 geo_format(&t->geos[i], name), t->ranges[i].source);
	return 0;
}

const struct geo_ranges *targets_ranges(const struct targets *t, const char *name)
{
	struct geo geo;

	if (!geo_is_name(name) || !geo_parse_name(name, &geo))
		return NULL;
	for (size_t i = 0; i < t->geos_n; i++)
		if (geo_equal(&t->geos[i], &geo))
			return &t->ranges[i];
	return NULL;
}

void targets_free_ranges(struct targets *t)
{
	if (t->ranges)
		geo_ranges_free(t->ranges, t->geos_n);
	free(t->ranges);
	free(t->geos);
}
