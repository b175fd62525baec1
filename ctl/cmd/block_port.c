// SPDX-License-Identifier: GPL-2.0-only
// Writes the rule for a port as people name one. The policy language reads it, and reports what is
// wrong with it.
#include "ctl/cmd/block_port.h"

#include <netdb.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

struct parts {
	const char *what, *proto; // NULL: any, those that the port has
	const char *ports;
};

static bool has_service(const char *name, const char *proto)
{
	return getservbyname(name, proto);
}

// A name has a number for one of the two, or for both. Without a name, and with several: both.
static const char *protos_of(const char *ports)
{
	bool tcp = has_service(ports, "tcp"), udp = has_service(ports, "udp");

	return tcp == udp ? "tcp, udp" : tcp ? "tcp" : "udp";
}

static void write_rule(const struct parts *p, bool to, struct text *ret)
{
	const char *what = p->what ? p->what : "any";

	text_addf(ret, "drop proto %s from %s to %s port %s",
		  p->proto ? p->proto : protos_of(p->ports), to ? "any" : what, to ? what : "any",
		  p->ports);
}

// Cuts "192.0.2.7:22" and "[2001:db8::1]:22" at the last colon.
static bool cut_address(char *word, struct parts *ret)
{
	char *colon = strrchr(word, ':'), *end = colon;
	struct addr a;

	if (!colon || !colon[1])
		return false;
	*colon = '\0';
	if (*word == '[' && end > word + 1 && end[-1] == ']') {
		end[-1] = '\0';
		word++;
	} else if (strchr(word, ':')) {
		return false; // an IPv6 address
	}
	*ret = (struct parts){.what = word, .ports = colon + 1};
	return !addr_parse(word, strlen(word), &a, NULL);
}

// Cuts "22/tcp".
static bool cut_protocol(char *word, struct parts *ret)
{
	char *slash = strchr(word, '/');
	uint32_t port;

	if (!slash || (strcmp(slash + 1, "tcp") != 0 && strcmp(slash + 1, "udp") != 0))
		return false;
	*slash = '\0';
	*ret = (struct parts){.proto = slash + 1, .ports = word};
	return !num_parse_u32(word, strlen(word), 0, UINT16_MAX, &port) ||
	       has_service(word, slash + 1);
}

// Other names of a service, such as www, are more often names of hosts in a search domain.
static bool is_service(const char *word)
{
	const struct servent *service = getservbyname(word, NULL);

	return service && !strcmp(service->s_name, word);
}

static bool read_word(const char *given, bool to, struct text *ret)
{
	CLEANUP_FREE char *address = mem_strdup(given), *protocol = mem_strdup(given);
	struct parts p = {.ports = given};

	if (!cut_address(address, &p) && !cut_protocol(protocol, &p)) {
		p = (struct parts){.ports = given};
		if (!is_service(given))
			return false;
	}
	write_rule(&p, to, ret);
	return true;
}

bool block_port(const struct args *args, bool to, struct text *ret)
{
	CLEANUP_TEXT struct text ports = {0};
	const char *const *words = args->words.at;
	size_t n = args->words.n, at = 0;
	struct parts p = {0};

	if (n == 1)
		return read_word(words[0], to, ret);
	if (at < n && strcmp(words[at], "proto") != 0 && strcmp(words[at], "port") != 0)
		p.what = words[at++];
	if (at + 1 < n && !strcmp(words[at], "proto")) {
		p.proto = words[at + 1];
		at += 2;
	}
	if (at + 1 >= n || strcmp(words[at], "port") != 0)
		return false;
	for (at++; at < n; at++)
		text_addf(&ports, "%s%s", ports.len ? " " : "", words[at]);
	p.ports = text_get(&ports);
	write_rule(&p, to, ret);
	return true;
}
