// SPDX-License-Identifier: GPL-2.0-only
// Netlink: requests and their answers, with interrupted dumps repeated, families of generic
// netlink, addresses in attributes.
#include "ctl/net/netlink.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/text.h"

enum {
	// The kernel fills up to 32 KB per read of a dump when the reader offers as much.
	CHUNK_BYTES = 64 * 1024,
	DUMP_TRIES = 16,
};

static void socket_cleanup(struct mnl_socket **nl)
{
	if (*nl)
		mnl_socket_close(*nl);
}

// Whole messages; their lengths are multiples of four already, except perhaps the last one's.
static void append_aligned(struct text *answer, const char *chunk, size_t len)
{
	static const char zeros[NLMSG_ALIGNTO];

	text_addn(answer, chunk, len);
	text_addn(answer, zeros, -len % NLMSG_ALIGNTO);
}

static int receive(struct mnl_socket *nl, uint32_t seq, struct text *answer)
{
	CLEANUP_FREE char *chunk = mem_zalloc(1, CHUNK_BYTES);
	int code = MNL_CB_OK;

	while (code > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(nl, chunk, CHUNK_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		append_aligned(answer, chunk, (size_t)n);
		code = mnl_cb_run(chunk, (size_t)n, seq, mnl_socket_get_portid(nl), NULL, NULL);
	}
	return code == MNL_CB_ERROR ? -errno : 0;
}

// -EINTR here means only one thing: the dump changed while it was read.
static int ask(int bus, struct nlmsghdr *request, netlink_visit *visit, void *ctx)
{
	CLEANUP(socket_cleanup) struct mnl_socket *nl = NULL;
	CLEANUP(text_free) struct text answer = {0};
	int code;

	nl = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!nl || mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	if (mnl_socket_sendto(nl, request, request->nlmsg_len) < 0)
		return -errno;
	code = receive(nl, request->nlmsg_seq, &answer);
	if (code)
		return code;
	code = mnl_cb_run(answer.at, answer.len, request->nlmsg_seq, mnl_socket_get_portid(nl),
			  visit, ctx);
	return code == MNL_CB_ERROR ? -errno : 0;
}

int netlink_request(int bus, struct nlmsghdr *request, netlink_visit *visit, void *ctx)
{
	int code = -EINTR;

	request->nlmsg_flags |= NLM_F_REQUEST;
	if ((request->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
		request->nlmsg_flags |= NLM_F_ACK;
	for (int i = 0; i < DUMP_TRIES && code == -EINTR; i++) {
		request->nlmsg_seq = (uint32_t)time(NULL) + (uint32_t)i;
		code = ask(bus, request, visit, ctx);
	}
	return code;
}

static struct addr addr_of(int family, const void *bytes, size_t len)
{
	struct addr none = {0};
	uint32_t v4;

	if (family == AF_INET && len == sizeof(v4)) {
		memcpy(&v4, bytes, sizeof(v4));
		return addr_from_v4(v4);
	}
	if (family == AF_INET6 && len == 16)
		return addr_from_v6(bytes);
	return none;
}

struct addr attribute_addr(int family, const struct nlattr *attr)
{
	return addr_of(family, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
}

struct addr attribute_via(const struct nlattr *attr)
{
	const struct rtvia *via = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);

	if (len < sizeof(*via))
		return (struct addr){0};
	return addr_of(via->rtvia_family, via->rtvia_addr, len - sizeof(*via));
}

struct nlmsghdr *genl_put(char *buf, uint16_t family, uint8_t command, uint8_t version)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));

	nlh->nlmsg_type = family;
	genl->cmd = command;
	genl->version = version;
	return nlh;
}

struct genl_reader {
	mnl_attr_cb_t read;
	void *ctx;
};

static int visit(const struct nlmsghdr *nlh, void *ctx)
{
	const struct genl_reader *r = ctx;

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), r->read, r->ctx);
	return MNL_CB_OK;
}

int genl_ask(struct nlmsghdr *request, mnl_attr_cb_t read, void *ctx)
{
	struct genl_reader r = {read, ctx};

	return netlink_request(NETLINK_GENERIC, request, visit, &r);
}

static int read_family(const struct nlattr *attr, void *ctx)
{
	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    !mnl_attr_validate(attr, MNL_TYPE_U16))
		*(uint16_t *)ctx = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

int genl_family(const char *name, uint16_t *ret)
{
	char buf[128] __attribute__((aligned(NLMSG_ALIGNTO))) = {0};
	struct nlmsghdr *nlh = genl_put(buf, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	uint16_t family = 0;
	int code;

	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, name);
	code = genl_ask(nlh, read_family, &family);
	if (code && code != -ENOENT)
		return code;
	if (code || !family)
		return -EOPNOTSUPP;
	*ret = family;
	return 0;
}
