// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/journal.h, journal_index.h and journal_order.h:
// the text of the journal and of version 1 is printed, parsed, cut and changed, and its content is
// compared.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/sum.h"
#include "ctl/control/entries/journal_file.h"
#include "ctl/control/entries/journal_order.h"

#define BOOT   "8f0c2b6e-0d0c-4a53-9d0e-0a6ad6a3f3c1"
#define HOLDER "holder 0 since 1 origin \"\" list \"\" name \"\" note \"\" by \"\"\n"
#define FIRST  "block from 192.0.2.1 by 0 until 5\n"

static const char *enter(void *ctx, const struct journal_line *line, size_t at, size_t len)
{
	struct journal_index *x = ctx;

	switch (line->what) {
	case JOURNAL_OWNER:
		return journal_index_owner(x, line->reference.owner, at, len, &line->owner);
	case JOURNAL_ADD:
		return journal_index_add(x, &line->reference);
	case JOURNAL_REMOVE:
		return journal_index_drop(x, &line->reference);
	}
	return "?";
}

// ---- lines --------------------------------------------------------------------------------------

#define H "holder 0 since 1 origin \"\" list \"\" name \"\" note "

static const char words[] = "invalid words of the holder";
static const char whose[] = "unknown holder of the entry";
static const char where[] = "missing address of the entry";
static const char first[] = "unknown first word of the line";
static const char rest[] = "unexpected text after the entry";
static const char end[] = "the entry's end is neither a number nor 'never'";
static const struct {
	const char *line, *error;
} lines[] = {
	{"", first},
	{"drop from 192.0.2.1 by 0 until 5", first},
	{"block from 192.0.2.256 by 0 until 5", where},
	{"block from  by 0 until 5", where},
	{"block from 192.0.2.1  by 0 until 5", whose},
	{"block from 192.0.2.1 by 4294967296 until 5", whose},
	{"block from 192.0.2.1 by 0 until 18446744073709551615", end},
	{"block from 192.0.2.1 by 0 until nevermore", rest},
	{"block from 192.0.2.1 by 0 until 5 6", rest},
	{"block from 192.0.2.1 by 0 until never 6", rest},
	{"block from 192.0.2.1 by 0", end},
	{"remove block from 192.0.2.1 by 0 until 5", rest},
	{"remove remove block from 192.0.2.1 by 0", first},
	{"holder x since 1", "unexpected holder"},
	{"holder 0 since -1", "the holder's time is not a number"},
	{"holder 0 since 1", words},
	{H "\"\\x00\" by \"\"", words},
	{H "\"\\x4\" by \"\"", words},
	{H "\"\\n\" by \"\"", words},
	{H "\"\t\" by \"\"", words},
	{H "\"\" by \"", words},
	{H "\"\" by \"\\", words},
	{H "\"\" by \"\" ", words},
	{"holder 0 since 1 origin \"\" name \"\" list \"\" note \"\" by \"\"", words},
};

static void test_damaged_lines(void **state)
{
	struct journal_line line;
	char spare[256];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const char *why =
			journal_line_parse(lines[i].line, strlen(lines[i].line), spare, &line);

		assert_non_null(why);
		assert_string_equal(why, lines[i].error);
	}
	assert_string_equal(journal_line_parse(HOLDER, strlen(HOLDER) - 1, NULL, &line),
			    "unexpected holder");
}

static char *random_string(uint64_t *seed)
{
	size_t len = unit_below(seed, 3) ? unit_below(seed, 20) : 0;
	char *s = mem_zalloc(len + 1, 1);

	for (size_t i = 0; i < len; i++)
		s[i] = (char)(1 + unit_below(seed, 255));
	return s;
}

static void assert_round_trip(const struct owner *h, uint32_t number)
{
	CLEANUP_TEXT struct text t = {0};
	struct journal_line line;
	char spare[1024];

	journal_print_owner(&t, number, h);
	assert_int_equal(text_get(&t)[t.len - 1], '\n');
	assert_null(memchr(t.at, '\n', t.len - 1));
	assert_null(journal_line_parse(t.at, t.len - 1, spare, &line));
	assert_int_equal(line.what, JOURNAL_OWNER);
	assert_int_equal(line.reference.owner, number);
	assert_string_equal(line.owner.origin, h->origin);
	assert_string_equal(line.owner.list, h->list);
	assert_string_equal(line.owner.name, h->name);
	assert_string_equal(line.owner.note, h->note);
	assert_string_equal(line.owner.by, h->by);
	assert_true(line.owner.since_s == h->since_s);
	assert_int_equal(line.owner.fleeting, h->fleeting);
	assert_int_equal(line.owner.group, h->group);
}

static void test_owners(void **state)
{
	uint64_t seed = 1;

	for (unsigned round = 0; round < 2000; round++) {
		struct owner h = {
			.origin = random_string(&seed),
			.list = random_string(&seed),
			.name = random_string(&seed),
			.note = random_string(&seed),
			.by = random_string(&seed),
			.since_s = unit_random(&seed),
			.fleeting = unit_below(&seed, 2),
			.group = unit_below(&seed, 2) ? 2 + (uint32_t)unit_below(&seed, 255) : 0,
		};

		assert_round_trip(&h, unit_below(&seed, UINT32_MAX));
		free(h.origin);
		free(h.list);
		free(h.name);
		free(h.note);
		free(h.by);
	}
}

static void assert_reference(const struct prefix *p, uint8_t kind, uint64_t until_s)
{
	struct reference reference = {.prefix = *p, .kind = kind, .until_s = until_s};
	CLEANUP_TEXT struct text t = {0};
	struct journal_line line;
	const char *second;

	journal_print_add(&t, &reference, 7);
	journal_print_remove(&t, &reference, 8);
	second = strchr(t.at, '\n') + 1;
	assert_null(journal_line_parse(t.at, (size_t)(second - t.at) - 1, NULL, &line));
	assert_int_equal(line.what, JOURNAL_ADD);
	assert_int_equal(prefix_compare(&line.reference.prefix, p), 0);
	assert_int_equal(line.reference.kind, kind);
	assert_int_equal(line.reference.owner, 7);
	assert_true(line.reference.until_s == until_s);
	assert_null(journal_line_parse(second, strlen(second) - 1, NULL, &line));
	assert_int_equal(line.what, JOURNAL_REMOVE);
	assert_int_equal(prefix_compare(&line.reference.prefix, p), 0);
	assert_int_equal(line.reference.kind, kind);
	assert_int_equal(line.reference.owner, 8);
}

// Prefixes of every length of both families, and IPv4-mapped addresses, which stay IPv6.
static void test_references(void **state)
{
	static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};
	static const uint8_t plain[16] = {0x20, 1, 0xd, 0xb8, 1, 2,  3,  4,
					  5,    6, 7,   8,    9, 10, 11, 12};
	struct addr six = addr_from_v6(plain), odd = addr_from_v6(mapped);
	struct addr four = addr_from_v4(0x010200c0);

	for (unsigned len = 1; len <= 128; len++) {
		struct prefix p = prefix_of(&six, (uint8_t)len), m = prefix_of(&odd, (uint8_t)len);
		struct prefix f = prefix_of(&four, (uint8_t)(len < 32 ? len : 32));

		assert_reference(&p, (uint8_t)(len % OVERLAY_KINDS), len);
		assert_reference(&f, (uint8_t)(len % OVERLAY_KINDS), RECORD_NEVER);
		if (len >= 96)
			assert_reference(&m, OVERLAY_BLOCK_TO, RECORD_NEVER - 1);
	}
}

// ---- frames -------------------------------------------------------------------------------------

static void test_golden_frame(void **state)
{
	static const struct records_clock clock = {BOOT, 5, 6};
	CLEANUP_TEXT struct text t = {0};
	struct journal_frame f;
	const char *why;

	journal_print_part(&t, HOLDER, strlen(HOLDER));
	journal_print_change(&t, FIRST, strlen(FIRST), 17, &clock);
	assert_non_null(strstr(t.at, "part bytes 57\n" HOLDER "sum "));
	assert_non_null(
		strstr(t.at, "change bytes 34 epoch 17 wall 5 up 6 boot " BOOT "\n" FIRST "sum "));
	assert_int_equal(journal_find(t.at, t.len, 0, &f, &why), JOURNAL_FRAME);
	assert_true(f.part);
	assert_int_equal(journal_find(t.at, t.len, f.end, &f, &why), JOURNAL_FRAME);
	assert_false(f.part);
	assert_int_equal(f.epoch, 17);
	assert_int_equal(f.clock.wall_s, 5);
	assert_string_equal(f.clock.boot, BOOT);
	assert_int_equal(f.lines_end - f.lines, strlen(FIRST));
	assert_memory_equal(t.at + f.lines, FIRST, strlen(FIRST));
	assert_int_equal(journal_find(t.at, t.len, f.end, &f, &why), JOURNAL_END);
}

// A frame that was cut is reported as cut, a changed one as cut or damaged, and neither is
// accepted.
static void test_changed_frame(void **state)
{
	CLEANUP_TEXT struct text t = {0};
	struct journal_frame f;
	const char *why = NULL;

	journal_print_change(&t, HOLDER FIRST, strlen(HOLDER FIRST), 17,
			     &(struct records_clock){0});
	for (size_t len = 1; len < t.len; len++)
		assert_int_equal(journal_find(t.at, len, 0, &f, &why), JOURNAL_CUT);
	for (size_t at = 0; at < t.len; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			t.at[at] ^= (char)(1 << bit);
			assert_int_not_equal(journal_find(t.at, t.len, 0, &f, &why), JOURNAL_FRAME);
			t.at[at] ^= (char)(1 << bit);
		}
	}
	assert_int_equal(journal_find(t.at, t.len, 0, &f, &why), JOURNAL_FRAME);
}

// ---- version 1 ----------------------------------------------------------------------------------

#define TOP "weir-overlay 1 epoch 1\n"

static const struct {
	const char *text, *error;
} olds[] = {
	{"weir-overlay 1 epoch x\nend 0\n", "line 1: the epoch is not a number"},
	{"weir-overlay 1 epoch 1 \nend 0\n", "line 1: invalid clock"},
	{"weir-overlay 1 epoch 1 wall 5 up 5 boot 0123\nend 0\n", "line 1: invalid clock"},
	{"weir-overlay 1 epoch 1 wall 5 boot " BOOT "\nend 0\n", "line 1: invalid clock"},
	{"weir-overlay 1 epoch 1 wall 5 up 5 boot " BOOT " \nend 0\n", "line 1: invalid clock"},
	{"weir-overlay 1 epoch 18446744073709551616\nend 0\n", "line 1: the epoch is not a number"},
	{TOP, "line 2: the file is truncated"},
	{TOP "end 0", "line 2: the file is truncated"},
	{TOP "end 1\n", "line 2: wrong number of entries"},
	{TOP "end 00\n", "line 2: wrong number of entries"},
	{TOP "end 0\n\n", "line 2: unexpected text after the end"},
	{TOP "\nend 0\n", "line 2: unknown first word of the line"},
	{TOP "end 0\r\n", "line 2: wrong number of entries"},
	{TOP "end 0\nsum 0123456789abcdef\n", "checksum mismatch"},
	{TOP HOLDER "block from 192.0.2.1 by 1 until 5\nend 1\n",
	 "line 3: unknown holder of the entry"},
	{TOP HOLDER FIRST "remove block from 192.0.2.1 by 0\nend 1\n",
	 "line 4: unknown first word of the line"},
	{TOP HOLDER FIRST "end 0\n", "line 4: wrong number of entries"},
	{TOP HOLDER FIRST "end 10\n", "line 4: wrong number of entries"},
	{TOP HOLDER HOLDER "end 0\n", "line 3: unexpected holder"},
	{TOP HOLDER FIRST HOLDER "end 1\n", "line 4: unexpected holder"},
};

static int read_old(const char *text, size_t len, struct err *err)
{
	struct journal_index *x = journal_index_new(NULL, 0);
	struct journal_frame f;
	int code = journal_find_old(text, len, &f, enter, x, err);

	journal_index_free(x);
	return code;
}

static void test_damaged_old_files(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(olds); i++) {
		CLEANUP_FREE char *text = mem_strdup(olds[i].text);
		struct err err = {0};

		assert_true(journal_is_old(text, strlen(text)));
		assert_int_equal(read_old(text, strlen(text), &err), -EINVAL);
		assert_string_equal(err.text, olds[i].error);
	}
	assert_true(journal_is_newer("weir-overlay 3\n", 15));
	assert_false(journal_is_newer("weir-overlay 2\n", 15));
	assert_false(journal_is_newer("weir-overlay\n", 13));
}

static void test_cut_old_file(void **state)
{
	static const char old[] = "weir-overlay 1 epoch 17 wall 5 up 6 boot " BOOT "\n" HOLDER FIRST
				  "allow to 2001:db8::/32 by 0 until never\nend 2\n";
	size_t sealed_len, head = strlen("weir-overlay 1 epoch ");
	CLEANUP_FREE char *sealed = sum_seal(old, strlen(old), &sealed_len);
	struct err err = {0};

	assert_int_equal(read_old(sealed, sealed_len, &err), 0);
	assert_int_equal(read_old(old, strlen(old), &err), 0);
	for (size_t len = head; len < strlen(old); len++)
		assert_int_equal(read_old(old, len, &err), -EINVAL);
	for (size_t at = head; at < sealed_len; at++) {
		sealed[at] ^= 1;
		assert_int_equal(read_old(sealed, sealed_len, &err), -EINVAL);
		sealed[at] ^= 1;
	}
}

// ---- the index ----------------------------------------------------------------------------------

struct model_ref {
	struct prefix prefix;
	uint8_t kind;
	uint32_t owner;
	uint64_t until_s;
};
struct model {
	struct model_ref *at;
	size_t n, cap;
};

static struct prefix random_prefix(uint64_t *seed)
{
	uint8_t bytes[16] = {0x20, [14] = (uint8_t)unit_below(seed, 4)};
	struct addr a;

	bytes[15] = (uint8_t)unit_below(seed, 256);
	a = addr_from_v6(bytes);
	return prefix_of(&a, (uint8_t)(120 + unit_below(seed, 9)));
}

static struct model_ref *find(struct model *m, const struct prefix *p, uint8_t kind, uint32_t owner)
{
	vec_each (m, ref)
		if (!prefix_compare(&ref->prefix, p) && ref->kind == kind && ref->owner == owner)
			return ref;
	return NULL;
}

static void assert_like_model(const struct journal_index *x, struct model *m)
{
	CLEANUP_JOURNAL_ORDER struct journal_order order = journal_order(x);

	assert_int_equal(order.n, m->n);
	for (size_t i = 0; i < order.n; i++) {
		const struct journal_ref *r = &x->refs[order.at[i]];
		struct prefix p = journal_ref_prefix(r), before;
		struct model_ref *ref = find(m, &p, r->kind, r->owner);

		assert_non_null(ref);
		assert_int_equal(ref->until_s, r->until_s);
		assert_true(journal_index_has_length(x, 6, p.len));
		if (!i)
			continue;
		before = journal_ref_prefix(&x->refs[order.at[i - 1]]);
		assert_true(prefix_compare(&before, &p) <= 0);
	}
}

// Adds, changes and removes references; the index grows several times.
static void test_index(void **state)
{
	struct journal_index *x = journal_index_new(NULL, 0);
	struct owner owner = {.list = (char *)"", .name = (char *)""};
	struct model m = {0};
	uint64_t seed = 1;

	for (uint32_t o = 0; o < 3000; o++)
		assert_null(journal_index_owner(x, o, o * 100, 90, &owner));
	assert_string_equal(journal_index_owner(x, 7, 0, 9, &owner), "unexpected holder");
	for (unsigned i = 0; i < 12000; i++) {
		struct prefix p = random_prefix(&seed);
		uint8_t kind = (uint8_t)unit_below(&seed, OVERLAY_KINDS);
		uint32_t o = unit_below(&seed, 3);
		struct model_ref *ref = find(&m, &p, kind, o);
		struct reference reference = {p, kind, o, i};

		if (unit_below(&seed, 3)) {
			assert_null(journal_index_add(x, &reference));
			if (!ref)
				ref = vec_add(&m);
			*ref = (struct model_ref){p, kind, o, i};
		} else if (ref) {
			assert_null(journal_index_drop(x, &reference));
			*ref = *vec_last(&m);
			m.n--;
		} else {
			assert_non_null(journal_index_drop(x, &reference));
		}
		assert_int_equal(journal_index_count(x), m.n);
		if (i % 2000 == 0)
			assert_like_model(x, &m);
	}
	assert_true(m.n > 1500);
	assert_like_model(x, &m);
	assert_string_equal(journal_index_add(x, &(struct reference){m.at[0].prefix, 0, 3000, 1}),
			    whose);
	vec_free(&m);
	journal_index_free(x);
}

static struct prefix prefix_of_host(uint32_t host)
{
	struct prefix p = {.addr.family = 4, .len = 32};

	for (unsigned b = 0; b < 4; b++)
		p.addr.bytes[b] = (uint8_t)(host >> (24 - 8 * b));
	return p;
}

// Adds hosts from `host` on, upwards or downwards.
static void add_hosts(struct journal_index *x, uint32_t host, size_t n, int step)
{
	for (size_t i = 0; i < n; i++, host += (uint32_t)step) {
		struct prefix p = prefix_of_host(host);

		assert_null(journal_index_add(x, &(struct reference){.prefix = p}));
	}
}

static void drop_host(struct journal_index *x, uint32_t host)
{
	struct prefix p = prefix_of_host(host);

	assert_null(journal_index_drop(x, &(struct reference){.prefix = p}));
}

static void assert_in_order(const struct journal_index *x, size_t n, size_t moved_max)
{
	CLEANUP_JOURNAL_ORDER struct journal_order order = journal_order(x);

	assert_int_equal(order.n, n);
	assert_true(order.moved <= moved_max);
	for (size_t i = 1; i < n; i++) {
		struct prefix before = journal_ref_prefix(&x->refs[order.at[i - 1]]);
		struct prefix p = journal_ref_prefix(&x->refs[order.at[i]]);

		assert_true(prefix_compare(&before, &p) < 0);
	}
}

#define LISTED 100000u
#define BANNED 1000u
#define LOW    0x02000000u
#define MIDDLE 0x03000000u
#define HIGH   0x04000000u

// Bans and their ends put references out of order: at most twice as many must be sorted as were
// added.
static void test_order(void **state)
{
	struct journal_index *x = journal_index_new(NULL, LISTED);
	struct owner owner = {.list = (char *)"", .name = (char *)""};

	assert_null(journal_index_owner(x, 0, 0, 9, &owner));
	add_hosts(x, MIDDLE, LISTED, 1);
	assert_in_order(x, LISTED, 0);
	add_hosts(x, LOW, BANNED, 1); // at the end, but earlier in order
	assert_in_order(x, LISTED + BANNED, 2 * BANNED);
	add_hosts(x, HIGH, BANNED, -1);
	assert_in_order(x, LISTED + 2 * BANNED, 4 * BANNED);
	for (uint32_t i = BANNED;
	     i-- > 0;) // neighbours in the middle; the first slot is reused first
		drop_host(x, MIDDLE + 500 + i);
	add_hosts(x, HIGH + 1, BANNED, 1);
	assert_in_order(x, LISTED + 2 * BANNED, 6 * BANNED);
	for (uint32_t i = 0; i < BANNED; i++)
		drop_host(x, MIDDLE + 5000 + 7 * i);
	add_hosts(x, LOW + BANNED, BANNED, 1);
	assert_in_order(x, LISTED + 2 * BANNED, 8 * BANNED);
	journal_index_free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_lines), cmocka_unit_test(test_owners),
		cmocka_unit_test(test_references),    cmocka_unit_test(test_golden_frame),
		cmocka_unit_test(test_changed_frame), cmocka_unit_test(test_damaged_old_files),
		cmocka_unit_test(test_cut_old_file),  cmocka_unit_test(test_index),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
