// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the records of the backends' health.
#include "ctl/control/health_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/datapath/bpffs.h"

#define RECORDS_MAX (16u << 20)

uint64_t health_now_ms(void)
{
	return time_ms(CLOCK_BOOTTIME);
}

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/health", WEIR_RUN_FOLDER, instance);
}

// A time of the future is of another boot.
static uint64_t past(const struct json *from, const char *key, uint64_t now_ms)
{
	uint64_t ms = json_get_u64(from, key);

	return ms <= now_ms ? ms : now_ms;
}

static int read_record(const struct json *from, uint64_t now_ms, struct health_record *ret)
{
	const char *service = json_get_string(from, "service");
	const char *address = json_get_string(from, "address");
	const char *why = json_get_string(from, "why");
	uint64_t state = json_get_u64(from, "state");

	if (!service || !address || strlen(service) >= sizeof(ret->service) ||
	    state > BACKEND_FAILING || state == BACKEND_DRAIN)
		return -EBADMSG;
	*ret = (struct health_record){
		.port = (uint16_t)json_get_u64(from, "port"),
		.health = {.state = (uint8_t)state,
			   .known = json_is_yes(json_get(from, "known")),
			   .cut = json_is_yes(json_get(from, "cut")),
			   .fresh = json_is_yes(json_get(from, "fresh")),
			   .since_ms = past(from, "since_ms", now_ms),
			   .failed_ms = past(from, "failed_ms", now_ms),
			   .ramp_ms = past(from, "ramp_ms", now_ms)},
		.counts = {.checks = json_get_u64(from, "checks"),
			   .failed = json_get_u64(from, "checks_failed")},
	};
	snprintf(ret->service, sizeof(ret->service), "%s", service);
	snprintf(ret->why, sizeof(ret->why), "%s", why ? why : "");
	if (!strcmp(address, "here"))
		return 0;
	return addr_parse(address, strlen(address), &ret->addr, NULL) ? -EBADMSG : 0;
}

int health_file_read(const char *instance, struct health_records *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON struct json *j = NULL;
	CLEANUP_VEC struct health_records records = {0};
	struct err why = {0};
	uint64_t now_ms = health_now_ms();
	size_t len;
	int code = file_read(path, RECORDS_MAX, &text, &len, &why);

	if (code == -ENOENT)
		return 0;
	if (code) {
		*err = why;
		return code;
	}
	j = json_parse(text, len, NULL, 0);
	for (size_t i = 0; j && i < json_length(json_get(j, "backends")); i++) {
		struct health_record record;

		if (read_record(json_at(json_get(j, "backends"), i), now_ms, &record))
			return err_stated(err, EBADMSG, "'%s' is damaged", path);
		vec_push(&records, record);
	}
	if (!j)
		return err_stated(err, EBADMSG, "'%s' is damaged", path);
	*ret = records;
	records = (struct health_records){0};
	return 0;
}

static void write_record(struct json_writer *w, const struct health_record *r)
{
	addr_text address = "here";

	if (r->addr.family)
		addr_format(&r->addr, address);
	json_write_object(w, NULL);
	json_write_string(w, "service", r->service);
	json_write_string(w, "address", address);
	json_write_u64(w, "port", r->port);
	json_write_u64(w, "state", r->health.state);
	json_write_bool(w, "known", r->health.known);
	json_write_bool(w, "cut", r->health.cut);
	json_write_bool(w, "fresh", r->health.fresh);
	json_write_u64(w, "since_ms", r->health.since_ms);
	json_write_u64(w, "failed_ms", r->health.failed_ms);
	json_write_u64(w, "ramp_ms", r->health.ramp_ms);
	json_write_string(w, "why", r->why);
	json_write_u64(w, "checks", r->counts.checks);
	json_write_u64(w, "checks_failed", r->counts.failed);
	json_write_end(w);
}

int health_file_write(const char *instance, const struct health_records *records, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP(json_writer_free) struct json_writer w = {0};

	json_write_object(&w, NULL);
	json_write_array(&w, "backends");
	vec_each (records, r)
		write_record(&w, r);
	json_write_end(&w);
	json_write_end(&w);
	return file_replace(path, w.text.at, w.text.len, 0600, err);
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
