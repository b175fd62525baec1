// SPDX-License-Identifier: GPL-2.0-only
// Prints rows and collects them for the JSON document.
#include "tests/bench/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "tests/bench/bench.h"
#include "tests/bench/goals.h"
#include "tests/bench/machine.h"

struct report {
	const char *path;
	struct json *document, *machine, *rows; // the document has the other two
	struct measured measured;
	size_t promised, reached, unknown, refused, skipped, failed;
};

struct report *report_new(int cpu, size_t rounds, const char *path)
{
	struct report *r = mem_new(struct report);

	r->path = path;
	r->document = json_object();
	r->machine = machine_describe(cpu, rounds);
	r->rows = json_array();
	json_set(r->document, "machine", r->machine);
	json_set(r->document, "complete", json_bool(false));
	json_set(r->document, "rows", r->rows);
	machine_print(r->machine);
	printf("%-28s %-16s %10s %10s  %s\n", "ID", "PROGRAM", "MIN", "MEDIAN",
	       "WEIR TO PROGRAM (MINIMA, MEDIANS)");
	return r;
}

void report_free(struct report *r)
{
	if (!r)
		return;
	json_free(r->document);
	measured_free(&r->measured);
	free(r);
}

// ---- the table ----------------------------------------------------------------------------------

// Times of commands are printed in milliseconds.
static void print_ns(double ns)
{
	if (ns >= 1e6)
		printf(" %7.1f ms", ns / 1e6);
	else
		printf(" %10.1f", ns);
}

// The ratio of Weir to a peer; in rows of shares, the share itself.
static struct figures ratio_to(const struct row_goal *goal, const struct result *own,
			       const struct result *peer)
{
	if (goal->share)
		return peer->share;
	if (own == peer || own->skipped || peer->net.min <= 0 || peer->net.median <= 0)
		return (struct figures){0};
	return (struct figures){own->net.min / peer->net.min, own->net.median / peer->net.median};
}

static void print_result(const struct row_goal *goal, const struct result *own,
			 const struct result *result)
{
	struct figures ratio = ratio_to(goal, own, result);

	printf("%-28s %-16s", own == result ? goal->id : "", result->subject);
	if (result->skipped) {
		printf(" %s: %s\n", own == result ? "refused" : "skipped", result->skipped);
		return;
	}
	print_ns(result->net.min);
	print_ns(result->net.median);
	if (ratio.min > 0)
		printf("  %.3f %.3f", ratio.min, ratio.median);
	if (result->pps > 0)
		printf("  %.2f Mpps", result->pps / 1e6);
	if (result->peak_kb)
		printf("  peak %.0f MB", (double)result->peak_kb * 1024 / 1e6);
	if (result->failed)
		printf("  %zu failed", result->failed);
	if (result->repeated)
		printf("  %zu rounds repeated", result->repeated);
	putchar('\n');
}

// ---- goals --------------------------------------------------------------------------------------

static const char *const reach_words[] = {
	[REACH_YES] = "reached",
	[REACH_MINIMA] = "NOT REACHED (only in the minima)",
	[REACH_MEDIANS] = "NOT REACHED (only in the medians)",
	[REACH_NO] = "NOT REACHED",
	[REACH_UNKNOWN] = "not measured in this run",
};

static void note_goal(struct report *r, struct json *goals, const char *text,
		      const struct judged *judged)
{
	struct json *j = json_object();

	r->promised++;
	r->reached += judged->reach == REACH_YES;
	r->unknown += judged->reach == REACH_UNKNOWN;
	json_set(j, "goal", json_string(text));
	if (judged->reach == REACH_UNKNOWN) {
		json_set(j, "reached", json_nothing());
	} else {
		json_set(j, "minima", json_real(judged->ratio.min));
		json_set(j, "medians", json_real(judged->ratio.median));
		json_set(j, "reached", json_bool(judged->reach == REACH_YES));
	}
	json_append(goals, j);
	printf("%-28s   %s: %s\n", "", text, reach_words[judged->reach]);
}

// A goal about a number that is not measured in rounds.
static void note_plain(struct report *r, struct json *goals, const char *text, double value,
		       bool reached)
{
	struct judged judged = {.reach = reached ? REACH_YES : REACH_NO, .ratio = {value, value}};

	note_goal(r, goals, text, &judged);
}

static struct json *note_bounds(struct report *r, const struct row_goal *goal)
{
	struct json *goals = json_array();

	for (size_t b = 0; b < BOUNDS && goal->reach[b].factor > 0; b++) {
		CLEANUP_FREE char *text = bound_text(goal, &goal->reach[b]);
		struct judged judged = judge(&r->measured, goal, &goal->reach[b]);

		note_goal(r, goals, text, &judged);
	}
	return goals;
}

static struct json *note_goals(struct report *r, const struct row_goal *goal,
			       const struct result *own)
{
	struct json *goals = note_bounds(r, goal);
	CLEANUP_FREE char *memory =
		mem_printf("<= %.0f MB of memory", (double)goal->reach_kb * 1024 / 1e6);

	if (goal->reach_kb && !own->skipped && !own->peak_kb)
		note_goal(r, goals, memory, &(struct judged){.reach = REACH_UNKNOWN});
	else if (goal->reach_kb && !own->skipped)
		note_plain(r, goals, memory, (double)own->peak_kb * 1024 / 1e6,
			   own->peak_kb <= goal->reach_kb);
	if (goal->all_succeed && !own->skipped)
		note_plain(r, goals, "all succeed", (double)own->failed, !own->failed);
	return goals;
}

// ---- the document -------------------------------------------------------------------------------

static struct json *number_or_nothing(double n)
{
	return n > 0 ? json_real(n) : json_nothing();
}

// The peer that the row is compared with: of Weir, the one that its first goal names.
static const char *peer_of(const struct report *r, const struct row_goal *goal,
			   const struct result *own, const struct result *result)
{
	if (goal->share)
		return "empty";
	return own == result ? goal_peer(&r->measured, goal) : result->subject;
}

static struct figures peer_ratio(const struct row_goal *goal, const struct result *results,
				 size_t n, const struct result *result, const char *peer)
{
	if (goal->share)
		return result->share;
	for (size_t i = 1; peer && i < n; i++)
		if (!strcmp(results[i].subject, peer) && !results[i].skipped)
			return ratio_to(goal, &results[0], &results[i]);
	return (struct figures){0};
}

static void set_figures(struct json *j, const struct result *result, const char *peer,
			const struct figures *ratio)
{
	json_set(j, "net_ns_min", json_real(result->net.min));
	json_set(j, "net_ns_median", json_real(result->net.median));
	json_set(j, "baseline", result->baseline ? json_string(result->baseline) : json_nothing());
	if (result->baseline)
		json_set(j, "baseline_ns", json_real(result->base_ns));
	json_set(j, "peer", ratio->min > 0 ? json_string(peer) : json_nothing());
	json_set(j, "ratio_to_peer", number_or_nothing(ratio->min));
	json_set(j, "ratio_to_peer_median", number_or_nothing(ratio->median));
	if (result->pps > 0)
		json_set(j, "pps", json_real(result->pps));
	if (result->peak_kb)
		json_set(j, "peak_kb", json_u64(result->peak_kb));
	if (result->repeated)
		json_set(j, "repeated", json_u64(result->repeated));
}

static struct json *describe(const struct report *r, const struct row_goal *goal,
			     const struct result *results, size_t n, const struct result *result)
{
	const char *peer = peer_of(r, goal, &results[0], result);
	struct figures ratio = peer_ratio(goal, results, n, result, peer);
	CLEANUP_FREE char *id = result == &results[0]
					? mem_strdup(goal->id)
					: mem_printf("%s/%s", goal->id, result->subject);
	struct json *j = json_object();

	json_set(j, "id", json_string(id));
	json_set(j, "what", json_string(goal->what));
	json_set(j, "program", json_string(result->subject));
	if (result->skipped)
		json_set(j, result == &results[0] ? "refused" : "skipped",
			 json_string(result->skipped));
	else
		set_figures(j, result, peer, &ratio);
	return j;
}

static void save(const struct report *r)
{
	CLEANUP_TEXT struct text text = {0};
	struct err err = {0};

	machine_finish(r->machine);
	json_print(r->document, true, &text);
	if (file_replace(r->path, text_get(&text), text.len, 0644, &err))
		bench_die(&err);
	fflush(stdout);
}

void report_row(struct report *r, const struct row_goal *goal, const struct result *results,
		size_t n)
{
	struct json *own = NULL;

	for (size_t i = 0; i < n; i++)
		if (!results[i].skipped)
			measured_add(&r->measured, goal->id, &results[i]);
	r->refused += results[0].skipped != NULL;
	for (size_t i = 0; i < n; i++) {
		struct json *j = describe(r, goal, results, n, &results[i]);

		json_append(r->rows, j);
		own = i ? own : j;
		r->skipped += i && results[i].skipped;
		print_result(goal, &results[0], &results[i]);
	}
	json_set(own, "goals", note_goals(r, goal, &results[0]));
	save(r);
}

void report_failure(struct report *r, const char *id, const char *why)
{
	struct json *j = json_object();

	json_set(j, "id", json_string(id));
	json_set(j, "what", json_string("not measured"));
	json_set(j, "program", json_string("weir"));
	json_set(j, "failed", json_string(why));
	json_append(r->rows, j);
	r->failed++;
	printf("%-28s FAILED: %s\n", id, why);
	save(r);
}

bool report_end(struct report *r)
{
	json_remove(r->document, "complete");
	json_set(r->document, "complete", json_bool(true));
	save(r);
	printf("\n%zu of %zu goals reached, %zu not measured; %zu rows refused, %zu failed, %zu programs skipped; %s\n",
	       r->reached, r->promised, r->unknown, r->refused, r->failed, r->skipped, r->path);
	return !r->failed;
}
