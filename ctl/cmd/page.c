// SPDX-License-Identifier: GPL-2.0-only
// weir page: the page on a port of 127.0.0.1, until ^C.
#include "ctl/agent/page.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/parts.h"
#include "ctl/agent/presence.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/page_document.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/local.h"

#define FOR_MS   (12ull * 3600 * 1000)
#define FOR_MOST (7ull * 24 * 3600 * 1000)
#define BACKLOG  16

// ---- the port -----------------------------------------------------------------------------------

static int listen_on(uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(address);
	int yes = 1;

	if (fd < 0)
		return err_system(err, errno, "cannot make a socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)&address, &len)) {
		err_system(err, errno, "cannot listen on 127.0.0.1:%u", port);
		if (err->code == EADDRINUSE)
			return err_hint(err, "another --port, or none for any free one");
		if (err->code == EADDRNOTAVAIL)
			return err_hint(err, "ip link set lo up");
		return -err->code;
	}
	*ret_fd = TAKE_FD(fd);
	*ret_port = ntohs(address.sin_port);
	return 0;
}

// The port is in the namespace of the operator, also with -N: the browser and ssh reach that one.
static int open_port(const struct context *ctx, uint16_t port, int *ret_fd, uint16_t *ret_port,
		     struct err *err)
{
	CLEANUP_FD int there = -1;
	int code;

	if (ctx->netns_before < 0)
		return listen_on(port, ret_fd, ret_port, err);
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (there < 0 || setns(ctx->netns_before, CLONE_NEWNET))
		return err_system(err, errno, "cannot enter the network namespace of the command");
	code = listen_on(port, ret_fd, ret_port, err);
	if (code)
		return code;
	if (setns(there, CLONE_NEWNET))
		return err_system(err, errno, "cannot enter the network namespace '%s'",
				  ctx->netns);
	return 0;
}

static int make_token(char ret[PAGE_TOKEN + 1], struct err *err)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[PAGE_TOKEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_system(err, errno, "cannot make a token");
	for (size_t n = 0; n < sizeof(bytes); n++) {
		ret[2 * n] = digits[bytes[n] >> 4];
		ret[2 * n + 1] = digits[bytes[n] & 15];
	}
	ret[PAGE_TOKEN] = '\0';
	return 0;
}

// ---- the agent ----------------------------------------------------------------------------------

static bool answers(const char *path)
{
	CLEANUP_FD int fd = local_connect(path, 0);

	return fd >= 0;
}

// NULL: no agent runs, or one without the page: an older one.
static char *find_agent(const char *instance, bool *ret_runs)
{
	CLEANUP_PRESENCE struct presence agent = {0};
	CLEANUP_FREE char *path = page_path(instance);

	presence_read(instance, &agent);
	*ret_runs = agent.runs;
	return agent.runs && answers(path) ? TAKE_PTR(path) : NULL;
}

// ---- the command --------------------------------------------------------------------------------

static void page_command_free(struct page_command *p)
{
	fd_close(p->fd);
	free(p->agent);
}

static void tell(struct context *ctx, const struct page_command *p, bool runs, uint16_t port)
{
	CLEANUP_FREE char *url = mem_printf("http://127.0.0.1:%u/#%s", port, p->token);
	struct out *o = ctx->out;

	out_set_string(o, "instance", ctx->instance);
	out_set_string(o, "url", url);
	out_set_u64(o, "port", port);
	out_set_u64(o, "for_ms", p->for_ms);
	out_set_bool(o, "agent", p->agent);
	out_line(o, "%s", url);
	out_line(o, "from another machine: ssh -L %u:127.0.0.1:%u HOST, then the same address",
		 port, port);
	if (!p->agent)
		out_line(o, "%s: this command measures, and has no history of before",
			 runs ? "the agent does not serve the page (an older one: restart it)"
			      : "no agent runs");
	if (ctx->json)
		out_next_document(o);
	else
		out_flush(o);
}

static int read_options(const struct args *args, struct page_command *ret, uint16_t *ret_port,
			struct err *err)
{
	const char *port = args_value(args, "port"), *until = args_value(args, "for");
	uint64_t n = 0;

	ret->for_ms = FOR_MS;
	if (port && num_parse_u64(port, strlen(port), 1, UINT16_MAX, &n))
		return err_input(err, "--port '%s' is not a port from 1 to 65535", port);
	*ret_port = (uint16_t)n;
	if (until && num_parse_time_ms(until, strlen(until), 1000, FOR_MOST, &ret->for_ms)) {
		err_input(err, "--for '%s' is not a time from 1s to 7d", until);
		return err_hint(err, "for example --for 30m");
	}
	return 0;
}

static int check_instance(const struct context *ctx, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;

	return instance_open(ctx->instance, &i, err);
}

static int end_of(const struct context *ctx, const struct page_command *p, struct err *err)
{
	if (p->end == PAGE_GUESSED) {
		err_refused(err, "%d requests had a wrong token", PAGE_WRONG);
		err_hint(
			err,
			"a program of this machine tried to guess it, or old tabs of the page asked: "
			"close them; weir page makes another token");
		return -EACCES;
	}
	out_set_bool(ctx->out, "end", true); // the last document
	if (!ctx->quiet)
		out_line(ctx->out, "%s",
			 p->end == PAGE_TIME ? "the time of --for has expired: ended" : "ended");
	return 0;
}

static int serve(struct context *ctx, struct page_command *page, uint16_t port, struct err *err)
{
	struct agent a = {
		.instance = ctx->instance, .command = ctx->line, .netns = ctx->netns, .page = page};
	bool runs = false;
	int code = make_token(page->token, err);

	if (code)
		return code;
	if ((code = open_port(ctx, port, &page->fd, &port, err)))
		return code;
	page->agent = find_agent(ctx->instance, &runs);
	a.keeps_history = !page->agent; // the agent measures
	tell(ctx, page, runs, port);
	if ((code = parts_run(&a, err)))
		return code;
	return end_of(ctx, page, err);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(page_command_free) struct page_command page = {.fd = -1};
	bool document = args_has(args, "document");
	uint16_t port = 0;
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if ((code = read_options(args, &page, &port, err)))
		return code;
	if (document && !ctx->json)
		return err_input(err, "--document requires -j: the document is JSON");
	if (document && (args_value(args, "port") || args_value(args, "for")))
		return err_input(err, "--document cannot be combined with --port and --for");
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = check_instance(ctx, err)))
		return code;
	return document ? page_document(ctx, err) : serve(ctx, &page, port, err);
}

static const struct args_option options[] = {
	{.name = "port", .arg = "N", .help = "listen on this port (default: any free one)"},
	{.name = "for", .arg = "TIME", .help = "end after TIME (default 12h)"},
	{.name = "document", .help = "with -j: print once what the page shows beside rates"},
	{0},
};

const struct command cmd_page = {
	.name = "page",
	.usage = "[OPTIONS]",
	.summary = "serve a page for a browser: rates, alarms, services, on 127.0.0.1",
	.text = "Prints an address with a token, valid until ^C. Nothing can be changed there. Only programs\n"
		"of this machine can connect; ssh -L makes the page visible on another one. Rates and their\n"
		"history are the agent's if one runs. Ten requests with a wrong token end the command.\n"
		"\n"
		"  weir page\n"
		"  weir page --port 8080 --for 30m",
	.options = options,
	.run = run,
};
