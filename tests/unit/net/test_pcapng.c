// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/net/pcapng.h: the bytes of each block, and files that libpcap reads.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/net/capture_file.h"
#include "ctl/net/pcapng.h"

// The words below are in the order of this machine, which both architectures of Weir have.
#define BYTES(literal) literal, sizeof(literal) - 1

static void assert_block(struct text *block, const char *bytes, size_t length)
{
	assert_int_equal(block->len, length);
	assert_memory_equal(block->at, bytes, length);
	text_free(block);
}

static void test_section(void **state)
{
	struct text t = {0};

	pcapng_section(&t, "weir 1", NULL);
	assert_block(&t, BYTES("\x0a\x0d\x0d\x0a\x2c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0"
			       "\xff\xff\xff\xff\xff\xff\xff\xff"
			       "\4\0\6\0weir 1\0\0"
			       "\0\0\0\0\x2c\0\0\0"));
}

static void test_interface(void **state)
{
	struct text t = {0};

	pcapng_interface(&t, "eth0", 262144);
	assert_block(&t, BYTES("\1\0\0\0\x28\0\0\0\1\0\0\0\0\0\4\0"
			       "\2\0\4\0eth0"
			       "\x09\0\1\0\x09\0\0\0"
			       "\0\0\0\0\x28\0\0\0"));
}

static void test_packet(void **state)
{
	struct text t = {0};

	pcapng_packet(&t, &(struct pcapng_packet){.interface = 1,
						  .captured = 5,
						  .length = 258,
						  .time_ns = 0x0102030405060708,
						  .bytes = (const uint8_t *)"abcde",
						  .comment = "drop"});
	assert_block(&t, BYTES("\6\0\0\0\x34\0\0\0\1\0\0\0\4\3\2\1\x08\7\6\5"
			       "\5\0\0\0\2\1\0\0"
			       "abcde\0\0\0"
			       "\1\0\4\0drop"
			       "\0\0\0\0\x34\0\0\0"));
}

static void test_statistics(void **state)
{
	struct text t = {0};

	pcapng_statistics(&t, &(struct pcapng_statistics){.interface = 2,
							  .begin_ns = 1,
							  .end_ns = 0x0102030405060708,
							  .received = 7,
							  .lost = 3});
	assert_block(&t, BYTES("\5\0\0\0\x4c\0\0\0\2\0\0\0\4\3\2\1\x08\7\6\5"
			       "\2\0\x08\0\0\0\0\0\1\0\0\0"
			       "\3\0\x08\0\4\3\2\1\x08\7\6\5"
			       "\4\0\x08\0\7\0\0\0\0\0\0\0"
			       "\5\0\x08\0\3\0\0\0\0\0\0\0"
			       "\0\0\0\0\x4c\0\0\0"));
}

static void test_no_comment(void **state)
{
	struct text without = {0}, empty = {0};
	struct pcapng_packet p = {.bytes = (const uint8_t *)""};

	pcapng_packet(&without, &p);
	p.comment = "";
	pcapng_packet(&empty, &p);
	assert_int_equal(without.len, 36);
	assert_int_equal(empty.len, 36);
	text_free(&without);
	text_free(&empty);
}

// An option has a length of 16 bits, and a code point of two bytes must not be cut in half.
static void test_long_comment(void **state)
{
	struct text comment = {0}, t = {0};
	uint16_t length;

	while (comment.len < 70000)
		text_add(&comment, "\xc3\xa4");
	pcapng_packet(&t, &(struct pcapng_packet){.bytes = (const uint8_t *)"",
						  .comment = text_get(&comment)});
	memcpy(&length, t.at + 30, sizeof(length));
	assert_int_equal(length, 65534);
	assert_int_equal(t.len, 28 + 4 + 65536 + 4 + 4);
	text_free(&comment);
	text_free(&t);
}

static void write_all(const char *path, const struct text *t)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(t->at, 1, t->len, file), t->len);
	assert_int_equal(fclose(file), 0);
}

// Packets of every length up to 70, with comments of every length, on two interfaces.
static void test_libpcap_reads_it(void **state)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
				      "abcdefghijklmnopqrstuvwxyz";
	char path[] = "/tmp/weir-pcapng-XXXXXX";
	struct captured_packet packet;
	struct capture_file file;
	struct text t = {0};
	struct err err = {0};

	close(mkstemp(path));
	pcapng_section(&t, "weir", "a comment");
	pcapng_interface(&t, "eth0", 96);
	pcapng_interface(&t, "a-long-name", 96);
	for (uint32_t n = 0; n < 70; n++)
		pcapng_packet(&t, &(struct pcapng_packet){.interface = n % 2,
							  .captured = n,
							  .length = n + n % 3,
							  .bytes = (const uint8_t *)letters,
							  .comment = letters + n});
	pcapng_statistics(&t, &(struct pcapng_statistics){.received = 70});
	write_all(path, &t);
	assert_int_equal(capture_file_open(path, &file, &err), 0);
	for (uint32_t n = 0; n < 70; n++) {
		assert_int_equal(capture_file_next(&file, &packet, &err), 1);
		assert_int_equal(packet.captured, n);
		assert_int_equal(packet.length, n + n % 3);
		assert_memory_equal(packet.bytes, letters, n);
	}
	assert_int_equal(capture_file_next(&file, &packet, &err), 0);
	capture_file_close(&file);
	text_free(&t);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_section),          cmocka_unit_test(test_interface),
		cmocka_unit_test(test_packet),           cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_no_comment),       cmocka_unit_test(test_long_comment),
		cmocka_unit_test(test_libpcap_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
