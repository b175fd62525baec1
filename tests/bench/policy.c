// SPDX-License-Identifier: GPL-2.0-only
// Generates rules and writes them as a policy and as rules of the linear scan.
#include "tests/bench/policy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "tests/bench/bench.h"

#define PORT     80 // destination of the packets of draw.h
#define TCP      6
#define UDP      17
#define FLAG_FIN 1
#define FLAG_SYN 2
#define FLAG_ACK 16

struct made {
	uint8_t proto;
	struct prefix from, to; // family 0: any
	uint16_t sport_last;    // from port 1 to this one; 0: any
	uint16_t dport, vlan;   // 0: any
	const char *flags;      // in the syntax of the language; NULL: any
	uint8_t flag, flag_mask;
	bool on_lo;
};

static struct prefix network(const uint8_t *head, size_t head_bytes, uint8_t family, uint8_t len,
			     uint64_t *state)
{
	struct addr a = {.family = family};
	uint64_t r = random_next(state);

	memcpy(a.bytes, &r, family == 4 ? 4 : 8);
	memcpy(a.bytes, head, head_bytes);
	return prefix_of(&a, len);
}

// A network that no packet of draw.h uses: in the second half of 198.18.0.0/15 (RFC 2544), or
// another /48 of 2001:db8::/32.
static struct prefix elsewhere(uint8_t family, uint64_t *state)
{
	static const uint8_t head4[] = {198, 19}, head6[] = {0x20, 0x01, 0x0d, 0xb8, 0xff};

	return family == 4 ? network(head4, sizeof(head4), 4, 24, state)
			   : network(head6, sizeof(head6), 6, 56, state);
}

// The destination of the packets.
static struct prefix here(uint8_t family)
{
	static const struct addr v4 = {.family = 4, .bytes = {198, 18, 0, 1}};
	static const struct addr v6 = {.family = 6, .bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

	return prefix_of(family == 4 ? &v4 : &v6, family == 4 ? 32 : 128);
}

static uint16_t other_port(uint64_t *state)
{
	return (uint16_t)(1000 + random_next(state) % 30000);
}

static void make_fields(const struct rules *r, size_t i, uint64_t *state, struct made *m)
{
	m->proto = i % 8 == 4 ? UDP : TCP;
	switch (i % 8) {
	case 0:
		m->from = elsewhere(r->family, state);
		m->dport = PORT;
		break;
	case 1:
		m->to = elsewhere(r->family, state);
		break;
	case 2:
		m->sport_last = (uint16_t)(1000 + i);
		break;
	case 3:
	case 4:
		m->dport = other_port(state);
		break;
	case 5:
		m->flags = "fin/fin";
		m->flag = m->flag_mask = FLAG_FIN;
		m->dport = PORT;
		break;
	case 6:
		m->vlan = (uint16_t)(100 + i);
		break;
	default:
		m->on_lo = true;
		m->dport = other_port(state);
	}
}

static void make_from(const struct rules *r, size_t i, uint64_t *state, struct made *m)
{
	// An address of class E, which no packet has as source.
	uint8_t head = (uint8_t)(240 + random_next(state) % 15);

	m->proto = i % 4 == 1 ? UDP : TCP;
	m->from = network(&head, 1, 4, i % 3 ? 24 : 32, state);
	if (i % 2)
		m->dport = i % 8 == 1 ? PORT : other_port(state);
}

// Each rule matches except for one field, which differs from rule to rule.
static void make_worst(const struct rules *r, size_t i, uint64_t *state, struct made *m)
{
	m->proto = TCP;
	m->to = i % 3 == 0 ? elsewhere(r->family, state) : here(r->family);
	m->dport = i % 3 == 1 ? other_port(state) : PORT;
	if (i % 3 == 2)
		m->from = elsewhere(r->family, state);
}

static void make_last(const struct rules *r, struct made *m)
{
	m->proto = TCP;
	m->to = here(r->family);
	m->dport = PORT;
	m->flags = "syn/syn,ack";
	m->flag = FLAG_SYN;
	m->flag_mask = FLAG_SYN | FLAG_ACK;
}

static void make(const struct rules *r, size_t i, uint64_t *state, struct made *m)
{
	*m = (struct made){0};
	if (r->last_matches && i + 1 == r->n)
		make_last(r, m);
	else if (r->shape == RULES_FIELDS)
		make_fields(r, i, state, m);
	else if (r->shape == RULES_FROM)
		make_from(r, i, state, m);
	else
		make_worst(r, i, state, m);
}

static void write_rule(const struct made *m, FILE *f)
{
	addr_text text;

	fprintf(f, "drop proto %s", m->proto == TCP ? "tcp" : "udp");
	if (m->from.addr.family)
		fprintf(f, " from %s", prefix_format(&m->from, text));
	if (m->sport_last)
		fprintf(f, " from port 1-%u", m->sport_last);
	if (m->to.addr.family)
		fprintf(f, " to %s", prefix_format(&m->to, text));
	else
		fputs(" to any", f);
	if (m->dport)
		fprintf(f, " port %u", m->dport);
	if (m->flags)
		fprintf(f, " flags %s", m->flags);
	if (m->vlan)
		fprintf(f, " vlan %u", m->vlan);
	fputs(m->on_lo ? " on lo\n" : "\n", f);
}

static void scan_network(const struct prefix *p, uint32_t *ret_addr, uint32_t *ret_mask)
{
	uint32_t addr_be;

	if (!p->addr.family)
		return;
	memcpy(&addr_be, p->addr.bytes, sizeof(addr_be));
	*ret_addr = ntohl(addr_be);
	*ret_mask = ~0u << (32 - p->len);
}

static void scan_rule(const struct made *m, struct bench_rule *ret)
{
	*ret = (struct bench_rule){
		.sport_first = m->sport_last ? 1 : 0,
		.sport_last = m->sport_last ? m->sport_last : 0xffff,
		.dport_first = m->dport,
		.dport_last = m->dport ? m->dport : 0xffff,
		.proto = m->proto,
		.proto_mask = 0xff,
		.flags = m->flag,
		.flags_mask = m->flag_mask,
		.vlan = m->vlan,
	};
	scan_network(&m->from, &ret->src, &ret->src_mask);
	scan_network(&m->to, &ret->dst, &ret->dst_mask);
}

static FILE *open_policy(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		bench_fail(errno, "cannot write '%s'", path);
	return f;
}

static void close_policy(FILE *f, const char *path)
{
	if (fclose(f))
		bench_fail(errno, "cannot write '%s'", path);
}

void policy_rules(const struct rules *r, const char *path)
{
	FILE *f = open_policy(path, "we");
	uint64_t state = r->n * 31 + r->family;

	fprintf(f, "interface %s\n", r->iface ? r->iface : "lo");
	for (size_t s = 0; s < ARRAY_SIZE(r->set_files) && r->set_files[s]; s++)
		fprintf(f, "set s%zu { file \"%s\" }\ndrop from @s%zu\n", s, r->set_files[s], s);
	if (r->first)
		fprintf(f, "%s\n", r->first);
	for (size_t i = 0; i < r->n; i++) {
		struct made m;

		make(r, i, &state, &m);
		write_rule(&m, f);
		if (r->linear)
			scan_rule(&m, &r->linear[i]);
	}
	if (r->expect)
		fputs("expect drop tcp from 192.0.2.1 to 198.18.0.1 port 80 flags syn\n", f);
	close_policy(f, path);
}

void policy_text(const char *text, const char *path)
{
	FILE *f = open_policy(path, "we");

	fputs(text, f);
	close_policy(f, path);
}

void policy_append(const char *text, const char *path)
{
	FILE *f = open_policy(path, "ae");

	fputs(text, f);
	close_policy(f, path);
}
