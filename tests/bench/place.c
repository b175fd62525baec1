// SPDX-License-Identifier: GPL-2.0-only
// Makes and removes instances, and runs commands on them.
#include "tests/bench/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"

#define WORDS_MAX 12
#define PATIENCE  60e9 // ns

struct place {
	struct place *next;
	const char *weir, *device;
	char *instance;
};

static struct place *places;
static pid_t owner;

// ---- commands -----------------------------------------------------------------------------------

typedef int run_fn(const char *const *argv, struct tool_cost *cost);

static int need(const char *const *argv, struct tool_cost *cost)
{
	tool_need(argv, cost);
	return 0;
}

static int run(const struct place *p, const char *const *words, struct tool_cost *cost,
	       run_fn *with)
{
	const char *argv[WORDS_MAX] = {p->weir, "-n", p->instance};
	size_t n = 3;

	while (*words && n < WORDS_MAX - 1)
		argv[n++] = *words++;
	return with(argv, cost);
}

int place_run(const struct place *p, const char *const *words, struct tool_cost *cost)
{
	return run(p, words, cost, tool_run);
}

int place_read(const struct place *p, const char *const *words, struct tool_cost *cost)
{
	return run(p, words, cost, tool_read);
}

void place_need(const struct place *p, const char *const *words, struct tool_cost *cost)
{
	run(p, words, cost, need);
}

// ---- instances ----------------------------------------------------------------------------------

static void remove_files(const struct place *p)
{
	static const char *const roots[] = {"/var/lib/weir", "/run/weir"};

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		CLEANUP_FREE char *path = mem_printf("%s/%s", roots[i], p->instance);

		tool_run(WORDS("rm", "-rf", "--", path), NULL);
	}
}

static void forget(const struct place *p)
{
	struct place **at = &places;

	while (*at && *at != p)
		at = &(*at)->next;
	if (*at)
		*at = p->next;
}

void place_free(struct place *p)
{
	place_run(p, WORDS("detach", "--force"), NULL);
	tool_run(WORDS("ip", "link", "del", p->device), NULL);
	remove_files(p);
	forget(p);
	free(p->instance);
	free(p);
}

static void free_all(void)
{
	while (getpid() == owner && places)
		place_free(places);
}

static void remember(struct place *p)
{
	if (!owner)
		atexit(free_all);
	owner = getpid();
	p->next = places;
	places = p;
}

struct place *place_new(const struct bench *b, const char *device, const char *room)
{
	struct place *p = mem_new(struct place);

	p->weir = b->weir;
	p->device = device;
	p->instance = mem_printf("bench-%d-%s", (int)getpid(), device);
	remember(p);
	tool_need(WORDS("ip", "link", "add", device, "type", "veth"), NULL);
	tool_need(WORDS("ip", "link", "set", device, "up"), NULL);
	if (room)
		place_need(p, WORDS("attach", device, "--max-entries", room), NULL);
	else
		place_need(p, WORDS("attach", device), NULL);
	return p;
}

// ---- costs --------------------------------------------------------------------------------------

bool costs_want(const struct costs *c)
{
	return c->rounds < (c->most ? c->most : PLACE_ROUNDS) && !c->refused[0] &&
	       c->all_ns < PATIENCE;
}

void costs_add(struct costs *c, int status, double ns, const struct tool_cost *cost)
{
	c->ns[c->rounds++] = ns;
	c->all_ns += cost->ns;
	c->peak_kb = cost->peak_kb > c->peak_kb ? cost->peak_kb : c->peak_kb;
	if (status && !c->refused[0])
		snprintf(c->refused, sizeof(c->refused), "%s",
			 cost->said[0]   ? cost->said
			 : status == 127 ? "program not found"
					 : "no message");
}

struct result costs_result(struct costs *c, const char *subject)
{
	return (struct result){
		.subject = subject,
		.skipped = c->refused[0] ? c->refused : NULL,
		.net = {measure_min(c->ns, c->rounds), measure_median(c->ns, c->rounds)},
		.peak_kb = c->peak_kb,
	};
}
