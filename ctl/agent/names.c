// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the host names of entries and of the policy: each is asked for again
// when its TTL ends, or when the policy releases an address of it.
//
// The work is that of `weir refresh`, in a process of its own. What is kept here is only when each
// name is due; after a restart all are due soon, spread over time.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/places.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/base/geo.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/bpffs.h"

#define TTL_LEAST_MS   5000
#define TTL_MOST_MS    3600000
#define HOSTS_MS       60000 // of names in /etc/hosts, which have no TTL
#define SERVER_MOST_MS 60000 // back-off while no name server answers
#define NAMES_AT_ONCE  1000
// between two questions: names that come due meanwhile are asked for together
#define PAUSE_MS       500
#define NEW_PER_S      250     // names whose TTL is not known
#define CATCH_UP       11 / 10 // at most so many times the names per second that their TTLs ask for
#define AFTER_COMMAND  1000
#define LIST_SHARE     20 // looking for names takes at most a twentieth of the time
#define SWITCH_SHARE   4  // pause after another policy was loaded, in times of what that took
#define OUTPUT_MAX     (256u << 20)
#define TIMEOUT_S      60
#define PROBLEMS_SHOWN 5
#define TOLD_AT_ONCE   5 // names of a question that a kind of message names; the others are counted
#define BACK_OFF_MS    60000 // of a trouble, at most

// What is wrong with names as a whole, apart from single answers.
enum names_trouble {
	TROUBLE_LIST,     // which names there are is not known
	TROUBLE_QUESTION, // none of the names that were asked for has an answer
	TROUBLE_ENTRIES,  // entries cannot be changed
	TROUBLE_POLICY,   // the policy cannot be changed, or its record cannot be read
	TROUBLES,
};

static const struct {
	const char *meanwhile, *over;
} words[TROUBLES] = {
	[TROUBLE_LIST] = {"the names of before are followed", "the names are listed again"},
	[TROUBLE_QUESTION] = {"all names keep their addresses", "names are asked for again"},
	[TROUBLE_ENTRIES] = {"the entries keep their addresses",
			     "the entries follow their names again"},
	[TROUBLE_POLICY] = {"its names are tried again later",
			    "the policy follows its names again"},
};

struct watched {
	char *name;
	uint64_t due_ms;      // monotonic
	uint64_t interval_ms; // that its TTL asks for; 0: not known
	unsigned failures;
	bool server;         // the failure is one of the name server
	uint64_t answered_s; // wall clock: of the last good answer, as far as it is known
	uint64_t since_s;    // of the first of the failures in a row
	char *why;           // NULL: a trouble, which is told once for all of its names
	unsigned troubles;   // bits: because of which its last answer is not in effect
	bool empty;  // of a lax list, and without an answer so far: nothing is wrong with that
	bool listed; // in the list that is being read
	bool asked;  // in the question that is being answered
};

// What the answers to one question say, for the log.
struct told {
	size_t failed, again, changed;
};

struct names_part {
	struct agent *agent;
	struct agent_task list, ask;
	struct agent_process *listing, *asking;
	uint64_t began_ms, listed_ms; // the last listing
	uint64_t asked_ms, rest_ms;   // the last question, and until when no other follows
	VEC(struct watched) names;    // sorted
	struct told told;             // of the answers that are being read
	struct trouble troubles[TROUBLES];
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct watched *)a)->name, ((const struct watched *)b)->name);
}

static struct watched *find(struct names_part *p, const char *name)
{
	struct watched key = {.name = (char *)name};

	return p->names.n ? bsearch(&key, p->names.at, p->names.n, sizeof(key), compare) : NULL;
}

static uint64_t random_below(uint64_t n)
{
	return n ? (uint64_t)random() % n : 0;
}

// ---- when ---------------------------------------------------------------------------------------

static void plan(struct names_part *p)
{
	uint64_t now = agent_now_ms(), next = UINT64_MAX;

	vec_each (&p->names, one)
		next = one->due_ms < next ? one->due_ms : next;
	if (next == UINT64_MAX || p->asking) {
		agent_task_cancel(&p->ask);
		return;
	}
	next = next < p->rest_ms ? p->rest_ms : next;
	next = next < p->asked_ms + PAUSE_MS ? p->asked_ms + PAUSE_MS : next;
	agent_task_move(&p->ask, next > now ? next - now : 0);
}

static uint64_t within(uint64_t ms, uint64_t least, uint64_t most)
{
	return ms < least ? least : ms > most ? most : ms;
}

// The TTL is what is left of it at the name server that was asked: the answer may change right
// then.
static uint64_t after_answer(struct watched *one, uint64_t ttl_ms)
{
	one->interval_ms = within(ttl_ms, TTL_LEAST_MS, TTL_MOST_MS);
	return one->interval_ms + random_below(500);
}

static uint64_t after_failure(const struct watched *one)
{
	uint64_t ms = trouble_pause_ms(one->failures, TTL_LEAST_MS,
				       one->server ? SERVER_MOST_MS : TTL_MOST_MS);

	return ms + random_below(ms / 4);
}

// How many names the next question has at most: what their TTLs ask for in the time since the last
// one, and somewhat more, so that names that come due together are apart from each other soon.
static size_t quota(const struct names_part *p, uint64_t now)
{
	uint64_t elapsed = within(now - p->asked_ms, PAUSE_MS, 4 * PAUSE_MS), per_1000_s = 0, n;

	vec_each (&p->names, one)
		per_1000_s += one->interval_ms ? 1000000 / one->interval_ms : 0;
	n = per_1000_s * CATCH_UP / 1000;
	n = (n < NEW_PER_S ? NEW_PER_S : n) * elapsed / 1000;
	return n < NAMES_AT_ONCE ? n : NAMES_AT_ONCE;
}

// ---- answers ------------------------------------------------------------------------------------

static void count_failure(struct watched *one)
{
	if (!one->failures++)
		one->since_s = (uint64_t)time(NULL);
	free(TAKE_PTR(one->why));
}

static void take_failure(struct names_part *p, struct watched *one, const struct json *row)
{
	const char *why = json_get_string(row, "error"), *code = json_get_string(row, "errno");
	bool first = !one->why;

	count_failure(one);
	if (first && !one->empty && p->told.failed++ < TOLD_AT_ONCE)
		log_warning("%s; its addresses stay as they were", why);
	one->troubles = 0;
	one->server = code && strcmp(code, "ENOENT") != 0 && strcmp(code, "ENODATA") != 0 &&
		      strcmp(code, "EINVAL") != 0 && strcmp(code, "EPERM") != 0;
	one->why = mem_strdup(why);
	one->due_ms = agent_now_ms() + after_failure(one);
}

static void take_recovery(struct names_part *p, struct watched *one)
{
	if (one->why && !one->empty && p->told.again++ < TOLD_AT_ONCE)
		log_notice("'%s' resolves again", one->name);
	one->empty = false;
}

// It has an answer that could not be put into effect, or none because of what concerns all names.
static void take_trouble(struct watched *one, unsigned troubles)
{
	count_failure(one);
	one->troubles = troubles;
	one->server = true;
	one->due_ms = agent_now_ms() + after_failure(one);
}

static unsigned troubles_of(const struct json *row)
{
	const char *kept = json_get_string(row, "kept");

	if (!kept)
		return 0;
	return !strcmp(kept, "entries")  ? 1u << TROUBLE_ENTRIES
	       : !strcmp(kept, "policy") ? 1u << TROUBLE_POLICY
					 : 1u << TROUBLE_ENTRIES | 1u << TROUBLE_POLICY;
}

static void tell_change(struct names_part *p, const struct json *row)
{
	uint64_t added = json_get_u64(row, "added"), leaving = json_get_u64(row, "leaving");

	if ((added || leaving) && p->told.changed++ < TOLD_AT_ONCE)
		log_notice("'%s': %llu %s added, %llu leaving", json_get_string(row, "name"),
			   (unsigned long long)added, num_plural(added, "address", "addresses"),
			   (unsigned long long)leaving);
}

static void tell_others(const struct names_part *p)
{
	const struct {
		size_t n;
		const char *what;
	} kinds[] = {
		{p->told.failed, "no answer; the addresses of before stay"},
		{p->told.again, "answers again"},
		{p->told.changed, "other addresses"},
	};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		size_t more = kinds[k].n > TOLD_AT_ONCE ? kinds[k].n - TOLD_AT_ONCE : 0;

		if (more)
			log_notice("%zu more %s: %s", more, num_plural(more, "name", "names"),
				   kinds[k].what);
	}
}

// The policy releases an address before the TTL ends.
static void take_end(struct watched *one, const struct json *row)
{
	uint64_t end;

	if (one->failures || !json_get(row, "ends_s"))
		return;
	end = agent_now_ms() + json_get_u64(row, "ends_s") * 1000 + 1000;
	one->due_ms = end < one->due_ms ? end : one->due_ms;
}

static void take_good(struct names_part *p, struct watched *one, const struct json *row)
{
	bool has_ttl = json_get(row, "ttl_s");

	take_recovery(p, one);
	free(TAKE_PTR(one->why));
	one->failures = one->troubles = 0;
	one->answered_s = (uint64_t)time(NULL);
	tell_change(p, row);
	one->due_ms = agent_now_ms() +
		      after_answer(one, has_ttl ? json_get_u64(row, "ttl_s") * 1000 : HOSTS_MS);
	take_end(one, row);
}

static void take_answer(struct names_part *p, const struct json *row)
{
	const char *name = json_get_string(row, "name"), *why = json_get_string(row, "error");
	struct watched *one = name ? find(p, name) : NULL;
	unsigned troubles = troubles_of(row);

	if (!one)
		return;
	one->asked = false;
	if (troubles) {
		take_recovery(p, one);
		take_trouble(one, troubles);
	} else if (why && why[0])
		take_failure(p, one, row);
	else
		take_good(p, one, row);
}

// The name server is back: whoever has waited for it need not wait longer.
static void ask_failing(struct names_part *p)
{
	uint64_t now = agent_now_ms();

	vec_each (&p->names, one)
		if (one->failures && one->server && one->due_ms > now + TTL_LEAST_MS)
			one->due_ms = now + random_below(TTL_LEAST_MS);
}

static bool has_names_with(const struct names_part *p, enum names_trouble which)
{
	vec_each (&p->names, one)
		if (one->troubles & 1u << which)
			return true;
	return false;
}

static void begin_trouble(struct names_part *p, enum names_trouble which, const char *why)
{
	if (trouble_begin(&p->troubles[which], why))
		log_error("%s; %s", why, words[which].meanwhile);
}

static bool end_trouble(struct names_part *p, enum names_trouble which)
{
	bool was = trouble_end(&p->troubles[which]);

	if (was)
		log_notice("%s", words[which].over);
	return was;
}

static uint64_t trouble_pause(const struct names_part *p, enum names_trouble which)
{
	return trouble_pause_ms(p->troubles[which].times, TTL_LEAST_MS, BACK_OFF_MS);
}

// Another question may concern only names that have nothing to change: that does not end a trouble.
static void take_refusal(struct names_part *p, enum names_trouble which, const char *why)
{
	if (why)
		begin_trouble(p, which, why);
	else if (!has_names_with(p, which) && end_trouble(p, which))
		ask_failing(p);
}

static void take_refusals(struct names_part *p, const struct json *document)
{
	take_refusal(p, TROUBLE_ENTRIES, json_get_string(document, "entries_refused"));
	take_refusal(p, TROUBLE_POLICY, json_get_string(document, "refused"));
}

// Has the command failed altogether? *ret: why.
static bool has_failed(const struct process_result *r, struct err *ret)
{
	if (json_get(r->document, "names"))
		return false;
	process_failure(r, "weir refresh", ret);
	return true;
}

// ---- asking -------------------------------------------------------------------------------------

static void take_answers(struct names_part *p, const struct json *rows)
{
	p->told = (struct told){0};
	for (size_t n = 0; n < json_length(rows); n++)
		take_answer(p, json_at(rows, n));
	tell_others(p);
	if (p->told.again)
		ask_failing(p);
	// Asked for, and not in the document: unblocked meanwhile, or of a policy whose record
	// cannot be read now.
	vec_each (&p->names, one) {
		if (one->asked) {
			one->due_ms = agent_now_ms() + TTL_LEAST_MS;
			agent_task_in(&p->list, AFTER_COMMAND);
		}
		one->asked = false;
	}
}

// An instance that is detached as a whole has no names, and `weir status` reports it.
static void fail(struct names_part *p, enum names_trouble which, const char *why)
{
	if (bpffs_exist(p->agent->instance))
		begin_trouble(p, which, why);
}

// Those that were asked for keep what they have; the next question waits.
static void fail_question(struct names_part *p, const char *why)
{
	fail(p, TROUBLE_QUESTION, why);
	p->rest_ms = agent_now_ms() + trouble_pause(p, TROUBLE_QUESTION);
	vec_each (&p->names, one) {
		if (one->asked)
			take_trouble(one, 1u << TROUBLE_QUESTION);
		one->asked = false;
	}
}

static void take_document(struct names_part *p, const struct json *document)
{
	uint64_t now = agent_now_ms();

	if (end_trouble(p, TROUBLE_QUESTION))
		ask_failing(p);
	take_answers(p, json_get(document, "names"));
	take_refusals(p, document);
	if (json_is_yes(json_get(document, "switched")) || p->troubles[TROUBLE_POLICY].why)
		p->rest_ms = now + (now - p->asked_ms) * SWITCH_SHARE;
}

static void on_answers(void *part, const struct process_result *r)
{
	struct names_part *p = part;
	struct err failure = {0};

	p->asking = NULL;
	if (has_failed(r, &failure))
		fail_question(p, failure.text);
	else
		take_document(p, r->document);
	plan(p);
	agent_changed(p->agent);
}

static int start_command(struct names_part *p, const char *const *args, const struct text *input,
			 void (*done)(void *, const struct process_result *),
			 struct agent_process **ret, struct err *err)
{
	struct process_request request = {
		.args = args,
		.input = input->at,
		.input_len = input->len,
		.output_max = OUTPUT_MAX,
		.timeout_s = TIMEOUT_S,
		.silent = true, // what fails is in the document
		.done = done,
		.ctx = p,
	};

	return process_start(p->agent, &request, ret, err);
}

static void ask(struct names_part *p, const struct text *input)
{
	static const char *const args[] = {"-j",       "refresh",  "--entries",
					   "--policy", "--file=-", NULL};
	struct err err = {0};

	p->asked_ms = agent_now_ms();
	if (start_command(p, args, input, on_answers, &p->asking, &err)) {
		fail_question(p, err.text);
		plan(p);
		agent_changed(p->agent);
	}
}

static int compare_due(const void *a, const void *b)
{
	const struct watched *const *x = a, *const *y = b;

	return (*x)->due_ms < (*y)->due_ms ? -1 : (*x)->due_ms > (*y)->due_ms;
}

// Those that have waited for the longest time.
static void add_due(struct names_part *p, uint64_t now, struct text *to)
{
	CLEANUP_VEC VEC(struct watched *) due = {0};
	size_t most = quota(p, now);

	vec_each (&p->names, one)
		if (one->due_ms <= now)
			vec_push(&due, one);
	if (due.n)
		qsort(due.at, due.n, sizeof(*due.at), compare_due);
	for (size_t n = 0; n < due.n && n < most; n++) {
		due.at[n]->asked = true;
		text_addf(to, "%s\n", due.at[n]->name);
	}
}

static int ask_due(void *part, struct err *err)
{
	struct names_part *p = part;
	CLEANUP_TEXT struct text input = {0};

	if (!p->asking)
		add_due(p, agent_now_ms(), &input);
	if (input.len)
		ask(p, &input);
	else
		plan(p);
	return 0;
}

// ---- which --------------------------------------------------------------------------------------

static void forget_unlisted(struct names_part *p)
{
	size_t kept = 0;

	for (size_t n = 0; n < p->names.n; n++) {
		struct watched *one = &p->names.at[n];

		if (one->listed) {
			one->listed = false;
			p->names.at[kept++] = *one;
			continue;
		}
		free(one->name);
		free(one->why);
	}
	p->names.n = kept;
}

static uint64_t answered(const struct json *row)
{
	uint64_t now_s = (uint64_t)time(NULL), age_s = json_get_u64(row, "age_s");

	return now_s > age_s ? now_s - age_s : 0;
}

static void add_name(struct names_part *p, const struct json *row)
{
	struct watched *one = vec_add(&p->names);
	uint64_t ttl_s = json_get_u64(row, "ttl_s"), age_ms = json_get_u64(row, "age_s") * 1000, in;

	*one = (struct watched){
		.name = mem_strdup(json_get_string(row, "name")),
		.answered_s = answered(row),
		.empty = json_is_yes(json_get(row, "empty")),
		.listed = true,
	};
	if (!ttl_s)
		return;
	in = after_answer(one, ttl_s * 1000);
	one->due_ms = agent_now_ms() + (in > age_ms ? in - age_ms : 0);
}

// Those whose TTL is not known come due one after the other.
static void spread(struct names_part *p, size_t old)
{
	uint64_t unknown = 0;

	for (size_t n = old; n < p->names.n; n++)
		unknown += !p->names.at[n].interval_ms;
	for (size_t n = old; n < p->names.n; n++)
		if (!p->names.at[n].interval_ms)
			p->names.at[n].due_ms = agent_now_ms() + TTL_LEAST_MS +
						random_below(unknown * 1000 / NEW_PER_S);
}

static void take_list(struct names_part *p, const struct json *rows)
{
	size_t old = p->names.n, places = 0;

	for (size_t n = 0; n < json_length(rows); n++) {
		const char *name = json_get_string(json_at(rows, n), "name");
		struct watched key = {.name = (char *)name}, *one = NULL;

		places += name && geo_is_name(name);
		if (!name || geo_is_name(name))
			continue;
		if (old)
			one = bsearch(&key, p->names.at, old, sizeof(key), compare);
		if (one)
			one->listed = true;
		else
			add_name(p, json_at(rows, n));
	}
	spread(p, old);
	if (p->names.n > old)
		qsort(p->names.at, p->names.n, sizeof(*p->names.at), compare);
	forget_unlisted(p);
	places_listed(p->agent, places);
}

// What cannot be read is looked at again, also without a command that mends it.
static void list_again(struct names_part *p, enum names_trouble which)
{
	agent_task_in(&p->list, trouble_pause(p, which));
}

static void fail_listing(struct names_part *p, const char *why)
{
	fail(p, TROUBLE_LIST, why);
	list_again(p, TROUBLE_LIST);
}

static void take_listing(struct names_part *p, const struct json *document)
{
	end_trouble(p, TROUBLE_LIST);
	take_list(p, json_get(document, "names"));
	take_refusals(p, document);
	if (p->troubles[TROUBLE_POLICY].why)
		list_again(p, TROUBLE_POLICY);
}

static void on_list(void *part, const struct process_result *r)
{
	struct names_part *p = part;
	struct err failure = {0};

	p->listing = NULL;
	p->listed_ms = agent_now_ms();
	if (has_failed(r, &failure))
		fail_listing(p, failure.text);
	else if (p->asking)
		agent_task_in(&p->list, AFTER_COMMAND);
	else
		take_listing(p, r->document);
	plan(p);
	agent_changed(p->agent);
}

static int look(void *part, struct err *err)
{
	static const char *const args[] = {"-j", "refresh", "--list", NULL};
	struct names_part *p = part;
	const struct text none = {0};

	uint64_t pause = (p->listed_ms - p->began_ms) * LIST_SHARE;

	if (p->listing || p->asking || (p->listed_ms && agent_now_ms() - p->listed_ms < pause)) {
		agent_task_in(&p->list, AFTER_COMMAND);
		return 0;
	}
	p->began_ms = agent_now_ms();
	return start_command(p, args, &none, on_list, &p->listing, err);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct names_part *p = mem_new(struct names_part);

	*p = (struct names_part){.agent = a};
	a->names = p;
	agent_task_init(&p->ask, a, "names that are due", ask_due, p);
	agent_task_init(&p->list, a, "list of names", look, p);
	agent_after_command(a, &p->list, AFTER_COMMAND);
	agent_task_in(&p->list, 0);
	return 0;
}

static void stop(struct agent *a)
{
	struct names_part *p = TAKE_PTR(a->names);

	if (!p)
		return;
	process_stop(p->listing);
	process_stop(p->asking);
	agent_task_free(&p->list);
	agent_task_free(&p->ask);
	forget_unlisted(p);
	vec_free(&p->names);
	for (size_t n = 0; n < TROUBLES; n++)
		trouble_end(&p->troubles[n]);
	free(p);
}

static int reload(struct agent *a, struct err *err)
{
	vec_each (&a->names->names, one)
		one->due_ms = agent_now_ms();
	a->names->rest_ms = 0;
	agent_task_in(&a->names->list, 0);
	plan(a->names);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	uint64_t oldest = UINT64_MAX, next = UINT64_MAX, now = agent_now_ms();
	size_t failing = 0;

	vec_each (&a->names->names, one) {
		next = one->due_ms < next ? one->due_ms : next;
		if (one->empty)
			continue;
		failing += one->failures > 0;
		oldest = one->answered_s < oldest ? one->answered_s : oldest;
		if (one->why && failing <= PROBLEMS_SHOWN)
			json_append(problems, json_string(one->why));
	}
	for (size_t n = 0; n < TROUBLES; n++)
		trouble_report(&a->names->troubles[n], NULL, problems);
	agent_task_report(&a->names->list, problems);
	json_set(fields, "names", json_u64(a->names->names.n));
	json_set(fields, "fresh", json_u64(a->names->names.n - failing));
	json_set(fields, "failing", json_u64(failing));
	if (oldest != UINT64_MAX)
		json_set(fields, "oldest_s", json_u64(oldest));
	if (next != UINT64_MAX)
		json_set(fields, "next_s",
			 json_u64((uint64_t)time(NULL) + (next > now ? next - now : 0) / 1000));
}

const struct agent_part agent_names = {
	.name = "names",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
