// SPDX-License-Identifier: GPL-2.0-only
// Times, kinds, interfaces and holders in words.
#include "ctl/cmd/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/num.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

static const struct {
	const char *text, *key, *verb, *side;
} kinds[OVERLAY_KINDS] = {
	[OVERLAY_BLOCK_FROM] = {"block from", "block-from", "block", "from"},
	[OVERLAY_ALLOW_FROM] = {"allow from", "allow-from", "allow", "from"},
	[OVERLAY_BLOCK_TO] = {"block to", "block-to", "block", "to"},
	[OVERLAY_ALLOW_TO] = {"allow to", "allow-to", "allow", "to"},
};

const char *kind_text(uint8_t kind)
{
	return kinds[kind].text;
}

const char *kind_key(uint8_t kind)
{
	return kinds[kind].key;
}

const char *kind_verb(uint8_t kind)
{
	return kinds[kind].verb;
}

const char *kind_side(uint8_t kind)
{
	return kinds[kind].side;
}

void show_time(struct text *t, uint64_t wall_s, uint64_t now_s)
{
	time_t then = (time_t)wall_s, now = (time_t)now_s;
	struct tm a, b;
	char buf[64];

	if (!localtime_r(&then, &a) || !localtime_r(&now, &b)) {
		text_add(t, "?");
		return;
	}
	strftime(buf, sizeof(buf),
		 a.tm_year == b.tm_year && a.tm_yday == b.tm_yday ? "%H:%M" : "%Y-%m-%d %H:%M", &a);
	text_add(t, buf);
}

void show_until(struct text *t, uint64_t until_s, uint64_t now_s)
{
	num_text left;

	if (until_s == RECORD_NEVER) {
		text_add(t, "for ever");
		return;
	}
	text_add(t, "until ");
	show_time(t, until_s, now_s);
	text_addf(t, " (%s)",
		  num_format_duration_ms(until_s > now_s ? (until_s - now_s) * 1000 : 0, left));
}

size_t show_interfaces(struct text *t, const struct instance *i, struct out *o)
{
	struct iface row;
	size_t n = 0;

	if (o)
		out_array(o, "interfaces");
	for (uint32_t number = 1; number < WEIR_IFACES; number++) {
		if (instance_iface(i, number, &row, NULL) || row.state == IFACE_FREE)
			continue;
		text_addf(t, "%s%s", n++ ? " " : "", row.name);
		if (o)
			out_item_string(o, row.name);
	}
	if (o)
		out_end(o);
	return n;
}

void show_holder(struct text *t, const struct holder *h)
{
	const char *gap = "";

	if (h->name[0])
		text_addf(t, "%s", h->name), gap = " ";
	if (h->list[0])
		text_addf(t, "%slist %s", gap, h->list), gap = " ";
	if (h->origin[0])
		text_addf(t, "%sorigin %s", gap, h->origin), gap = " ";
	if (h->note[0])
		text_addf(t, "%s\"%s\"", gap, h->note);
}

static bool service_enabled(void)
{
	return file_exists("/etc/systemd/system/multi-user.target.wants/weir.service");
}

const char *show_kept(bool fleeting, const char **ret_key)
{
	*ret_key = fleeting ? "no" : service_enabled() ? "reboot" : "attach";
	if (fleeting)
		return "in the kernel only";
	return service_enabled() ? "kept across reboots" : "kept for the next attach";
}

int not_attached(const char *instance, const char *verb, struct err *err)
{
	CLEANUP_FREE struct gateway *gateways = NULL;
	struct link link;
	size_t n = 0;

	err_input(err, "instance '%s' is attached to no interface, so there is nothing to %s",
		  instance, verb);
	if (!route_gateways(&gateways, &n, NULL) && n &&
	    !link_get_by_index(gateways[0].ifindex, &link, NULL))
		err_hint(err, "the default route goes through %s: add -i %s, or run weir attach %s",
			 link.name, link.name, link.name);
	else
		err_hint(err, "add -i IFACE, or run weir attach IFACE");
	return -ENOENT;
}

int need_attached(const struct instance *i, const char *verb, struct err *err)
{
	return instance_has_ifaces(i) ? 0 : not_attached(i->name, verb, err);
}
