// SPDX-License-Identifier: GPL-2.0-only
// One line a fact; what is absent is left out.
#include "tests/golden/policy-dump.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/words.h"

struct dump {
	const struct resolved *r;
	FILE *f;
};

static void put_place(struct dump *d, struct place p)
{
	if (p.line)
		fprintf(d->f, " (%s:%" PRIu32 ")", d->r->files[p.file].name, p.line);
}

static void put_addr(struct dump *d, const struct addr *a)
{
	addr_text text;

	fputs(addr_format(a, text), d->f);
}

static void put_ranges(struct dump *d, const char *name, const struct resolved_ranges *v)
{
	if (!v->given)
		return;
	fprintf(d->f, " %s", name);
	for (size_t i = 0; i < v->n; i++) {
		fprintf(d->f, "%c%u", i ? ',' : ' ', v->at[i].first);
		if (v->at[i].last != v->at[i].first)
			fprintf(d->f, "-%u", v->at[i].last);
	}
}

// ---- head -----------------------------------------------------------------------------------------

static void dump_files(struct dump *d)
{
	for (size_t i = 0; i < d->r->n_files; i++) {
		const struct resolved_file *file = &d->r->files[i];

		fprintf(d->f, "file %s", file->name);
		if (file->list)
			fprintf(d->f, " list entries %" PRIu64 " skipped %" PRIu64 "%s",
				file->entries, file->skipped, file->stale ? " stale" : "");
		fputc('\n', d->f);
	}
	for (size_t i = 0; i < d->r->n_names; i++) {
		const struct resolved_name *name = &d->r->names[i];

		fprintf(d->f, "name %s ttl %" PRIu32 "%s", name->name, name->ttl_s,
			name->stale ? " stale" : "");
		for (size_t j = 0; j < name->n; j++) {
			fputc(' ', d->f);
			put_addr(d, &name->addrs[j]);
		}
		put_place(d, name->place);
		fputc('\n', d->f);
	}
}

static void dump_interfaces(struct dump *d)
{
	for (size_t i = 0; i < d->r->n_interfaces; i++) {
		const struct resolved_interface *iface = &d->r->interfaces[i];

		fprintf(d->f, "interface %zu %s mode %s%s%s default %s", i, iface->name,
			choice_word(&choice_attach, iface->mode), iface->pattern ? " pattern" : "",
			iface->optional ? " optional" : "", iface->default_drop ? "drop" : "pass");
		put_place(d, iface->default_place);
		fputc('\n', d->f);
	}
}

static void dump_settings(struct dump *d)
{
	static const char *const treatments[] = {"filter", "drop", "pass"};

	fprintf(d->f, "default %s\nmalformed %s\nessentials %s\n",
		d->r->default_drop ? "drop" : "pass", d->r->malformed_pass ? "pass" : "drop",
		d->r->essentials_filter ? "filter" : "pass");
	for (unsigned first = 0, last; first < 256; first = last + 1) {
		for (last = first;
		     last < 255 && d->r->fragments[last + 1] == d->r->fragments[first]; last++)
			;
		fprintf(d->f, "fragments %s proto %u-%u\n", treatments[d->r->fragments[first]],
			first, last);
	}
	if (d->r->seed)
		fprintf(d->f, "seed \"%s\"\n", d->r->seed);
}

// ---- address sets -----------------------------------------------------------------------------------

static void dump_prefix(struct dump *d, const struct addr *a, uint8_t len, bool in,
			struct place place)
{
	struct prefix p = {.addr = *a, .len = len};
	addr_text text;

	fprintf(d->f, "  %s%s", in ? "" : "not ", prefix_format(&p, text));
	put_place(d, place);
	fputc('\n', d->f);
}

static void dump_addresses(struct dump *d, size_t number)
{
	const struct resolved_addresses *s = &d->r->addresses[number];

	fprintf(d->f, "addresses %zu %s%s%s%s", number, s->name ? "@" : "list",
		s->name ? s->name : "", s->fixed ? " fixed" : "", s->empty ? " empty" : "");
	put_place(d, s->place);
	fputc('\n', d->f);
	for (size_t i = 0; i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];
		struct addr a = interval_addr(p->addr, 4);

		dump_prefix(d, &a, p->len, p->in, (struct place){p->file, p->line});
	}
	for (size_t i = 0; i < s->n6; i++) {
		const struct resolved_prefix6 *p = &s->v6[i];
		struct addr a = interval_addr((address_number)p->hi << 64 | p->lo, 6);

		dump_prefix(d, &a, p->len, p->in, (struct place){p->file, p->line});
	}
}

static void dump_dynamics(struct dump *d)
{
	for (size_t i = 0; i < d->r->n_dynamics; i++) {
		const struct resolved_dynamic *s = &d->r->dynamics[i];

		fprintf(d->f, "dynamic %zu @%s max %" PRIu32 " expire %" PRIu64 "ms mask %u/%u", i,
			s->name, s->max, s->expire_ms, s->mask4, s->mask6);
		put_place(d, s->place);
		fputc('\n', d->f);
	}
}

// ---- rules ----------------------------------------------------------------------------------------

static void put_address(struct dump *d, const char *name, const struct resolved_address *a)
{
	if (a->kind == RESOLVED_SET)
		fprintf(d->f, " %s %" PRIu32, name, a->index);
	else if (a->kind == RESOLVED_DYNAMIC)
		fprintf(d->f, " %s dynamic %" PRIu32, name, a->index);
}

static void put_bits(struct dump *d, const char *name, const uint64_t *bits, unsigned n)
{
	const char *comma = " ";

	fprintf(d->f, " %s", name);
	for (unsigned first = 0, last; first < n; first = last + 1) {
		last = first;
		if (!(bits[first / 64] >> first % 64 & 1))
			continue;
		while (last + 1 < n && bits[(last + 1) / 64] >> (last + 1) % 64 & 1)
			last++;
		fprintf(d->f, "%s%u", comma, first);
		if (last != first)
			fprintf(d->f, "-%u", last);
		comma = ",";
	}
}

// Does `next` go on where `at` ends?
static bool follows(const struct resolved_icmp *at, const struct resolved_icmp *next)
{
	return next->family == at->family && next->type == at->type + 1 && !at->code_first &&
	       !next->code_first && at->code_last == 255 && next->code_last == 255;
}

static void put_icmp(struct dump *d, const struct resolved_rule *rule)
{
	const struct resolved_icmp *at = rule->icmp.at, *end = at + rule->icmp.n;

	if (!rule->icmp.given)
		return;
	fputs(" icmp", d->f);
	for (const char *comma = " "; at < end; at++, comma = ",") {
		fprintf(d->f, "%sv%u:%u", comma, at->family, at->type);
		if (at + 1 < end && follows(at, at + 1)) {
			while (at + 1 < end && follows(at, at + 1))
				at++;
			fprintf(d->f, "-%u", at->type);
		}
		if (at->code_first || at->code_last != 255)
			fprintf(d->f, "/%u-%u", at->code_first, at->code_last);
	}
}

static void put_span(struct dump *d, const char *name, const struct resolved_span *s)
{
	if (s->given)
		fprintf(d->f, " %s %" PRIu32 "-%" PRIu32, name, s->first, s->last);
}

static void put_fields(struct dump *d, const struct resolved_rule *rule)
{
	put_address(d, "from", &rule->from);
	put_ranges(d, "sport", &rule->sport);
	put_address(d, "to", &rule->to);
	put_ranges(d, "dport", &rule->dport);
	if (rule->proto.given)
		put_bits(d, "proto", rule->proto.bits, 256);
	put_icmp(d, rule);
	if (rule->flags.given)
		fprintf(d->f, " flags 0x%02x/0x%02x", rule->flags.set, rule->flags.mask);
	put_ranges(d, "vlan", &rule->vlan);
	if (rule->on.given)
		put_bits(d, "on", &rule->on.bits[0], 64);
	put_ranges(d, "ethertype", &rule->ethertype);
	if (rule->fragment)
		fputs(" fragment", d->f);
}

static void put_limit(struct dump *d, const struct resolved_limit *limit)
{
	if (!limit->given)
		return;
	fprintf(d->f, " %s %" PRIu64 "%s/%" PRIu32 "ms burst %" PRIu64 " per %s",
		limit->under ? "under" : "over", limit->count, limit->bits ? "bit" : "",
		limit->period_ms, limit->burst, choice_word(&choice_pers, limit->per));
	if (limit->per != PER_RULE)
		fprintf(d->f, " mask %u/%u max %" PRIu32, limit->mask4, limit->mask6, limit->max);
}

static void put_conditions(struct dump *d, const struct resolved_rule *rule)
{
	put_span(d, "length", &rule->length);
	put_span(d, "ttl", &rule->ttl);
	if (rule->dscp.given)
		put_bits(d, "dscp", &rule->dscp.bits[0], 64);
	if (rule->established)
		fputs(" established", d->f);
	if (rule->probability.given)
		fprintf(d->f, " probability %" PRIu64 "/2^32", rule->probability.share);
	put_limit(d, &rule->limit);
}

static void put_modifiers(struct dump *d, const struct resolved_rule *rule)
{
	if (rule->log.given)
		fprintf(d->f, " log %" PRIu64 "/%" PRIu32 "ms snap %" PRIu32, rule->log.count,
			rule->log.period_ms, rule->log.snap);
	if (rule->add.given)
		fprintf(d->f, " add %s to dynamic %" PRIu32 " for %" PRIu64 "ms",
			rule->add.destination ? "destination" : "source", rule->add.dynamic,
			rule->add.for_ms);
}

static void dump_rule(struct dump *d, size_t number)
{
	const struct resolved_rule *rule = &d->r->rules[number];

	fprintf(d->f, "rule %zu \"%s\"%s", number, rule->identity, rule->named ? " named" : "");
	put_place(d, rule->place);
	fprintf(d->f, "\n  %s%s", rule->always ? "always " : "",
		choice_word(&choice_actions, rule->action));
	if (rule->redirect)
		fprintf(d->f, " %s", rule->redirect);
	if (rule->impossible)
		fputs(" impossible", d->f);
	put_fields(d, rule);
	put_conditions(d, rule);
	put_modifiers(d, rule);
	fputc('\n', d->f);
}

// ---- services -------------------------------------------------------------------------------------

static void dump_backend(struct dump *d, const struct resolved_backend *b)
{
	fputs("  backend ", d->f);
	if (b->here)
		fputs("here", d->f);
	else
		put_addr(d, &b->addr);
	fprintf(d->f, " port %u weight %" PRIu32 "%s", b->port, b->weight,
		b->backup ? " backup" : "");
	put_place(d, b->place);
	fputc('\n', d->f);
}

static void dump_check(struct dump *d, const struct resolved_check *c)
{
	fprintf(d->f, "  check %s", choice_word(&choice_checks, c->kind));
	if (c->path)
		fprintf(d->f, " \"%s\" host \"%s\" expect %u-%u", c->path, c->host ? c->host : "",
			c->status_first, c->status_last);
	fprintf(d->f,
		" port %u every %" PRIu64 "ms timeout %" PRIu64 "ms rise %" PRIu32 " fall %" PRIu32,
		c->port, c->every_ms, c->timeout_ms, c->rise, c->fall);
	fputs(c->via_path ? " via path" : "", d->f);
	if (c->has_keep)
		fprintf(d->f, " keep %" PRIu32 "/10000", c->keep);
	fputc('\n', d->f);
}

static void dump_service(struct dump *d, const struct resolved_service *s)
{
	fprintf(d->f, "service %s", s->name);
	put_place(d, s->place);
	fprintf(d->f, "\n  vip %" PRIu32, s->vip);
	put_bits(d, "proto", s->proto.bits, 256);
	if (s->any_port)
		fputs(" port any", d->f);
	put_ranges(d, "port", &s->ports);
	fprintf(d->f, " mode %s hash %s udp %s\n", choice_word(&choice_modes, s->mode),
		s->hash_source ? "source" : "tuple", s->udp_move ? "move" : "stay");
	fprintf(d->f,
		"  idle %" PRIu64 "ms/%" PRIu64 "ms lost %" PRIu64 "ms ring %" PRIu32
		" pins %" PRIu64,
		s->idle_tcp_ms, s->idle_udp_ms, s->lost_ms, s->ring, s->pins);
	for (size_t i = 0; i < s->n_source; i++) {
		addr_text text;

		fprintf(d->f, "%s%s", i ? "," : " source ", prefix_format(&s->source[i], text));
	}
	fputc('\n', d->f);
	dump_check(d, &s->check);
	for (size_t i = 0; i < s->n_backends; i++)
		dump_backend(d, &s->backends[i]);
}

// ---- expect ---------------------------------------------------------------------------------------

static void dump_packet(struct dump *d, const struct resolved_packet *p)
{
	fprintf(d->f, "  ethertype 0x%04x", p->ethertype);
	if (p->ip) {
		fprintf(d->f, " proto %u ", p->proto);
		put_addr(d, &p->from);
		fprintf(d->f, " port %u > ", p->sport);
		put_addr(d, &p->to);
		fprintf(d->f, " port %u flags 0x%02x icmp %u/%u ttl %u", p->dport, p->flags,
			p->type, p->code, p->ttl);
	}
	fprintf(d->f, " length %" PRIu32 " vlan %u on %" PRIu32 "%s%s%s\n", p->length, p->vlan,
		p->iface, p->fragment ? " fragment" : "", p->over ? " over" : "",
		p->established ? " established" : "");
}

static void dump_expect(struct dump *d, const struct resolved_expect *e)
{
	static const char *const verdicts[] = {"pass", "drop", "reject", "redirect", "service"};
	static const char *const vias[] = {"any",        "rule",      "default",
					   "essentials", "fragments", "malformed"};

	fprintf(d->f, "expect %s", verdicts[e->verdict]);
	if (e->redirect)
		fprintf(d->f, " %s", e->redirect);
	if (e->verdict == EXPECT_SERVICE)
		fprintf(d->f, " %s", d->r->services[e->service].name);
	fprintf(d->f, " via %s", vias[e->via]);
	if (e->via == VIA_RULE)
		fprintf(d->f, " %" PRIu32, e->rule);
	put_place(d, e->place);
	fputc('\n', d->f);
	for (size_t i = 0; i < e->n_packets; i++)
		dump_packet(d, &e->packets[i]);
}

void policy_dump(const struct resolved *r, FILE *f)
{
	struct dump d = {r, f};

	dump_files(&d);
	dump_interfaces(&d);
	dump_settings(&d);
	for (size_t i = 0; i < r->n_addresses; i++)
		dump_addresses(&d, i);
	dump_dynamics(&d);
	for (size_t i = 0; i < r->n_rules; i++)
		dump_rule(&d, i);
	for (size_t i = 0; i < r->n_services; i++)
		dump_service(&d, &r->services[i]);
	for (size_t i = 0; i < r->n_expects; i++)
		dump_expect(&d, &r->expects[i]);
}
