// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the records of the backends' health.
#include "ctl/control/health_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

uint64_t health_now_ms(void)
{
	return time_ms(CLOCK_BOOTTIME);
}

#define DAY_MS (24ull * 3600 * 1000)

void health_changed(struct health_counts *c, uint64_t now_ms)
{
	memmove(c->changed_ms + 1, c->changed_ms, sizeof(c->changed_ms) - sizeof(c->changed_ms[0]));
	c->changed_ms[0] = now_ms;
}

unsigned health_changes(const struct health_counts *c, uint64_t now_ms)
{
	unsigned n = 0;

	while (n < HEALTH_CHANGES && c->changed_ms[n] && now_ms - c->changed_ms[n] < DAY_MS)
		n++;
	return n;
}

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/health", WEIR_RUN_FOLDER, instance);
}

static uint64_t at_most(uint64_t ms, uint64_t now_ms)
{
	return ms <= now_ms ? ms : now_ms;
}

// A time of the future is of another boot.
static uint64_t past(const struct json *from, const char *key, uint64_t now_ms)
{
	uint64_t ms = json_get_u64(from, key);

	return at_most(ms, now_ms);
}

struct health_reading {
	struct health_records *to;
	uint64_t now_ms;
};

static int read_row(void *ctx, const struct json *from)
{
	struct health_reading *r = ctx;
	const char *why = json_get_string(from, "why");
	uint64_t state = json_get_u64(from, "state");
	const struct json *changed = json_get(from, "changed_ms");
	struct health_record record = {
		.health = {.state = (uint8_t)state,
			   .known = json_is_yes(json_get(from, "known")),
			   .cut = json_is_yes(json_get(from, "cut")),
			   .fresh = json_is_yes(json_get(from, "fresh")),
			   .since_ms = past(from, "since_ms", r->now_ms),
			   .failed_ms = past(from, "failed_ms", r->now_ms),
			   .ramp_ms = past(from, "ramp_ms", r->now_ms)},
		.counts = {.checks = json_get_u64(from, "checks"),
			   .failed = json_get_u64(from, "checks_failed"),
			   .last_ms = past(from, "last_ms", r->now_ms),
			   .took_us = json_get_u64(from, "took_us"),
			   .good = json_is_yes(json_get(from, "good"))},
	};

	if (state > BACKEND_FAILING || state == BACKEND_DRAIN ||
	    state_get_backend(from, record.service, &record.addr, &record.port))
		return -EBADMSG;
	for (size_t n = 0; n < HEALTH_CHANGES && n < json_length(changed); n++)
		record.counts.changed_ms[n] = at_most(json_number(json_at(changed, n)), r->now_ms);
	snprintf(record.why, sizeof(record.why), "%s", why ? why : "");
	vec_push(r->to, record);
	return 0;
}

// A document with a list of the same rows.
static int read_old(void *ctx, const char *text, size_t len)
{
	CLEANUP_JSON struct json *j = json_parse(text, len, NULL, 0);

	return state_each(json_get(j, "backends"), read_row, ctx);
}

static const struct state_kind health_kind = {.name = "health", .row = read_row, .old = read_old};

int health_file_read(const char *instance, struct health_records *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	struct health_reading r = {ret, health_now_ms()};
	int code = state_read(path, &health_kind, &r, err);

	if (code)
		vec_free(ret);
	return code;
}

int health_file_write(const char *instance, const struct health_records *records, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP(json_writer_free) struct json_writer file = {0};

	vec_each (records, r) {
		state_add(&file, &health_kind);
		state_add_backend(&file, r->service, &r->addr, r->port);
		json_write_u64(&file, "state", r->health.state);
		json_write_bool(&file, "known", r->health.known);
		json_write_bool(&file, "cut", r->health.cut);
		json_write_bool(&file, "fresh", r->health.fresh);
		json_write_u64(&file, "since_ms", r->health.since_ms);
		json_write_u64(&file, "failed_ms", r->health.failed_ms);
		json_write_u64(&file, "ramp_ms", r->health.ramp_ms);
		json_write_string(&file, "why", r->why);
		json_write_u64(&file, "checks", r->counts.checks);
		json_write_u64(&file, "checks_failed", r->counts.failed);
		json_write_u64(&file, "last_ms", r->counts.last_ms);
		json_write_u64(&file, "took_us", r->counts.took_us);
		json_write_bool(&file, "good", r->counts.good);
		json_write_array(&file, "changed_ms");
		for (size_t n = 0; n < HEALTH_CHANGES && r->counts.changed_ms[n]; n++)
			json_write_u64(&file, NULL, r->counts.changed_ms[n]);
		json_write_end(&file);
		json_write_end(&file);
	}
	return state_write(path, &file, err);
}

static bool is_of(const struct health_record *r, const char *service, const struct addr *addr,
		  uint16_t port)
{
	return r->port == port && !addr_compare(&r->addr, addr) && !strcmp(r->service, service);
}

const struct health_record *health_file_find(const struct health_records *records, size_t guess,
					     const char *service, const struct addr *addr,
					     uint16_t port)
{
	if (guess < records->n && is_of(&records->at[guess], service, addr, port))
		return &records->at[guess];
	vec_each (records, r)
		if (is_of(r, service, addr, port))
			return r;
	return NULL;
}
