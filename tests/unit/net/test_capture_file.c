// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/net/capture_file.h: files of both byte orders, and every kind of invalid file.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/net/capture_file.h"

#define MICRO "\xa1\xb2\xc3\xd4"
#define LITTLE             \
	"\xd4\xc3\xb2\xa1" \
	"\x02\x00\x04\x00" \
	"\0\0\0\0\0\0\0\0" \
	"\xff\xff\x00\x00" \
	"\x01\x00\x00\x00"
#define TIME "\1\2\3\4\5\6\7\x08"

// The end of a file made of a literal, which may contain zeros.
#define FILE_OF(literal) literal, sizeof(literal) - 1

struct made {
	char path[32];
};

static struct made make(const char *bytes, size_t length)
{
	struct made m = {"/tmp/weir-pcap-XXXXXX"};
	int fd = mkstemp(m.path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
	return m;
}

static int open_bytes(const char *bytes, size_t length, struct capture_file *p, struct err *err)
{
	struct made m = make(bytes, length);
	int code = capture_file_open(m.path, p, err);

	unlink(m.path);
	return code;
}

static void assert_packets(const char *bytes, size_t length)
{
	struct captured_packet packet;
	struct err err = {0};
	struct capture_file p;

	assert_int_equal(open_bytes(bytes, length, &p, &err), 0);
	assert_int_equal(capture_file_next(&p, &packet, &err), 1);
	assert_int_equal(packet.number, 1);
	assert_int_equal(packet.captured, 3);
	assert_int_equal(packet.length, 3);
	assert_memory_equal(packet.bytes, "abc", 3);
	assert_int_equal(capture_file_next(&p, &packet, &err), 1);
	assert_int_equal(packet.number, 2);
	assert_int_equal(packet.captured, 1);
	assert_int_equal(packet.length, 258);
	assert_memory_equal(packet.bytes, "x", 1);
	assert_int_equal(capture_file_next(&p, &packet, &err), 0);
	assert_int_equal(capture_file_next(&p, &packet, &err), 0);
	capture_file_close(&p);
}

static void test_both_orders(void **state)
{
	assert_packets(FILE_OF(LITTLE TIME "\3\0\0\0\3\0\0\0abc" TIME "\1\0\0\0\2\1\0\0x"));
	assert_packets(FILE_OF(MICRO "\0\2\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\0\0\0\1" TIME
				     "\0\0\0\3\0\0\0\3"
				     "abc" TIME "\0\0\0\1\0\0\1\2x"));
}

static void test_nanoseconds(void **state)
{
	char file[] = LITTLE TIME "\3\0\0\0\3\0\0\0abc" TIME "\1\0\0\0\2\1\0\0x";

	memcpy(file, "\x4d\x3c\xb2\xa1", 4);
	assert_packets(file, sizeof(file) - 1);
}

// A flag above the link type is set if frames end with their checksum.
static void test_frame_checksums(void **state)
{
	char file[] = LITTLE TIME "\3\0\0\0\3\0\0\0abc" TIME "\1\0\0\0\2\1\0\0x";

	file[23] = 0x24;
	assert_packets(file, sizeof(file) - 1);
}

static void test_no_packets(void **state)
{
	struct captured_packet packet;
	struct err err = {0};
	struct capture_file p;

	assert_int_equal(open_bytes(FILE_OF(LITTLE), &p, &err), 0);
	assert_int_equal(capture_file_next(&p, &packet, &err), 0);
	capture_file_close(&p);
}

static const struct {
	const char *bytes;
	size_t length;
	const char *text, *hint;
} refused[] = {
	{FILE_OF("\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\1\0\0\0\xff\xff\xff\xff"),
	 "is not a pcap or pcapng file: truncated", "editcap"},
	{FILE_OF("\x1f\x8b\x08\0\0\0\0\0"), "is compressed", "gunzip"},
	{FILE_OF(""), "is not a pcap or pcapng file: it is empty", "editcap"},
	{FILE_OF("\xd4\xc3\xb2\xa1\2\0"), "is not a pcap or pcapng file", "editcap"},
	{FILE_OF("interface eth0, eth1\ndefault drop\n"), "is not a pcap or pcapng file",
	 "editcap"},
	{FILE_OF("\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x71\0\0\0"),
	 "of link type 113, not Ethernet", "capture on one Ethernet"},
};

static void test_refused_files(void **state)
{
	struct capture_file p;

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct err err = {0};

		assert_int_equal(open_bytes(refused[i].bytes, refused[i].length, &p, &err),
				 -EINVAL);
		assert_int_equal(err.kind, ERR_INPUT);
		assert_non_null(strstr(err.text, refused[i].text));
		assert_non_null(strstr(err.hint, refused[i].hint));
	}
}

static const struct {
	const char *bytes;
	size_t length;
	const char *text;
} damaged[] = {
	{FILE_OF(LITTLE TIME "\3\0\0\0\3\0\0"), "damaged after packet 0: truncated"},
	{FILE_OF(LITTLE TIME "\4\0\0\0\4\0\0\0abc"), "damaged after packet 0: truncated"},
	{FILE_OF(LITTLE TIME "\xff\xff\xff\xff\4\0\0\0abc"),
	 "damaged after packet 0: invalid packet capture length"},
};

static void test_damaged_files(void **state)
{
	struct captured_packet packet = {.number = 4711};
	struct capture_file p;

	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		struct err err = {0};

		assert_int_equal(open_bytes(damaged[i].bytes, damaged[i].length, &p, &err), 0);
		assert_int_equal(capture_file_next(&p, &packet, &err), -EINVAL);
		assert_non_null(strstr(err.text, damaged[i].text));
		assert_int_equal(packet.number, 4711);
		capture_file_close(&p);
	}
}

static void test_absent_file(void **state)
{
	struct err err = {0};
	struct capture_file p;

	assert_int_equal(capture_file_open("/nowhere/x.pcap", &p, &err), -ENOENT);
	assert_int_equal(err.kind, ERR_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_orders),     cmocka_unit_test(test_nanoseconds),
		cmocka_unit_test(test_frame_checksums), cmocka_unit_test(test_no_packets),
		cmocka_unit_test(test_refused_files),   cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_absent_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
