// SPDX-License-Identifier: GPL-2.0-only
// Takes the steps of a resolution when its sockets are ready or its timer expires.
#include "ctl/net/dns_loop.h"

#include <event2/event.h>

#include "ctl/base/mem.h"
#include "ctl/net/dns_parts.h"
#include "ctl/net/loop.h"

struct dns_ask {
	struct dns_resolver *resolver;
	struct event *readable, *timer;
	struct dns_answer *answers;
	size_t n;
	dns_ask_done *done;
	void *ctx;
};

void dns_ask_stop(struct dns_ask *a)
{
	if (!a)
		return;
	loop_event_free(a->readable); // before its descriptor is closed
	loop_event_free(a->timer);
	dns_resolver_free(a->resolver);
	dns_answers_free(a->answers, a->n);
	free(a->answers);
	free(a);
}

static void wait_ms(struct dns_ask *a, int64_t ms)
{
	struct timeval in = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

	evtimer_add(a->timer, &in);
}

static void on_event(evutil_socket_t fd, short what, void *ctx)
{
	struct dns_ask *a = ctx;
	int64_t ms;

	if (dns_resolver_step(a->resolver, &ms)) {
		wait_ms(a, ms);
		return;
	}
	a->done(a->ctx, a->answers, a->n);
	dns_ask_stop(a);
}

int dns_ask_start(struct event_base *base, const char *const *names, size_t n,
		  const struct dns_options *options, dns_ask_done *done, void *ctx,
		  struct dns_ask **ret, struct err *err)
{
	struct dns_ask *a = mem_new(struct dns_ask);
	int code;

	*a = (struct dns_ask){.n = n, .done = done, .ctx = ctx};
	a->answers = mem_zalloc(n, sizeof(*a->answers));
	if ((code = dns_resolver_new(names, n, options, a->answers, &a->resolver, err))) {
		dns_ask_stop(a);
		return code;
	}
	a->readable =
		loop_event(base, dns_resolver_fd(a->resolver), EV_READ | EV_PERSIST, on_event, a);
	a->timer = loop_timer(base, on_event, a);
	if (!a->readable || !a->timer || event_add(a->readable, NULL))
		mem_exhausted();
	wait_ms(a, 0);
	*ret = a;
	return 0;
}
