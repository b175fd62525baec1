// SPDX-License-Identifier: GPL-2.0-only
// The datagrams of the agent to the service manager.
#include "ctl/agent/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/base/mem.h"

// A socket of the manager under this name ('@': abstract), which is in $NOTIFY_SOCKET.
static int manager(const char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(at.sun_path, name, strlen(name));
	if (name[0] == '@')
		at.sun_path[0] = '\0';
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, len), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void expect_told(int fd, const char *want)
{
	char got[256] = "";

	assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), (int)strlen(want));
	assert_string_equal(got, want);
}

static void test_abstract_name(void **state)
{
	CLEANUP_FREE char *name = mem_printf("@weir-test-%d", getpid());
	CLEANUP_FD int fd = manager(name);

	assert_true(notify_send("READY=1\nSTATUS=%s", "all is well"));
	expect_told(fd, "READY=1\nSTATUS=all is well");
}

static void test_path(void **state)
{
	char folder[] = "/tmp/weir-notify-XXXXXX";
	CLEANUP_FREE char *name = mem_printf("%s/socket", mkdtemp(folder));
	CLEANUP_FD int fd = manager(name);

	assert_true(notify_send("STOPPING=1"));
	expect_told(fd, "STOPPING=1");
	unlink(name);
	assert_false(notify_send("STOPPING=1")); // the manager has removed it
	rmdir(folder);
}

static void test_reloading_has_the_time(void **state)
{
	CLEANUP_FREE char *name = mem_printf("@weir-test-%d-reload", getpid());
	CLEANUP_FD int fd = manager(name);
	char got[128] = "";

	notify_reloading();
	assert_true(recv(fd, got, sizeof(got) - 1, 0) > 0);
	assert_memory_equal(got, "RELOADING=1\nMONOTONIC_USEC=", 27);
	assert_true(got[27] >= '1' && got[27] <= '9');
}

static void test_a_full_manager_does_not_block(void **state)
{
	CLEANUP_FREE char *name = mem_printf("@weir-test-%d-full", getpid());
	CLEANUP_FD int fd = manager(name);
	int sent = 0;

	while (notify_send("WATCHDOG=1"))
		assert_true(sent++ < 1000000);
	assert_true(sent > 0);
	expect_told(fd, "WATCHDOG=1");
}

static void test_no_manager(void **state)
{
	unsetenv("NOTIFY_SOCKET");
	assert_false(notify_send("READY=1"));
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_false(notify_send("READY=1"));
	setenv("NOTIFY_SOCKET", "@", 1);
	assert_false(notify_send("READY=1"));
	setenv("NOTIFY_SOCKET", "", 1);
	assert_false(notify_send("READY=1"));
}

static void test_watchdog(void **state)
{
	CLEANUP_FREE char *own = mem_printf("%d", getpid());
	CLEANUP_FREE char *other = mem_printf("%d", getpid() + 1);

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	assert_int_equal(notify_watchdog_us(), 0);
	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_PID", own, 1);
	assert_int_equal(notify_watchdog_us(), 30000000);
	setenv("WATCHDOG_PID", other, 1);
	assert_int_equal(notify_watchdog_us(), 0);
	setenv("WATCHDOG_PID", "x", 1);
	assert_int_equal(notify_watchdog_us(), 0);
	unsetenv("WATCHDOG_PID");
	setenv("WATCHDOG_USEC", "soon", 1);
	assert_int_equal(notify_watchdog_us(), 0);
}

static void test_journal(void **state)
{
	struct stat st;
	char here[64];

	unsetenv("JOURNAL_STREAM");
	assert_false(notify_logs_to_journal());
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", here, 1);
	assert_true(notify_logs_to_journal());
	setenv("JOURNAL_STREAM", "1:1", 1);
	assert_false(notify_logs_to_journal());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_abstract_name),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_reloading_has_the_time),
		cmocka_unit_test(test_a_full_manager_does_not_block),
		cmocka_unit_test(test_no_manager),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
