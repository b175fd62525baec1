// SPDX-License-Identifier: GPL-2.0-only
// Sends answers by libevent.
#include "ctl/agent/api_answer.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"

// libevent would send the body, without its length.
static void drop_body(struct evhttp_request *request, struct evbuffer *body)
{
	size_t len = evbuffer_get_length(body);
	char digits[24];

	snprintf(digits, sizeof(digits), "%zu", len);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Length", digits);
	evbuffer_drain(body, len);
}

void api_answer(struct evhttp_request *request, int status, const char *type, struct evbuffer *body)
{
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD)
		drop_body(request, body);
	evhttp_send_reply(request, status, NULL, body);
}

void api_error_document(const char *message, struct text *ret)
{
	CLEANUP_JSON struct json *document = json_object();
	struct json *error = json_object();

	json_set(document, "schema", json_u64(1));
	json_set(error, "text", json_string(message));
	json_set(error, "hint", json_nothing());
	json_set(error, "code", json_nothing());
	json_set(document, "error", error);
	json_print(document, false, ret);
}

void api_refuse(struct evhttp_request *request, int status, const char *text)
{
	CLEANUP_TEXT struct text line = {0};
	struct evbuffer *body = evbuffer_new();

	api_error_document(text, &line);
	if (!body || evbuffer_add(body, line.at, line.len))
		mem_exhausted();
	api_answer(request, status, "application/json", body);
	evbuffer_free(body);
}

void api_refuse_method(struct evhttp_request *request, const char *methods)
{
	CLEANUP_FREE char *text = mem_printf("this path wants %s", methods);

	evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", methods);
	api_refuse(request, HTTP_BADMETHOD, text);
}
