// SPDX-License-Identifier: GPL-2.0-only
// Reads services(5) itself: getservbyname() asks NSS, and a policy must not depend on LDAP.
#include "ctl/policy/services.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/num.h"

struct line {
	const char *at, *end;
};

static bool next_word(struct line *l, const char **ret, size_t *ret_len)
{
	while (l->at < l->end && strchr(" \t\r", *l->at) && *l->at)
		l->at++;
	*ret = l->at;
	while (l->at < l->end && !(strchr(" \t\r", *l->at) && *l->at))
		l->at++;
	*ret_len = (size_t)(l->at - *ret);
	return *ret_len > 0;
}

static void add(struct services *s, const char *name, size_t len, const char *proto,
		size_t proto_len, uint16_t port)
{
	const char *key =
		arena_printf(&s->arena, "%.*s/%.*s", (int)len, name, (int)proto_len, proto);

	index_add(&s->index, key, port);
}

static void read_line(struct services *s, struct line l)
{
	const char *name, *port_text, *slash, *alias;
	size_t name_len, port_len, alias_len, proto_len;
	uint16_t port;

	if (!next_word(&l, &name, &name_len) || !next_word(&l, &port_text, &port_len))
		return;
	slash = memchr(port_text, '/', port_len);
	if (!slash ||
	    num_parse_u16(port_text, (size_t)(slash - port_text), 0, UINT16_MAX, &port) < 0)
		return;
	slash++;
	proto_len = port_len - (size_t)(slash - port_text);
	add(s, name, name_len, slash, proto_len, port);
	while (next_word(&l, &alias, &alias_len))
		add(s, alias, alias_len, slash, proto_len, port);
}

void services_read(struct services *s, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct line l = {.at = text, .end = newline ? newline : end};
		const char *comment = memchr(l.at, '#', (size_t)(l.end - l.at));

		text = newline ? newline + 1 : end;
		if (comment)
			l.end = comment;
		read_line(s, l);
	}
}

int services_find(const struct services *s, const char *name, const char *proto, uint16_t *ret)
{
	char key[128];
	uint32_t port;

	if (snprintf(key, sizeof(key), "%s/%s", name, proto) >= (int)sizeof(key))
		return -ENOENT;
	port = index_find(&s->index, key);
	if (port == INDEX_NONE)
		return -ENOENT;
	*ret = (uint16_t)port;
	return 0;
}

void services_free(struct services *s)
{
	index_free(&s->index);
	arena_free(&s->arena);
}
