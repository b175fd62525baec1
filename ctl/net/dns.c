// SPDX-License-Identifier: GPL-2.0-only
// Resolves many names at once, with a bounded number in flight.
//
// Each name is one query for A and one for AAAA, so that the failure of one family is seen beside
// the answer of the other.
#include "ctl/net/dns.h"

#define CARES_NO_DEPRECATED // newer c-ares would rather be asked in another way
#include <ares.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <time.h>

#include <event2/event.h>

#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/base/trace.h"
#include "ctl/base/vec.h"
#include "ctl/net/dns_hosts.h"
#include "ctl/net/dns_message.h"
#include "ctl/net/loop.h"

enum {
	CLASS_IN = 1,
	NAMES_IN_FLIGHT = 128, // 256 queries
	DEFAULT_TIMEOUT_MS = 5000,
	TRY_MS_MIN = 100,
	TRY_MS_MAX = 2000,
	WAIT_MS_MAX = 60 * 1000,
	READY_MAX = 16, // sockets of one poll
	UNFINISHED = -EINPROGRESS,
};

// One query. On the plain channel c-ares hands us SERVFAIL and REFUSED at once. If there are
// several servers, the stubborn channel then asks all servers and drops such answers. (Without the
// plain channel, such answers would be reported as "connection refused".)
struct dns_question {
	struct dns_lookup *lookup;
	uint16_t type;
	int error;
	bool again; // asked on the stubborn channel
};

// A name on its way: one slot of the window.
struct dns_lookup {
	struct dns_resolver *resolver;
	struct dns_answer *answer; // NULL: the slot is free
	struct dns_question v4, v6;
	unsigned waiting;   // queries without an answer
	size_t next_domain; // of the search list
	char asked[DNS_NAME_MAX + 1];
	struct dns_found found;
};

struct dns_resolver {
	ares_channel plain, stubborn;
	int sockets; // an epoll instance with the sockets of both channels
	bool several_servers;
	struct hosts hosts;
	struct dns_domains domains; // none where names are absolute
	struct dns_answer *answers;
	size_t n, next; // the next name to process
	struct dns_lookup slots[NAMES_IN_FLIGHT];
	int64_t deadline_ms;
};

static int error_of(int status)
{
	switch (status) {
	case ARES_ENOTFOUND:
	case ARES_EBADNAME: // a search domain made it too long
		return -ENOENT;
	case ARES_ENODATA:
		return -ENODATA;
	case ARES_ETIMEOUT:
	case ARES_ECANCELLED: // the deadline
	case ARES_EDESTRUCTION:
		return -ETIMEDOUT;
	case ARES_ECONNREFUSED:
		return -ECONNREFUSED;
	default:
		return -EIO;
	}
}

static void on_answer(void *arg, int status, int timeouts, unsigned char *message, int len)
{
	struct dns_question *q = arg;
	struct dns_lookup *l = q->lookup;
	int error = status ? error_of(status)
			   : dns_message_read(message, (size_t)len, l->asked, q->type, &l->found);

	l->waiting--;
	// A server did answer before, with an error: that is the news.
	if (q->again && (error == -ECONNREFUSED || error == -ETIMEDOUT))
		error = -EIO;
	q->error = error;
}

static void ask(ares_channel channel, struct dns_question *q)
{
	q->lookup->waiting++;
	ares_query(channel, q->lookup->asked, CLASS_IN, q->type, on_answer, q);
}

static bool ask_again(struct dns_question *q)
{
	struct dns_resolver *r = q->lookup->resolver;

	if (q->error != -EIO || q->again || !r->several_servers)
		return false;
	q->again = true;
	ask(r->stubborn, q);
	return true;
}

// Without the final dot.
static size_t bare_len(const char *name)
{
	size_t len = strlen(name);

	return len && name[len - 1] == '.' ? len - 1 : len;
}

// The next name to ask for: one of the search list, at last the name itself. false: no more.
static bool next_candidate(struct dns_lookup *l)
{
	const struct dns_resolver *r = l->resolver;
	const char *name = l->answer->name;

	while (l->next_domain < r->domains.of.n) {
		const char *domain = r->domains.of.at[l->next_domain++];

		if (snprintf(l->asked, sizeof(l->asked), "%s.%s", name, domain) <= DNS_NAME_MAX)
			return true;
	}
	if (l->next_domain > r->domains.of.n)
		return false;
	l->next_domain = r->domains.of.n + 1;
	snprintf(l->asked, sizeof(l->asked), "%.*s", (int)bare_len(name), name);
	return true;
}

static bool says_no(const struct dns_question *q)
{
	return q->error == -ENOENT || q->error == -ENODATA;
}

// The error to report if neither family has an address. If the name does not exist, that applies to
// both families; after a failure, the answer for that family is unknown.
static int joint_error(int a, int b)
{
	if (a == -ENOENT || b == -ENOENT)
		return a == -ENODATA || b == -ENODATA ? -ENODATA : -ENOENT;
	if (a == -ENODATA)
		return b;
	return b == -ENODATA || a == -EIO ? a : b;
}

static int compare_addr(const void *a, const void *b)
{
	return addr_compare(a, b);
}

static void set_addrs(struct dns_answer *answer, struct addr *addrs, size_t n)
{
	size_t kept = 0;

	qsort(addrs, n, sizeof(*addrs), compare_addr);
	for (size_t i = 0; i < n; i++)
		if (!kept || addr_compare(&addrs[kept - 1], &addrs[i]))
			addrs[kept++] = addrs[i];
	answer->addrs = addrs;
	answer->n = kept;
	answer->error = 0;
}

static bool same_name(const char *a, const char *b)
{
	size_t len = bare_len(a);

	return len == bare_len(b) && !strncasecmp(a, b, len);
}

// The answer of a lookup whose queries are all answered or cancelled; its slot is free afterwards.
static void finish(struct dns_lookup *l)
{
	struct dns_answer *answer = l->answer;

	if (l->found.addrs.n) {
		answer->ttl_s = l->found.ttl_s;
		if (!same_name(l->found.canonical, answer->name))
			snprintf(answer->canonical, sizeof(answer->canonical), "%s",
				 l->found.canonical);
		set_addrs(answer, TAKE_PTR(l->found.addrs.at), l->found.addrs.n);
		answer->v4_missing = says_no(&l->v4);
		answer->v6_missing = says_no(&l->v6);
		answer->v4_failed = l->v4.error && !answer->v4_missing;
		answer->v6_failed = l->v6.error && !answer->v6_missing;
	} else {
		answer->error = joint_error(l->v4.error, l->v6.error);
	}
	vec_free(&l->found.addrs);
	l->answer = NULL;
	trace(resolve__end, answer->name, answer->n, answer->error);
}

static bool ask_candidate(struct dns_lookup *l)
{
	ares_channel plain = l->resolver->plain;

	if (!next_candidate(l))
		return false;
	l->v4 = (struct dns_question){.lookup = l, .type = DNS_TYPE_A, .error = UNFINISHED};
	l->v6 = (struct dns_question){.lookup = l, .type = DNS_TYPE_AAAA, .error = UNFINISHED};
	ask(plain, &l->v4);
	ask(plain, &l->v6);
	return true;
}

// A lookup without outstanding queries: asks on or finishes.
static void advance(struct dns_lookup *l)
{
	bool again = ask_again(&l->v4);

	if (ask_again(&l->v6) || again)
		return;
	if (says_no(&l->v4) && says_no(&l->v6) && ask_candidate(l))
		return;
	finish(l);
}

// Takes the next unfinished name into a free slot; false when none is left.
static bool start_next(struct dns_resolver *r, struct dns_lookup *l)
{
	struct dns_answer *answer;

	while (r->next < r->n && r->answers[r->next].error != UNFINISHED)
		r->next++;
	if (r->next == r->n)
		return false;
	answer = &r->answers[r->next++];
	*l = (struct dns_lookup){.resolver = r, .answer = answer};
	trace(resolve__begin, answer->name);
	if (strchr(answer->name, '.'))
		l->next_domain = r->domains.of.n;
	ask_candidate(l);
	return true;
}

// c-ares may answer inside of ask(), so this loops instead of being called back: ten thousand names
// without a reachable server must not be as many stack frames. Returns whether any is in flight.
static bool fill_window(struct dns_resolver *r)
{
	bool busy = false;

	for (size_t i = 0; i < ARRAY_SIZE(r->slots); i++) {
		struct dns_lookup *l = &r->slots[i];

		while (!l->waiting)
			if (l->answer)
				advance(l);
			else if (!start_next(r, l))
				break;
		busy = busy || l->answer;
	}
	return busy;
}

static void on_socket(void *ctx, ares_socket_t fd, int readable, int writable)
{
	const struct dns_resolver *r = ctx;
	struct epoll_event wanted = {
		.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u),
		.data.fd = fd,
	};

	if (!wanted.events)
		epoll_ctl(r->sockets, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(r->sockets, EPOLL_CTL_MOD, fd, &wanted))
		epoll_ctl(r->sockets, EPOLL_CTL_ADD, fd, &wanted);
}

static int64_t channel_patience_ms(ares_channel channel, int64_t most_ms)
{
	struct timeval most = {.tv_sec = most_ms / 1000, .tv_usec = most_ms % 1000 * 1000}, buf;
	const struct timeval *t = ares_timeout(channel, &most, &buf);

	return t ? (int64_t)t->tv_sec * 1000 + (t->tv_usec + 999) / 1000 : most_ms;
}

// How long c-ares can wait for an answer, at most until the deadline.
static int64_t patience_ms(const struct dns_resolver *r)
{
	int64_t left = r->deadline_ms - (int64_t)time_ms(CLOCK_MONOTONIC);

	left = left < 0 ? 0 : left < WAIT_MS_MAX ? left : WAIT_MS_MAX;
	return channel_patience_ms(r->stubborn, channel_patience_ms(r->plain, left));
}

// A channel ignores sockets of the other channel, and a socket that c-ares has closed in the
// meantime.
static void process(const struct dns_resolver *r, int readable, int writable)
{
	ares_process_fd(r->plain, readable, writable);
	ares_process_fd(r->stubborn, readable, writable);
}

// Waits for the next event, at most `most_ms`, and lets c-ares work on it.
static void wait_and_process(const struct dns_resolver *r, int64_t most_ms)
{
	struct epoll_event ready[READY_MAX];
	int n = epoll_wait(r->sockets, ready, READY_MAX, (int)most_ms);

	for (int i = 0; i < n; i++)
		process(r,
			ready[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? ready[i].data.fd
									  : ARES_SOCKET_BAD,
			ready[i].events & (EPOLLOUT | EPOLLERR) ? ready[i].data.fd
								: ARES_SOCKET_BAD);
	process(r, ARES_SOCKET_BAD, ARES_SOCKET_BAD); // timeouts
}

// Nothing is unfinished afterwards.
static void give_up(struct dns_resolver *r)
{
	ares_cancel(r->plain);
	ares_cancel(r->stubborn);
	for (size_t i = 0; i < ARRAY_SIZE(r->slots); i++)
		if (r->slots[i].answer)
			finish(&r->slots[i]);
	for (; r->next < r->n; r->next++)
		if (r->answers[r->next].error == UNFINISHED)
			r->answers[r->next].error = -ETIMEDOUT;
}

// Works on what has come, and asks on. True: to be called again when dns_resolver_fd() is readable,
// or after *ret_ms.
// False: each answer is there.
static bool dns_resolver_step(struct dns_resolver *r, int64_t *ret_ms)
{
	wait_and_process(r, 0);
	if (!fill_window(r) || (int64_t)time_ms(CLOCK_MONOTONIC) >= r->deadline_ms) {
		give_up(r);
		return false;
	}
	*ret_ms = patience_ms(r);
	return true;
}

static int dns_resolver_fd(const struct dns_resolver *r)
{
	return r->sockets;
}

static void set_from_hosts(struct dns_answer *answer, const struct hosts_entry *entries, size_t n)
{
	struct addr *addrs = mem_zalloc(n, sizeof(*addrs));

	for (size_t i = 0; i < n; i++)
		addrs[i] = entries[i].addr;
	set_addrs(answer, addrs, n);
	answer->hosts = true;
	answer->v4_missing = answer->v6_missing = true;
	for (size_t i = 0; i < answer->n; i++)
		if (answer->addrs[i].family == 4)
			answer->v4_missing = false;
		else
			answer->v6_missing = false;
}

static bool is_localhost(const char *name)
{
	static const char word[] = "localhost";
	size_t len = bare_len(name), word_len = sizeof(word) - 1;

	return len >= word_len && same_name(name + len - word_len, word) &&
	       (len == word_len || name[len - word_len - 1] == '.');
}

static void set_localhost(struct dns_answer *answer)
{
	static const uint8_t v4[16] = {127, 0, 0, 1}, v6[16] = {[15] = 1};
	struct hosts_entry entries[2] = {{.name = "localhost"}, {.name = "localhost"}};

	entries[0].addr = (struct addr){.family = 4};
	memcpy(entries[0].addr.bytes, v4, sizeof(v4));
	entries[1].addr = addr_from_v6(v6);
	set_from_hosts(answer, entries, ARRAY_SIZE(entries));
}

// Names that need no server.
static void answer_locally(const struct dns_resolver *r, const char *name, struct dns_answer *ret)
{
	const struct hosts_entry *entries;
	char problem[512];
	size_t n = 0;

	*ret = (struct dns_answer){.name = name, .error = UNFINISHED};
	if (dns_name_problem(name, strlen(name), problem, sizeof(problem))) {
		ret->error = -EINVAL;
		return;
	}
	entries = hosts_find(&r->hosts, name, &n);
	if (entries)
		set_from_hosts(ret, entries, n);
	else if (is_localhost(name))
		set_localhost(ret);
}

static void dns_resolver_free(struct dns_resolver *r)
{
	if (!r)
		return;
	dns_channel_close(r->plain);
	dns_channel_close(r->stubborn);
	fd_close(r->sockets);
	hosts_cleanup(&r->hosts);
	dns_domains_free(&r->domains);
	free(r);
}

static void resolver_cleanup(struct dns_resolver **r)
{
	dns_resolver_free(*r);
}
#define CLEANUP_RESOLVER CLEANUP(resolver_cleanup)

static int channel_open(const struct dns_options *options, int try_ms, int flags,
			struct dns_resolver *r, ares_channel *ret, struct err *err)
{
	const struct dns_channel_setup setup = {
		.flags = flags | ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
		.try_ms = try_ms,
		.watch = on_socket,
		.watch_ctx = r,
	};

	return dns_channel_open(options, &setup, ret, err);
}

// Three tries at 1, 2 and 4 eighths of the time: a lost packet is asked for again in time.
static int try_ms_of(unsigned timeout_ms)
{
	unsigned ms = timeout_ms / 8;

	return ms < TRY_MS_MIN ? TRY_MS_MIN : ms > TRY_MS_MAX ? TRY_MS_MAX : (int)ms;
}

static int resolver_open(const struct dns_options *options, struct dns_resolver *r, struct err *err)
{
	unsigned timeout_ms = options->timeout_ms ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
	int try_ms = try_ms_of(timeout_ms), code;

	r->deadline_ms = (int64_t)time_ms(CLOCK_MONOTONIC) + timeout_ms;
	r->sockets = epoll_create1(EPOLL_CLOEXEC);
	if (r->sockets < 0)
		return err_system(err, errno, "cannot start the resolver");
	code = channel_open(options, try_ms, ARES_FLAG_NOCHECKRESP, r, &r->plain, err);
	if (code)
		return code;
	if ((code = channel_open(options, try_ms, 0, r, &r->stubborn, err)))
		return code;
	r->several_servers = dns_channel_count_servers(r->plain) > 1;
	if (options->search)
		dns_domains_read(options->resolv_conf, &r->domains);
	hosts_read(options->hosts, &r->hosts);
	return 0;
}

// Like dns_resolve(), but without waiting. 0 or -errno with err set.
static int dns_resolver_new(const char *const *names, size_t n, const struct dns_options *options,
			    struct dns_answer *answers, struct dns_resolver **ret, struct err *err)
{
	static const struct dns_options defaults;
	CLEANUP_RESOLVER struct dns_resolver *r = mem_new(struct dns_resolver);
	int code;

	r->sockets = -1;
	if ((code = resolver_open(options ? options : &defaults, r, err)))
		return code;
	r->answers = answers;
	r->n = n;
	for (size_t i = 0; i < n; i++)
		answer_locally(r, names[i], &answers[i]);
	*ret = TAKE_PTR(r);
	return 0;
}

int dns_resolve(const char *const *names, size_t n, const struct dns_options *options,
		struct dns_answer *answers, struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("resolving names");
	CLEANUP_RESOLVER struct dns_resolver *r = NULL;
	int code = dns_resolver_new(names, n, options, answers, &r, err);
	int64_t ms;

	if (code)
		return code;
	while (dns_resolver_step(r, &ms))
		wait_and_process(r, ms);
	return 0;
}

void dns_answers_free(struct dns_answer *answers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		mem_cleanup_free(&answers[i].addrs);
		answers[i].addrs = NULL;
		answers[i].n = 0;
	}
}

static void describe_missing(const struct dns_answer *a, char *buf, size_t size)
{
	if (a->v4_failed || a->v6_failed)
		snprintf(buf, size, "'%s': the query for %s records failed", a->name,
			 a->v4_failed ? "A" : "AAAA");
	else if (a->v4_missing || a->v6_missing)
		snprintf(buf, size, "'%s' has no %s record", a->name, a->v4_missing ? "A" : "AAAA");
	else
		snprintf(buf, size, "%s", "");
}

static const char *reason_of(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such name (NXDOMAIN)";
	case -ENODATA:
		return "the name has no address";
	case -ETIMEDOUT:
		return "no answer from the name servers in time";
	case -ECONNREFUSED:
		return "no name server can be reached";
	default:
		return "the name servers failed (SERVFAIL, REFUSED or a broken answer)";
	}
}

void dns_describe(const struct dns_answer *answer, char *buf, size_t size)
{
	if (!answer->error)
		describe_missing(answer, buf, size);
	else if (answer->error != -EINVAL)
		snprintf(buf, size, "'%s': %s", answer->name, reason_of(answer->error));
	else if (!dns_name_problem(answer->name, strlen(answer->name), buf, size))
		snprintf(buf, size, "'%s' is not a host name", answer->name);
}

// ---- on an event loop ---------------------------------------------------------------------------

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
