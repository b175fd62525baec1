// SPDX-License-Identifier: GPL-2.0-only
// Prints each value of a resolved policy; rules are printed by rule-print.c.
#include "tests/golden/policy-print.h"

#include <inttypes.h>
#include <string.h>

#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/policy/intervals.h"
#include "ctl/policy/words.h"
#include "tests/golden/rule-print.h"

struct print {
	const struct resolved *r;
	FILE *f;
	struct place at; // location of the printed statement
};

// A line of another file bears the file's name.
static void put_line(struct print *p, struct place at, const char *after)
{
	if (at.file)
		fprintf(p->f, "%s:", p->r->files[at.file].name);
	fprintf(p->f, "%" PRIu32 "%s", at.line, after);
	p->at = at;
}

static void put_place(struct print *p, struct place at)
{
	if (at.file == p->at.file && at.line == p->at.line)
		return;
	fputs(" (", p->f);
	if (at.file != p->at.file)
		fprintf(p->f, "%s:", p->r->files[at.file].name);
	fprintf(p->f, "%" PRIu32 ")", at.line);
}

static void put_addr(struct print *p, const struct addr *a)
{
	addr_text text;

	fputs(addr_format(a, text), p->f);
}

static void put_ranges(struct print *p, const struct resolved_ranges *ranges)
{
	for (size_t i = 0; i < ranges->n; i++) {
		fprintf(p->f, "%s%u", i ? "," : "", ranges->at[i].first);
		if (ranges->at[i].last != ranges->at[i].first)
			fprintf(p->f, "-%u", ranges->at[i].last);
	}
}

static void put_bits(struct print *p, const uint64_t bits[4])
{
	const char *gap = "";

	for (unsigned first = 0, last; first < 256; first = last + 1) {
		last = first;
		if (!bits_has(bits, first))
			continue;
		while (last < 255 && bits_has(bits, last + 1))
			last++;
		fprintf(p->f, "%s%u", gap, first);
		if (last > first)
			fprintf(p->f, "-%u", last);
		gap = ",";
	}
}

// ---- addresses ----------------------------------------------------------------------------------

static void put_prefix(struct print *p, struct addr addr, uint8_t len, bool in, struct place at,
		       bool first)
{
	struct prefix prefix = {.addr = addr, .len = len};
	addr_text text;

	fprintf(p->f, "%s%s%s", first ? "" : ", ", in ? "" : "not ", prefix_format(&prefix, text));
	put_place(p, at);
}

static void put_addresses(struct print *p, const struct resolved_addresses *s)
{
	for (size_t i = 0; i < s->n4; i++)
		put_prefix(p, interval_addr(s->v4[i].addr, 4), s->v4[i].len, s->v4[i].in,
			   (struct place){s->v4[i].file, s->v4[i].line}, !i);
	for (size_t i = 0; i < s->n6; i++)
		put_prefix(p, interval_addr((address_number)s->v6[i].hi << 64 | s->v6[i].lo, 6),
			   s->v6[i].len, s->v6[i].in, (struct place){s->v6[i].file, s->v6[i].line},
			   !i && !s->n4);
	fprintf(p->f, "%s%s\n", s->empty ? "nothing" : "", s->fixed ? "" : "; not fixed");
}

static void print_sets(struct print *p)
{
	for (size_t i = 0; i < p->r->n_sets; i++) {
		put_line(p, p->r->addresses[i].place, " = ");
		fprintf(p->f, "set %s: ", p->r->addresses[i].name);
		put_addresses(p, &p->r->addresses[i]);
	}
	for (size_t i = 0; i < p->r->n_dynamics; i++) {
		const struct resolved_dynamic *s = &p->r->dynamics[i];

		put_line(p, s->place, " = ");
		fprintf(p->f, "set %s dynamic max %" PRIu32 " expire %" PRIu64 "ms mask %u/%u%s\n",
			s->name, s->max, s->expire_ms, s->mask4, s->mask6,
			s->count ? " count" : "");
	}
}

// ---- rules --------------------------------------------------------------------------------------

static bool is_of_line(const struct print *p, const struct resolved_addresses *s)
{
	for (size_t i = 0; i < s->n4; i++)
		if (s->v4[i].file != p->at.file || s->v4[i].line != p->at.line)
			return false;
	for (size_t i = 0; i < s->n6; i++)
		if (s->v6[i].file != p->at.file || s->v6[i].line != p->at.line)
			return false;
	return s->fixed;
}

// The rule's canonical form has the values of a list. If they are written elsewhere, prints the
// location.
static void print_list(struct print *p, const char *keyword, const struct resolved_address *a)
{
	const struct resolved_addresses *s = &p->r->addresses[a->index];

	if (a->kind != RESOLVED_SET || s->name || is_of_line(p, s))
		return;
	fprintf(p->f, "    %s ", keyword);
	put_addresses(p, s);
}

static bool is_next_type(const struct resolved_icmp *at, const struct resolved_icmp *next)
{
	return next->family == at->family && next->type == at->type + 1 &&
	       next->code_first == at->code_first && next->code_last == at->code_last;
}

// The canonical form has numbers without their family; here it is, where a rule has types of both.
static void print_types(struct print *p, const struct resolved_types *types)
{
	const struct resolved_icmp *at = types->at, *end = at + types->n;

	if (!types->n || at->family == end[-1].family)
		return;
	for (const char *gap = "    "; at < end; at++, gap = ", ") {
		fprintf(p->f, "%sv%u:%u", gap, at->family, at->type);
		for (; at + 1 < end && is_next_type(at, at + 1); at++)
			gap = NULL;
		if (!gap)
			fprintf(p->f, "-%u", at->type);
		if (at->code_first || at->code_last != 255)
			fprintf(p->f, " code %u-%u", at->code_first, at->code_last);
	}
	fputc('\n', p->f);
}

static void print_rule(struct print *p, const struct resolved_rule *rule)
{
	CLEANUP(text_free) struct text text = {0};

	print_whole_rule(&text, p->r, rule);
	put_line(p, rule->place, "");
	if (rule->named)
		fprintf(p->f, " | \"%s\"\n  = ", rule->identity);
	else if (strcmp(rule->identity, text_get(&text)) != 0)
		fprintf(p->f, " | %s\n  = ", rule->identity);
	else
		fputs(" = ", p->f);
	fprintf(p->f, "%s%s\n", text_get(&text), rule->impossible ? "; impossible" : "");
	print_list(p, "from", &rule->from);
	print_list(p, "to", &rule->to);
	print_types(p, &rule->icmp);
}

// ---- settings -----------------------------------------------------------------------------------

static void print_files(struct print *p)
{
	for (size_t i = 0; i < p->r->n_files; i++) {
		const struct resolved_file *file = &p->r->files[i];

		fprintf(p->f, "file %s", file->name);
		if (file->list)
			fprintf(p->f, ": %" PRIu64 " entries, %" PRIu64 " skipped%s", file->entries,
				file->skipped, file->stale ? ", stale" : "");
		fputc('\n', p->f);
	}
	for (size_t i = 0; i < p->r->n_names; i++) {
		const struct resolved_name *name = &p->r->names[i];

		put_line(p, name->place, " = ");
		fprintf(p->f, "name %s ttl %" PRIu32 "s%s:", name->name, name->ttl_s,
			name->stale ? " stale" : "");
		for (size_t j = 0; j < name->n; j++) {
			fputc(' ', p->f);
			put_addr(p, &name->addrs[j]);
		}
		fputc('\n', p->f);
	}
}

static void print_interfaces(struct print *p)
{
	for (size_t i = 0; i < p->r->n_interfaces; i++) {
		const struct resolved_interface *iface = &p->r->interfaces[i];

		put_line(p, iface->place, " = ");
		fprintf(p->f, "interface %s mode %s%s%s; default %s", iface->name,
			choice_word(&choice_attach, iface->mode), iface->pattern ? " pattern" : "",
			iface->optional ? " optional" : "", iface->default_drop ? "drop" : "pass");
		if (iface->default_place.line)
			put_place(p, iface->default_place);
		fputc('\n', p->f);
	}
}

static void print_settings(struct print *p)
{
	static const char *const treatments[] = {"filter", "drop", "pass"};
	const uint8_t *fragments = p->r->fragments;

	fprintf(p->f, "default %s; malformed %s; essentials %s; fragments",
		p->r->default_drop ? "drop" : "pass", p->r->malformed_pass ? "pass" : "drop",
		p->r->essentials_filter ? "filter" : "pass");
	for (unsigned first = 0, last; first < 256; first = last + 1) {
		for (last = first; last < 255 && fragments[last + 1] == fragments[first]; last++)
			;
		fprintf(p->f, " %s %u-%u", treatments[fragments[first]], first, last);
	}
	fputc('\n', p->f);
	if (p->r->seed)
		fprintf(p->f, "seed \"%s\"\n", p->r->seed);
}

// ---- services -----------------------------------------------------------------------------------

static void print_backend(struct print *p, const struct resolved_backend *b)
{
	fputs("    backend ", p->f);
	if (b->here)
		fputs("here", p->f);
	else
		put_addr(p, &b->addr);
	fprintf(p->f, " port %u weight %" PRIu32 "%s", b->port, b->weight,
		b->backup ? " backup" : "");
	put_place(p, b->place);
	fputc('\n', p->f);
}

static void print_web_check(struct print *p, const struct resolved_check *c)
{
	fprintf(p->f, " \"%s\" host \"%s\" expect ", c->path, c->host ? c->host : "");
	for (size_t i = 0; i < c->n_statuses; i++)
		fprintf(p->f, "%s%u-%u", i ? "," : "", c->statuses[i].first, c->statuses[i].last);
	if (c->body)
		fprintf(p->f, " body \"%s\"", c->body);
	if (c->sni)
		fprintf(p->f, " sni \"%s\"", c->sni);
	if (c->ca)
		fprintf(p->f, " ca \"%s\"", c->ca);
	fputs(c->insecure ? " insecure" : "", p->f);
}

static void print_check(struct print *p, const struct resolved_check *c)
{
	fprintf(p->f, "    check %s", choice_word(&choice_checks, c->kind));
	if (c->path)
		print_web_check(p, c);
	if (c->name)
		fprintf(p->f, " %s type %u", c->name, c->type);
	for (size_t i = 0; c->arguments && c->arguments[i]; i++)
		fprintf(p->f, " \"%s\"", c->arguments[i]);
	fprintf(p->f,
		" port %u every %" PRIu64 "ms timeout %" PRIu64 "ms rise %" PRIu32 " fall %" PRIu32
		" of %" PRIu32,
		c->port, c->every_ms, c->timeout_ms, c->rise, c->fall, c->of);
	fputs(c->via_path ? " via path\n" : "\n", p->f);
}

static void print_options(struct print *p, const struct resolved_service *s)
{
	fprintf(p->f, "    mode %s hash %s udp %s", choice_word(&choice_modes, s->mode),
		s->hash_source ? "source" : "tuple", s->udp_move ? "move" : "stay");
	fprintf(p->f,
		" idle %" PRIu64 "ms/%" PRIu64 "ms lost %" PRIu64 "ms ramp %" PRIu64
		"ms keep %" PRIu32 " ring %" PRIu32 " %s %" PRIu64,
		s->idle_tcp_ms, s->idle_udp_ms, s->lost_ms, s->ramp_ms, s->keep, s->ring,
		s->connections ? "connections" : "pins", s->connections ? s->connections : s->pins);
	for (size_t i = 0; i < s->n_source; i++) {
		addr_text text;

		fprintf(p->f, "%s%s", i ? "," : " source ", prefix_format(&s->source[i], text));
	}
	fputc('\n', p->f);
}

static void print_service(struct print *p, const struct resolved_service *s)
{
	put_line(p, s->place, " = ");
	fprintf(p->f, "service %s proto ", s->name);
	put_bits(p, s->proto.bits);
	fputs(s->any_port ? " port any" : " port ", p->f);
	put_ranges(p, &s->ports);
	fputs(" vip ", p->f);
	put_addresses(p, &p->r->addresses[s->vip]);
	print_options(p, s);
	print_check(p, &s->check);
	for (size_t i = 0; i < s->n_backends; i++)
		print_backend(p, &s->backends[i]);
}

// ---- expect -------------------------------------------------------------------------------------

static void print_packet(struct print *p, const struct resolved_packet *packet)
{
	mac_text mac;

	fprintf(p->f, "    ethertype 0x%04x", packet->ethertype);
	if (packet->ip) {
		fprintf(p->f, " proto %u ", packet->proto);
		put_addr(p, &packet->from);
		fprintf(p->f, " port %u > ", packet->sport);
		put_addr(p, &packet->to);
		fprintf(p->f, " port %u flags 0x%02x type %u code %u ttl %u", packet->dport,
			packet->flags, packet->type, packet->code, packet->ttl);
	}
	if (packet->mac_given)
		fprintf(p->f, " mac %s", mac_format(packet->mac, mac));
	fprintf(p->f, " length %" PRIu32 " vlan %u on %" PRIu32 "%s%s%s%s\n", packet->length,
		packet->vlan, packet->iface, packet->fragment ? " fragment" : "",
		packet->over ? " over" : "", packet->established ? " established" : "",
		packet->unroutable ? " unroutable" : "");
}

static void print_expect(struct print *p, const struct resolved_expect *e)
{
	static const char *const verdicts[] = {"pass", "drop", "reject", "redirect", "service"};
	static const char *const vias[] = {"any",        "rule",      "default",
					   "essentials", "fragments", "malformed"};

	put_line(p, e->place, " = ");
	fprintf(p->f, "expect %s", verdicts[e->verdict]);
	if (e->redirect)
		fprintf(p->f, " %s", e->redirect);
	if (e->verdict == EXPECT_SERVICE)
		fprintf(p->f, " %s%s", p->r->services[e->service].name, e->answer ? " answer" : "");
	fprintf(p->f, " via %s", vias[e->via]);
	if (e->via == VIA_RULE)
		put_place(p, p->r->rules[e->rule].place);
	fputc('\n', p->f);
	for (size_t i = 0; i < e->n_packets; i++)
		print_packet(p, &e->packets[i]);
}

void policy_print(const struct resolved *r, FILE *f)
{
	struct print p = {.r = r, .f = f};

	print_files(&p);
	print_interfaces(&p);
	print_settings(&p);
	print_sets(&p);
	for (size_t i = 0; i < r->n_rules; i++)
		print_rule(&p, &r->rules[i]);
	for (size_t i = 0; i < r->n_services; i++)
		print_service(&p, &r->services[i]);
	for (size_t i = 0; i < r->n_expects; i++)
		print_expect(&p, &r->expects[i]);
}
