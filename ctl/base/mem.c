// SPDX-License-Identifier: GPL-2.0-only
// Allocation that ends the process instead of failing, and the functions of the cleanup attributes.
#include "ctl/base/mem.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// _exit: half a JSON document that is still in a stdio buffer must not be printed.
_Noreturn void mem_exhausted(void)
{
	static const char line[] = "weir: out of memory\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof(line) - 1);

	(void)n;
	_exit(2);
}

static void *checked(void *ptr)
{
	if (!ptr)
		mem_exhausted();
	return ptr;
}

void *mem_zalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *mem_realloc(void *old, size_t n, size_t size)
{
	// A size of 0 would free `old` and give NULL.
	return checked(reallocarray(old, n ? n : 1, size ? size : 1));
}

char *mem_strdup(const char *s)
{
	return checked(strdup(s));
}

char *mem_strndup(const char *s, size_t len)
{
	return checked(strndup(s, len));
}

char *mem_printf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		mem_exhausted();
	return text;
}

void mem_cleanup_free(void *ptr_to_ptr)
{
	void *ptr;

	// The variable may be of any pointer type, so it is not read through a void **.
	memcpy(&ptr, ptr_to_ptr, sizeof(ptr));
	free(ptr);
}

void mem_cleanup_fd(int *fd)
{
	*fd = fd_close(*fd);
}

void mem_cleanup_file(void *ptr_to_file)
{
	int saved = errno;
	FILE *file;

	memcpy(&file, ptr_to_file, sizeof(file));
	if (file)
		fclose(file);
	errno = saved;
}

// Cleanup runs between a failing call and the reader of errno, so errno is kept. EINTR is not
// retried: Linux has closed the descriptor then, and the number may be another thread's already.
int fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

// musl has neither.
#ifdef M_MMAP_THRESHOLD

void mem_trim(void)
{
	malloc_trim(0);
}

void mem_map_from(int bytes)
{
	mallopt(M_MMAP_THRESHOLD, bytes);
}

#else

void mem_trim(void)
{
}

void mem_map_from(int bytes)
{
}

#endif
