// SPDX-License-Identifier: GPL-2.0-only
// Reads the constants of the tables, and in lines of hosts the bits that lead elsewhere.
#include "tests/reference/classifier/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/tables.h"

#include "common/table4.h" // asks what tables.h defines
#include "common/table6.h"

static const char *const sides[] = {
	[SIDE_SOURCE] = "source",
	[SIDE_DESTINATION] = "destination",
	[SIDE_MEMBER] = "member",
};

static const char *const kinds4[] = {
	[T4_ALL] = "all",   [T4_ONE] = "one",   [T4_RANGES] = "ranges",
	[T4_LONG] = "long", [T4_WIDE] = "wide", [T4_BITS] = "bits",
};

static const char *const hosts4[] = {
	[HOSTS4_NONE] = NULL,
	[HOSTS4_ONE] = "one",
	[HOSTS4_ROWS] = "rows",
};

static const char *const kinds6[] = {
	[TABLE6_ONE] = "one",
	[TABLE6_NODES] = "nodes",
	[TABLE6_WIDE] = "wide",
};

static uint64_t number(const struct image *i, int constant)
{
	return i->tables.constant[constant].value;
}

static bool is_set(const struct image *i, int constant)
{
	return i->tables.constant[constant].set;
}

// Line n of a table of lines.
static const void *line(const struct image *i, int lines, uint64_t n)
{
	return i->tables.at + number(i, lines) + n * 64;
}

static uint64_t count_overflows(const struct image *i, int side)
{
	uint64_t found = 0, lines = number(i, SIDE_CONSTANT(side, H4_LINES_N));

	for (uint64_t n = 0; n < lines; n++) {
		const void *at = line(i, SIDE_CONSTANT(side, H4_LINES), n);
		uint32_t seed = number(i, SIDE_CONSTANT(side, H4_KIND)) == HOSTS4_ONE
					? ((const struct hosts4_one *)at)->seed
					: ((const struct hosts4_rows *)at)->seed;

		found += (seed & HOSTS4_OVERFLOW) != 0;
	}
	return found;
}

static uint64_t count_elsewhere(const struct image *i, int side)
{
	uint64_t found = 0, lines = number(i, SIDE_CONSTANT(side, H6_LINES_N));

	for (uint64_t n = 0; n < lines; n++) {
		const struct table6_line *at = line(i, SIDE_CONSTANT(side, H6_LINES), n);

		found += at->elsewhere != 0;
	}
	return found;
}

static void describe_side4(const struct image *i, int side, struct text *t)
{
	const char *name = sides[side], *hosts;

	if (!is_set(i, SIDE_CONSTANT(side, T4_KIND)))
		return;
	text_addf(t, " %s4=%s", name, kinds4[number(i, SIDE_CONSTANT(side, T4_KIND))]);
	if (number(i, SIDE_CONSTANT(side, T4_CELLS_N)))
		text_addf(t, " %s4-cells", name);
	if (!(hosts = hosts4[number(i, SIDE_CONSTANT(side, H4_KIND))]))
		return;
	text_addf(t, " %s4-hosts=%s", name, hosts);
	if (!number(i, SIDE_CONSTANT(side, H4_NONE)))
		text_addf(t, " %s4-table-always", name);
	if (count_overflows(i, side))
		text_addf(t, " %s4-overflow", name);
}

static void describe_side6(const struct image *i, int side, struct text *t)
{
	const char *name = sides[side];

	if (!is_set(i, SIDE_CONSTANT(side, T6_KIND)))
		return;
	text_addf(t, " %s6=%s", name, kinds6[number(i, SIDE_CONSTANT(side, T6_KIND))]);
	if (!number(i, SIDE_CONSTANT(side, H6_LINES_N)))
		return;
	text_addf(t, " %s6-hosts=lines", name);
	if (count_elsewhere(i, side))
		text_addf(t, " %s6-second", name);
}

void describe_tables(const struct image *i, struct text *t)
{
	t->len = 0;
	text_addf(t, "words=%llu cell=%llu",
		  (unsigned long long)number(i, MATRIX_CONSTANT(MATRIX_RULES, M_WORDS)),
		  (unsigned long long)number(i, MATRIX_CONSTANT(MATRIX_RULES, M_CELL)));
	for (int side = 0; side < TABLE_SIDES; side++) {
		describe_side4(i, side, t);
		describe_side6(i, side, t);
	}
}

static bool has(const char *described, const char *word)
{
	CLEANUP_FREE char *copy = mem_strndup(described, strlen(described));
	char *save = NULL;

	for (char *at = strtok_r(copy, " ", &save); at; at = strtok_r(NULL, " ", &save))
		if (!strcmp(at, word))
			return true;
	return false;
}

bool describe_has(const char *described, const char *words)
{
	CLEANUP_FREE char *copy = mem_strndup(words, strlen(words));
	char *save = NULL;
	bool all = true;

	for (char *word = strtok_r(copy, " \n", &save); word; word = strtok_r(NULL, " \n", &save))
		if (!has(described, word)) {
			printf("the tables are not %s\n", word);
			all = false;
		}
	return all;
}
