// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/known.h: a policy resolved without its list files is the same one, and
// a damaged file is not used.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/control/known.h"
#include "ctl/policy/resolve.h"

#define LINES 5000

static char folder[] = "/tmp/weir-known-XXXXXX";
static char *list4, *list6; // texts of the list files
static size_t reads;        // of list files

static const char policy[] = "interface eth0\n"
			     "set four { file \"4.txt\" }\n"
			     "set six { not 2a00:1:7::/48, file \"6.txt\" }\n"
			     "set both { @four, @six, 192.0.2.1, not 198.51.100.0/24 }\n"
			     "set few { 192.0.2.0/24 }\n"
			     "\"in\" drop from @four\n"
			     "drop from @both to 192.0.2.1\n"
			     "pass from not @both\n"
			     "drop from @four, 203.0.113.1\n"
			     "drop from @few\n"
			     "expect drop tcp from @four to 192.0.2.1 port 80\n";

static char *make_list(const char *format, const char *mask)
{
	struct text t = {0};

	text_add(&t, "# a comment\n");
	for (unsigned n = 0; n < LINES; n++) {
		unsigned at = n * 8;

		text_addf(&t, format, at >> 8 & 255, at & 255);
		if (n % 7 == 0)
			text_add(&t, mask);
		text_add(&t, "\n");
	}
	return text_take(&t);
}

static int read_text(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_length,
		     struct err *err)
{
	const char *text = !strcmp(path, "4.txt") ? list4 : !strcmp(path, "6.txt") ? list6 : ctx;

	reads += text != ctx;
	*ret_text = mem_strdup(text);
	*ret_length = strlen(text);
	return 0;
}

static int resolve_none(void *ctx, const struct policy_question *questions, size_t n,
			struct policy_answer *answers, struct err *err)
{
	(void)ctx, (void)questions, (void)err;
	for (size_t i = 0; i < n; i++) {
		answers[i] =
			(struct policy_answer){.addrs = mem_zalloc(1, sizeof(struct addr)), .n = 1};
		answers[i].addrs[0] = addr_from_v4(0x0100a8c0);
	}
	return 0;
}

struct loaded {
	struct diag *diag;
	struct resolved *r;
};

static struct loaded load(const char *text, const struct known *k)
{
	struct source_reader files = {.read = read_text, .ctx = (void *)text};
	struct policy_env env = {
		.files = &files, .resolve = resolve_none, .known = known_policy(k)};
	struct loaded l = {.diag = diag_new()};

	reads = 0;
	l.r = policy_load("p.weir", &env, NULL, 0, l.diag);
	if (!l.r && !k)
		diag_print(l.diag, stderr, false);
	return l;
}

static void unload(struct loaded *l)
{
	resolved_free(l->r);
	diag_free(l->diag);
}

static char *file_path(void)
{
	return mem_printf("%s/addresses", folder);
}

static void forget(void)
{
	CLEANUP_FREE char *path = file_path();

	unlink(path);
}

static bool is_written(void)
{
	CLEANUP_FREE char *path = file_path();

	return file_exists(path);
}

static void compare(const struct resolved *a, const struct resolved *b)
{
	assert_int_equal(a->n_addresses, b->n_addresses);
	for (size_t n = 0; n < a->n_addresses; n++) {
		const struct resolved_addresses *x = &a->addresses[n], *y = &b->addresses[n];

		assert_int_equal(x->n4, y->n4);
		assert_int_equal(x->n6, y->n6);
		assert_memory_equal(x->v4, y->v4, x->n4 * sizeof(*x->v4));
		assert_memory_equal(x->v6, y->v6, x->n6 * sizeof(*x->v6));
		assert_int_equal(x->empty, y->empty);
		assert_int_equal(x->fixed, y->fixed);
	}
	assert_int_equal(a->n_rules, b->n_rules);
	for (size_t n = 0; n < a->n_rules; n++) {
		assert_string_equal(a->rules[n].identity, b->rules[n].identity);
		assert_int_equal(a->rules[n].impossible, b->rules[n].impossible);
		assert_int_equal(a->rules[n].from.kind, b->rules[n].from.kind);
		assert_int_equal(a->rules[n].from.index, b->rules[n].from.index);
	}
	assert_int_equal(a->n_files, b->n_files);
	for (size_t n = 0; n < a->n_files; n++)
		assert_string_equal(a->files[n].name, b->files[n].name);
	assert_int_equal(a->expects[0].n_packets, b->expects[0].n_packets);
	assert_memory_equal(a->expects[0].packets[0].from.bytes,
			    b->expects[0].packets[0].from.bytes, 16);
}

static void the_same_without_reading(void **state)
{
	struct loaded all = load(policy, NULL), less;
	struct known *k;

	assert_non_null(all.r);
	assert_int_equal(reads, 2);
	known_write(folder, all.r);
	for (int whole = 0; whole < 2; whole++) {
		k = known_read(folder, whole);
		assert_non_null(k);
		less = load(policy, k);
		assert_int_equal(reads, 0);
		assert_non_null(less.r);
		compare(all.r, less.r);
		unload(&less);
		known_free(k);
	}
	unload(&all);
	forget();
}

// Another text has other locations, and does not get the known values of the first text.
static void another_text(void **state)
{
	CLEANUP_FREE char *other = mem_printf("#\n%s", policy);
	struct loaded all = load(policy, NULL), less;
	struct known *k;

	known_write(folder, all.r);
	k = known_read(folder, true);
	less = load(other, k);
	assert_null(less.r);
	unload(&less);
	known_free(k);
	unload(&all);
	forget();
}

// Each eighth byte in turn: no list may differ from what was written.
static void any_damage_is_found(void **state)
{
	CLEANUP_FREE char *path = file_path();
	CLEANUP_FREE char *text = NULL;
	struct loaded all = load(policy, NULL);
	size_t len;

	known_write(folder, all.r);
	assert_int_equal(file_read(path, 1 << 24, &text, &len, NULL), 0);
	for (size_t n = 0; n < len; n += n < 512 ? 1 : 4093) {
		struct known *k;

		text[n] ^= 0x10;
		assert_int_equal(file_replace(path, text, len, 0600, NULL), 0);
		text[n] ^= 0x10;
		if (!(k = known_read(folder, true)))
			continue;
		// Bytes between the lists and in padding have no meaning.
		for (size_t a = 0; a < all.r->n_addresses; a++) {
			const struct resolved_addresses *was = &all.r->addresses[a], *is;

			if (!was->listed)
				continue;
			is = known_policy(k)->find(known_policy(k), was->place.file,
						   was->at.offset);
			assert_non_null(is);
			assert_memory_equal(is->v4, was->v4, was->n4 * sizeof(*was->v4));
			assert_memory_equal(is->v6, was->v6, was->n6 * sizeof(*was->v6));
		}
		known_free(k);
	}
	for (size_t cut = 0; cut < len; cut += 977) {
		struct known *k;

		assert_int_equal(file_replace(path, text, cut, 0600, NULL), 0);
		k = known_read(folder, true);
		assert_null(k);
	}
	unload(&all);
	forget();
}

// Names and own addresses can change until the next run, and few lines are read as fast without the
// file.
static void not_of_every_policy(void **state)
{
	static const struct {
		const char *text;
		bool written;
	} cases[] = {
		{"set s { file \"4.txt\" }\ndrop from @s\n", true},
		{"set s { file \"4.txt\" }\nset n { x.example }\ndrop from @s\ndrop from @n\n",
		 true},
		{"set s { file \"4.txt\", x.example }\ndrop from @s\n", false},
		{"set s { file \"4.txt\" }\nset t { @s, not self }\ndrop from @t\n", false},
		{"set s { 192.0.2.1 }\ndrop from @s\n", false},
	};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		struct loaded l = load(cases[n].text, NULL);

		assert_non_null(l.r);
		known_write(folder, l.r);
		assert_int_equal(is_written(), cases[n].written);
		unload(&l);
		forget();
	}
}

// A packet from a list that is not a single set needs more than the known values.
static void what_is_not_known_is_an_error(void **state)
{
	CLEANUP_FREE char *asks = mem_printf(
		"%sexpect drop tcp from @four, 192.0.2.9 to 192.0.2.1 port 80\n", policy);
	struct loaded all = load(policy, NULL), l = load(asks, NULL);
	struct known *k;

	assert_non_null(l.r);
	unload(&l);
	known_write(folder, all.r);
	k = known_read(folder, true);
	l = load(asks, k);
	assert_null(l.r);
	unload(&l);
	known_free(k);
	unload(&all);
	forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_without_reading),
		cmocka_unit_test(another_text),
		cmocka_unit_test(any_damage_is_found),
		cmocka_unit_test(not_of_every_policy),
		cmocka_unit_test(what_is_not_known_is_an_error),
	};
	int failed;

	if (!mkdtemp(folder))
		return 2;
	list4 = make_list("11.7.%u.%u", "/30");
	list6 = make_list("2a00:1:%x::%x", "/126");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	file_remove_tree(folder, NULL);
	free(list4);
	free(list6);
	return failed;
}
