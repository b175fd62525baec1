// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/base/mem.c.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/mem.h"

// Makes the sanitizer's allocator return NULL, as the real one does.
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void test_zeroed(void **state)
{
	CLEANUP_FREE unsigned char *bytes = mem_zalloc(1000, 3);
	CLEANUP_FREE void *none = mem_zalloc(0, 8), *nothing = mem_zalloc(8, 0);

	for (size_t i = 0; i < 3000; i++)
		assert_int_equal(bytes[i], 0);
	assert_non_null(none);
	assert_non_null(nothing);
}

static void test_growing(void **state)
{
	int *numbers = mem_realloc(NULL, 4, sizeof(int));

	for (int i = 0; i < 4; i++)
		numbers[i] = i;
	numbers = mem_realloc(numbers, 100000, sizeof(int));
	for (int i = 0; i < 4; i++)
		assert_int_equal(numbers[i], i);
	numbers = mem_realloc(numbers, 0, sizeof(int));
	assert_non_null(numbers);
	free(numbers);
}

static void test_strings(void **state)
{
	CLEANUP_FREE char *whole = mem_strdup("weir"), *part = mem_strndup("weir", 2);
	CLEANUP_FREE char *more = mem_strndup("weir", 100), *empty = mem_strndup("weir", 0);
	CLEANUP_FREE char *made = mem_printf("%s-%d", "a", 7);

	assert_string_equal(whole, "weir");
	assert_string_equal(part, "we");
	assert_string_equal(more, "weir");
	assert_string_equal(empty, "");
	assert_string_equal(made, "a-7");
}

static void test_take(void **state)
{
	char *first = mem_strdup("x");
	char *second = TAKE_PTR(first);
	int fd = 5, taken = TAKE_FD(fd);

	assert_null(first);
	assert_string_equal(second, "x");
	assert_int_equal(fd, -1);
	assert_int_equal(taken, 5);
	free(second);
}

static void test_cleanup_closes_and_keeps_errno(void **state)
{
	int number;

	errno = ENOANO;
	{
		CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		CLEANUP_FD int none = -1;
		CLEANUP_FILE FILE *file = fopen("/dev/null", "re"), *no_file = NULL;
		CLEANUP_FREE char *text = NULL;

		number = fd;
		assert_true(fd >= 0);
		assert_non_null(file);
		errno = ENOANO;
	}
	assert_int_equal(errno, ENOANO);
	assert_int_equal(fcntl(number, F_GETFD), -1);
	assert_int_equal(errno, EBADF);
}

static void test_cleanup_skips_what_was_taken(void **state)
{
	int kept;

	{
		CLEANUP_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = TAKE_FD(fd);
	}
	assert_true(fcntl(kept, F_GETFD) >= 0);
	assert_int_equal(fd_close(kept), -1);
	assert_int_equal(fcntl(kept, F_GETFD), -1);
	errno = 0;
	assert_int_equal(fd_close(-1), -1);
	assert_int_equal(errno, 0);
}

static void too_much_zeroed(void)
{
	volatile size_t n = SIZE_MAX / 2;

	mem_zalloc(n, 4); // the product overflows
}

static void too_much_grown(void)
{
	volatile size_t n = SIZE_MAX / 2;

	mem_realloc(NULL, n, 4);
}

static void too_large(void)
{
	volatile size_t n = SIZE_MAX / 2;

	mem_zalloc(n, 1);
}

static void check_exhaustion(void (*ask)(void))
{
	char said[8192] = "";
	size_t len = 0;
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		printf("half a document");
		ask();
		_exit(0);
	}
	close(ends[1]);
	while ((n = read(ends[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	assert_non_null(strstr(said, "weir: out of memory\n"));
}

static void test_exhaustion_exits_with_2(void **state)
{
	fflush(stdout);
	check_exhaustion(too_much_zeroed);
	check_exhaustion(too_much_grown);
	check_exhaustion(too_large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zeroed),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_strings),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_cleanup_closes_and_keeps_errno),
		cmocka_unit_test(test_cleanup_skips_what_was_taken),
		cmocka_unit_test(test_exhaustion_exits_with_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
