// SPDX-License-Identifier: GPL-2.0-only
// Writes a random valid policy and packets aimed at its edges, the same for the same seed.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen.h"
#include "ref.h"

static const char *const feature_names[] = {
#define X(id, name) name,
	GEN_FEATURES(X)
#undef X
};

#define FEATURES (sizeof(feature_names) / sizeof(feature_names[0]))

static void usage(void)
{
	fputs("usage: refgen --policy OUT.weir --frames OUT.txt [--seed S] [--rules N]\n"
	      "       [--set-size M] [--packets K] [--min-frame BYTES] [--interfaces A,B]\n"
	      "       [--icmp-names A,B] [--without FEATURES] [--with FEATURES]\n"
	      "features:",
	      stderr);
	for (size_t i = 0; i < FEATURES; i++)
		fprintf(stderr, " %s", feature_names[i]);
	fputs("\nhard-joins (exceptions between sets that readers may take in two ways) is off\n",
	      stderr);
}

static bool switch_features(struct gen_options *options, char *list, bool on)
{
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		size_t i = 0;

		while (i < FEATURES && strcmp(feature_names[i], word) != 0)
			i++;
		if (i == FEATURES)
			return false;
		options->with[i] = on;
	}
	return true;
}

static bool number_option(const char *text, unsigned int max, unsigned int *ret_number)
{
	uint64_t number;

	if (!number_parse(text, strlen(text), max, &number))
		return false;
	*ret_number = (unsigned int)number;
	return true;
}

static bool set_option(struct gen_options *options, const char *name, char *value)
{
	if (!strcmp(name, "--policy"))
		options->policy = value;
	else if (!strcmp(name, "--frames"))
		options->frames = value;
	else if (!strcmp(name, "--interfaces"))
		options->ifaces = value;
	else if (!strcmp(name, "--icmp-names"))
		options->icmp_names = value;
	else if (!strcmp(name, "--seed"))
		return number_parse(value, strlen(value), UINT64_MAX, &options->seed);
	else if (!strcmp(name, "--rules"))
		return number_option(value, 65536, &options->rules);
	else if (!strcmp(name, "--set-size"))
		return number_option(value, 10000000, &options->set_size);
	else if (!strcmp(name, "--packets"))
		return number_option(value, 100000000, &options->packets);
	else if (!strcmp(name, "--min-frame"))
		return number_option(value, 1000, &options->min_frame);
	else if (!strcmp(name, "--without"))
		return switch_features(options, value, false);
	else if (!strcmp(name, "--with"))
		return switch_features(options, value, true);
	else
		return false;
	return true;
}

static bool read_options(int argc, char **argv, struct gen_options *ret_options)
{
	struct gen_options options = {
		.seed = 1, .rules = 20, .set_size = 50, .packets = 1000, .min_frame = 14};

	for (size_t i = 0; i < FEATURES; i++)
		options.with[i] = i != GEN_HARD_JOINS;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !set_option(&options, argv[i], argv[i + 1]))
			return false;
	}
	if (!options.policy || !options.frames || options.rules == 0)
		return false;
	*ret_options = options;
	return true;
}

static bool write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	bool done;

	if (!file) {
		fprintf(stderr, "refgen: cannot write '%s'\n", path);
		return false;
	}
	done = fputs(text, file) >= 0;
	return (fclose(file) == 0) && done;
}

static bool write_policy(struct gen *gen)
{
	bool done = write_file(gen->options.policy, gen_policy(gen));

	for (size_t i = 0; done && i < gen->sets.len; i++) {
		if (gen->sets.v[i].file)
			done = write_file(gen->sets.v[i].file, gen->sets.v[i].file_text);
	}
	return done;
}

/* What the packets came to. */
struct tally {
	unsigned int packets;
	unsigned int verdicts[4];
	unsigned int vias[5];
	unsigned int *hits; /* by rule number */
};

static void count(struct tally *tally, const struct ref_result *result)
{
	tally->packets++;
	tally->verdicts[result->verdict]++;
	tally->vias[result->via]++;
	tally->hits[result->rule]++;
	for (size_t i = 0; i < result->counted_len; i++)
		tally->hits[result->counted[i]]++;
}

/* Of two rules the one that was met less often. */
static const struct gen_rule *pick_rule(struct gen *gen, const struct tally *tally)
{
	unsigned int a = rng_below(&gen->rng, (unsigned int)gen->rules.len);
	unsigned int b = rng_below(&gen->rng, (unsigned int)gen->rules.len);

	return &gen->rules.v[tally->hits[a + 1] <= tally->hits[b + 1] ? a : b];
}

static void match(struct ref_policy *policy, const struct gen_packet *packet,
		  struct ref_result *ret_result)
{
	struct ref_packet question = {
		.bytes = packet->frame.bytes,
		.len = packet->frame.len,
		.iface = packet->iface,
		.over = packet->over,
		.established = packet->established,
	};

	ref_match(policy, &question, ret_result);
}

/* Mostly aimed at rules; what misses all of them is tried again most of the time. */
static void make_packet(struct gen *gen, struct ref_policy *policy, const struct tally *tally,
			struct gen_packet *packet, struct ref_result *result)
{
	unsigned int roll = rng_below(&gen->rng, 100);
	unsigned int tries = rng_chance(&gen->rng, 60) ? 6 : 1;

	if (roll < 11) {
		gen_special(gen, packet);
		match(policy, packet, result);
	} else if (roll < 19) {
		gen_broken(gen, pick_rule(gen, tally), packet);
		match(policy, packet, result);
	} else {
		do {
			bool nudged = rng_chance(&gen->rng, 35);

			gen_aimed(gen, pick_rule(gen, tally), nudged, packet);
			match(policy, packet, result);
		} while (result->via != REF_BY_RULE && --tries);
	}
}

static void write_packet(FILE *file, const struct gen_packet *packet)
{
	static const char *const flags[] = {"-", "over", "established", "over,established"};
	static const char digits[] = "0123456789abcdef";

	fprintf(file, "%s %s ", packet->iface, flags[packet->over + 2 * packet->established]);
	for (size_t i = 0; i < packet->frame.len; i++) {
		fputc(digits[packet->frame.bytes[i] >> 4], file);
		fputc(digits[packet->frame.bytes[i] & 15], file);
	}
	fputs(packet->frame.len ? "\n" : "-\n", file);
}

/* Now and then a packet comes in on an interface that the policy does not name, too. Beside the packets that
 * are asked for and not in place of one: a seed goes on making what it made. */
static void write_stray(FILE *file, const struct tally *tally, struct gen_packet *packet)
{
	if (tally->packets % 16)
		return;
	packet->iface = "other0";
	write_packet(file, packet);
}

static bool write_frames(struct gen *gen, struct ref_policy *policy, struct tally *tally)
{
	static struct gen_packet packet;
	FILE *file = fopen(gen->options.frames, "we");
	struct ref_result result;
	bool failed;

	if (!file) {
		fprintf(stderr, "refgen: cannot write '%s'\n", gen->options.frames);
		return false;
	}
	while (tally->packets < gen->options.packets) {
		make_packet(gen, policy, tally, &packet, &result);
		count(tally, &result);
		write_packet(file, &packet);
		write_stray(file, tally, &packet);
	}
	failed = ferror(file);
	return fclose(file) == 0 && !failed;
}

static double share(const struct tally *tally, unsigned int part)
{
	return tally->packets ? 100.0 * part / tally->packets : 0.0;
}

static void print_tally(const struct gen *gen, const struct tally *tally)
{
	unsigned int met = 0;

	for (size_t i = 1; i <= gen->rules.len; i++)
		met += tally->hits[i] > 0;
	printf("seed %llu: %zu rules (%u met), %u packets: by rules %.1f %%, malformed %.1f %%, "
	       "fragments %.1f %%, essentials %.1f %%, default %.1f %%; "
	       "pass %.1f %%, drop %.1f %%, reject %.1f %%, redirect %.1f %%\n",
	       (unsigned long long)gen->options.seed, gen->rules.len, met, tally->packets,
	       share(tally, tally->vias[REF_BY_RULE]), share(tally, tally->vias[REF_BY_MALFORMED]),
	       share(tally, tally->vias[REF_BY_FRAGMENTS]),
	       share(tally, tally->vias[REF_BY_ESSENTIALS]),
	       share(tally, tally->vias[REF_BY_DEFAULT]), share(tally, tally->verdicts[REF_PASS]),
	       share(tally, tally->verdicts[REF_DROP]), share(tally, tally->verdicts[REF_REJECT]),
	       share(tally, tally->verdicts[REF_REDIRECT]));
}

static int generate(struct gen *gen)
{
	struct tally tally = {0};
	struct ref_policy *policy = NULL;
	char msg[1024];
	bool done;

	if (!write_policy(gen))
		return 1;
	if (ref_policy_read(gen->options.policy, &policy, msg, sizeof(msg)) < 0) {
		fprintf(stderr, "refgen: seed %llu: %s\n", (unsigned long long)gen->options.seed,
			msg);
		return 1;
	}
	tally.hits = pool_alloc(&gen->pool, (gen->rules.len + 1) * sizeof(*tally.hits));
	done = write_frames(gen, policy, &tally);
	ref_policy_free(policy);
	if (done)
		print_tally(gen, &tally);
	return !done;
}

int main(int argc, char **argv)
{
	struct gen gen = {0};
	int status;

	if (!read_options(argc, argv, &gen.options)) {
		usage();
		return 2;
	}
	gen.rng.state = gen.options.seed;
	status = generate(&gen);
	pool_free(&gen.pool);
	return status;
}
