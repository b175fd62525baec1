// SPDX-License-Identifier: GPL-2.0-only
// Lines for a process, and its answers, which come in the same order.
#include "ctl/agent/changes.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_words.h"
#include "ctl/agent/child.h"
#include "ctl/agent/task.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/control/items.h"
#include "ctl/net/loop.h"

#define ASKED_MAX    256 // changes at a time
#define PREFIXES_MAX 256 // of a change
#define ANSWER_S     120 // until the process is killed

struct change {
	struct change *next;
	change_done *done; // NULL: the client has left
	void *ctx;
};

struct changes {
	struct agent *agent;
	pid_t pid;                  // 0: there is no process
	struct bufferevent *stream; // its input and output
	struct agent_task timeout;  // while it is asked something
	struct change *asked;       // the oldest first
	size_t n;                   // of them
	char *last;                 // a document that is no answer: why the process has ended
};

// ---- which changes ------------------------------------------------------------------------------

// A line cannot have them.
static bool has_control(const char *word)
{
	for (; *word; word++)
		if ((unsigned char)*word < ' ')
			return true;
	return false;
}

// The words after "--".
static bool are_addresses(char *const *words, size_t n)
{
	struct items items = {0};
	bool are;

	for (size_t w = 0; w < n && items.items.n <= PREFIXES_MAX;)
		w += items_add_words(&items, (const char *const *)words + w, n - w);
	are = items.items.n && items.items.n <= PREFIXES_MAX && !items.error_count &&
	      !items.names && !items.geos;
	items_free(&items);
	return are;
}

bool changes_suit(const struct api_words *words)
{
	char *const *word = words->list.at + 1; // "-j" precedes the command
	size_t n = words->list.n - 2, options = 0;

	if (strcmp(word[0], "block") != 0 && strcmp(word[0], "unblock") != 0)
		return false;
	for (; options < n && strcmp(word[options], "--") != 0; options++)
		if (has_control(word[options]) || !strcmp(word[options], "--dry-run"))
			return false;
	return options < n && are_addresses(word + options + 1, n - options - 1);
}

bool changes_full(const struct changes *c)
{
	return c->n >= ASKED_MAX;
}

// ---- answers ------------------------------------------------------------------------------------

static void give(struct changes *c, int status, const char *output, size_t len)
{
	struct change *one = c->asked;

	c->asked = one->next;
	c->n--;
	if (one->done)
		one->done(one->ctx, status, output, len);
	free(one);
}

static void watch_answer(struct changes *c)
{
	if (c->asked)
		agent_task_move(&c->timeout, ANSWER_S * 1000);
	else
		agent_task_cancel(&c->timeout);
}

// As the command alone would have printed it.
static void take_answer(struct changes *c, struct json *document)
{
	static const char *const of_batch[] = {"line", "command", "status"};
	int status = (int)json_get_u64(document, "status");
	CLEANUP_TEXT struct text text = {0};

	for (size_t k = 0; k < ARRAY_SIZE(of_batch); k++)
		json_remove(document, of_batch[k]);
	json_set(document, "errors", json_array()); // of words: they are addresses
	if (json_get(document, "changed"))
		json_set(document, "instance", json_string(c->agent->instance));
	json_print(document, false, &text);
	give(c, status, text.at, text.len);
}

static void take_line(struct changes *c, const char *line, size_t len)
{
	CLEANUP_JSON struct json *document = json_parse(line, len, NULL, 0);

	if (document && json_get(document, "line") && c->asked) {
		take_answer(c, document);
		watch_answer(c);
		return;
	}
	free(c->last);
	c->last = mem_printf("%.*s\n", (int)len, line);
}

static void on_answer(struct bufferevent *stream, void *changes)
{
	LOOP_SPAN("on_answer");
	struct evbuffer *in = bufferevent_get_input(stream);
	struct changes *c = changes;
	size_t len;

	// An answer may lead to new changes, but it does not end the process.
	for (char *line; (line = evbuffer_readln(in, &len, EVBUFFER_EOL_LF)); free(line))
		take_line(c, line, len);
}

static int end_process(struct changes *c)
{
	int status = 0;

	if (c->stream)
		bufferevent_free(c->stream);
	c->stream = NULL;
	agent_task_cancel(&c->timeout);
	if (!c->pid)
		return -1;
	kill(c->pid, SIGKILL); // if it has not ended: a change is made whole, or not at all
	waitpid(c->pid, &status, 0);
	c->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A new process is started for the next change.
static void on_end(struct bufferevent *stream, short what, void *changes)
{
	LOOP_SPAN("on_end");
	struct changes *c = changes;
	CLEANUP_FREE char *last = TAKE_PTR(c->last);
	struct change *asked;
	int status;

	status = end_process(c);
	asked = TAKE_PTR(c->asked);
	c->n = 0;
	while (asked) {
		struct change *one = asked;

		asked = one->next;
		if (one->done)
			one->done(one->ctx, last ? status : -1, last, last ? strlen(last) : 0);
		free(one);
	}
}

static int on_timeout(void *changes, struct err *err)
{
	(void)err;
	on_end(NULL, 0, changes);
	return 0;
}

// ---- the process --------------------------------------------------------------------------------

static int start_process(struct changes *c, struct err *err)
{
	static const char *const args[] = {"-j", "batch", "--each", NULL};
	CLEANUP_FD int theirs = -1;
	int pair[2], code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_system(err, errno, "cannot make a socket");
	theirs = pair[1];
	evutil_make_socket_nonblocking(pair[0]);
	c->stream = bufferevent_socket_new(c->agent->loop, pair[0], BEV_OPT_CLOSE_ON_FREE);
	if (!c->stream) {
		fd_close(pair[0]);
		return err_system(err, ENOMEM, "cannot watch a command");
	}
	bufferevent_setcb(c->stream, on_answer, NULL, on_end, c);
	bufferevent_enable(c->stream, EV_READ | EV_WRITE);
	code = child_spawn(c->agent, args,
			   &(struct child_files){theirs, theirs, -1, false, CHILD_AGENT_API},
			   &c->pid, err);
	if (code)
		end_process(c);
	return code;
}

struct changes *changes_new(struct agent *a)
{
	struct changes *c = mem_new(struct changes);

	c->agent = a;
	agent_task_init(&c->timeout, a, "time of changes", on_timeout, c);
	return c;
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	end_process(c);
	for (struct change *one = c->asked, *next; one; one = next) {
		next = one->next;
		free(one);
	}
	agent_task_free(&c->timeout);
	free(c->last);
	free(c);
}

static void add_quoted(struct text *line, const char *word)
{
	text_addc(line, '"');
	for (; *word; word++) {
		if (*word == '"' || *word == '\\')
			text_addc(line, '\\');
		text_addc(line, *word);
	}
	text_add(line, "\" ");
}

static struct change *enqueue(struct changes *c, change_done *done, void *ctx)
{
	struct change **last = &c->asked, *one = mem_new(struct change);

	*one = (struct change){.done = done, .ctx = ctx};
	while (*last)
		last = &(*last)->next;
	*last = one;
	c->n++;
	return one;
}

int changes_start(struct changes *c, const struct api_words *words, change_done *done, void *ctx,
		  struct change **ret, struct err *err)
{
	CLEANUP_TEXT struct text line = {0};
	int code = c->stream ? 0 : start_process(c, err);

	if (code)
		return code;
	for (size_t w = 1; words->list.at[w]; w++)
		add_quoted(&line, words->list.at[w]);
	text_addc(&line, '\n');
	if (bufferevent_write(c->stream, line.at, line.len))
		return err_system(err, ENOMEM, "cannot ask a command");
	*ret = enqueue(c, done, ctx);
	if (c->n == 1)
		watch_answer(c);
	return 0;
}

void change_forget(struct change *one)
{
	if (one)
		one->done = NULL;
}
