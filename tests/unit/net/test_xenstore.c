// SPDX-License-Identifier: GPL-2.0-only
// Reads from XenStore through a pair of sockets: the question byte for byte, and answers of all
// kinds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/net/xenstore.h"

// Answers before the question; ret: what xenstore_read gave.
static int ask(uint32_t type, const char *text, uint32_t len, char *ret, size_t size)
{
	const uint32_t answer[4] = {type, 0, 0, len};
	uint32_t question[4];
	char path[32];
	int fd[2], code;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(write(fd[1], answer, sizeof(answer)), sizeof(answer));
	assert_int_equal(write(fd[1], text, strlen(text)), strlen(text));
	shutdown(fd[1], SHUT_WR);
	code = xenstore_read(fd[0], "device/vif/0/backend", ret, size);
	assert_int_equal(read(fd[1], question, sizeof(question)), sizeof(question));
	assert_int_equal(question[0], 2);
	assert_int_equal(question[3], 21);
	assert_int_equal(read(fd[1], path, sizeof(path)), 21);
	assert_string_equal(path, "device/vif/0/backend");
	close(fd[0]);
	close(fd[1]);
	return code;
}

static void reads_a_value(void **state)
{
	char value[8] = "kept";

	assert_int_equal(ask(2, "1", 1, value, sizeof(value)), 0);
	assert_string_equal(value, "1");
	assert_int_equal(ask(2, "", 0, value, sizeof(value)), 0);
	assert_string_equal(value, "");
}

static void reports_what_is_wrong(void **state)
{
	char value[8] = "kept";

	assert_int_equal(ask(16, "ENOENT", 7, value, sizeof(value)), -EPROTO); // cut
	assert_int_equal(ask(16, "ENOENT", 6, value, sizeof(value)), -ENOENT);
	assert_int_equal(ask(16, "EACCES", 6, value, sizeof(value)), -EIO);
	assert_int_equal(ask(3, "1", 1, value, sizeof(value)), -EPROTO);
	assert_int_equal(ask(2, "12345678", 8, value, sizeof(value)), -EPROTO); // no room
	assert_int_equal(ask(2, "1", 5000, value, sizeof(value)), -EPROTO);
	assert_int_equal(ask(2, "1", 2, value, sizeof(value)), -EPROTO); // cut
	assert_string_equal(value, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_value),
		cmocka_unit_test(reports_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
