// SPDX-License-Identifier: GPL-2.0-only
// A web server of the test's own: a thread that answers one request after the other by a table.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_rule {
	const char *path;
	const char *answer; // head and body; NULL: none, the connection stays open
	size_t len;         // length of the response; 0: strlen
};

struct http_server {
	const struct http_rule *rules;
	size_t n;
	int listener, stop[2];
	uint16_t port;
	pthread_t thread;
	atomic_uint requests;
	char last[4096]; // the head of the last request; read it while none is under way
	char url[64];    // size of the buffer of http_url
	int silent[64];  // connections without an answer
	size_t silent_n;
};

static inline const struct http_rule *http_find(const struct http_server *s)
{
	for (size_t i = 0; i < s->n; i++) {
		size_t len = strlen(s->rules[i].path);

		if (!strncmp(s->last, "GET ", 4) && !strncmp(s->last + 4, s->rules[i].path, len) &&
		    s->last[4 + len] == ' ')
			return &s->rules[i];
	}
	return NULL;
}

static inline void http_read_head(struct http_server *s, int fd)
{
	size_t at = 0;

	while (at < sizeof(s->last) - 1) {
		ssize_t n = recv(fd, s->last + at, sizeof(s->last) - 1 - at, 0);

		if (n <= 0)
			break;
		at += (size_t)n;
		s->last[at] = '\0';
		if (strstr(s->last, "\r\n\r\n"))
			break;
	}
	s->last[at] = '\0';
}

static inline void http_serve(struct http_server *s, int fd)
{
	static const char missing[] = "HTTP/1.1 404 Not Found\r\nConnection: close\r\n"
				      "Content-Length: 0\r\n\r\n";
	const struct http_rule *rule;
	const char *answer;
	size_t len;

	http_read_head(s, fd);
	s->requests++;
	rule = http_find(s);
	if (rule && !rule->answer && s->silent_n < 64) {
		s->silent[s->silent_n++] = fd;
		return;
	}
	answer = rule ? rule->answer : missing;
	len = rule && rule->len ? rule->len : strlen(answer);
	for (size_t at = 0; at < len;) {
		ssize_t n = send(fd, answer + at, len - at, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	shutdown(fd, SHUT_WR);
	while (recv(fd, s->url, 0, MSG_TRUNC) > 0)
		continue;
	close(fd);
}

static inline void *http_run(void *arg)
{
	struct http_server *s = arg;
	struct pollfd fds[] = {{.fd = s->listener, .events = POLLIN},
			       {.fd = s->stop[0], .events = POLLIN}};

	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int fd = accept(s->listener, NULL, NULL);

		if (fd >= 0)
			http_serve(s, fd);
	}
	return NULL;
}

static inline void http_start(struct http_server *s, const struct http_rule *rules, size_t n)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);

	*s = (struct http_server){.rules = rules, .n = n};
	s->listener = socket(AF_INET, SOCK_STREAM, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(s->listener, 64) || getsockname(s->listener, (struct sockaddr *)&at, &len) ||
	    pipe(s->stop) || pthread_create(&s->thread, NULL, http_run, s))
		abort();
	s->port = ntohs(at.sin_port);
}

static inline void http_stop(struct http_server *s)
{
	close(s->stop[1]);
	pthread_join(s->thread, NULL);
	close(s->stop[0]);
	close(s->listener);
	for (size_t i = 0; i < s->silent_n; i++)
		close(s->silent[i]);
}

// In a buffer that the next call overwrites.
static inline const char *http_url(struct http_server *s, const char *path)
{
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u%s", s->port, path);
	return s->url;
}
