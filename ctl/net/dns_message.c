// SPDX-License-Identifier: GPL-2.0-only
// Reads an answer of a name server (RFC 1035 section 4): its addresses, and the CNAMEs that lead to
// them.
#include "ctl/net/dns_message.h"

#define CARES_NO_DEPRECATED // newer c-ares would rather be asked in another way
#include <ares.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ctl/base/text.h"

enum {
	HEADER_BYTES = 12,
	CLASS_IN = 1,
	CHAIN_MAX = 16, // CNAMEs in a row; what resolvers follow
};

struct dns_cursor {
	const uint8_t *message;
	size_t len, at;
};

struct dns_record {
	char *owner;  // c-ares'
	char *target; // c-ares'; of a CNAME
	uint16_t type;
	uint32_t ttl_s;
	const uint8_t *data;
	uint16_t data_len;
};

struct dns_records {
	VEC(struct dns_record) of;
};

static void records_cleanup(struct dns_records *r)
{
	vec_each (&r->of, record) {
		ares_free_string(record->owner);
		ares_free_string(record->target);
	}
	vec_free(&r->of);
}

static bool take_bytes(struct dns_cursor *c, size_t n, const uint8_t **ret)
{
	if (c->len - c->at < n)
		return false;
	*ret = c->message + c->at;
	c->at += n;
	return true;
}

static uint16_t read_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t read_u32(const uint8_t *at)
{
	return (uint32_t)read_u16(at) << 16 | read_u16(at + 2);
}

// Compression is followed, bytes that are no letters are escaped: texts compare as names do.
static bool take_name(struct dns_cursor *c, char **ret)
{
	long used;

	if (c->at >= c->len ||
	    ares_expand_name(c->message + c->at, c->message, (int)c->len, ret, &used))
		return false;
	c->at += (size_t)used;
	return true;
}

static bool take_question(struct dns_cursor *c)
{
	const uint8_t *rest;
	char *name = NULL;
	bool ok = take_name(c, &name) && take_bytes(c, 4, &rest);

	ares_free_string(name);
	return ok;
}

// r is of `records` from the start, so that its names are freed on every way out.
static bool take_record(struct dns_cursor *c, struct dns_records *records)
{
	struct dns_record *r = vec_add(&records->of);
	const uint8_t *fixed;
	struct dns_cursor data;

	*r = (struct dns_record){0};
	if (!take_name(c, &r->owner) || !take_bytes(c, 10, &fixed))
		return false;
	r->type = read_u16(fixed + 2) == CLASS_IN ? read_u16(fixed) : 0;
	r->ttl_s = read_u32(fixed + 4);
	if (r->ttl_s > INT32_MAX)
		r->ttl_s = 0; // RFC 2181 section 8
	r->data_len = read_u16(fixed + 8);
	data = *c;
	if (!take_bytes(c, r->data_len, &r->data))
		return false;
	return r->type != DNS_TYPE_CNAME || take_name(&data, &r->target);
}

static bool take_answers(const uint8_t *message, size_t len, struct dns_records *ret)
{
	struct dns_cursor c = {.message = message, .len = len};
	const uint8_t *header;

	if (!take_bytes(&c, HEADER_BYTES, &header))
		return false;
	for (uint16_t i = read_u16(header + 4); i; i--)
		if (!take_question(&c))
			return false;
	for (uint16_t i = read_u16(header + 6); i; i--)
		if (!take_record(&c, ret))
			return false;
	return true;
}

static void lower_ttl(struct dns_found *found, uint32_t ttl_s)
{
	if (ttl_s < found->ttl_s)
		found->ttl_s = ttl_s;
}

static bool add_addr(const struct dns_record *r, uint16_t type, struct dns_found *found)
{
	struct addr v6;
	uint32_t v4;

	if (r->type != type || r->data_len != (type == DNS_TYPE_A ? 4 : 16))
		return false;
	if (type == DNS_TYPE_A) {
		memcpy(&v4, r->data, sizeof(v4));
		vec_push(&found->addrs, addr_from_v4(v4));
	} else {
		// Programs that connect to a mapped address send IPv4 packets.
		v6 = addr_from_v6(r->data);
		vec_push(&found->addrs, addr_unmapped(&v6));
	}
	lower_ttl(found, r->ttl_s);
	return true;
}

// Adds the addresses that `owner` itself has; *ret_cname is its CNAME record or NULL.
static bool add_owned(struct dns_records *records, const char *owner, uint16_t type,
		      struct dns_found *found, const struct dns_record **ret_cname)
{
	bool any = false;

	*ret_cname = NULL;
	vec_each (&records->of, r) {
		if (strcasecmp(r->owner, owner) != 0)
			continue;
		if (r->type == DNS_TYPE_CNAME)
			*ret_cname = r;
		else if (add_addr(r, type, found))
			any = true;
	}
	return any;
}

static int follow(struct dns_records *records, const char *name, uint16_t type,
		  struct dns_found *found)
{
	struct dns_found chain = {.ttl_s = UINT32_MAX};
	const struct dns_record *cname;

	for (int i = 0; i <= CHAIN_MAX; i++) {
		if (add_owned(records, name, type, found, &cname)) {
			lower_ttl(found, chain.ttl_s);
			if (!found->canonical[0])
				snprintf(found->canonical, sizeof(found->canonical), "%s", name);
			return 0;
		}
		if (!cname)
			return -ENODATA;
		lower_ttl(&chain, cname->ttl_s);
		name = cname->target;
	}
	return -EIO;
}

int dns_message_read(const uint8_t *message, size_t len, const char *name, uint16_t type,
		     struct dns_found *found)
{
	CLEANUP(records_cleanup) struct dns_records records = {0};

	if (len > INT32_MAX || !take_answers(message, len, &records))
		return -EIO;
	if (!found->addrs.n)
		found->ttl_s = UINT32_MAX;
	return follow(&records, name, type, found);
}
