// SPDX-License-Identifier: GPL-2.0-only
// The times of names, and the failures of their answers.
#include "ctl/agent/names_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"

#define TTL_LEAST_MS   5000
#define TTL_MOST_MS    3600000
#define HOSTS_MS       60000 // interval for names in /etc/hosts, which have no TTL
#define SERVER_MOST_MS 60000 // back-off while no name server answers
#define TROUBLE_MS     60000 // the same of a trouble
// between two questions: names that come due meanwhile are asked for together
#define PAUSE_MS     500
#define NEW_PER_S    250     // names whose TTL is not known
#define CATCH_UP     11 / 10 // at most so many times the names per second that their TTLs ask for
#define UNKNOWN_MS   1000    // until the names are listed again, when one was not known
#define SWITCH_SHARE 4       // pause after another policy was loaded, in times of what that took
#define TOLD_AT_ONCE 5 // names of a question that a kind of message names; the others are counted

static const struct {
	const char *meanwhile, *over;
} words[TROUBLES] = {
	[TROUBLE_LIST] = {"the previous names are followed", "the names are listed again"},
	[TROUBLE_QUESTION] = {"all names keep their addresses", "names are asked for again"},
	[TROUBLE_ENTRIES] = {"the entries keep their addresses",
			     "the entries follow their names again"},
	[TROUBLE_POLICY] = {"its names are tried again later",
			    "the policy follows its names again"},
};

// The results of one request, for the log.
struct told {
	size_t failed, again, changed;
};

static void free_name(struct watched *one)
{
	free(one->name);
	free(one->why);
}

void names_plan_free(struct names_plan *p)
{
	vec_each (&p->names, one)
		free_name(one);
	vec_free(&p->names);
	for (size_t n = 0; n < TROUBLES; n++)
		trouble_end(&p->troubles[n]);
	plan_messages_free(&p->messages);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct watched *)a)->name, ((const struct watched *)b)->name);
}

static struct watched *find(const struct names_plan *p, size_t n, const char *name)
{
	const struct watched key = {.name = (char *)name};

	return n ? bsearch(&key, p->names.at, n, sizeof(key), compare) : NULL;
}

// ---- when ---------------------------------------------------------------------------------------

uint64_t names_plan_wait_ms(const struct names_plan *p, const struct plan_now *now)
{
	uint64_t next = UINT64_MAX;

	vec_each (&p->names, one)
		next = one->due_ms < next ? one->due_ms : next;
	if (next == UINT64_MAX)
		return UINT64_MAX;
	next = next < p->rest_ms ? p->rest_ms : next;
	next = next < p->asked_ms + PAUSE_MS ? p->asked_ms + PAUSE_MS : next;
	return next > now->ms ? next - now->ms : 0;
}

static uint64_t within(uint64_t ms, uint64_t least, uint64_t most)
{
	return ms < least ? least : ms > most ? most : ms;
}

// The TTL is the remaining time at the queried name server: the answer may change right then.
static uint64_t after_answer(struct names_plan *p, struct watched *one, uint64_t ttl_ms)
{
	one->interval_ms = within(ttl_ms, TTL_LEAST_MS, TTL_MOST_MS);
	return one->interval_ms + plan_random_below(&p->random, 500);
}

static uint64_t after_failure(struct names_plan *p, const struct watched *one)
{
	uint64_t ms = trouble_pause_ms(one->failures, TTL_LEAST_MS,
				       one->server ? SERVER_MOST_MS : TTL_MOST_MS);

	return ms + plan_random_below(&p->random, ms / 4);
}

// How many names the next question has at most: what their TTLs ask for in the time since the last
// one, and somewhat more, so that names that come due together are apart from each other soon.
static size_t quota(const struct names_plan *p, uint64_t now_ms)
{
	uint64_t elapsed = within(now_ms - p->asked_ms, PAUSE_MS, 4 * PAUSE_MS);
	uint64_t per_1000_s = 0, n;

	vec_each (&p->names, one)
		per_1000_s += one->interval_ms ? 1000000 / one->interval_ms : 0;
	n = per_1000_s * CATCH_UP / 1000;
	n = (n < NEW_PER_S ? NEW_PER_S : n) * elapsed / 1000;
	return n < NAMES_AT_ONCE ? n : NAMES_AT_ONCE;
}

static int compare_due(const void *a, const void *b)
{
	const struct watched *const *x = a, *const *y = b;

	return (*x)->due_ms < (*y)->due_ms ? -1 : (*x)->due_ms > (*y)->due_ms;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Those that have waited for the longest time.
size_t names_plan_ask(struct names_plan *p, const struct plan_now *now, const char **ret)
{
	CLEANUP_VEC VEC(struct watched *) due = {0};
	size_t n = 0, most = quota(p, now->ms);

	vec_each (&p->names, one)
		if (one->due_ms <= now->ms)
			vec_push(&due, one);
	if (!due.n)
		return 0;
	qsort(due.at, due.n, sizeof(*due.at), compare_due);
	for (; n < due.n && n < most; n++) {
		due.at[n]->asked = true;
		ret[n] = due.at[n]->name;
	}
	qsort(ret, n, sizeof(*ret), compare_texts);
	p->asked_ms = now->ms;
	return n;
}

void names_plan_hurry(struct names_plan *p, const struct plan_now *now)
{
	vec_each (&p->names, one)
		one->due_ms = now->ms;
	p->rest_ms = 0;
}

static void list_within(struct names_plan *p, uint64_t ms)
{
	p->list_ms = !p->list_ms || ms < p->list_ms ? ms : p->list_ms;
}

// ---- troubles -----------------------------------------------------------------------------------

static void begin_trouble(struct names_plan *p, enum names_trouble which, const char *why)
{
	if (why && trouble_begin(&p->troubles[which], why))
		plan_say(&p->messages, log_error, "%s; %s", why, words[which].meanwhile);
}

static bool end_trouble(struct names_plan *p, enum names_trouble which)
{
	bool was = trouble_end(&p->troubles[which]);

	if (was)
		plan_say(&p->messages, log_notice, "%s", words[which].over);
	return was;
}

static uint64_t pause_of(const struct names_plan *p, enum names_trouble which)
{
	return trouble_pause_ms(p->troubles[which].times, TTL_LEAST_MS, TROUBLE_MS);
}

// The name server is back: whoever has waited for it need not wait longer.
static void ask_failing(struct names_plan *p, uint64_t now_ms)
{
	vec_each (&p->names, one)
		if (one->failures && one->server && one->due_ms > now_ms + TTL_LEAST_MS)
			one->due_ms = now_ms + plan_random_below(&p->random, TTL_LEAST_MS);
}

static bool has_names_with(const struct names_plan *p, enum names_trouble which)
{
	vec_each (&p->names, one)
		if (one->troubles & 1u << which)
			return true;
	return false;
}

// Another question may concern only names that have nothing to change: that does not end a trouble.
static void take_refusal(struct names_plan *p, enum names_trouble which, const struct err *why,
			 uint64_t now_ms)
{
	if (why->text[0])
		begin_trouble(p, which, why->text);
	else if (!has_names_with(p, which) && end_trouble(p, which))
		ask_failing(p, now_ms);
}

static void take_refusals(struct names_plan *p, const struct refresh_refused *refused,
			  uint64_t now_ms)
{
	take_refusal(p, TROUBLE_ENTRIES, &refused->entries, now_ms);
	take_refusal(p, TROUBLE_POLICY, &refused->policy, now_ms);
}

// ---- answers ------------------------------------------------------------------------------------

static void count_failure(struct names_plan *p, struct watched *one, bool server, uint64_t now_ms)
{
	one->failures++;
	one->server = server;
	one->due_ms = now_ms + after_failure(p, one);
}

static bool is_of_server(int error)
{
	return error && error != -ENOENT && error != -ENODATA && error != -EINVAL &&
	       error != -EPERM;
}

static void take_failure(struct names_plan *p, struct watched *one, const struct refresh_name *row,
			 struct told *told, uint64_t now_ms)
{
	if (!one->why && !one->empty && told->failed++ < TOLD_AT_ONCE)
		plan_say(&p->messages, log_warning, "%s; its addresses stay as they were",
			 row->why);
	free(one->why);
	one->why = mem_strdup(row->why);
	one->troubles = 0;
	count_failure(p, one, is_of_server(row->error), now_ms);
}

static void take_recovery(struct names_plan *p, struct watched *one, struct told *told)
{
	if (one->why && !one->empty && told->again++ < TOLD_AT_ONCE)
		plan_say(&p->messages, log_notice, "'%s' resolves again", one->name);
	one->empty = false;
	free(TAKE_PTR(one->why));
}

// It has an answer that could not be put into effect, or none because of what concerns all names.
static void take_trouble(struct names_plan *p, struct watched *one, unsigned troubles,
			 uint64_t now_ms)
{
	free(TAKE_PTR(one->why));
	one->troubles = troubles;
	count_failure(p, one, true, now_ms);
}

static unsigned troubles_of(const struct refresh_name *row)
{
	return (row->kept & REFRESH_ENTRIES ? 1u << TROUBLE_ENTRIES : 0) |
	       (row->kept & REFRESH_POLICY ? 1u << TROUBLE_POLICY : 0);
}

static void tell_change(struct names_plan *p, const struct refresh_name *row, struct told *told)
{
	if ((row->added || row->leaving) && told->changed++ < TOLD_AT_ONCE)
		plan_say(&p->messages, log_notice, "'%s': %zu %s added, %zu leaving", row->name,
			 row->added, num_plural(row->added, "address", "addresses"), row->leaving);
}

static void tell_others(struct names_plan *p, const struct told *told)
{
	const struct {
		size_t n;
		const char *what;
	} kinds[] = {
		{told->failed, "no answer; keeping the previous addresses"},
		{told->again, "answers again"},
		{told->changed, "other addresses"},
	};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		size_t more = kinds[k].n > TOLD_AT_ONCE ? kinds[k].n - TOLD_AT_ONCE : 0;

		if (more)
			plan_say(&p->messages, log_notice, "%zu more %s: %s", more,
				 num_plural(more, "name", "names"), kinds[k].what);
	}
}

static void take_good(struct names_plan *p, struct watched *one, const struct refresh_name *row,
		      struct told *told, const struct plan_now *now)
{
	uint64_t end = now->ms + row->ends_s * 1000 + 1000;

	take_recovery(p, one, told);
	one->failures = one->troubles = 0;
	one->answered_s = now->wall_s;
	tell_change(p, row, told);
	one->due_ms =
		now->ms + after_answer(p, one, row->hosts ? HOSTS_MS : row->ttl_s * UINT64_C(1000));
	// The policy releases an address before the TTL ends.
	if (row->ends_s != UINT64_MAX && end < one->due_ms)
		one->due_ms = end;
}

static void take_answer(struct names_plan *p, const struct refresh_name *row, struct told *told,
			const struct plan_now *now)
{
	struct watched *one = find(p, p->names.n, row->name);
	unsigned troubles = troubles_of(row);

	if (!one)
		return;
	one->asked = false;
	if (troubles) {
		take_recovery(p, one, told);
		take_trouble(p, one, troubles, now->ms);
	} else if (row->why[0])
		take_failure(p, one, row, told, now->ms);
	else
		take_good(p, one, row, told, now);
}

static void take_answers(struct names_plan *p, const struct refresh *r, const struct plan_now *now)
{
	struct told told = {0};

	vec_each (r, row)
		take_answer(p, row, &told, now);
	tell_others(p, &told);
	if (told.again)
		ask_failing(p, now->ms);
	// Asked for, and not in the answers: unblocked meanwhile, or of a policy whose record
	// cannot be read now.
	vec_each (&p->names, one) {
		if (one->asked) {
			one->due_ms = now->ms + TTL_LEAST_MS;
			list_within(p, UNKNOWN_MS);
		}
		one->asked = false;
	}
}

void names_plan_answered(struct names_plan *p, const struct refresh *r,
			 const struct refresh_refused *refused, const struct plan_now *now)
{
	if (end_trouble(p, TROUBLE_QUESTION))
		ask_failing(p, now->ms);
	take_answers(p, r, now);
	take_refusals(p, refused, now->ms);
	if (r->switched || p->troubles[TROUBLE_POLICY].why)
		p->rest_ms = now->ms + (now->ms - p->asked_ms) * SWITCH_SHARE;
}

// Those that were asked for keep what they have; the next question waits.
void names_plan_question_failed(struct names_plan *p, const char *why, const struct plan_now *now)
{
	begin_trouble(p, TROUBLE_QUESTION, why);
	p->rest_ms = now->ms + pause_of(p, TROUBLE_QUESTION);
	vec_each (&p->names, one) {
		if (one->asked)
			take_trouble(p, one, 1u << TROUBLE_QUESTION, now->ms);
		one->asked = false;
	}
}

// ---- which --------------------------------------------------------------------------------------

static void forget_unlisted(struct names_plan *p)
{
	size_t kept = 0;

	vec_each (&p->names, one) {
		if (one->listed) {
			one->listed = false;
			p->names.at[kept++] = *one;
		} else {
			free_name(one);
		}
	}
	p->names.n = kept;
}

static void add_name(struct names_plan *p, const struct refresh_name *row,
		     const struct plan_now *now)
{
	struct watched *one = vec_add(&p->names);
	uint64_t age_s = now->wall_s > row->since_s ? now->wall_s - row->since_s : 0, in;

	*one = (struct watched){
		.name = mem_strdup(row->name),
		.answered_s = row->since_s ? row->since_s : now->wall_s,
		.empty = row->empty,
		.listed = true,
	};
	if (!row->ttl_s)
		return;
	in = after_answer(p, one, row->ttl_s * UINT64_C(1000));
	age_s = row->since_s ? age_s : 0;
	one->due_ms = now->ms + (in > age_s * 1000 ? in - age_s * 1000 : 0);
}

// Those whose TTL is not known come due one after the other.
static void spread(struct names_plan *p, size_t old, uint64_t now_ms)
{
	uint64_t unknown = 0;

	for (size_t n = old; n < p->names.n; n++)
		unknown += !p->names.at[n].interval_ms;
	for (size_t n = old; n < p->names.n; n++)
		if (!p->names.at[n].interval_ms)
			p->names.at[n].due_ms =
				now_ms + TTL_LEAST_MS +
				plan_random_below(&p->random, unknown * 1000 / NEW_PER_S);
}

static void take_list(struct names_plan *p, const struct refresh *r, const struct plan_now *now)
{
	size_t old = p->names.n;

	vec_each (r, row) {
		struct watched *one = row->place ? NULL : find(p, old, row->name);

		if (one)
			one->listed = true;
		else if (!row->place)
			add_name(p, row, now);
	}
	spread(p, old, now->ms);
	if (p->names.n > old)
		qsort(p->names.at, p->names.n, sizeof(*p->names.at), compare);
	forget_unlisted(p);
}

void names_plan_list_failed(struct names_plan *p, const char *why)
{
	begin_trouble(p, TROUBLE_LIST, why);
	list_within(p, pause_of(p, TROUBLE_LIST));
}

// A failed read is tried again, even without a command that repairs it.
void names_plan_listed(struct names_plan *p, const struct refresh *r,
		       const struct refresh_refused *refused, const struct plan_now *now)
{
	end_trouble(p, TROUBLE_LIST);
	take_list(p, r, now);
	take_refusals(p, refused, now->ms);
	if (p->troubles[TROUBLE_POLICY].why)
		list_within(p, pause_of(p, TROUBLE_POLICY));
}
