// SPDX-License-Identifier: GPL-2.0-only
// A text is freed when its last answer was sent.
#include "ctl/agent/client_text.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

struct client_text *client_text_new(const char *at, size_t len)
{
	struct client_text *t = mem_zalloc(1, sizeof(*t) + len);

	*t = (struct client_text){.owners = 1, .len = len};
	memcpy(t->at, at, len);
	return t;
}

void client_text_release(struct client_text *t)
{
	if (t && !--t->owners)
		free(t);
}

static void on_sent(const void *data, size_t len, void *text)
{
	client_text_release(text);
}

void client_text_send(struct client_text *t, struct evhttp_request *request)
{
	struct evbuffer *chunk = evbuffer_new();

	if (!chunk || evbuffer_add_reference(chunk, t->at, t->len, on_sent, t))
		mem_exhausted();
	t->owners++;
	evhttp_send_reply_chunk(request, chunk);
	evbuffer_free(chunk);
}
