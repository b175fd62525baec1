// SPDX-License-Identifier: GPL-2.0-only
// Processes of the agent: the output of functions and commands, and their ends. The command is this
// program, started as the agent starts weir.
#include "ctl/agent/process.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/agent/agent.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "tests/unit/base/unit.h"

#define MUCH (1u << 20) // bytes: more than a pipe has room for

static struct agent agent;

struct ended {
	int times, status;
	struct err err;
	char output[64], said[64];
	size_t len, parts;
	bool has_document;
};

static int begin(void **state)
{
	agent = (struct agent){.loop = event_base_new(), .instance = "test"};
	signal(SIGPIPE, SIG_IGN);
	*state = mem_new(struct ended);
	return 0;
}

static int end(void **state)
{
	event_base_free(agent.loop);
	mem_cleanup_free(state);
	return waitpid(-1, NULL, WNOHANG) != -1; // no child is left
}

static void on_done(void *ctx, const struct process_result *r)
{
	struct ended *e = ctx;

	e->times++;
	e->status = r->status;
	e->err = r->err;
	e->len = evbuffer_get_length(r->output);
	evbuffer_copyout(r->output, e->output, sizeof(e->output) - 1);
	snprintf(e->said, sizeof(e->said), "%s", r->said);
	e->has_document = r->document;
	event_base_loopbreak(agent.loop);
}

static void on_part(void *ctx, const char *output, size_t len)
{
	struct ended *e = ctx;

	snprintf(e->output, sizeof(e->output), "%.*s", (int)len, output);
	e->parts++;
	event_base_loopbreak(agent.loop);
}

static struct agent_process *begin_one(struct process_request request, struct ended *e)
{
	struct agent_process *p = NULL;

	request.done = on_done;
	request.ctx = e;
	assert_int_equal(process_start(&agent, &request, &p, NULL), 0);
	return p;
}

static void run(struct process_request request, struct ended *e)
{
	begin_one(request, e);
	event_base_dispatch(agent.loop);
	assert_int_equal(e->times, 1);
}

// ---- functions ----------------------------------------------------------------------------------

static int write_some(void *ctx, struct text *output, struct err *err)
{
	text_addn(output, "a\0b", 3);
	return 0;
}

static int write_much(void *ctx, struct text *output, struct err *err)
{
	for (unsigned n = 0; n < MUCH; n++)
		text_addc(output, 'x');
	return 0;
}

static int write_half(void *ctx, struct text *output, struct err *err)
{
	text_add(output, "half");
	return err_system(err, ENOSPC, "cannot write");
}

static int die(void *ctx, struct text *output, struct err *err)
{
	text_add(output, "lost");
	raise(SIGKILL);
	return 0;
}

static int sleep_long(void *ctx, struct text *output, struct err *err)
{
	sleep(60);
	return 0;
}

static void output_of_a_function(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.run = write_some}, e);
	assert_int_equal(e->status, 0);
	assert_int_equal(e->len, 3);
	assert_memory_equal(e->output, "a\0b", 3);
}

static void much_output(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.run = write_much}, e);
	assert_int_equal(e->status, 0);
	assert_int_equal(e->len, MUCH);
}

static void error_of_a_function(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.run = write_half}, e);
	assert_int_equal(e->status, -ENOSPC);
	assert_int_equal(e->err.code, ENOSPC);
	assert_string_equal(e->output, "half");
}

static void killed_function(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.run = die}, e);
	assert_int_equal(e->status, -1);
	assert_string_equal(e->err.text, "a process of the agent was killed");
}

static void timeout(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.run = sleep_long, .timeout_s = 1}, e);
	assert_int_equal(e->status, -1);
}

static void stopped_process_calls_nothing(void **state)
{
	struct ended *e = *state;

	process_stop(begin_one((struct process_request){.run = sleep_long}, e));
	event_base_loop(agent.loop, EVLOOP_NONBLOCK);
	assert_int_equal(e->times, 0);
}

// ---- commands -----------------------------------------------------------------------------------

// -n test COMMAND
static int be_command(char **argv)
{
	const char *what = argv[3];
	char line[64];

	if (!strcmp(what, "cat"))
		while (fgets(line, sizeof(line), stdin)) {
			fputs(line, stdout);
			fflush(stdout);
		}
	else if (!strcmp(what, "by"))
		printf("\"%s\"", getenv(PROCESS_BY));
	else if (!strcmp(what, "fail"))
		printf("{\"error\": {\"text\": \"no\", \"hint\": \"why\"}}");
	else
		fprintf(stderr, "weir: one\nweir: two\n");
	return strcmp(what, "fail") ? 0 : 3;
}

#define COMMAND(word) ((const char *const[]){word, NULL})

static void input_of_a_command(void **state)
{
	struct ended *e = *state;

	run(
		(struct process_request){
			.args = COMMAND("cat"), .input = "[1]\n", .input_len = 4, .output_max = 4},
		e);
	assert_int_equal(e->status, 0);
	assert_true(e->has_document);
	assert_string_equal(e->output, "[1]\n");
}

static void too_much_output(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.args = COMMAND("cat"),
				     .input = "12345\n",
				     .input_len = 6,
				     .output_max = 5,
				     .reads = true},
	    e);
	assert_int_equal(e->status, -1);
}

static void input_that_continues(void **state)
{
	struct ended *e = *state;
	struct agent_process *p = begin_one(
		(struct process_request){.args = COMMAND("cat"), .reads = true, .part = on_part},
		e);

	for (size_t n = 1; n <= 3; n++) {
		process_send(p, "line\n", 5);
		event_base_dispatch(agent.loop);
		assert_int_equal(e->parts, n);
		assert_string_equal(e->output, "line\n");
	}
	assert_int_equal(e->times, 0);
	process_stop(p);
}

static void author_of_a_command(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.args = COMMAND("by"),
				     .by = "agent (file)",
				     .output_max = 64,
				     .plain = true},
	    e);
	assert_string_equal(e->output, "\"agent (file)\"");
	assert_false(e->has_document);
}

static struct err failure;

static void on_failure(void *ctx, const struct process_result *r)
{
	process_failure(r, "weir x", &failure);
	event_base_loopbreak(agent.loop);
}

static void failure_of_a_command(void **state)
{
	const struct process_request request = {
		.args = COMMAND("fail"), .output_max = 64, .done = on_failure};
	struct agent_process *p;

	assert_int_equal(process_start(&agent, &request, &p, NULL), 0);
	event_base_dispatch(agent.loop);
	assert_string_equal(failure.text, "no (why)");
	assert_int_equal(failure.kind, ERR_REFUSED);
}

static void messages_of_a_command(void **state)
{
	struct ended *e = *state;

	run((struct process_request){.args = COMMAND("talk"), .tells = true}, e);
	assert_string_equal(e->said, "weir: one\nweir: two\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(output_of_a_function, begin, end),
		cmocka_unit_test_setup_teardown(much_output, begin, end),
		cmocka_unit_test_setup_teardown(error_of_a_function, begin, end),
		cmocka_unit_test_setup_teardown(killed_function, begin, end),
		cmocka_unit_test_setup_teardown(timeout, begin, end),
		cmocka_unit_test_setup_teardown(stopped_process_calls_nothing, begin, end),
		cmocka_unit_test_setup_teardown(input_of_a_command, begin, end),
		cmocka_unit_test_setup_teardown(too_much_output, begin, end),
		cmocka_unit_test_setup_teardown(input_that_continues, begin, end),
		cmocka_unit_test_setup_teardown(author_of_a_command, begin, end),
		cmocka_unit_test_setup_teardown(failure_of_a_command, begin, end),
		cmocka_unit_test_setup_teardown(messages_of_a_command, begin, end),
	};

	if (argc > 3 && !strcmp(argv[1], "-n"))
		return be_command(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
