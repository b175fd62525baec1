// SPDX-License-Identifier: GPL-2.0-only
// A name server of the test's own: a thread with one UDP and one TCP socket at the same random port
// of 127.0.0.1, which answers by a table.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/net/dns_packet.h"

enum server_action {
	ANSWER,
	NXDOMAIN,
	SERVFAIL,
	REFUSED,
	SILENT,
	SILENT_ONCE, // then ANSWER
	TRUNCATE,    // then ANSWER over TCP
	GARBAGE,
};

struct server_rule {
	const char *name;
	uint16_t type; // 0: every type that no other rule has
	enum server_action action;
	const struct packet_rr *rrs;
	size_t n;
};

struct dns_server {
	const struct server_rule *rules;
	size_t rules_n;
	int udp, tcp, stop[2];
	uint16_t port;
	pthread_t thread;
	atomic_uint queries, tcp_queries;
	bool silenced[64]; // by rule
	char text[32];     // "127.0.0.1:PORT"
};

// The name in a question; its length in bytes; 0: not a name.
static size_t read_question_name(const uint8_t *q, size_t len, char name[256])
{
	size_t at = 0, out = 0;

	while (at < len && q[at]) {
		size_t label = q[at];

		if (label > 63 || at + label + 1 >= len || out + label + 2 > 256)
			return 0;
		if (out)
			name[out++] = '.';
		memcpy(name + out, q + at + 1, label);
		out += label;
		at += label + 1;
	}
	name[out] = '\0';
	return at < len ? at + 1 : 0;
}

static const struct server_rule *find_rule(const struct dns_server *s, const char *name,
					   uint16_t type)
{
	const struct server_rule *any = NULL;

	for (size_t i = 0; i < s->rules_n; i++)
		if (!strcasecmp(s->rules[i].name, name)) {
			if (s->rules[i].type == type)
				return &s->rules[i];
			if (!s->rules[i].type)
				any = &s->rules[i];
		}
	return any;
}

// "hN.many.test" has the A record 10.0.N/256.N%256, without a rule.
static bool make_numbered(const char *name, uint16_t type, char addr[32])
{
	unsigned n = 0;

	if (name[0] != 'h' || !strstr(name, ".many.test") || type != 1)
		return false;
	for (const char *at = name + 1; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (unsigned)(*at - '0');
	snprintf(addr, 32, "10.0.%u.%u", n / 256 % 256, n % 256);
	return true;
}

static void put_answer(struct text *out, uint16_t id, const char *name, uint16_t type,
		       const struct server_rule *rule)
{
	char addr[32];
	struct packet_rr numbered = {"", 1, 60, addr};
	bool many = make_numbered(name, type, addr);
	const struct packet_rr *rrs = many ? &numbered : rule ? rule->rrs : NULL;
	size_t n = many ? 1 : rule ? rule->n : 0;

	put_header(out, id, 0x8180, n);
	put_question(out, name, type);
	for (size_t i = 0; i < n; i++)
		put_rr(out, &rrs[i]);
}

static void put_error(struct text *out, uint16_t id, const char *name, uint16_t type,
		      unsigned flags)
{
	put_header(out, id, 0x8180 | flags, 0);
	put_question(out, name, type);
}

// Appends the reply to *out; nothing if the server does not answer.
static void server_reply(struct dns_server *s, const uint8_t *query, size_t len, bool tcp,
			 struct text *out)
{
	const struct server_rule *rule;
	enum server_action action;
	uint16_t id, type;
	char name[256];
	size_t name_len;

	if (len < 17)
		return;
	name_len = read_question_name(query + 12, len - 12 - 4, name);
	id = (uint16_t)(query[0] << 8 | query[1]);
	type = (uint16_t)(query[12 + name_len] << 8 | query[13 + name_len]);
	rule = find_rule(s, name, type);
	action = rule ? rule->action : strstr(name, ".many.test") ? ANSWER : NXDOMAIN;
	if (action == SILENT_ONCE) {
		bool *silenced = &s->silenced[rule - s->rules];

		action = *silenced ? ANSWER : SILENT;
		*silenced = true;
	}
	if (action == TRUNCATE && tcp)
		action = ANSWER;
	if (action == ANSWER)
		put_answer(out, id, name, type, rule);
	else if (action == NXDOMAIN || action == SERVFAIL || action == REFUSED)
		put_error(out, id, name, type, action == NXDOMAIN ? 3 : action == SERVFAIL ? 2 : 5);
	else if (action == TRUNCATE)
		put_error(out, id, name, type, 0x0200);
	else if (action == GARBAGE) {
		put_header(out, id, 0x8180, 9);
		put_question(out, name, type);
		text_add(out, "garbage");
	}
}

static void serve_udp(struct dns_server *s)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	struct text out = {0};
	uint8_t query[512];
	ssize_t n = recvfrom(s->udp, query, sizeof(query), 0, (struct sockaddr *)&from, &from_len);

	if (n <= 0)
		return;
	s->queries++;
	server_reply(s, query, (size_t)n, false, &out);
	if (out.len)
		sendto(s->udp, out.at, out.len, 0, (struct sockaddr *)&from, from_len);
	text_free(&out);
}

static bool read_all(int fd, uint8_t *buf, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, buf + at, len - at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

// One query per connection.
static void serve_tcp(struct dns_server *s)
{
	int fd = accept(s->tcp, NULL, NULL);
	struct text out = {0}, framed = {0};
	uint8_t size[2], query[512];
	size_t len;

	if (fd < 0)
		return;
	if (read_all(fd, size, 2) && (len = (size_t)size[0] << 8 | size[1]) <= sizeof(query) &&
	    read_all(fd, query, len)) {
		s->tcp_queries++;
		server_reply(s, query, len, true, &out);
		put_u16(&framed, (unsigned)out.len);
		text_addn(&framed, text_get(&out), out.len);
		if (write(fd, framed.at, framed.len) < 0)
			abort();
	}
	text_free(&out);
	text_free(&framed);
	close(fd);
}

static void *serve(void *ctx)
{
	struct dns_server *s = ctx;
	struct pollfd fds[] = {{.fd = s->udp, .events = POLLIN},
			       {.fd = s->tcp, .events = POLLIN},
			       {.fd = s->stop[0], .events = POLLIN}};

	while (poll(fds, 3, -1) >= 0 && !fds[2].revents) {
		if (fds[0].revents)
			serve_udp(s);
		if (fds[1].revents)
			serve_tcp(s);
	}
	return NULL;
}

static bool bind_loopback(int fd, uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(*port)};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return false;
	*port = ntohs(a.sin_port);
	return true;
}

// A port that is free for TCP may be in use for UDP: then another one is tried.
static bool server_bind(struct dns_server *s)
{
	int room = 4 * 1024 * 1024;

	for (int i = 0; i < 20; i++) {
		s->port = 0;
		s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(s->udp, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
		if (bind_loopback(s->tcp, &s->port) && bind_loopback(s->udp, &s->port) &&
		    !listen(s->tcp, 8))
			return true;
		close(s->udp);
		close(s->tcp);
	}
	return false;
}

static void server_start(struct dns_server *s, const struct server_rule *rules, size_t n)
{
	*s = (struct dns_server){.rules = rules, .rules_n = n};
	if (!server_bind(s) || pipe(s->stop) || pthread_create(&s->thread, NULL, serve, s))
		abort();
	snprintf(s->text, sizeof(s->text), "127.0.0.1:%u", s->port);
}

static void server_stop(struct dns_server *s)
{
	close(s->stop[1]);
	pthread_join(s->thread, NULL);
	close(s->stop[0]);
	close(s->udp);
	close(s->tcp);
}
