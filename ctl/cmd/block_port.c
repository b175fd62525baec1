// SPDX-License-Identifier: GPL-2.0-only
// Writes the rule for a port as people name one. The policy language reads it, and reports what is
// wrong with it.
#include "ctl/cmd/block_port.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/policy/names.h"

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

// ---- other words with a port --------------------------------------------------------------------

static int refuse_number(const char *word, const char *verb, struct err *err)
{
	uint32_t port;

	if (num_parse_u32(word, strlen(word), 0, UINT16_MAX, &port))
		return 0;
	err_input(err, "'%s' is not an address", word);
	return err_hint(err, "a port: weir %s port %s, or weir %s %s/tcp", verb, word, verb, word);
}

// "22/sctp", "ssh/udp": ports of other protocols, and names that the protocol does not have.
static int refuse_protocol(const char *word, const char *ports, const char *proto, const char *verb,
			   struct err *err)
{
	const struct servent *service;
	uint32_t port = 0;
	uint8_t number;

	if (proto[strspn(proto, "0123456789")] == '\0' || names_proto(proto, &number) < 0)
		return 0; // the length of a prefix, or no protocol
	service = getservbyname(ports, NULL);
	if (service)
		port = ntohs((uint16_t)service->s_port);
	else if (num_parse_u32(ports, strlen(ports), 0, UINT16_MAX, &port))
		return 0;
	if (service && (!strcmp(proto, "tcp") || !strcmp(proto, "udp"))) {
		err_input(err, "'%s': the service '%s' has no port of %s", word, ports, proto);
		return err_hint(err, "weir %s %s, or weir %s %u/%s", verb, ports, verb, port,
				proto);
	}
	err_input(err, "'%s' is not an address", word);
	if (!strcmp(proto, "sctp"))
		return err_hint(err, "a port: weir %s proto sctp port %u", verb, port);
	return err_hint(err, "rules have ports of tcp, udp and sctp only");
}

// A number after another word belongs to that: asn 64500.
static bool is_item(const char *const *words, size_t i)
{
	struct addr a;

	return !i || !addr_parse(words[i - 1], strlen(words[i - 1]), &a, NULL);
}

int block_port_refuse(const struct args *args, const char *verb, struct err *err)
{
	for (size_t i = 0; i < args->words.n; i++) {
		const char *word = args->words.at[i];
		CLEANUP_FREE char *ports = mem_strdup(word);
		char *slash = strchr(ports, '/');
		int code = 0;

		if (!is_item(args->words.at, i))
			continue;
		if (slash) {
			*slash = '\0';
			code = refuse_protocol(word, ports, slash + 1, verb, err);
		} else {
			code = refuse_number(word, verb, err);
		}
		if (code)
			return code;
	}
	return 0;
}
