// SPDX-License-Identifier: GPL-2.0-only
// Sends answers by libevent.
#include "ctl/agent/api_answer.h"

#include <event2/buffer.h>
#include <event2/http.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"

void api_answer(struct evhttp_request *request, int status, const char *type, struct evbuffer *body)
{
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), NULL, NULL);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	evhttp_send_reply(request, status, NULL, body);
}

void api_refuse(struct evhttp_request *request, int status, const char *text)
{
	CLEANUP_JSON struct json *document = json_object();
	CLEANUP_TEXT struct text line = {0};
	struct evbuffer *body = evbuffer_new();
	struct json *error = json_object();

	json_set(document, "schema", json_u64(1));
	json_set(error, "text", json_string(text));
	json_set(error, "hint", json_nothing());
	json_set(error, "code", json_nothing());
	json_set(document, "error", error);
	json_print(document, false, &line);
	if (!body || evbuffer_add(body, line.at, line.len))
		mem_exhausted();
	api_answer(request, status, "application/json", body);
	evbuffer_free(body);
}
