// SPDX-License-Identifier: GPL-2.0-only
// Connected sockets, read with SOCK_DIAG_BY_FAMILY.
#include "ctl/net/sockdiag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "ctl/base/vec.h"
#include "ctl/net/netlink.h"

struct sockdiag_sockets {
	VEC(struct socket_info) found;
	uint8_t proto; // belongs to the dump that is being read
};

static void sockets_cleanup(struct sockdiag_sockets *s)
{
	vec_free(&s->found);
}

static struct addr addr_of(uint8_t family, const uint32_t words_be[4])
{
	struct in6_addr v6;

	if (family == AF_INET)
		return addr_from_v4(words_be[0]);
	memcpy(&v6, words_be, sizeof(v6));
	return IN6_IS_ADDR_V4MAPPED(&v6) ? addr_from_v4(words_be[3]) : addr_from_v6(v6.s6_addr);
}

static int visit_socket(const struct nlmsghdr *nlh, void *ctx)
{
	const struct inet_diag_msg *msg = mnl_nlmsg_get_payload(nlh);
	struct sockdiag_sockets *s = ctx;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*msg))
		return MNL_CB_OK;
	vec_push(&s->found, ((struct socket_info){
				    .proto = s->proto,
				    .local = addr_of(msg->idiag_family, msg->id.idiag_src),
				    .remote = addr_of(msg->idiag_family, msg->id.idiag_dst),
				    .local_port = ntohs(msg->id.idiag_sport),
				    .remote_port = ntohs(msg->id.idiag_dport),
				    .inode = msg->idiag_inode,
			    }));
	return MNL_CB_OK;
}

static int request_sockets(uint8_t family, uint8_t proto, uint32_t states,
			   struct sockdiag_sockets *s)
{
	char buf[256] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct inet_diag_req_v2 *req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_DUMP;
	req->sdiag_family = family;
	req->sdiag_protocol = proto;
	req->idiag_states = states;
	s->proto = proto;
	return netlink_request(NETLINK_SOCK_DIAG, nlh, visit_socket, s);
}

static const uint8_t families[] = {AF_INET, AF_INET6};
// The kernel has states of TCP for UDP sockets too.
#define CONNECTED   (1U << TCP_ESTABLISHED)
#define LISTENS     (1U << TCP_LISTEN)
#define UNCONNECTED (1U << TCP_CLOSE)

static int give(struct sockdiag_sockets *s, struct socket_info **ret, size_t *ret_n)
{
	*ret_n = s->found.n;
	*ret = TAKE_PTR(s->found.at);
	return 0;
}

static int request_tcp(uint32_t states, struct sockdiag_sockets *s, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		int code = request_sockets(families[i], IPPROTO_TCP, states, s);

		if (code)
			return err_system(err, -code, "cannot list the TCP connections");
	}
	return 0;
}

static int request_udp(uint32_t states, struct sockdiag_sockets *s, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		int code = request_sockets(families[i], IPPROTO_UDP, states, s);

		if (code && code != -ENOENT)
			return err_system(err, -code, "cannot list the UDP sockets");
	}
	return 0;
}

// The TCP sockets and the UDP sockets in these states.
static int list(uint32_t tcp, uint32_t udp, struct socket_info **ret, size_t *ret_n,
		struct err *err)
{
	CLEANUP(sockets_cleanup) struct sockdiag_sockets s = {0};
	int code = request_tcp(tcp, &s, err);

	if (code || (code = request_udp(udp, &s, err)))
		return code;
	return give(&s, ret, ret_n);
}

int sockdiag_connected(struct socket_info **ret, size_t *ret_n, struct err *err)
{
	return list(CONNECTED, CONNECTED, ret, ret_n, err);
}

int sockdiag_bound(struct socket_info **ret, size_t *ret_n, struct err *err)
{
	return list(LISTENS, UNCONNECTED, ret, ret_n, err);
}

int sockdiag_udp(struct socket_info **ret, size_t *ret_n, struct err *err)
{
	CLEANUP(sockets_cleanup) struct sockdiag_sockets s = {0};
	int code = request_udp(CONNECTED, &s, err);

	return code ? code : give(&s, ret, ret_n);
}

// Without NETLINK_SOCK_DIAG the socket is refused, without inet_diag or tcp_diag the request.
bool sockdiag_missing(int code)
{
	return code == -EPROTONOSUPPORT || code == -EOPNOTSUPP || code == -ENOENT;
}
