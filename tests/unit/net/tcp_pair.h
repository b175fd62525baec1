// SPDX-License-Identifier: GPL-2.0-only
// A TCP connection of the test with itself, over loopback.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

struct tcp_pair {
	int server, client; // descriptors
	uint16_t server_port, client_port;
};

static uint16_t port_of(int fd)
{
	struct sockaddr_storage a = {0};
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len))
		return 0;
	return ntohs(a.ss_family == AF_INET ? ((struct sockaddr_in *)&a)->sin_port
					    : ((struct sockaddr_in6 *)&a)->sin6_port);
}

static bool pair_connect(int listener, struct tcp_pair *ret)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port_of(listener))};

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ret->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listen(listener, 1) || connect(ret->client, (struct sockaddr *)&to, sizeof(to)))
		return false;
	ret->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ret->server_port = port_of(ret->server);
	ret->client_port = port_of(ret->client);
	return ret->server >= 0;
}

// The server's end listens on 127.0.0.1, or on every address of both families: the kernel then
// reports an IPv4 connection with mapped addresses.
static bool pair_open(bool mapped, struct tcp_pair *ret)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	int listener = socket(mapped ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
	bool ok;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (mapped)
		setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	ok = listener >= 0 &&
	     !bind(listener, mapped ? (void *)&v6 : (void *)&v4, mapped ? sizeof(v6) : sizeof(v4));
	ok = ok && pair_connect(listener, ret);
	close(listener);
	return ok;
}

static void pair_close(struct tcp_pair *p)
{
	close(p->server);
	close(p->client);
}
