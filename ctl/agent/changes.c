// SPDX-License-Identifier: GPL-2.0-only
// Lines for a process, and its answers, which come in the same order.
#include "ctl/agent/changes.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/api_words.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/control/entries/items.h"

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
	struct agent_process *process; // NULL: none runs
	struct evbuffer *answers;      // its output, until the end of a line
	struct agent_task timeout;     // while it is asked something
	struct change *asked;          // the oldest first
	size_t n;                      // lines
	char *last;                    // a document that is no answer: why the process has ended
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

// As the command itself would have printed it.
static void take_answer(struct changes *c, struct json *document)
{
	static const char *const of_batch[] = {"line", "command", "status"};
	int status = (int)json_get_u64(document, "status");
	CLEANUP_TEXT struct text text = {0};

	for (size_t k = 0; k < ARRAY_SIZE(of_batch); k++)
		json_remove(document, of_batch[k]);
	json_set(document, "errors", json_array()); // words, which are addresses
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

// An answer may lead to new changes, but it does not end the process.
static void on_output(void *changes, const char *output, size_t len)
{
	struct changes *c = changes;
	size_t n;

	if (evbuffer_add(c->answers, output, len))
		mem_exhausted();
	for (char *line; (line = evbuffer_readln(c->answers, &n, EVBUFFER_EOL_LF)); free(line))
		take_line(c, line, n);
}

// A new process is started for the next change.
static void end(struct changes *c, int status)
{
	CLEANUP_FREE char *last = TAKE_PTR(c->last);
	struct change *asked = TAKE_PTR(c->asked);

	agent_task_cancel(&c->timeout);
	evbuffer_drain(c->answers, evbuffer_get_length(c->answers));
	c->n = 0;
	while (asked) {
		struct change *one = asked;

		asked = one->next;
		if (one->done)
			one->done(one->ctx, last ? status : -1, last, last ? strlen(last) : 0);
		free(one);
	}
}

static void on_end(void *changes, const struct process_result *r)
{
	struct changes *c = changes;

	c->process = NULL;
	end(c, r->status);
}

// A change is made whole, or not at all.
static int on_timeout(void *changes, struct err *err)
{
	struct changes *c = changes;

	process_stop(TAKE_PTR(c->process));
	end(c, -1);
	return 0;
}

// ---- the process --------------------------------------------------------------------------------

static int start_process(struct changes *c, struct err *err)
{
	static const char *const args[] = {"-j", "batch", "--each", NULL};
	const struct process_request request = {
		.args = args,
		.by = PROCESS_AGENT_API,
		.reads = true,
		.part = on_output,
		.done = on_end,
		.ctx = c,
	};

	return process_start(c->agent, &request, &c->process, err);
}

struct changes *changes_new(struct agent *a)
{
	struct changes *c = mem_new(struct changes);

	c->agent = a;
	agent_task_init(&c->timeout, a, "time of changes", on_timeout, c);
	if (!(c->answers = evbuffer_new()))
		mem_exhausted();
	return c;
}

void changes_free(struct changes *c)
{
	if (!c)
		return;
	process_stop(c->process);
	for (struct change *one = c->asked, *next; one; one = next) {
		next = one->next;
		free(one);
	}
	agent_task_free(&c->timeout);
	evbuffer_free(c->answers);
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

int changes_start(struct changes *c, const char *by, const struct api_words *words,
		  change_done *done, void *ctx, struct change **ret, struct err *err)
{
	CLEANUP_TEXT struct text line = {0};
	int code = c->process ? 0 : start_process(c, err);

	if (code)
		return code;
	text_addf(&line, BATCH_AUTHOR "%s" BATCH_AUTHOR, by);
	for (size_t w = 1; words->list.at[w]; w++)
		add_quoted(&line, words->list.at[w]);
	text_addc(&line, '\n');
	process_send(c->process, line.at, line.len);
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
