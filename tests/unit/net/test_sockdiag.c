// SPDX-License-Identifier: GPL-2.0-only
// Connections of the test are among those that the kernel reports.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/mem.h"
#include "ctl/net/sockdiag.h"
#include "tests/unit/net/skip.h"
#include "tests/unit/net/tcp_pair.h"

static uint32_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint32_t)st.st_ino;
}

// The socket with this inode; family 0 of `local`: not found.
static struct socket_info find(int fd)
{
	CLEANUP_FREE struct socket_info *all = NULL;
	struct socket_info found = {0};
	size_t n = 0;

	assert_int_equal(sockdiag_connected(&all, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		if (all[i].inode == inode_of(fd))
			found = all[i];
	return found;
}

static bool is_loopback_v4(const struct addr *a)
{
	return a->family == 4 && !memcmp(a->bytes, "\x7f\0\0\1", 4);
}

static void sees_both_ends(void **state)
{
	struct socket_info server, client;
	struct tcp_pair pair;

	assert_true(pair_open(false, &pair));
	server = find(pair.server);
	client = find(pair.client);
	assert_int_equal(server.proto, IPPROTO_TCP);
	assert_true(is_loopback_v4(&server.local) && is_loopback_v4(&server.remote));
	assert_int_equal(server.local_port, pair.server_port);
	assert_int_equal(server.remote_port, pair.client_port);
	assert_int_equal(client.local_port, pair.client_port);
	assert_int_equal(client.remote_port, pair.server_port);
	pair_close(&pair);
}

static void undoes_mapped_addresses(void **state)
{
	struct socket_info server;
	struct tcp_pair pair;

	skip_without_ipv6();
	assert_true(pair_open(true, &pair));
	server = find(pair.server);
	assert_true(is_loopback_v4(&server.local) && is_loopback_v4(&server.remote));
	assert_int_equal(server.remote_port, pair.client_port);
	pair_close(&pair);
}

static bool is_bound(int fd)
{
	CLEANUP_FREE struct socket_info *all = NULL;
	bool found = false;
	size_t n = 0;

	assert_int_equal(sockdiag_bound(&all, &n, NULL), 0);
	for (size_t i = 0; i < n; i++)
		found |= all[i].inode == inode_of(fd) && all[i].local_port == port_of(fd);
	return found;
}

static void tells_listeners_from_connections(void **state)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct tcp_pair pair;

	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(find(fd).local.family, 0);
	assert_true(is_bound(fd));
	assert_true(pair_open(false, &pair));
	assert_false(is_bound(pair.client));
	pair_close(&pair);
}

static void sees_connected_udp_only(void **state)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET};
	struct socket_info found;
	bool bound;

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(find(fd).local.family, 0);
	bound = is_bound(fd);
	a.sin_port = htons(7);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	found = find(fd);
	if (!found.local.family)
		skip_because("this kernel does not show UDP sockets (udp_diag)");
	assert_true(bound && !is_bound(fd));
	assert_int_equal(found.proto, IPPROTO_UDP);
	assert_int_equal(found.remote_port, 7);
	assert_int_equal(found.local_port, port_of(fd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_both_ends),
		cmocka_unit_test(undoes_mapped_addresses),
		cmocka_unit_test(tells_listeners_from_connections),
		cmocka_unit_test(sees_connected_udp_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
