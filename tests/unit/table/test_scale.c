// SPDX-License-Identifier: GPL-2.0-only
// A million prefixes, a million hosts, 64 rules with sets of 10,000: time, memory and correct
// answers.
#include "tests/unit/table/random.h"

#include <malloc.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
#define MANY 100000 // the same code, and the run stays short
#else
#define MANY 1000000
#endif

static const struct compile_options options = {.seed = 0xfeedfacecafebeefull, .hz = 250};

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long status_kb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtol(line + strlen(name), NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

// Resets the peak of resident memory.
static long peak_reset_kb(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	malloc_trim(0);
	if (f) {
		fputs("5", f); // proc(5)
		fclose(f);
	}
	return status_kb("VmRSS:");
}

typedef void prefix_maker(uint64_t *s, uint64_t addr[2], unsigned *len);

static void one_set(struct made *m, int family, size_t n, uint64_t seed, prefix_maker *make)
{
	struct resolved_addresses *a =
		made_addresses(m, "big", family == 4 ? n : 0, family == 6 ? n : 0);
	uint64_t s = seed, addr[2];
	unsigned len;

	for (size_t i = 0; i < n; i++) {
		make(&s, addr, &len);
		if (family == 4)
			((struct resolved_prefix4 *)a->v4)[i] =
				made_prefix4((uint32_t)addr[0], len, true);
		else
			((struct resolved_prefix6 *)a->v6)[i] =
				made_prefix6(addr[0], addr[1], len, true);
	}
	made_sort(a);
}

static size_t prefixes(const struct resolved *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_addresses; i++)
		n += r->addresses[i].n4 + r->addresses[i].n6;
	return n;
}

// Compiles and prints; then looks up the edges of some prefixes.
static void measure(struct made *m, const char *what)
{
	struct image *i = NULL;
	long before = peak_reset_kb();
	double start = cpu_ms(), took;

	assert_int_equal(compile(&m->r, &options, m->diag, &i), 0);
	took = cpu_ms() - start;
	print_message("%s (%zu prefixes): %.0f ms of CPU, peak %ld MB over the input's %ld MB; "
		      "image %zu MB, %zu rows\n",
		      what, prefixes(&m->r), took, (status_kb("VmHWM:") - before) / 1024,
		      before / 1024, image_bytes(i) >> 20, i->matrix[MATRIX_RULES].n_rows);
	for (uint64_t s = 1, n = 0; n < 60; n++) {
		struct made_packet p = random_packet(&s, &m->r);

		made_check(&m->r, i, &p);
	}
	image_free(i);
	made_free(m);
}

static void one_big_set(const char *what, int family, prefix_maker *make)
{
	struct made m;

	made_init(&m, 1, 1);
	one_set(&m, family, MANY, 7, make);
	m.r.rules[0].from = made_set(0);
	measure(&m, what);
}

static void prefix4_any(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = unit_random(s) >> 32;
	*len = 19 + unit_below(s, 14);
}

static void prefix4_wide(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = unit_random(s) >> 32;
	*len = 12 + unit_below(s, 21);
}

static void prefix4_24(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = unit_random(s) >> 32;
	*len = 24;
}

static void host4(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = unit_random(s) >> 32;
	*len = 32;
}

static void prefix6_any(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = 0x2000000000000000ull | unit_random(s) >> 3;
	addr[1] = 0;
	*len = 29 + unit_below(s, 36);
}

static void host6(uint64_t *s, uint64_t addr[2], unsigned *len)
{
	addr[0] = 0x2000000000000000ull | unit_random(s) >> 3;
	addr[1] = unit_random(s);
	*len = 128;
}

static void test_million(void **state)
{
	one_big_set("one set of hosts, IPv4", 4, host4);
	one_big_set("one set of prefixes /24, IPv4", 4, prefix4_24);
	one_big_set("one set of prefixes /19 to /32, IPv4", 4, prefix4_any);
	one_big_set("one set of hosts, IPv6", 6, host6);
	one_big_set("one set of prefixes /29 to /64, IPv6", 6, prefix6_any);
}

static void many_sets(const char *what, int family, size_t n_rules, size_t n, prefix_maker *make)
{
	struct made m;

	made_init(&m, n_rules, n_rules);
	for (size_t i = 0; i < n_rules; i++) {
		one_set(&m, family, n, 100 + i, make);
		m.r.rules[i].from = made_set(i);
	}
	measure(&m, what);
}

static void test_many_sets(void **state)
{
	many_sets("64 sets of 10,000 prefixes /12 to /32, IPv4", 4, 64, 10000, prefix4_wide);
	many_sets("64 sets of 10,000 prefixes /19 to /32, IPv4", 4, 64, 10000, prefix4_any);
	many_sets("64 sets of 10,000 prefixes, IPv6", 6, 64, 10000, prefix6_any);
	many_sets("64 sets of 10,000 hosts, IPv4", 4, 64, 10000, host4);
	many_sets("4096 sets of 5 prefixes, IPv4", 4, 4096, 5, prefix4_any);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_sets),
		cmocka_unit_test(test_million),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
