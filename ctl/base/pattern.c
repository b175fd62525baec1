// SPDX-License-Identifier: GPL-2.0-only
// Compiles and matches by PCRE2, which calls back at each step, so that the steps are counted.
#include "ctl/base/pattern.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "ctl/base/library.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"

#define STEPS_MAX   100000 // also of the ways that PCRE2 counts itself
#define STEP_BYTES  16     // as many bytes skipped cost a step
#define DEPTH_MAX   1000
#define HEAP_MAX_KB 1024
#define TIME_MAX_NS 3000000 // processor time, for expensive steps such as a long back-reference
#define TIME_EACH   128     // steps between two reads of the clock
#define OPTIONS     (PCRE2_MULTILINE | PCRE2_NEVER_UTF | PCRE2_AUTO_CALLOUT)

// Each function of PCRE2 that is called here.
#define PCRE2_CALLS(X)          \
	X(code_free)            \
	X(compile)              \
	X(get_error_message)    \
	X(match)                \
	X(match_context_create) \
	X(match_context_free)   \
	X(match_data_create)    \
	X(match_data_free)      \
	X(set_callout)          \
	X(set_depth_limit)      \
	X(set_heap_limit)       \
	X(set_match_limit)

struct pcre2_calls {
#define X(name) __typeof__(pcre2_##name##_8) *name;
	PCRE2_CALLS(X)
#undef X
};

static const struct library_call calls[] = {
#define X(call) {"pcre2_" #call "_8", offsetof(struct pcre2_calls, call)},
	PCRE2_CALLS(X)
#undef X
};

static struct pcre2_calls
	pcre2; // loaded with the first pattern: it would take a tenth of the start of `weir block`

struct pattern {
	pcre2_code *compiled;
	pcre2_match_context *limits;
};

struct effort {
	size_t steps, turns;
	size_t at; // the byte of the last step
	uint64_t until_ns;
};

// ---- compile ------------------------------------------------------------------------------------

static int load(struct err *err)
{
	if (pcre2.compile)
		return 0;
	return library_load("libpcre2-8.so.0", calls, ARRAY_SIZE(calls), &pcre2, sizeof(pcre2),
			    err);
}

static int invalid(const char *text, int number, size_t at, struct err *err)
{
	PCRE2_UCHAR why[128];

	pcre2.get_error_message(number, why, sizeof(why));
	if (!at)
		return err_input(err, "the pattern '%s' is invalid: %s", text, (const char *)why);
	return err_input(err, "the pattern '%s' is invalid: %s, after '%.*s'", text,
			 (const char *)why, (int)at, text);
}

static pcre2_match_context *make_limits(void)
{
	pcre2_match_context *limits = pcre2.match_context_create(NULL);

	if (!limits)
		mem_exhausted();
	pcre2.set_match_limit(limits, STEPS_MAX);
	pcre2.set_depth_limit(limits, DEPTH_MAX);
	pcre2.set_heap_limit(limits, HEAP_MAX_KB);
	return limits;
}

int pattern_new(const char *text, struct pattern **ret, struct err *err)
{
	struct pattern *p;
	pcre2_code *compiled;
	PCRE2_SIZE at = 0;
	int number = load(err);

	if (number)
		return number;
	compiled = pcre2.compile((PCRE2_SPTR)text, strlen(text), OPTIONS, &number, &at, NULL);
	if (!compiled)
		return invalid(text, number, at, err);
	p = mem_new(struct pattern);
	*p = (struct pattern){.compiled = compiled, .limits = make_limits()};
	*ret = p;
	return 0;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2.code_free(p->compiled);
	pcre2.match_context_free(p->limits);
	free(p);
}

// ---- match --------------------------------------------------------------------------------------

// Before each item of the pattern is tried at a byte.
static int on_step(pcre2_callout_block *step, void *effort)
{
	struct effort *e = effort;
	size_t at = step->current_position;

	e->steps += 1 + (at > e->at ? at - e->at : e->at - at) / STEP_BYTES;
	e->at = at;
	if (e->steps > STEPS_MAX ||
	    (!(++e->turns % TIME_EACH) && time_ns(CLOCK_THREAD_CPUTIME_ID) > e->until_ns))
		return PCRE2_ERROR_CALLOUT;
	return 0;
}

enum pattern_result pattern_match(const struct pattern *p, const char *text, size_t len)
{
	struct effort effort = {.until_ns = time_ns(CLOCK_THREAD_CPUTIME_ID) + TIME_MAX_NS};
	pcre2_match_data *data = pcre2.match_data_create(1, NULL);
	int code;

	if (!data)
		mem_exhausted();
	pcre2.set_callout(p->limits, on_step, &effort);
	code = pcre2.match(p->compiled, (PCRE2_SPTR)text, len, 0, 0, data, p->limits);
	pcre2.match_data_free(data);
	if (code >= 0)
		return PATTERN_MATCHES;
	return code == PCRE2_ERROR_NOMATCH ? PATTERN_DIFFERS : PATTERN_TOO_LONG;
}
