// SPDX-License-Identifier: GPL-2.0-only
// Prints times, kinds, interfaces and owners.
#include "ctl/cmd/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/net/link.h"
#include "ctl/net/route.h"

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

uint64_t show_left_s(const struct clock *c, uint64_t until_s)
{
	uint64_t now_s = (c->wall_ms + 999) / 1000;

	return until_s > now_s ? until_s - now_s : 0;
}

void show_until(struct text *t, uint64_t until_s, uint64_t now_s)
{
	num_text left;

	if (until_s == RECORD_NEVER) {
		text_add(t, "permanent");
		return;
	}
	text_add(t, "until ");
	show_time(t, until_s, now_s);
	text_addf(t, " (%s)",
		  num_format_duration_ms(until_s > now_s ? (until_s - now_s) * 1000 : 0, left));
}

void show_moved(struct text *t, const struct device *d)
{
	if (d->netns[0])
		text_addf(t, "network namespace %s, as %s", d->netns, d->there);
	else
		text_add(t, "another network namespace");
}

static bool is_held(const struct device *d)
{
	return d->state == DEVICE_HELD || d->state == DEVICE_MOVED;
}

static bool is_there(const struct device *d)
{
	return d->state != DEVICE_GONE;
}

// Adds the names of the interfaces for which is() answers `wanted`; returns how many.
static size_t add_names(struct text *t, const struct devices *all,
			bool (*is)(const struct device *), bool wanted, struct out *o)
{
	size_t n = 0;

	for (uint32_t number = 1; number < WEIR_IFACES; number++) {
		const struct device *d = &all->at[number];

		if (d->state == DEVICE_FREE || is(d) != wanted)
			continue;
		text_addf(t, "%s%s", n++ ? " " : "", d->iface.name);
		if (o)
			out_item_string(o, d->iface.name);
		if (d->state != DEVICE_MOVED)
			continue;
		text_add(t, " (in ");
		show_moved(t, d);
		text_add(t, ")");
	}
	return n;
}

static int judge_places(const struct devices *all, struct err *err)
{
	struct text names = {0}, none = {0};
	size_t gone;

	if (add_names(&names, all, device_is_open, true, NULL)) {
		err_refused(err, "Weir is not attached to %s: everything passes there",
			    text_get(&names));
		err_hint(err, "weir attach %s", text_get(&names));
	} else if (!add_names(&none, all, is_held, true, NULL) &&
		   (gone = add_names(&names, all, is_there, false, NULL))) {
		err_refused(err, "Weir is not attached to any interface: %s no longer %s",
			    text_get(&names), num_plural(gone, "exists", "exist"));
		err_hint(err, "weir attach IFACE");
	}
	text_free(&names);
	text_free(&none);
	return err->kind ? -EPERM : 0;
}

static void set_open(struct out *o, const struct devices *all)
{
	struct text names = {0};

	out_array(o, "open");
	add_names(&names, all, device_is_open, true, o);
	out_end(o);
	text_free(&names);
}

static int judge(const struct devices *all, struct err *err)
{
	if (!all->unknown.kind)
		return judge_places(all, err);
	*err = all->unknown;
	return -err->code;
}

int show_devices(struct text *t, const struct devices *all, struct out *o, struct err *err)
{
	out_array(o, "interfaces");
	if (!add_names(t, all, is_held, true, o))
		text_add(t, "no interface");
	out_end(o);
	set_open(o, all);
	return judge(all, err);
}

int show_interfaces(struct text *t, const struct instance *i, struct out *o, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};

	devices_read(i, &devices, &devices.unknown);
	return show_devices(t, &devices, o, err);
}

int show_open(const struct instance *i, uint32_t number, struct out *o, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = number ? device_read(i, number, &devices.at[iface_index(number)], err)
			  : devices_read(i, &devices, err);

	if (o)
		set_open(o, &devices);
	return code ? code : judge(&devices, err);
}

int show_open_in(const char *instance, struct out *o, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	int code = instance_open(instance, &i, err);

	return code ? code : show_open(i, 0, o, err);
}

// Appends "origin ids".
static void add_word(struct text *t, size_t begin, const char *label, const char *word)
{
	if (!word[0])
		return;
	if (t->len > begin)
		text_addc(t, ' ');
	text_add(t, label);
	text_add(t, word);
}

void show_author(const struct context *ctx, char *buf, size_t size)
{
	if (ctx->by)
		snprintf(buf, size, "%s", ctx->by);
	else
		session_describe(&ctx->session, buf, size);
}

void show_owner(struct text *t, const struct owner *h)
{
	size_t begin = t->len;

	add_word(t, begin, "", h->name);
	add_word(t, begin, "list ", h->list);
	add_word(t, begin, "origin ", h->origin);
	add_word(t, begin, "\"", h->note);
	if (h->note[0])
		text_addc(t, '"');
}

// Does a unit of the system restore the instance at boot?
static bool restored_at_boot(const char *instance)
{
	CLEANUP_FREE char *unit = mem_printf("/etc/systemd/system/sysinit.target.wants/"
					     "weir-restore@%s.service",
					     instance);

	return file_exists(unit);
}

void show_damage(const struct err *damaged)
{
	if (damaged->text[0])
		log_warning("%s", damaged->text);
}

const char *show_kept(const char *instance, bool fleeting, const char **ret_key)
{
	bool boot = restored_at_boot(instance);

	*ret_key = fleeting ? "no" : boot ? "reboot" : "attach";
	if (fleeting)
		return "not saved";
	return boot ? "saved, restored at boot" : "saved";
}
