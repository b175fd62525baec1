// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the file of the overrides.
#include "ctl/control/overrides.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/limits-policy.h"
#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/base/time.h"
#include "ctl/datapath/bpffs.h"

#define DRAINS_MAX (16u << 20)

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/drains", WEIR_STATE_FOLDER, instance);
}

static int read_override(const struct json *from, struct lb_override *ret)
{
	const char *service = json_get_string(from, "service");
	const char *address = json_get_string(from, "address");

	*ret = (struct lb_override){
		.port = (uint16_t)json_get_u64(from, "port"),
		.state = (uint8_t)json_get_u64(from, "state"),
		.weighed = json_get(from, "weight") != NULL,
		.weight = (uint32_t)json_get_u64(from, "weight"),
		.until_s = json_get_u64(from, "until_s"),
	};
	if (!service || !address || strlen(service) >= sizeof(ret->service) ||
	    ret->state > BACKEND_DOWN || json_get_u64(from, "weight") > POLICY_WEIGHT_MAX)
		return -EBADMSG;
	snprintf(ret->service, sizeof(ret->service), "%s", service);
	if (!strcmp(address, "here"))
		return 0;
	return addr_parse(address, strlen(address), &ret->addr, NULL) ? -EBADMSG : 0;
}

int overrides_read(const char *instance, struct overrides *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON struct json *j = NULL;
	const struct json *list;
	char why[160] = "";
	size_t len;
	int code;

	if (!file_exists(path))
		return 0;
	if ((code = file_read(path, DRAINS_MAX, &text, &len, err)))
		return code;
	if (sum_open(text, &len))
		snprintf(why, sizeof(why), "checksum mismatch");
	else
		j = json_parse(text, len, why, sizeof(why));
	list = j ? json_get(j, "drains") : NULL;
	for (size_t n = 0; list && n < json_length(list); n++) {
		struct lb_override override;

		if (read_override(json_at(list, n), &override))
			list = NULL;
		else
			vec_push(ret, override);
	}
	if (list)
		return 0;
	vec_free(ret);
	err_stated(err, EBADMSG, "'%s' is damaged%s%s", path, why[0] ? ": " : "", why);
	return err_hint(err, "move it away to start without overrides");
}

static struct json *override_json(const struct lb_override *h)
{
	struct json *j = json_object();
	addr_text address;

	json_set(j, "service", json_string(h->service));
	json_set(j, "address",
		 json_string(h->addr.family ? addr_format(&h->addr, address) : "here"));
	json_set(j, "port", json_u64(h->port));
	json_set(j, "state", json_u64(h->state));
	if (h->weighed)
		json_set(j, "weight", json_u64(h->weight));
	json_set(j, "until_s", json_u64(h->until_s));
	return j;
}

int overrides_write(const char *instance, const struct overrides *overrides, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_JSON struct json *j = json_object();
	struct json *list = json_array();
	CLEANUP_TEXT struct text text = {0};

	json_set(j, "drains", list);
	vec_each (overrides, h)
		json_append(list, override_json(h));
	json_print(j, true, &text);
	return sum_write(path, text.at, text.len, err);
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
