// SPDX-License-Identifier: GPL-2.0-only
// Compares a failure with the previous one.
#include "ctl/agent/trouble.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

#define DOUBLINGS_MAX 16

bool trouble_begin(struct trouble *t, const char *why)
{
	t->times++;
	if (t->why && !strcmp(t->why, why))
		return false;
	free(t->why);
	t->why = mem_strdup(why);
	return true;
}

static bool differ_in_numbers_only(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	a += strspn(a, digits);
	b += strspn(b, digits);
	while (*a && *a == *b) {
		a += 1 + strspn(a + 1, digits);
		b += 1 + strspn(b + 1, digits);
	}
	return !*a && !*b;
}

bool trouble_begin_like(struct trouble *t, const char *why)
{
	bool like = t->why && differ_in_numbers_only(t->why, why);

	return trouble_begin(t, why) && !like;
}

bool trouble_end(struct trouble *t)
{
	bool was = t->why;

	free(t->why);
	*t = (struct trouble){0};
	return was;
}

void trouble_report(const struct trouble *t, const char *what, struct json *problems)
{
	CLEANUP_FREE char *text = NULL;

	if (!t->why)
		return;
	text = what ? mem_printf("%s: %s", what, t->why) : mem_strdup(t->why);
	json_append(problems, json_string(text));
}

uint64_t trouble_pause_ms(unsigned times, uint64_t first, uint64_t most)
{
	unsigned doublings = times ? times - 1 : 0;
	uint64_t ms = first << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);

	return ms < most ? ms : most;
}

// ---- of many objects ----------------------------------------------------------------------------

static struct trouble_of *find(const struct troubles *t, const char *name)
{
	vec_each (&t->all, one)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

void troubles_begin(struct troubles *t)
{
	vec_each (&t->all, one)
		one->lasts = false;
}

bool troubles_note(struct troubles *t, const char *name, const char *why)
{
	struct trouble_of *one = find(t, name);

	if (!one) {
		one = vec_add(&t->all);
		*one = (struct trouble_of){.name = mem_strdup(name)};
	}
	one->lasts = true;
	return trouble_begin(&one->trouble, why);
}

static void free_one(struct trouble_of *one)
{
	free(one->name);
	trouble_end(&one->trouble);
}

void troubles_end(struct troubles *t, void (*over)(void *ctx, const char *name, const char *why),
		  void *ctx)
{
	size_t kept = 0;

	vec_each (&t->all, one) {
		if (one->lasts) {
			t->all.at[kept++] = *one;
			continue;
		}
		if (over)
			over(ctx, one->name, one->trouble.why);
		free_one(one);
	}
	t->all.n = kept;
}

const char *troubles_why(const struct troubles *t, const char *name)
{
	const struct trouble_of *one = find(t, name);

	return one ? one->trouble.why : NULL;
}

void troubles_free(struct troubles *t)
{
	vec_each (&t->all, one)
		free_one(one);
	vec_free(&t->all);
}
