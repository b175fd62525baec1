// SPDX-License-Identifier: GPL-2.0-only
// Sends answers by libevent, also in place of its own pages.
//
// libevent 2.1 has no callback for its pages: they are replaced in the output of a connection,
// before they are written. It appends head and page in one go while its loop reads; nothing is
// written before the loop turns again, and the answer before has been sent.
#include "ctl/agent/api_answer.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"

#define PAGE_MAX 1024 // bytes of a page with its head
#define PAGE_END "</BODY></HTML>\n"
#define STATUS   strlen("HTTP/1.1 ") // where the status is in the head

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
	num_time_text now;

	json_set(document, "schema", json_u64(1));
	json_set(document, "time",
		 json_string(num_format_time_ms(time_ms(CLOCK_REALTIME), now) ? now : ""));
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

// ---- pages of libevent --------------------------------------------------------------------------

struct page {
	const char *status; // as libevent has it
	const char *line;   // as it should be
	const char *text;
};

static const struct page pages[] = {
	{"400", "400 Bad Request", "this is no valid request, or its headers exceed 8 KiB"},
	{"413", "413 Request Entity Too Large", "the body is too large"},
	{"417", "417 Expectation Failed", "Expect can only be 100-continue"},
	{"501", "501 Not Implemented", "the method is not supported"},
	{"0 ", "501 Not Implemented", "the method is not supported"}, // unknown to libevent
};

static const struct page *page_of(const char *head)
{
	for (size_t n = 0; n < ARRAY_SIZE(pages); n++)
		if (!strncmp(head + STATUS, pages[n].status, strlen(pages[n].status)))
			return &pages[n];
	return &pages[0];
}

// A copy of the output, if it is a page.
static char *read_page(struct evbuffer *output)
{
	size_t len = evbuffer_get_length(output), end = strlen(PAGE_END);
	char *copy;

	if (len < STATUS + end || len > PAGE_MAX)
		return NULL;
	copy = mem_zalloc(len + 1, 1);
	evbuffer_copyout(output, copy, len);
	if (!strcmp(copy + len - end, PAGE_END) && strstr(copy, "\r\nContent-Type: text/html\r\n"))
		return copy;
	free(copy);
	return NULL;
}

// First the new, then the old away: the output is never empty, which would mean that it was sent.
static void replace(struct evbuffer *output, const struct page *p)
{
	CLEANUP_TEXT struct text document = {0};
	size_t old = evbuffer_get_length(output);

	api_error_document(p->text, &document);
	if (evbuffer_add_printf(output,
				"HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
				"Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
				p->line, document.len, document.at) < 0)
		mem_exhausted();
	evbuffer_unfreeze(output, 1); // only the bufferevent itself takes from it
	evbuffer_drain(output, old);
	evbuffer_freeze(output, 1);
}

static void on_output(struct evbuffer *output, const struct evbuffer_cb_info *change, void *none)
{
	CLEANUP_FREE char *page = NULL;

	if (!change->n_added || change->n_deleted)
		return;
	page = read_page(output);
	if (page)
		replace(output, page_of(page));
}

void api_pages_replace(struct bufferevent *stream)
{
	if (!evbuffer_add_cb(bufferevent_get_output(stream), on_output, NULL))
		mem_exhausted();
}
