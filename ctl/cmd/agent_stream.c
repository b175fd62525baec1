// SPDX-License-Identifier: GPL-2.0-only
// Speaks HTTP/1.0, because the answer then has no chunks.
#include "ctl/cmd/agent_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/agent/api.h"
#include "ctl/agent/history_plan.h"
#include "ctl/agent/presence.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/net/local.h"

#define LINE_MAX_BYTES (1u << 20)
#define PIECE          65536
#define HEAD_MAX       8192
#define HEAD_MS        5000 // until the answer begins
#define STATUS_OK      200
#define NOT_FOUND      404

struct agent_stream {
	int fd;
	struct text rest; // what followed the head of the answer
	struct history_lines lines;
};

void agent_stream_close(struct agent_stream *a)
{
	if (!a)
		return;
	fd_close(a->fd);
	text_free(&a->rest);
	text_free(&a->lines.line);
	free(a);
}

static void close_agent(struct agent_stream **a)
{
	agent_stream_close(*a);
}

// ---- the request --------------------------------------------------------------------------------

static int send_request(const struct agent_stream *a, const char *path)
{
	CLEANUP_FREE char *request = mem_printf("GET %s HTTP/1.0\r\n\r\n", path);

	return file_write(a->fd, request, strlen(request));
}

// "HTTP/1.0 200 OK"; 0: not an answer.
static uint64_t status_of(const char *head)
{
	const char *space = strchr(head, ' ');
	uint64_t status;

	if (strncmp(head, "HTTP/1.", strlen("HTTP/1.")) != 0 || !space ||
	    num_parse_u64(space + 1, strspn(space + 1, "0123456789"), 1, 999, &status))
		return 0;
	return status;
}

static int wait_for_input(const struct agent_stream *a, int timeout_ms)
{
	struct pollfd input = {.fd = a->fd, .events = POLLIN};
	int n = poll(&input, 1, timeout_ms);

	return n < 0 ? -errno : n;
}

// The agent answers at once, before there is an event. 0: it does not.
static uint64_t read_head(struct agent_stream *a)
{
	uint64_t until_ms = time_ms(CLOCK_MONOTONIC) + HEAD_MS, now_ms;
	char piece[1024];
	ssize_t len;

	while (!strstr(text_get(&a->rest), "\r\n\r\n")) {
		now_ms = time_ms(CLOCK_MONOTONIC);
		if (now_ms >= until_ms || a->rest.len > HEAD_MAX ||
		    wait_for_input(a, (int)(until_ms - now_ms)) <= 0)
			return 0;
		len = read(a->fd, piece, sizeof(piece));
		if (len <= 0)
			return 0;
		text_addn(&a->rest, piece, (size_t)len);
	}
	return status_of(text_get(&a->rest));
}

static int refuse(uint64_t status, struct err *err)
{
	if (!status) {
		err_stated(err, ETIMEDOUT, "the agent does not answer");
		return err_hint(err, "weir status shows its state");
	}
	err_refused(err, "the agent has answered with HTTP status %u", (unsigned)status);
	return -EBUSY;
}

// Removes the head from what was read.
static void drop_head(struct agent_stream *a)
{
	CLEANUP_FREE char *all = text_take(&a->rest);

	text_add(&a->rest, strstr(all, "\r\n\r\n") + 4);
}

int agent_stream_open(const char *instance, const char *request, struct agent_stream **ret,
		      struct err *err)
{
	CLEANUP(close_agent) struct agent_stream *a = mem_new(struct agent_stream);
	CLEANUP_PRESENCE struct presence agent = {0};
	CLEANUP_FREE char *path = api_path(instance);
	uint64_t status;

	*ret = NULL;
	a->fd = -1;
	presence_read(instance, &agent);
	if (!agent.runs || (a->fd = local_connect(path, 0)) < 0)
		return 0;
	status = send_request(a, request) ? 0 : read_head(a);
	if (status == NOT_FOUND) // an older agent
		return 0;
	if (status != STATUS_OK)
		return refuse(status, err);
	drop_head(a);
	*ret = TAKE_PTR(a);
	return 0;
}

int agent_stream_fd(const struct agent_stream *a)
{
	return a->fd;
}

// ---- documents ----------------------------------------------------------------------------------

static void take(struct agent_stream *a, const char *at, size_t len, agent_stream_visit *visit,
		 void *ctx)
{
	while (len) {
		CLEANUP_JSON struct json *document = NULL;

		if (history_lines_take(&a->lines, LINE_MAX_BYTES, &at, &len) != HISTORY_LINE_WHOLE)
			continue;
		document = json_parse(a->lines.line.at, a->lines.line.len, NULL, 0);
		if (document)
			visit(ctx, document);
	}
}

int agent_stream_poll(struct agent_stream *a, int timeout_ms, agent_stream_visit *visit, void *ctx)
{
	char piece[PIECE];
	ssize_t len;
	int code;

	if (a->rest.len) {
		take(a, a->rest.at, a->rest.len, visit, ctx);
		text_free(&a->rest);
		return 0;
	}
	code = wait_for_input(a, timeout_ms);
	if (code <= 0)
		return code;
	len = read(a->fd, piece, sizeof(piece));
	if (len < 0)
		return errno == EINTR || errno == EAGAIN ? -EINTR : -EPIPE;
	if (!len)
		return -EPIPE;
	take(a, piece, (size_t)len, visit, ctx);
	return 0;
}
