// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the file of the overrides.
#include "ctl/control/overrides.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/drains", WEIR_STATE_FOLDER, instance);
}

static int read_row(void *ctx, const struct json *row)
{
	struct overrides *overrides = ctx;
	struct lb_override override = {
		.state = (uint8_t)json_get_u64(row, "state"),
		.weighed = json_get(row, "weight") != NULL,
		.weight = (uint32_t)json_get_u64(row, "weight"),
		.until_s = json_get_u64(row, "until_s"),
	};

	if (override.state > BACKEND_DOWN || json_get_u64(row, "weight") > POLICY_WEIGHT_MAX ||
	    state_get_backend(row, override.service, &override.addr, &override.port))
		return -EBADMSG;
	vec_push(overrides, override);
	return 0;
}

// A document with a list of the same rows.
static int read_old(void *ctx, const char *text, size_t len)
{
	CLEANUP_JSON struct json *j = json_parse(text, len, NULL, 0);

	return state_each(json_get(j, "drains"), read_row, ctx);
}

static const struct state_kind override_kind = {
	.name = "override", .row = read_row, .old = read_old};

int overrides_read(const char *instance, struct overrides *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	int code = state_read(path, &override_kind, ret, err);

	if (code)
		vec_free(ret);
	if (code == -EBADMSG)
		err_hint(err, "move it away to start without overrides");
	return code;
}

int overrides_write(const char *instance, const struct overrides *overrides, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP(json_writer_free) struct json_writer file = {0};

	vec_each (overrides, h) {
		state_add(&file, &override_kind);
		state_add_backend(&file, h->service, &h->addr, h->port);
		json_write_u64(&file, "state", h->state);
		if (h->weighed)
			json_write_u64(&file, "weight", h->weight);
		json_write_u64(&file, "until_s", h->until_s);
		json_write_end(&file);
	}
	return state_write(path, &file, err);
}

static bool is_of(const struct lb_override *h, const char *service, const struct addr *addr,
		  uint16_t port)
{
	return !strcmp(h->service, service) && h->port == port && h->addr.family == addr->family &&
	       !addr_compare(&h->addr, addr);
}

static struct lb_override override_of(const char *service, const struct lb_member *m)
{
	struct lb_override override = {
		.port = m->port,
		.state = m->override,
		.weighed = m->weighed,
		.weight = m->override_weight,
		.until_s = m->until_s,
	};

	snprintf(override.service, sizeof(override.service), "%s", service);
	lb_member_address(m, &override.addr);
	return override;
}

bool overrides_have(const struct overrides *overrides, const char *service,
		    const struct lb_member *m)
{
	struct lb_override override = override_of(service, m);

	vec_each (overrides, h)
		if (is_of(h, service, &override.addr, m->port))
			return h->state == override.state && h->weighed == override.weighed &&
			       (!h->weighed || h->weight == override.weight) &&
			       h->until_s == override.until_s;
	return false;
}

void overrides_put(struct overrides *overrides, const char *service, const struct lb_member *m)
{
	struct lb_override override = override_of(service, m);
	size_t kept = 0;

	for (size_t n = 0; n < overrides->n; n++)
		if (!is_of(&overrides->at[n], service, &override.addr, m->port))
			overrides->at[kept++] = overrides->at[n];
	overrides->n = kept;
	if (override.state != BACKEND_UP || override.weighed)
		vec_push(overrides, override);
}

static bool is_named(const struct lb_override *h, const struct lb_state *b)
{
	const struct lb_service *s = b ? lb_state_find(b, h->service) : NULL;
	const struct lb_member *m =
		s ? lb_state_find_member(b, s, h->addr.family ? &h->addr : NULL, h->port) : NULL;

	return m && !m->gone;
}

static void keep_named(struct overrides *overrides, const struct lb_state *b, uint64_t now_s)
{
	size_t kept = 0;

	for (size_t n = 0; n < overrides->n; n++) {
		const struct lb_override *h = &overrides->at[n];
		bool over = h->until_s && h->until_s <= now_s && !h->weighed;

		if (!over && is_named(h, b))
			overrides->at[kept++] = *h;
	}
	overrides->n = kept;
}

int overrides_forget_unnamed(const char *instance, const struct lb_state *b, struct err *err)
{
	CLEANUP_VEC struct overrides overrides = {0};
	int code = overrides_read(instance, &overrides, err);
	size_t before = overrides.n;

	if (code)
		return code;
	keep_named(&overrides, b, time_s(CLOCK_REALTIME));
	return overrides.n < before ? overrides_write(instance, &overrides, err) : 0;
}
