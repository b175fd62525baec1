// SPDX-License-Identifier: GPL-2.0-only
// Sends a netlink request, reads the answer, and repeats interrupted dumps.
#include "ctl/net/netlink.h"

#include <errno.h>
#include <stddef.h>
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
