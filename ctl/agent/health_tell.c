// SPDX-License-Identifier: GPL-2.0-only
// Changes in the health of backends and services, for the log and for hooks.
#include "ctl/agent/health_tell.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/hooks.h"
#include "ctl/agent/record.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"

static const char *name_of(const struct health_target *t, addr_text buf)
{
	return t->backend->addr.family ? addr_format(&t->backend->addr, buf) : "here";
}

// ---- backends -----------------------------------------------------------------------------------

void health_note_told(struct health_target *t)
{
	t->told = t->backend->health.state;
	t->told_ring = t->backend->ring;
}

// kept: its checks fail, but it still gets new flows; failing: they fail, and an operator has
// drained it.
static const char *word_of(uint8_t state, uint8_t ring)
{
	if (state == BACKEND_UP)
		return "up";
	return ring == BACKEND_DOWN ? "down" : ring == BACKEND_UP ? "kept" : "failing";
}

static void log_change(const struct health_target *t, const char *name)
{
	const char *service = t->service->name;
	uint8_t ring = t->backend->ring;

	if (t->backend->health.state == BACKEND_UP)
		log_notice("service '%s': %s is up%s", service, name,
			   t->backend->health.failed_ms ? " again" : "");
	else if (ring == BACKEND_DOWN)
		log_warning("service '%s': %s is down", service, name);
	else
		log_warning("service '%s': %s fails its checks%s: %s", service, name,
			    ring == BACKEND_UP ? ", kept" : "", t->why);
}

static void record_backend(struct agent *a, const struct health_target *t, const char *object)
{
	uint8_t state = t->backend->health.state;
	CLEANUP_FREE char *what =
		mem_printf("backend %s: %s", object, word_of(state, t->backend->ring));

	record_change(a, &(struct record_change){.part = "health",
						 .verb = "backend",
						 .what = what,
						 .why = state == BACKEND_UP ? NULL : t->why});
}

static void tell_change(struct agent *a, struct health_target *t)
{
	uint8_t state = t->backend->health.state, ring = t->backend->ring;
	CLEANUP_FREE char *object = NULL;
	addr_text name;

	if (state == BACKEND_UP ? t->told == BACKEND_UP
				: t->told != BACKEND_UP && ring == t->told_ring)
		return;
	object = mem_printf("%s %s", t->service->name, name_of(t, name));
	log_change(t, name_of(t, name));
	record_backend(a, t, object);
	hooks_tell(a, &(struct hook_event){.event = "backend",
					   .object = object,
					   .from = word_of(t->told, t->told_ring),
					   .to = word_of(state, ring),
					   .why = state == BACKEND_UP ? NULL : t->why});
	health_note_told(t);
}

// ---- services -----------------------------------------------------------------------------------

void health_without_free(struct health_without *w)
{
	vec_each (&w->names, name)
		free(*name);
	vec_free(&w->names);
}

// By service: is there nothing to check, or a backend that passes its checks?
static bool *find_healthy(const struct health_targets *targets)
{
	bool *healthy = mem_zalloc(targets->n_services, sizeof(*healthy));
	CLEANUP_FREE bool *checked = mem_zalloc(targets->n_services, sizeof(*checked));

	for (size_t i = 0; i < targets->n; i++) {
		const struct health_target *t = &targets->at[i];
		size_t n = (size_t)(t->service - targets->services);

		checked[n] |= t->n_probes != 0;
		healthy[n] |= !t->n_probes || t->backend->health.state == BACKEND_UP;
	}
	for (size_t n = 0; n < targets->n_services; n++)
		healthy[n] |= !checked[n];
	return healthy;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_in(const struct health_without *w, const char *service)
{
	return w->names.n &&
	       bsearch(&service, w->names.at, w->names.n, sizeof(*w->names.at), compare);
}

static void tell_service(struct agent *a, const struct health_service *s, bool healthy)
{
	hooks_tell(a, &(struct hook_event){.event = "service",
					   .object = s->name,
					   .from = healthy ? "down" : "up",
					   .to = healthy ? "up" : "down",
					   .why = healthy ? "a backend passes its checks again"
							  : "no backend passes its checks"});
}

static void tell_services(struct agent *a, const struct health_targets *targets,
			  struct health_without *w)
{
	CLEANUP_FREE bool *healthy = find_healthy(targets);
	struct health_without now = {0};

	for (size_t n = 0; n < targets->n_services; n++) {
		const struct health_service *s = &targets->services[n];

		if (!healthy[n])
			vec_push(&now.names, mem_strdup(s->name));
		if (healthy[n] == is_in(w, s->name))
			tell_service(a, s, healthy[n]);
	}
	if (now.names.n)
		qsort(now.names.at, now.names.n, sizeof(*now.names.at), compare);
	health_without_free(w);
	*w = now;
}

void health_tell(struct agent *a, struct health_targets *targets, struct health_without *w)
{
	for (size_t i = 0; i < targets->n; i++)
		tell_change(a, &targets->at[i]);
	tell_services(a, targets, w);
}
