// SPDX-License-Identifier: GPL-2.0-only
// Probes by a query over UDP: the answer has no error and is not empty (RFC 1035, section 4.1).
#define CARES_NO_DEPRECATED // the replacement of ares_create_query() exists since c-ares 1.28
#include <ares.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/net/probe_parts.h"

#define HEADER     12
#define ANSWER_MAX 4096
#define AT_ONCE    64 // packets read in a turn of the loop: a flood does not delay other events
#define CLASS_IN   1

static const char *code_name(unsigned code)
{
	static const char *const names[] = {"NOERROR",  "FORMERR", "SERVFAIL",
					    "NXDOMAIN", "NOTIMP",  "REFUSED"};

	return code < sizeof(names) / sizeof(*names) ? names[code] : "an error";
}

// Servers repeat the question; the case of its letters may be another one.
static bool repeats_question(const struct probe *p, const unsigned char *answer, ssize_t len)
{
	if (len < p->query_len)
		return false;
	for (int i = HEADER; i < p->query_len; i++) {
		unsigned char a = answer[i], b = p->query[i];

		if (a >= 'A' && a <= 'Z')
			a |= 32;
		if (b >= 'A' && b <= 'Z')
			b |= 32;
		if (a != b)
			return false;
	}
	return true;
}

// An answer to another query, or a forged one, is not an answer: waits for the next.
static bool answers_us(const struct probe *p, const unsigned char *answer, ssize_t len)
{
	return len >= HEADER && !memcmp(answer, p->query, 2) && answer[2] & 0x80 &&
	       repeats_question(p, answer, len);
}

static void judge(struct probe *p, const unsigned char *answer)
{
	unsigned code = answer[3] & 15, records = (unsigned)answer[6] << 8 | answer[7];

	if (code)
		probe_fail(p, "the answer is %s", code_name(code));
	else if (!records && !(answer[2] & 2)) // a truncated answer may have none
		probe_fail(p, "the answer is empty");
	else
		probe_pass(p);
}

static void on_answer(evutil_socket_t fd, short what, void *ctx)
{
	unsigned char answer[ANSWER_MAX];
	struct probe *p = ctx;
	ssize_t len;

	for (int n = 0; n < AT_ONCE && !p->ended; n++) {
		len = recv(fd, answer, sizeof(answer), 0);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (len < 0)
			probe_fail_errno(p, errno);
		else if (answers_us(p, answer, len))
			judge(p, answer);
	}
}

static int make_query(struct probe *p)
{
	int code = ares_create_query(p->spec.name, CLASS_IN, p->spec.type, 0, 1, &p->query,
				     &p->query_len, 0);

	return code ? probe_fail(p, "no query can be made: %s", ares_strerror(code)) : 0;
}

static int start(struct probe *p)
{
	int code = p->query ? 0 : make_query(p);

	if (code)
		return code;
	if (getrandom(p->query, 2, 0) != 2)
		return probe_fail_errno(p, errno);
	if ((code = probe_connect(p, SOCK_DGRAM)))
		return code;
	if (send(p->fd, p->query, (size_t)p->query_len, 0) < 0)
		return probe_fail_errno(p, errno);
	return probe_wait(p, EV_READ | EV_PERSIST, on_answer);
}

static void forget(struct probe *p)
{
	if (p->query)
		ares_free_string(p->query);
}

const struct probe_form probe_dns = {.start = start, .stop = probe_close, .free = forget};
