// SPDX-License-Identifier: GPL-2.0-only
// Fills a ring that is described on stdin, after docs/ring.md.
/*
 *   ring    = key "size" N "hash" ( "tuple" | "source" ) { backend }
 *   key     = "key" HEX32 | "seed" [ " " STRING ]
 *   backend = "backend" ID ADDRESS PORT WEIGHT ( "up" | "drain" | "down" | "failing" )
 *             ( "primary" | "backup" )
 *
 * one part a line, in this order. HEX32 is in lower case; STRING is the rest of the line,
 * quotes and blanks included; ADDRESS may be "here"; empty lines and lines that begin with # are
 * ignored.
 * Prints a line for each slot, the owner's id or "none", then "fingerprint HEX16" and "error PPM".
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"
#include "ring_selftest.h"
#include "ring_text.h"
#include "words.h"

static void key_read(struct line *line, struct ring *ring)
{
	if (!strncmp(line->text, "seed ", 5) || !strcmp(line->text, "seed")) {
		const char *seed = line->text + (line->text[4] ? 5 : 4);

		ring_key_from_seed(seed, strlen(seed), ring->key);
		return;
	}
	line_cut(line);
	if (!line_is(line, "key", 2))
		line_fail(line, "'key' or 'seed' comes first");
	word_key(line, 1, ring->key);
}

static void part_read(struct line *line, const char *name, unsigned int words)
{
	if (!line_read(stdin, line))
		line_fail(line, "'%s' is missing", name);
	line_cut(line);
	if (!line_is(line, name, words))
		line_fail(line, "'%s' comes here", name);
}

static void pool_read(struct line *line, struct ring *ring, struct backends *backends)
{
	if (!line_read(stdin, line))
		line_fail(line, "'key' is missing");
	key_read(line, ring);
	part_read(line, "size", 2);
	ring->size = (uint32_t)word_number(line, 1, RING_SIZE_MIN, RING_SIZE_MAX);
	if (!ring_size_valid(ring->size))
		line_fail(line, "%u is not prime", ring->size);
	part_read(line, "hash", 2);
	ring->by_source = word_choice(line, 1, words_hash);
	while (line_read(stdin, line)) {
		struct backend backend;

		line_cut(line);
		if (!line_is(line, "backend", 7))
			line_fail(line, "'backend' comes here");
		backend = backend_read(line);
		if (backends_find(backends, backend.id))
			line_fail(line, "duplicate backend %u", backend.id);
		backends_put(backends, &backend, line);
	}
}

static void ring_print(const struct ring *ring)
{
	uint16_t *owners = memory(ring->size, sizeof(*owners));

	ring_fill(ring, owners);
	for (uint32_t i = 0; i < ring->size; i++)
		if (owners[i])
			printf("%u\n", owners[i]);
		else
			puts("none");
	printf("fingerprint %016" PRIx64 "\n", ring_fingerprint(ring));
	printf("error %" PRIu64 "\n", ring_error_ppm(ring, owners));
	free(owners);
}

int main(int argc, char **argv)
{
	static struct backends backends;
	struct line line = {0};
	struct ring ring = {0};

	if (argc == 2 && !strcmp(argv[1], "--selftest"))
		return ring_selftest();
	if (argc != 1) {
		fputs("usage: refring [--selftest] < POOL\n", stderr);
		return 2;
	}
	pool_read(&line, &ring, &backends);
	line_free(&line);
	ring.backends = backends.v;
	ring.count = backends.count;
	ring_print(&ring);
	return 0;
}
