// SPDX-License-Identifier: GPL-2.0-only
// Looks up what bounds name, and compares.
#include "tests/bench/goals.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

struct entry {
	char *row, *subject;
	struct figures net, share;
};

void measured_add(struct measured *m, const char *row, const struct result *result)
{
	m->entries = mem_realloc(m->entries, m->n + 1, sizeof(*m->entries));
	m->entries[m->n++] = (struct entry){.row = mem_strdup(row),
					    .subject = mem_strdup(result->subject),
					    .net = result->net,
					    .share = result->share};
}

void measured_free(struct measured *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->entries[i].row);
		free(m->entries[i].subject);
	}
	free(m->entries);
	*m = (struct measured){0};
}

static const struct entry *find(const struct measured *m, const char *row, size_t row_len,
				const char *subject)
{
	for (size_t i = 0; i < m->n; i++)
		if (strlen(m->entries[i].row) == row_len &&
		    !strncmp(m->entries[i].row, row, row_len) &&
		    !strcmp(m->entries[i].subject, subject))
			return &m->entries[i];
	return NULL;
}

static const struct entry *find_named(const struct measured *m, const char *row, const char *name)
{
	const struct entry *here = find(m, row, strlen(row), name);
	const char *slash = strchr(name, '/');

	if (here)
		return here;
	return slash ? find(m, name, (size_t)(slash - name), slash + 1)
		     : find(m, name, strlen(name), "weir");
}

static struct figures figures_of(const struct row_goal *goal, const struct entry *e)
{
	return goal->share ? e->share : e->net;
}

// The sum of the named rows; 1 without names. False: a row was not measured.
static bool sum(const struct measured *m, const struct row_goal *goal, const struct bound *b,
		struct figures *ret)
{
	struct figures total = {0};

	for (size_t i = 0; i < ARRAY_SIZE(b->of) && b->of[i]; i++) {
		const struct entry *e = find_named(m, goal->id, b->of[i]);
		struct figures f = e ? figures_of(goal, e) : (struct figures){0};

		if (!e)
			return false;
		total.min += f.min;
		total.median += f.median;
	}
	*ret = b->of[0] ? total : (struct figures){1, 1};
	return ret->min > 0 && ret->median > 0;
}

static bool keeps(const struct row_goal *goal, const struct bound *b, double ratio)
{
	return goal->share ? ratio >= b->factor : ratio <= b->factor;
}

struct judged judge(const struct measured *m, const struct row_goal *goal, const struct bound *b)
{
	const struct entry *own = find(m, goal->id, strlen(goal->id), "weir");
	struct figures limit, f;
	struct judged ret = {.reach = REACH_UNKNOWN};

	if (!own || !sum(m, goal, b, &limit))
		return ret;
	f = figures_of(goal, own);
	ret.ratio = (struct figures){f.min / limit.min, f.median / limit.median};
	if (keeps(goal, b, ret.ratio.min))
		ret.reach = keeps(goal, b, ret.ratio.median) ? REACH_YES : REACH_MINIMA;
	else
		ret.reach = keeps(goal, b, ret.ratio.median) ? REACH_MEDIANS : REACH_NO;
	return ret;
}

const char *goal_peer(const struct measured *m, const struct row_goal *goal)
{
	for (size_t b = 0; b < BOUNDS && goal->reach[b].factor > 0; b++)
		for (size_t i = 0; i < ARRAY_SIZE(goal->reach[b].of); i++) {
			const char *name = goal->reach[b].of[i];

			if (name && find(m, goal->id, strlen(goal->id), name))
				return name;
		}
	return NULL;
}

char *bound_text(const struct row_goal *goal, const struct bound *b)
{
	const char *sign = goal->share ? ">=" : "<=";

	if (!b->of[0])
		return mem_printf("%s %g ms", sign, b->factor / 1e6);
	if (!b->of[1])
		return mem_printf("%s %g %s", sign, b->factor, b->of[0]);
	if (b->factor == 1)
		return mem_printf("%s %s + %s", sign, b->of[0], b->of[1]);
	return mem_printf("%s %g (%s + %s)", sign, b->factor, b->of[0], b->of[1]);
}
