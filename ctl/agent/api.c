// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that answers HTTP: the API on a unix socket of root's, and the metrics,
// there and on an address.
//
// Each request is a command in another process: it takes its turn for the lock, and a hostile or
// slow client holds up nothing in the loop. So the responses are the same as from `weir -j`. Small
// changes of entries share a process (changes.h), all others have one of their own.
#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/api.h"
#include "ctl/agent/api_answer.h"
#include "ctl/agent/api_metrics.h"
#include "ctl/agent/api_origin.h"
#include "ctl/agent/api_words.h"
#include "ctl/agent/changes.h"
#include "ctl/agent/clients.h"
#include "ctl/agent/door.h"
#include "ctl/agent/events.h"
#include "ctl/agent/files.h"
#include "ctl/agent/history.h"
#include "ctl/agent/process.h"
#include "ctl/agent/samples.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/loop.h"

#define RUNNING_MAX 8   // commands at once; others wait for them
#define WAITING_MAX 512 // requests; more are refused
#define PAGE_MAX    2   // pages: commands at once
#define PAGE_QUEUE  64  // pages: requests
#define BODY_MAX    (16u << 20)
#define JSON_MAX    (256u << 10) // bytes of a body that the loop itself reads
#define OUTPUT_MAX  (512u << 20)
#define COMMAND_S   120
#define METRICS     "/metrics"
#define FORBIDDEN   403
#define ERROR_MAX   200

enum { ON_SOCKET, ON_ADDRESS, DOORS };

struct api {
	struct agent *agent;
	struct door *doors[DOORS];
	char *path; // of the socket
	struct changes *changes;
	struct job *jobs;        // waiting and running, the oldest first
	size_t running, waiting; // running: without the requests of `changes`
	size_t page, page_runs;  // requests of pages, and those that run
	struct api_metrics *metrics;
};

// A request and its command.
struct job {
	struct api *api;
	struct job *next;
	struct evhttp_request *request; // NULL: the client has left
	struct agent_process *process;  // these two NULL: it waits
	struct change *change;
	struct api_words words;
	struct history_query *history; // instead of a command
	char *input;
	size_t input_len;
	bool is_status, is_apply;
	bool only_looks;
	bool small; // one of `changes`
	bool page;  // for a page, which leaves room for others
	bool runs;  // its process was started
};

// ---- answers ------------------------------------------------------------------------------------

// HTTP's word for an exit status.
static int http_status(int status)
{
	static const int of[] = {HTTP_OK, HTTP_BADREQUEST, HTTP_INTERNAL, 409};

	return status >= 0 && status < (int)ARRAY_SIZE(of) ? of[status] : HTTP_INTERNAL;
}

// weir status fails where it has alarms, but its document is whole.
static bool has_alarms(struct evbuffer *output)
{
	CLEANUP_JSON struct json *document = json_parse((const char *)evbuffer_pullup(output, -1),
							evbuffer_get_length(output), NULL, 0);

	return document && json_length(json_get(document, "alarms"));
}

// ---- jobs ---------------------------------------------------------------------------------------

static void run_waiting(struct api *api);

static void job_free(struct job *j)
{
	struct job **at = &j->api->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	j->api->page -= j->page;
	j->api->page_runs -= j->page && j->runs;
	process_stop(j->process);
	change_forget(j->change);
	api_words_free(&j->words);
	history_query_free(j->history);
	free(j->input);
	free(j);
}

static void on_client_left(struct evhttp_connection *connection, void *job)
{
	struct job *j = job;
	struct api *api = j->api;

	if (!evhttp_request_get_connection(j->request)) // libevent has left it to us
		evhttp_request_free(j->request);
	j->request = NULL;
	if (j->change || j->process)
		return; // a change that has begun is completed
	api->waiting--;
	job_free(j);
	run_waiting(api);
}

// `process` or `change` of the job has ended.
static void finish(struct job *j, int status, struct evbuffer *output)
{
	struct api *api = j->api;

	if (j->request && !evbuffer_get_length(output)) {
		api_refuse(j->request, HTTP_INTERNAL, "the command was killed, or took too long");
	} else if (j->request) {
		api_answer(j->request,
			   j->is_status && has_alarms(output) ? HTTP_OK : http_status(status),
			   "application/json", output);
	}
	job_free(j);
	run_waiting(api);
}

static void on_done(void *job, const struct process_result *r)
{
	struct job *j = job;

	j->process = NULL;
	j->api->running--;
	if (j->is_apply)
		applies_count(j->api->agent, APPLIES_API, !r->status);
	finish(j, r->status, r->output);
}

static void on_changed(void *job, int status, const char *output, size_t len)
{
	struct evbuffer *buffer = evbuffer_new();
	struct job *j = job;

	if (!buffer || (len && evbuffer_add(buffer, output, len)))
		mem_exhausted();
	j->change = NULL;
	finish(j, status, buffer);
	evbuffer_free(buffer);
}

// A client that has left before its command began wants nothing any more.
static bool drop_if_left(struct job *j)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(j->request);

	if (!client_left(connection))
		return false;
	evhttp_connection_set_closecb(connection, NULL, NULL);
	evhttp_connection_free(connection); // with the request
	j->api->waiting--;
	job_free(j);
	return true;
}

// In a copy of the agent.
static int write_history(void *job, struct text *output, struct err *err)
{
	const struct job *j = job;

	history_query_write(j->api->agent, j->history, output);
	return 0;
}

static int start_command(struct job *j, const char *by, struct err *err)
{
	struct api *api = j->api;
	struct process_request request = {
		.args = j->history ? NULL : (const char *const *)j->words.list.at,
		.run = j->history ? write_history : NULL,
		.input = j->input,
		.input_len = j->input_len,
		.output_max = OUTPUT_MAX,
		.timeout_s = COMMAND_S,
		.by = by,
		.modest = true,
		.silent = j->only_looks, // what fails is in the document
		.plain = true,
		.done = on_done,
		.ctx = j,
	};
	int code = process_start(api->agent, &request, &j->process, err);

	j->runs = !code;
	api->running += j->runs;
	api->page_runs += j->runs && j->page;
	return code;
}

static int start_job(struct job *j, struct err *err)
{
	char by[80];

	client_author(evhttp_request_get_connection(j->request), by, sizeof(by));
	if (!j->small)
		return start_command(j, by, err);
	return changes_start(j->api->changes, by, &j->words, on_changed, j, &j->change, err);
}

static void run_job(struct job *j)
{
	struct api *api = j->api;
	struct err err = {0};

	if (drop_if_left(j))
		return;
	api->waiting--;
	if (!start_job(j, &err)) {
		free(TAKE_PTR(j->input));
		return;
	}
	api_refuse(j->request, HTTP_INTERNAL, err.text);
	job_free(j);
}

static bool may_run(const struct job *j)
{
	if (j->process || j->change)
		return false;
	if (j->page && j->api->page_runs >= PAGE_MAX)
		return false;
	return j->small ? !changes_full(j->api->changes) : j->api->running < RUNNING_MAX;
}

static void run_waiting(struct api *api)
{
	for (struct job *j = api->jobs, *next; j && api->waiting; j = next) {
		next = j->next;
		if (may_run(j))
			run_job(j);
	}
}

// Takes over words and input.
static void add_job(struct api *api, struct evhttp_request *request, struct job *from)
{
	struct job *j, **last = &api->jobs;

	if (api->waiting >= WAITING_MAX || (from->page && api->page >= PAGE_QUEUE)) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Retry-After", "1");
		api_refuse(request, HTTP_SERVUNAVAIL, "too many requests wait");
		api_words_free(&from->words);
		history_query_free(from->history);
		free(from->input);
		return;
	}
	j = mem_new(struct job);
	*j = *from;
	j->api = api;
	j->request = request;
	while (*last)
		last = &(*last)->next;
	*last = j;
	api->waiting++;
	api->page += j->page;
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_client_left, j);
	run_waiting(api);
}

// ---- requests -----------------------------------------------------------------------------------

static char *body_of(struct evhttp_request *request, size_t *ret_len)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(request);
	char *text;

	*ret_len = evbuffer_get_length(in);
	text = mem_zalloc(*ret_len + 1, 1);
	evbuffer_remove(in, text, *ret_len);
	return text;
}

// "limits&top=10&what=1.2.3.4": values are strings, a key without one is true. NULL: refused, as in
// a body.
static struct json *query_of(struct evhttp_request *request, char *error, size_t size)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	CLEANUP_FREE char *text = mem_strdup(query ? query : "");
	CLEANUP_JSON struct json *body = json_object();
	char *rest = NULL;

	for (char *key = strtok_r(text, "&", &rest); key; key = strtok_r(NULL, "&", &rest)) {
		char *value = strchr(key, '=');
		CLEANUP_FREE char *decoded = NULL;
		size_t len = 0;

		if (value)
			*value++ = '\0';
		if (json_get(body, key)) {
			snprintf(error, size, "the query has '%s' twice", key);
			return NULL;
		}
		decoded = evhttp_uridecode(value ? value : "", 1, &len);
		if (decoded && strlen(decoded) != len) {
			snprintf(error, size, "'%s' of the query has a zero byte", key);
			return NULL;
		}
		json_set(body, key, value && decoded ? json_string(decoded) : json_bool(true));
	}
	return TAKE_PTR(body);
}

static struct json *read_body(struct evhttp_request *request, const struct api_route *r,
			      char *error, size_t size)
{
	CLEANUP_FREE char *text = NULL;
	struct json *body;
	char why[160];
	size_t len;

	if (r->method == API_DELETE &&
	    evbuffer_get_length(evhttp_request_get_input_buffer(request))) {
		snprintf(error, size, "DELETE has its options in the query, and no body");
		return NULL;
	}
	if (r->method != API_POST)
		return query_of(request, error, size);
	text = body_of(request, &len);
	if (len > JSON_MAX) {
		snprintf(error, size, "the body of %s is limited to %u bytes", r->path, JSON_MAX);
		return NULL;
	}
	body = json_parse(text, len, why, sizeof(why));
	if (!body)
		snprintf(error, size, "the body is not JSON: %s", why);
	return body;
}

static void on_route(struct evhttp_request *request, struct api *api, const struct api_route *r)
{
	struct job job = {
		.only_looks = r->method == API_GET,
		.is_status = !strcmp(r->path, "/v1/status"),
	};
	CLEANUP_JSON struct json *body = NULL;
	char error[200] = "";
	struct err err = {0};

	if (r->text)
		job.input = body_of(request, &job.input_len);
	else if (!(body = read_body(request, r, error, sizeof(error)))) {
		api_refuse(request, HTTP_BADREQUEST, error);
		return;
	}
	if (!api_words_make(r, body, &job.words, &err)) {
		job.small = !r->text && changes_suit(&job.words);
		job.is_apply =
			!strcmp(r->path, "/v1/apply") && !json_is_yes(json_get(body, "dry-run"));
		add_job(api, request, &job);
		return;
	}
	api_refuse(request, HTTP_BADREQUEST, err.text);
	api_words_free(&job.words);
	free(job.input);
}

static const char *path_of(const struct evhttp_request *request)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));

	return path ? path : "";
}

static void on_metrics(struct evhttp_request *request, const struct api *api)
{
	enum evhttp_cmd_type method = evhttp_request_get_command(request);

	if (method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD)
		api_metrics_answer(request, api->metrics);
	else
		api_refuse_method(request, "GET, HEAD");
}

// One line for each method of the path.
static void on_path(struct evhttp_request *request, struct api *api, const char *path)
{
	static const struct {
		const char *word;
		enum evhttp_cmd_type type;
	} methods[] = {[API_GET] = {"GET", EVHTTP_REQ_GET},
		       [API_POST] = {"POST", EVHTTP_REQ_POST},
		       [API_DELETE] = {"DELETE", EVHTTP_REQ_DELETE}};
	CLEANUP_TEXT struct text allowed = {0};

	for (const struct api_route *r = api_routes; r->path; r++) {
		if (strcmp(path, r->path) != 0)
			continue;
		if (evhttp_request_get_command(request) == methods[r->method].type) {
			on_route(request, api, r);
			return;
		}
		text_addf(&allowed, "%s%s", allowed.len ? ", " : "", methods[r->method].word);
	}
	if (allowed.len)
		api_refuse_method(request, text_get(&allowed));
	else
		api_refuse(request, HTTP_NOTFOUND, "no such path");
}

static void on_history(struct evhttp_request *request, struct api *api, enum live_from from)
{
	struct job job = {.history = mem_new(struct history_query),
			  .only_looks = true,
			  .page = from == LIVE_FROM_PAGE};
	CLEANUP_JSON struct json *query = NULL;
	struct err err = {0};
	int code;

	if (job.page && !history_is_kept(api->agent)) { // browsers log 404 as an error
		evhttp_send_reply(request, HTTP_NOCONTENT, NULL, NULL);
		history_query_free(job.history);
		return;
	}
	query = query_of(request, err.text, sizeof(err.text));
	code = query ? history_query_make(api->agent, query, job.history, &err) : -EINVAL;
	if (code) {
		api_refuse(request, code == -ENOENT ? HTTP_NOTFOUND : HTTP_BADREQUEST, err.text);
		history_query_free(job.history);
		return;
	}
	add_job(api, request, &job);
}

static void check_live_key(void *error, const char *key, const struct json *value)
{
	if (strcmp(key, "state") != 0 || json_kind(value) != JSON_IS_BOOL)
		snprintf(error, ERROR_MAX, API_LIVE " has no query but 'state'");
}

// state: also what is not a rate (overview.h).
static void on_live(struct evhttp_request *request, struct api *api, enum live_from from)
{
	char error[ERROR_MAX] = "";
	CLEANUP_JSON struct json *query = query_of(request, error, sizeof(error));

	if (query)
		json_each(query, check_live_key, error);
	if (error[0])
		api_refuse(request, HTTP_BADREQUEST, error);
	else
		history_live(api->agent, request, from, json_get(query, "state"));
}

char *api_path(const char *instance)
{
	return mem_printf("%s/%s/api", WEIR_RUN_FOLDER, instance);
}

bool api_rates_has(const char *path)
{
	return !strcmp(path, API_LIVE) || !strcmp(path, API_HISTORY);
}

void api_rates(struct agent *a, struct evhttp_request *request, enum live_from from)
{
	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
		api_refuse_method(request, "GET");
	else if (!strcmp(path_of(request), API_LIVE))
		on_live(request, a->api, from);
	else
		on_history(request, a->api, from);
}

static void on_events(struct evhttp_request *request, const struct api *api)
{
	char error[ERROR_MAX] = "";
	CLEANUP_JSON struct json *query = NULL;

	if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
		api_refuse_method(request, "GET");
	else if ((query = query_of(request, error, sizeof(error))))
		events_answer(api->agent, request, query);
	else
		api_refuse(request, HTTP_BADREQUEST, error);
}

static void on_request(struct evhttp_request *request, void *part)
{
	LOOP_SPAN("on_request");
	const char *path = path_of(request), *refused = api_origin_refused(request);
	struct api *api = part;

	if (refused) {
		api_refuse(request, FORBIDDEN, refused);
		return;
	}
	if (!strcmp(path, METRICS)) {
		on_metrics(request, api);
		return;
	}
	if (api_rates_has(path))
		api_rates(api->agent, request, LIVE_FROM_API);
	else if (!strcmp(path, API_EVENTS))
		on_events(request, api);
	else if (!strcmp(path, API_SAMPLES))
		samples_answer(api->agent, request);
	else
		on_path(request, api, path);
}

// At the address of --metrics. It shows nothing but numbers, so it does not matter who asks.
static void on_public_request(struct evhttp_request *request, void *part)
{
	LOOP_SPAN("on_public_request");

	if (!strcmp(path_of(request), METRICS))
		on_metrics(request, part);
	else
		api_refuse(request, HTTP_NOTFOUND, "there is only " METRICS);
}

// ---- doors --------------------------------------------------------------------------------------

// More clients on the socket than requests that wait and run, so there is always one to close.
static const struct door_about doors[DOORS] = {
	[ON_SOCKET] = {.bounds = {.who = "clients on the socket",
				  .most = 1024,
				  .unread_max = BODY_MAX + (64u << 10),
				  .held_max = 1u << 30,
				  .request_s = 20,
				  .answer_s = 60},
		       .body_max = BODY_MAX,
		       .answer = on_request},
	[ON_ADDRESS] = {.bounds = {.who = "clients of the metrics",
				   .most = 256,
				   .unread_max = 2 * DOOR_HEADERS_MAX,
				   .held_max = 256u << 20,
				   .request_s = 10,
				   .answer_s = 20},
			.answer = on_public_request},
};

static int open_address(struct api *api, const char *text, struct err *err)
{
	struct sockaddr_storage address;
	int len = sizeof(address);

	if (evutil_parse_sockaddr_port(text, (struct sockaddr *)&address, &len) ||
	    (address.ss_family == AF_INET && !((struct sockaddr_in *)&address)->sin_port) ||
	    (address.ss_family == AF_INET6 && !((struct sockaddr_in6 *)&address)->sin6_port)) {
		err_input(err, "invalid --metrics '%s'", text);
		return err_hint(err, "an address and a port: 127.0.0.1:9117, [::1]:9117");
	}
	return door_open(api->agent, &doors[ON_ADDRESS], (struct sockaddr *)&address, len, text,
			 api, &api->doors[ON_ADDRESS], err);
}

static int start(struct agent *a, struct err *err)
{
	struct api *api = mem_new(struct api);
	int code;

	*api = (struct api){.agent = a, .metrics = api_metrics_new(a)};
	a->api = api;
	api->changes = changes_new(a);
	if (a->page)
		return 0;
	api->path = api_path(a->instance);
	if ((code = door_open_path(a, &doors[ON_SOCKET], api->path, api, &api->doors[ON_SOCKET],
				   err)))
		return code;
	return a->metrics ? open_address(api, a->metrics, err) : 0;
}

static void stop(struct agent *a)
{
	struct api *api = TAKE_PTR(a->api);

	if (!api)
		return;
	while (api->jobs) {
		if (api->jobs->request)
			evhttp_connection_set_closecb(
				evhttp_request_get_connection(api->jobs->request), NULL, NULL);
		job_free(api->jobs);
	}
	changes_free(api->changes);
	api_metrics_free(api->metrics);
	for (size_t d = 0; d < DOORS; d++)
		door_close(api->doors[d]);
	free(api->path);
	free(api);
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct api *api = a->api;

	json_set(fields, "socket", json_string(api->path));
	json_set(fields, "metrics", a->metrics ? json_string(a->metrics) : json_nothing());
	for (size_t d = 0; d < DOORS; d++)
		door_report(api->doors[d], problems);
}

const struct agent_part agent_api = {
	.name = "api",
	.start = start,
	.stop = stop,
	.report = report,
};
