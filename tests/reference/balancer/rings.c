// SPDX-License-Identifier: GPL-2.0-only
// Fills a ring that is described on stdin, in the words of refring.c, by ctl/table/ring.h: owners,
// fingerprint, error of the shares.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/table/ring.h"

struct told {
	struct hash_key key;
	uint32_t size;
	enum service_hash hash;
	struct ring_backend backends[POLICY_BACKENDS];
	size_t n;
};

_Noreturn static void fail(const char *what)
{
	fprintf(stderr, "rings: %s\n", what);
	exit(2);
}

static uint32_t number(const char *word, uint32_t max)
{
	uint32_t n;

	if (!word || num_parse_u32(word, strlen(word), 0, max, &n))
		fail("no number");
	return n;
}

static void read_key(const char *hex, struct hash_key *ret)
{
	uint8_t bytes[16];

	for (size_t i = 0; i < sizeof(bytes); i++) {
		char digits[] = {'0', 'x', hex[2 * i], hex[2 * i + 1], '\0'};
		uint32_t byte;

		if (num_parse_hex32(digits, sizeof(digits) - 1, &byte))
			fail("a key is 32 hexadecimal digits");
		bytes[i] = (uint8_t)byte;
	}
	memcpy(ret, bytes, sizeof(bytes));
}

static uint8_t state_of(const char *word)
{
	return !strcmp(word, "up")        ? BACKEND_UP
	       : !strcmp(word, "drain")   ? BACKEND_DRAIN
	       : !strcmp(word, "failing") ? BACKEND_FAILING
					  : BACKEND_DOWN;
}

static void read_backend(char *line, struct told *t)
{
	struct ring_backend *b = &t->backends[t->n++];
	char *words[7] = {0}, *rest = line;
	bool mapped;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = strsep(&rest, " ");
	if (!words[6])
		fail("a backend has six words");
	b->id = (uint16_t)number(words[1], UINT16_MAX);
	if (strcmp(words[2], "here") && addr_parse(words[2], strlen(words[2]), &b->addr, &mapped))
		fail("no address");
	b->port = (uint16_t)number(words[3], UINT16_MAX);
	b->weight = number(words[4], UINT32_MAX);
	b->state = state_of(words[5]);
	b->backup = !strcmp(words[6], "backup");
}

static void read_line(char *line, struct told *t)
{
	line[strcspn(line, "\n")] = '\0';
	if (!strncmp(line, "key ", 4))
		read_key(line + 4, &t->key);
	else if (!strncmp(line, "seed ", 5))
		t->key = ring_key(line + 5, strlen(line + 5));
	else if (!strncmp(line, "size ", 5))
		t->size = number(line + 5, UINT32_MAX);
	else if (!strncmp(line, "hash ", 5))
		t->hash = strcmp(line + 5, "source") ? SERVICE_HASH_TUPLE : SERVICE_HASH_SOURCE;
	else if (t->n < POLICY_BACKENDS)
		read_backend(line, t);
}

static void print_ring(const struct told *t)
{
	CLEANUP_FREE struct ring_backend *some = mem_zalloc(t->n, sizeof(*some));
	CLEANUP_FREE uint16_t *owners = mem_zalloc(t->size, sizeof(*owners));
	uint64_t mark, error = 0;
	size_t counting = ring_elect(t->backends, t->n, some);

	if (counting && ring_fill(&t->key, some, t->n, t->size, owners))
		fail("the ring is refused");
	if (counting)
		error = ring_share_error(some, t->n, t->size, owners, NULL);
	for (uint32_t i = 0; i < t->size; i++)
		counting ? printf("%u\n", owners[i]) : puts("none");
	if (ring_fingerprint(&t->key, t->hash, t->size, t->backends, t->n, &mark))
		fail("the ring has no fingerprint");
	printf("fingerprint %016" PRIx64 "\nerror %" PRIu64 "\n", mark, error);
}

int main(void)
{
	CLEANUP_FREE struct told *t = mem_new(struct told);
	char line[512];

	while (fgets(line, sizeof(line), stdin))
		read_line(line, t);
	print_ring(t);
	return 0;
}
