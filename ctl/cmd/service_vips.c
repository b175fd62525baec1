// SPDX-License-Identifier: GPL-2.0-only
// Prints addresses, protocols and ports of services.
#include "ctl/cmd/service_vips.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/names.h"

#define SHOWN 8 // items of a list in the text

// A list: SHOWN items in the text, all in JSON.
struct vip_list {
	struct out *o;
	struct text *line;
	size_t n;
};

static void begin(struct vip_list *l, const char *key)
{
	out_array(l->o, key);
	l->n = 0;
}

static void add(struct vip_list *l, const char *word)
{
	out_item_string(l->o, word);
	if (l->n++ < SHOWN)
		text_addf(l->line, "%s%s", l->n > 1 ? ", " : "", word);
}

static void end(struct vip_list *l)
{
	if (l->n > SHOWN)
		text_addf(l->line, " and %zu more", l->n - SHOWN);
	out_end(l->o);
}

static void add_prefix(struct vip_list *l, const struct addr *a, uint8_t len, bool in)
{
	struct prefix p = {.addr = *a, .len = len};
	char word[sizeof(addr_text) + 8];
	addr_text text;

	snprintf(word, sizeof(word), "%s%s", in ? "" : "not ", prefix_format(&p, text));
	add(l, word);
}

static void add_vips(struct vip_list *l, const struct resolved_addresses *vips)
{
	begin(l, "vips");
	for (size_t n = 0; n < vips->n4; n++) {
		struct addr a = interval_addr(vips->v4[n].addr, 4);

		add_prefix(l, &a, vips->v4[n].len, vips->v4[n].in);
	}
	for (size_t n = 0; n < vips->n6; n++) {
		struct addr a =
			interval_addr((address_number)vips->v6[n].hi << 64 | vips->v6[n].lo, 6);

		add_prefix(l, &a, vips->v6[n].len, vips->v6[n].in);
	}
	end(l);
}

static void add_protocols(struct vip_list *l, const struct resolved_bits *p)
{
	begin(l, "protocols");
	for (unsigned proto = 0; proto < 256; proto++) {
		char number[8];

		snprintf(number, sizeof(number), "%u", proto);
		if (p->bits[proto / 64] >> proto % 64 & 1)
			add(l, names_of_proto((uint8_t)proto) ? names_of_proto((uint8_t)proto)
							      : number);
	}
	end(l);
}

static void add_ports(struct vip_list *l, const struct resolved_service *s)
{
	begin(l, "ports");
	if (s->any_port)
		add(l, "any");
	for (size_t n = 0; n < s->ports.n && !s->any_port; n++) {
		const struct range16 *r = &s->ports.at[n];
		char word[16];

		if (r->first == r->last)
			snprintf(word, sizeof(word), "%u", r->first);
		else
			snprintf(word, sizeof(word), "%u-%u", r->first, r->last);
		add(l, word);
	}
	end(l);
}

static const struct resolved_service *find(const struct candidate *c, const char *name)
{
	for (size_t n = 0; c && n < c->resolved->n_services; n++)
		if (!strcmp(c->resolved->services[n].name, name))
			return &c->resolved->services[n];
	return NULL;
}

void service_show_vips(struct out *o, const struct candidate *c, const char *service)
{
	const struct resolved_service *s = find(c, service);
	CLEANUP_TEXT struct text line = {0};
	struct vip_list l = {.o = o, .line = &line};

	if (!s) {
		out_set_string(o, "vips", NULL);
		out_set_string(o, "protocols", NULL);
		out_set_string(o, "ports", NULL);
		return;
	}
	add_vips(&l, &c->resolved->addresses[s->vip]);
	text_add(&line, "; ");
	add_protocols(&l, &s->proto);
	text_add(&line, " port ");
	add_ports(&l, s);
	out_line(o, "  vip:         %s", text_get(&line));
}
