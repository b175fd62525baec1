// SPDX-License-Identifier: GPL-2.0-only
// Serves the page, which the build has made an array of bytes.
#include "ctl/agent/page.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/door.h"
#include "ctl/agent/page_guard.h"
#include "ctl/agent/page_relay.h"
#include "ctl/agent/task.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/loop.h"
#include "page_text.h" // page_text, PAGE_STYLE, PAGE_SCRIPT: scripts/page

#define UNAUTHORIZED 401
#define FORBIDDEN    403
#define ANSWER_MS    100

struct page_part {
	struct agent *agent;
	struct door *door;
	struct page_relays *relays; // NULL: this process has the rates
	struct agent_task over;     // the end of `weir page`
	unsigned wrong;             // tokens
};

char *page_path(const char *instance)
{
	return mem_printf("%s/%s/page", WEIR_RUN_FOLDER, instance);
}

// ---- answers ------------------------------------------------------------------------------------

static void add_headers(struct evhttp_request *request)
{
	static const char *const headers[][2] = {
		{"Content-Security-Policy",
		 "default-src 'none'; style-src '" PAGE_STYLE "'; script-src '" PAGE_SCRIPT
		 "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
		 "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
		{"X-Content-Type-Options", "nosniff"},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
	};

	for (size_t n = 0; n < ARRAY_SIZE(headers); n++)
		evhttp_add_header(evhttp_request_get_output_headers(request), headers[n][0],
				  headers[n][1]);
}

static void answer_page(struct evhttp_request *request)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(request);
	struct evbuffer *body;

	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		api_refuse_method(request, "GET, HEAD");
		return;
	}
	body = evbuffer_new();
	if (!body || evbuffer_add_reference(body, page_text, sizeof(page_text), NULL, NULL))
		mem_exhausted();
	api_answer(request, HTTP_OK, "text/html; charset=utf-8", body);
	evbuffer_free(body);
}

// Ends `weir page` when the answer was sent. Until then no token is right.
static void give_up(struct page_part *p)
{
	p->agent->page->end = PAGE_GUESSED;
	agent_task_move(&p->over, ANSWER_MS);
}

static bool is_known(struct page_part *p, struct evhttp_request *request)
{
	enum page_token token = page_guard_token(request, p->agent->page->token);

	if (token == PAGE_TOKEN_RIGHT && p->wrong < PAGE_WRONG)
		return true;
	evhttp_add_header(evhttp_request_get_output_headers(request), "WWW-Authenticate", "Bearer");
	api_refuse(request, UNAUTHORIZED,
		   token == PAGE_TOKEN_WRONG ? "the token is wrong"
					     : "this path requires Authorization: Bearer TOKEN");
	if (token == PAGE_TOKEN_WRONG && ++p->wrong == PAGE_WRONG)
		give_up(p);
	return false;
}

static void answer_rates(struct page_part *p, struct evhttp_request *request)
{
	if (!p->relays)
		api_rates(p->agent, request, LIVE_FROM_PAGE);
	else if (evhttp_request_get_command(request) == EVHTTP_REQ_GET)
		page_relay(p->relays, request);
	else
		api_refuse_method(request, "GET");
}

static void on_request(struct evhttp_request *request, void *part)
{
	LOOP_SPAN("on_request");
	struct page_part *p = part;
	const char *refused = page_guard_refused(request, p->agent->page);
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

	add_headers(request);
	if (refused)
		api_refuse(request, FORBIDDEN, refused);
	else if (path && !strcmp(path, "/"))
		answer_page(request);
	else if (p->agent->page && !is_known(p, request))
		return;
	else if (path && api_rates_has(path))
		answer_rates(p, request);
	else
		api_refuse(request, HTTP_NOTFOUND, "no such path");
}

// ---- the part -----------------------------------------------------------------------------------

static const struct door_about about = {
	.bounds = {.who = "clients of the page",
		   .most = 256,
		   .unread_max = 2 * DOOR_HEADERS_MAX,
		   .held_max = 256u << 20,
		   .request_s = 10,
		   .answer_s = 60},
	.answer = on_request,
};

// A unit makes the folder for root only. The group may pass, and list nothing.
static int open_folder(const char *path, gid_t group, struct err *err)
{
	CLEANUP_FREE char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
	struct stat at;

	if (stat(folder, &at))
		return err_system(err, errno, "cannot read '%s'", folder);
	if (at.st_mode & S_IXOTH || (at.st_mode & S_IXGRP && at.st_gid == group))
		return 0;
	if (chown(folder, (uid_t)-1, group) || chmod(folder, at.st_mode | S_IXGRP))
		return err_system(err, errno, "cannot open '%s' for the group of --page-group",
				  folder);
	return 0;
}

// The owner of a file may give it to a group that it is in, without a capability.
static int give_to_group(const char *path, const char *name, struct err *err)
{
	const struct group *group;

	errno = 0;
	group = getgrnam(name);
	if (!group) {
		err_input(err, "there is no group '%s' for --page-group", name);
		return err_hint(err, "getent group lists them");
	}
	if (chown(path, (uid_t)-1, group->gr_gid)) {
		err_system(err, errno, "cannot give '%s' to the group '%s'", path, name);
		return err_hint(err, "in a unit without CAP_CHOWN: SupplementaryGroups=%s", name);
	}
	return open_folder(path, group->gr_gid, err);
}

static int open_agents(struct page_part *p, struct err *err)
{
	CLEANUP_FREE char *path = page_path(p->agent->instance);
	const char *group = p->agent->page_group;
	int code = door_open_path(p->agent, &about, path, p, &p->door, err);

	if (code)
		return code;
	if (group && (code = give_to_group(path, group, err)))
		return code;
	if (chmod(path, 0660))
		return err_system(err, errno, "cannot open '%s' for its group", path);
	return 0;
}

static int on_over(void *part, struct err *err)
{
	struct page_part *p = part;

	if (p->agent->page->end == PAGE_ASKED)
		p->agent->page->end = PAGE_TIME;
	event_base_loopbreak(p->agent->loop);
	return 0;
}

static int open_here(struct page_part *p, struct err *err)
{
	struct page_command *page = p->agent->page;

	if (page->agent)
		p->relays = page_relays_new(p->agent->loop, page->agent);
	agent_task_in(&p->over, page->for_ms);
	return door_open_socket(p->agent, &about, TAKE_FD(page->fd), p, &p->door, err);
}

static int start(struct agent *a, struct err *err)
{
	struct page_part *p = mem_new(struct page_part);

	p->agent = a;
	a->page_door = p;
	agent_task_init(&p->over, a, "the end of the page", on_over, p);
	return a->page ? open_here(p, err) : open_agents(p, err);
}

static void stop(struct agent *a)
{
	struct page_part *p = TAKE_PTR(a->page_door);

	if (!p)
		return;
	page_relays_free(p->relays);
	door_close(p->door);
	agent_task_free(&p->over);
	free(p);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	CLEANUP_FREE char *path = page_path(a->instance);

	json_set(fields, "socket", json_string(path));
	json_set(fields, "group", json_string(a->page_group ? a->page_group : "root"));
	door_report(a->page_door->door, problems);
}

const struct agent_part agent_page = {
	.name = "page",
	.start = start,
	.stop = stop,
	.report = report,
};
