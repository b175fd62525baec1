// SPDX-License-Identifier: GPL-2.0-only
// Policies with services for the tests of the balancer, and their plans.
#pragma once

#include "tests/unit/table/made.h"

#include <errno.h>

#include "ctl/table/lb_state.h"

#define SERVED_NOW  (1ull << 40 | 12345)
#define SERVED_WALL 1000000u
#define SERVED_HZ   250
#define SERVED_SIZE 4093

static inline void served_count(void *warnings, enum diag_level level, const char *file,
				unsigned line, unsigned column, const char *message,
				const char *hint)
{
	*(size_t *)warnings += level == DIAG_WARNING;
}

static inline size_t served_warnings(const struct made *m)
{
	size_t n = 0;

	diag_each(m->diag, served_count, &n);
	return n;
}

// Room for n services.
static inline void served_init(struct made *m, size_t n)
{
	made_init(m, 0, 0);
	m->r.services = made_alloc(m, n, sizeof(*m->r.services));
}

// 10.0.0.1, 10.0.0.2, …; every fourth is 2001:db8::N instead, as in docs/ring.md.
static inline struct addr served_addr(uint32_t i)
{
	static const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
	struct addr a = {4, {10}};

	if (i % 4 == 3) {
		a.family = 6;
		memcpy(a.bytes, net6, sizeof(net6));
	}
	a.bytes[a.family == 6 ? 14 : 2] = (uint8_t)((i + 1) >> 8);
	a.bytes[a.family == 6 ? 15 : 3] = (uint8_t)(i + 1);
	return a;
}

// Backend i has that address, and weight 1.
static inline void served_backend(const struct resolved_service *s, size_t at, uint32_t i)
{
	struct resolved_backend *b = (struct resolved_backend *)&s->backends[at];

	*b = (struct resolved_backend){.addr = served_addr(i), .weight = 1};
}

// tcp, dr, a small ring, checked; backends 0 … n - 1.
static inline struct resolved_service *served_add(struct made *m, const char *name, size_t n)
{
	struct resolved_service *s = &m->r.services[m->r.n_services++];

	*s = (struct resolved_service){
		.name = name,
		.at = made_at(m, m->r.n_services),
		.proto = {.given = true, .bits = {1 << 6}},
		.mode = SERVICE_DR,
		.idle_tcp_ms = 900000,
		.idle_udp_ms = 60000,
		.ring = SERVED_SIZE,
		.pins = 1024,
		.pins_given = true,
		.check = {.kind = CHECK_TCP},
		.backends = made_alloc(m, n, sizeof(*s->backends)),
		.n_backends = n,
	};
	for (uint32_t i = 0; i < n; i++)
		served_backend(s, i, i);
	return s;
}

static inline struct resolved_backend *served_at(const struct resolved_service *s, size_t i)
{
	return (struct resolved_backend *)&s->backends[i];
}

// A policy of one service with these backends.
static inline struct resolved_service *served_one(struct made *m, const uint32_t *backends,
						  size_t n)
{
	struct resolved_service *s;

	served_init(m, 1);
	s = served_add(m, "web", n);
	for (size_t i = 0; i < n; i++)
		served_backend(s, i, backends[i]);
	return s;
}
#define SERVED_ONE(m, ...)                             \
	served_one(m, (const uint32_t[]){__VA_ARGS__}, \
		   ARRAY_SIZE(((const uint32_t[]){__VA_ARGS__})))

static inline struct lb_plan_options served_options(const struct lb_state *running)
{
	return (struct lb_plan_options){
		.running = running,
		.key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}}, // as in docs/ring.md
		.now = SERVED_NOW,
		.wall_s = SERVED_WALL,
		.hz = SERVED_HZ,
	};
}

static inline struct lb_state *served_plan_with(struct made *m, const struct lb_plan_options *o)
{
	struct lb_state *b = NULL;
	int r = lb_plan(&m->r, o, m->diag, &b);

	if (r)
		diag_print(m->diag, stdout, false);
	assert_int_equal(r, 0);
	return b;
}

static inline struct lb_state *served_plan(struct made *m, const struct lb_state *running)
{
	struct lb_plan_options o = served_options(running);

	return served_plan_with(m, &o);
}

// The member that is backend i; NULL: not a member.
static inline struct lb_member *served_find(const struct lb_state *b, size_t service, uint32_t i)
{
	struct addr addr = served_addr(i);

	return lb_state_find_member(b, &b->services[service], &addr, 0);
}

static inline uint32_t served_id(const struct lb_state *b, uint32_t i)
{
	struct lb_member *m = served_find(b, 0, i);

	return m ? m->id : BACKEND_NONE;
}

static inline uint32_t served_owned_by(const struct lb_state *b, size_t service, uint32_t id)
{
	CLEANUP_FREE uint32_t *owned = mem_zalloc(SERVICE_BACKENDS, sizeof(*owned));

	owned[id] = 1; // is written, not added to
	lb_service_owned(b, &b->services[service], owned);
	return owned[id];
}

static inline uint32_t served_owned(const struct lb_state *b, size_t service, uint32_t i)
{
	return served_owned_by(b, service, served_find(b, service, i)->id);
}

// Makes all slots as after a walk that found no pin.
static inline void served_settle(struct lb_state *b)
{
	for (size_t i = 0; i < b->n_slots; i++)
		b->slots[i] = slot_pack(slot_owner(b->slots[i]), BACKEND_NONE, 0);
}

// ---- messages -----------------------------------------------------------------------------------

struct served_said {
	enum diag_level level;
	unsigned line;
	const char *message, *hint;
	bool found;
};

static inline void served_hear(void *ctx, enum diag_level level, const char *file, unsigned line,
			       unsigned column, const char *message, const char *hint)
{
	struct served_said *s = ctx;

	s->found |= level == s->level && line == s->line && !strcmp(message, s->message) &&
		    !strcmp(hint ? hint : "", s->hint);
}

static inline bool served_says(const struct made *m, enum diag_level level, unsigned line,
			       const char *message, const char *hint)
{
	struct served_said said = {level, line, message, hint, false};

	diag_each(m->diag, served_hear, &said);
	return said.found;
}
