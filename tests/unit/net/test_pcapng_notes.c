// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/net/pcapng_notes.h: what pcapng.h writes, the other byte order, and damage.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/net/pcapng.h"
#include "ctl/net/pcapng_notes.h"

#define FILE_OF(literal) literal, sizeof(literal) - 1

static void assert_words(const struct pcapng_words *words, const char *wanted)
{
	assert_int_equal(words->len, strlen(wanted));
	assert_memory_equal(words->at, wanted, words->len);
}

static void assert_next(struct pcapng_notes *n, const char *interface, const char *comment)
{
	struct pcapng_note note;

	assert_true(pcapng_notes_next(n, &note));
	assert_words(&note.interface, interface);
	assert_words(&note.comment, comment);
}

static void assert_end(struct pcapng_notes *n)
{
	struct pcapng_note note;

	for (int k = 0; k < 2; k++) {
		assert_false(pcapng_notes_next(n, &note));
		assert_words(&note.comment, "");
	}
}

static void add_packet(struct text *t, uint32_t interface, const char *comment)
{
	pcapng_packet(t, &(struct pcapng_packet){.interface = interface,
						 .captured = 5,
						 .length = 9,
						 .bytes = (const uint8_t *)"abcde",
						 .comment = comment});
}

static void test_what_we_write(void **state)
{
	CLEANUP(pcapng_notes_free) struct pcapng_notes n = {0};
	CLEANUP_TEXT struct text t = {0};

	pcapng_section(&t, "weir", "the comment of the section");
	pcapng_interface(&t, "eth0", 96);
	pcapng_interface(&t, "eth1", 96);
	add_packet(&t, 1, "drop rule-drop");
	add_packet(&t, 0, NULL);
	add_packet(&t, 2, "of an interface that does not exist");
	pcapng_statistics(&t, &(struct pcapng_statistics){.lost = 7});
	add_packet(&t, 0, "x");
	pcapng_statistics(&t, &(struct pcapng_statistics){.lost = 1ull << 40});
	pcapng_section(&t, "weir", NULL); // its interfaces are others
	add_packet(&t, 0, "y");
	pcapng_notes_begin(&n, t.at, t.len);
	assert_next(&n, "eth1", "drop rule-drop");
	assert_next(&n, "eth0", "");
	assert_next(&n, "", "of an interface that does not exist");
	assert_next(&n, "eth0", "x");
	assert_int_equal(n.lost, 7);
	assert_next(&n, "", "y");
	assert_end(&n);
	assert_int_equal(n.lost, 7 + (1ull << 40));
}

// A section of a machine of the other byte order, with a simple packet block and one of the first
// version.
static void test_the_other_order(void **state)
{
	CLEANUP(pcapng_notes_free) struct pcapng_notes n = {0};

	pcapng_notes_begin(
		&n, FILE_OF("\x0a\x0d\x0d\x0a\0\0\0\x1c\x1a\x2b\x3c\x4d\0\1\0\0"
			    "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\x1c"
			    "\0\0\0\1\0\0\0\x1c\0\1\0\0\0\0\0\x60\0\2\0\2lo\0\0\0\0\0\x1c"
			    "\0\0\0\3\0\0\0\x14\0\0\0\1x\0\0\0\0\0\0\x14"
			    "\0\0\0\2\0\0\0\x2c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\1x\0\0\0"
			    "\0\1\0\2hi\0\0\0\0\0\x2c"
			    "\0\0\0\5\0\0\0\x24\0\0\0\0\0\0\0\0\0\0\0\0"
			    "\0\5\0\x08\0\0\0\0\0\0\1\2\0\0\0\x24"));
	assert_next(&n, "", "");
	assert_next(&n, "lo", "hi");
	assert_end(&n);
	assert_int_equal(n.lost, 258);
}

static void test_other_files(void **state)
{
	static const char pcap[] = "\xd4\xc3\xb2\xa1\x02\x00\x04\x00\0\0\0\0\0\0\0\0";
	CLEANUP(pcapng_notes_free) struct pcapng_notes n = {0};

	for (size_t len = 0; len < sizeof(pcap); len++) {
		pcapng_notes_begin(&n, pcap, len);
		assert_end(&n);
	}
}

// Each byte of a file is damaged, and the file cut after it: no byte outside is read.
static void test_damage(void **state)
{
	struct text t = {0};

	pcapng_section(&t, "weir", NULL);
	pcapng_interface(&t, "eth0", 96);
	add_packet(&t, 0, "a comment");
	pcapng_statistics(&t, &(struct pcapng_statistics){.lost = 7});
	for (size_t at = 0; at < t.len; at++)
		for (unsigned value = 0; value < 256; value += 5) {
			CLEANUP(pcapng_notes_free) struct pcapng_notes n = {0};
			char *copy = mem_zalloc(1, at + 1);
			struct pcapng_note note;

			memcpy(copy, t.at, at + 1);
			copy[at] = (char)value;
			pcapng_notes_begin(&n, copy, at + 1);
			while (pcapng_notes_next(&n, &note))
				assert_true(note.comment.len <= at + 1);
			free(copy);
		}
	text_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_we_write),
		cmocka_unit_test(test_the_other_order),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
