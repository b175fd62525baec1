// SPDX-License-Identifier: GPL-2.0-only
// Answers of a name server, written byte by byte (RFC 1035 section 4.1).
#pragma once

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "ctl/base/text.h"

struct packet_rr {
	const char *owner; // "" is the question's name, as a pointer to it
	uint16_t type;
	uint32_t ttl_s;
	const char *data; // an address, or the target of a CNAME
};

static void put_u16(struct text *p, unsigned n)
{
	text_addc(p, (char)(n >> 8));
	text_addc(p, (char)n);
}

static void put_name(struct text *p, const char *name)
{
	while (*name) {
		size_t len = strcspn(name, ".");

		text_addc(p, (char)len);
		text_addn(p, name, len);
		name += len + (name[len] == '.');
	}
	text_addc(p, '\0');
}

static void put_header(struct text *p, uint16_t id, unsigned flags, size_t answers)
{
	put_u16(p, id);
	put_u16(p, flags);
	put_u16(p, 1);
	put_u16(p, (unsigned)answers);
	put_u16(p, 0);
	put_u16(p, 0);
}

static void put_question(struct text *p, const char *name, uint16_t type)
{
	put_name(p, name);
	put_u16(p, type);
	put_u16(p, 1);
}

static void put_data(struct text *p, const struct packet_rr *rr)
{
	struct text data = {0};
	uint8_t addr[16];

	if (rr->type == 5)
		put_name(&data, rr->data);
	else if (inet_pton(rr->type == 1 ? AF_INET : AF_INET6, rr->data, addr) == 1)
		text_addn(&data, (const char *)addr, rr->type == 1 ? 4 : 16);
	put_u16(p, (unsigned)data.len);
	text_addn(p, text_get(&data), data.len);
	text_free(&data);
}

static void put_rr(struct text *p, const struct packet_rr *rr)
{
	if (rr->owner[0])
		put_name(p, rr->owner);
	else
		put_u16(p, 0xc00c);
	put_u16(p, rr->type);
	put_u16(p, 1);
	put_u16(p, rr->ttl_s >> 16);
	put_u16(p, rr->ttl_s & 0xffff);
	put_data(p, rr);
}
