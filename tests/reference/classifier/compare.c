// SPDX-License-Identifier: GPL-2.0-only
// Runs frames through a compiled policy in the kernel and compares each answer with the
// reference's: once as it is loaded, and once only by the general program. The output frame must be
// the unchanged packet, or a valid answer to a rejected one. If only the packet decides the
// counters, the packets are also sent through the program that real ones meet, and its counters
// must agree with the answers.
//
// usage: compare POLICY FRAMES ANSWERS [WORDS]: WORDS is a file with words about the tables that
// the policy must have (describe.h); its programs must also keep to the verifier's budget. FRAMES
// has lines "IFACE FLAGS HEX" (with the flag `live`, this network namespace is asked about
// connections), ANSWERS one line each as refmatch prints them. Exit status 0: all
// agree; 1: some do not (the first ten are printed); 2: the policy does not load; 3: compile
// refused its size.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/test_program.h"
#include "tests/reference/classifier/answer.h"
#include "tests/reference/classifier/counted.h"
#include "tests/reference/classifier/describe.h"
#include "tests/reference/classifier/output.h"

#define FRAME_BYTES 16384
#define SHOWN       10
#define BUDGET      60000 // instructions of a program that the verifier may walk

// A policy in the kernel, with the short program or without.
struct way {
	const char *name;
	struct generation *generation;
	struct test_program *test;
	struct generation_cost cost;
	struct counted *counted; // NULL: not counted
	size_t general;          // packets that the general program has seen
};

enum { WAY_BOTH, WAY_GENERAL, WAYS };

static void free_ways(struct way (*ways)[WAYS])
{
	for (int w = 0; w < WAYS; w++) {
		counted_free((*ways)[w].counted);
		test_program_free((*ways)[w].test);
		generation_free((*ways)[w].generation);
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t read_hex(const char *text, uint8_t *frame)
{
	size_t n = 0;

	while (n < FRAME_BYTES && hex_digit(text[0]) >= 0 && hex_digit(text[1]) >= 0) {
		frame[n++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
		text += 2;
	}
	return n;
}

static uint32_t find_iface(const struct resolved *r, const char *name, size_t len)
{
	for (size_t i = 0; i < r->n_interfaces; i++)
		if (strlen(r->interfaces[i].name) == len &&
		    !memcmp(r->interfaces[i].name, name, len))
			return (uint32_t)i + 1;
	return r->n_interfaces && len == 1 && name[0] == '-' ? 1 : 0;
}

static bool has_word(const char *list, size_t len, const char *word)
{
	CLEANUP_FREE char *copy = mem_strndup(list, len);

	return strstr(copy, word);
}

// "IFACE FLAGS HEX" into a question and a frame.
static size_t read_line(const struct candidate *c, const char *line, struct policy_test *ask,
			uint8_t *frame)
{
	size_t iface = strcspn(line, " "), flags = strcspn(line + iface + 1, " ");
	const char *words = line + iface + 1;

	*ask = (struct policy_test){
		.iface = find_iface(c->resolved, line, iface),
		.over = has_word(words, flags, "over"),
		.established = has_word(words, flags, "established"),
		.unroutable = has_word(words, flags, "unroutable"),
		.live = has_word(words, flags, "live"),
	};
	return read_hex(words + flags + 1, frame);
}

static int load(struct candidate *c, const char *path, struct way ways[WAYS], struct err *err)
{
	if (candidate_compile(c, path, NULL, 0)) {
		diag_print(c->diag, stderr, false);
		return 3;
	}
	counted_number(c);
	for (int w = 0; w < WAYS; w++) {
		c->general_only = w == WAY_GENERAL;
		if (candidate_load(c, NULL, err)) {
			fprintf(stderr, "%s %s\n", err->text, err->hint);
			return 2;
		}
		ways[w].generation = TAKE_PTR(c->generation);
		ways[w].test = TAKE_PTR(c->test);
		ways[w].cost = c->cost;
		if (counted_suits(c))
			ways[w].counted = counted_new(c, ways[w].generation);
	}
	return 0;
}

// The error in the datapath's answer to one line; NULL: none. got: the answer.
static const char *ask(struct candidate *c, struct way *way, const char *line, const char *wanted,
		       struct text *got, struct err *err)
{
	static uint8_t frame[FRAME_BYTES];
	struct policy_test question;
	struct test_result result;
	size_t length = read_line(c, line, &question, frame);
	const char *problem;

	if (test_program_run(way->test, frame, length, &question, &result, err))
		return err->text;
	way->general += result.general;
	answer_write(c, &result, got);
	if (!answer_agrees(wanted, text_get(got)))
		return "they disagree";
	problem =
		output_problem(wanted, result.verdict, frame, length, result.packet, result.length);
	if (problem || !way->counted)
		return problem;
	return counted_send(way->counted, frame, length, &question, &result);
}

// Asks both ways about one line; number: of its packet. Returns how many answers are wrong.
static size_t ask_both(struct candidate *c, struct way ways[WAYS], const char *line,
		       const char *wanted, size_t number, size_t shown)
{
	struct text got = {0};
	struct err err = {0};
	size_t bad = 0;

	for (int w = 0; w < WAYS; w++) {
		const char *problem = ask(c, &ways[w], line, wanted, &got, &err);

		if (problem && shown + bad++ < SHOWN)
			printf("packet %zu, %s: %s: reference: %s, kernel: %s\n  %s", number,
			       ways[w].name, problem, wanted, text_get(&got), line);
	}
	text_free(&got);
	return bad;
}

// How many counters are wrong.
static size_t check_counters(const struct way ways[WAYS])
{
	size_t bad = 0;

	if (!ways[0].counted)
		return 0;
	for (int w = 0; w < WAYS; w++)
		bad += counted_check(ways[w].counted, ways[w].name);
	if (!counted_equal(ways[WAY_BOTH].counted, ways[WAY_GENERAL].counted)) {
		puts("the two ways have counted different bytes");
		bad++;
	}
	return bad;
}

// Prints which tables there are; how many of the words in the file do not hold.
static size_t check_tables(const struct candidate *c, FILE *words)
{
	struct text described = {0};
	char *line = NULL;
	size_t size = 0, bad = 0;

	describe_tables(c->image, &described);
	printf("tables: %s\n", text_get(&described));
	while (words && getline(&line, &size, words) > 0)
		bad += !describe_has(text_get(&described), line);
	free(line);
	text_free(&described);
	return bad;
}

// Prints what the verifier has walked. Is a program above the budget?
static bool check_cost(const struct generation_cost *cost)
{
	uint32_t small = cost->program[GENERATION_SHORT].verified,
		 general = cost->program[GENERATION_GENERAL].verified;

	printf("verified: short %u, general %u of %u\n", small, general, BUDGET);
	return small > BUDGET || general > BUDGET;
}

static int compare(struct candidate *c, struct way ways[WAYS], FILE *frames, FILE *answers)
{
	char *line = NULL, *wanted = NULL;
	size_t size = 0, wanted_size = 0, number = 0, bad = 0;

	while (getline(&line, &size, frames) > 0 && getline(&wanted, &wanted_size, answers) > 0) {
		wanted[strcspn(wanted, "\n")] = '\0';
		bad += ask_both(c, ways, line, wanted, ++number, bad);
	}
	if (!feof(frames)) {
		puts("more packets than answers");
		bad++;
	}
	printf("%zu packets, %zu disagree, %zu the general way\n", number, bad,
	       ways[WAY_BOTH].general);
	if (ways[WAY_GENERAL].general != number) {
		puts("a program without the short one did not see all packets");
		bad++;
	}
	bad += check_counters(ways);
	free(line);
	free(wanted);
	return bad || !number;
}

int main(int argc, char **argv)
{
	static const struct dns_options none;
	CLEANUP_CANDIDATE struct candidate *c = candidate_new(&none, NULL);
	CLEANUP_FILE FILE *frames = argc > 3 ? fopen(argv[2], "re") : NULL;
	CLEANUP_FILE FILE *answers = argc > 3 ? fopen(argv[3], "re") : NULL;
	CLEANUP_FILE FILE *words = argc == 5 ? fopen(argv[4], "re") : NULL;
	CLEANUP(free_ways)
	struct way ways[WAYS] = {{.name = "as loaded"}, {.name = "general program alone"}};
	struct err err = {0};
	size_t bad;
	int code;

	if (!frames || !answers || (argc == 5 && !words)) {
		fputs("usage: compare POLICY FRAMES ANSWERS [WORDS]\n", stderr);
		return 2;
	}
	probe_quiet(getenv("VERBOSE"));
	code = load(c, argv[1], ways, &err);
	if (code)
		return code;
	bad = check_tables(c, words) + (check_cost(&ways[WAY_BOTH].cost) && words);
	return compare(c, ways, frames, answers) || bad;
}
