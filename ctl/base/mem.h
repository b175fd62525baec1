// SPDX-License-Identifier: GPL-2.0-only
// Memory and ownership: allocation that ends the process on failure, cleanup attributes, TAKE_PTR.
//
// All promises of Weir are kept in files and maps that survive a killed process, so running out of
// memory needs no unwinding: mem_* print one line and exit with status 2.
#pragma once

#include <stddef.h>

// Runs FN(&variable) when the variable leaves its scope. FN takes a pointer to the variable.
#define CLEANUP(fn)  __attribute__((cleanup(fn)))
#define CLEANUP_FREE CLEANUP(mem_cleanup_free)
#define CLEANUP_FD   CLEANUP(mem_cleanup_fd)
#define CLEANUP_FILE CLEANUP(mem_cleanup_file)

// Hand a pointer (or a descriptor) over: the value, and the variable is emptied.
#define TAKE_PTR(p)                       \
	({                                \
		__auto_type taken_ = (p); \
		(p) = NULL;               \
		taken_;                   \
	})
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

// Zeroed memory for n items of `size` bytes; never NULL (also for 0 items).
void *mem_zalloc(size_t n, size_t size);
// `old` grown or shrunk to n items of `size` bytes; new bytes are not zeroed; never NULL.
void *mem_realloc(void *old, size_t n, size_t size);
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t len);
__attribute__((format(printf, 1, 2))) char *mem_printf(const char *fmt, ...);

// Returns free memory to the system. Allocations of `bytes` or more become mappings, which are
// returned one by one. Does nothing if the C library does not support it.
void mem_trim(void);
void mem_map_from(int bytes);

// The functions above call it when there is no memory: prints one line, exits with status 2.
_Noreturn void mem_exhausted(void);

#define mem_new(type) ((type *)mem_zalloc(1, sizeof(type)))

void mem_cleanup_free(void *ptr_to_ptr);
void mem_cleanup_fd(int *fd);
void mem_cleanup_file(void *ptr_to_file); // FILE **

// Closes fd when it is one (>= 0); returns -1, for `fd = fd_close(fd)`.
int fd_close(int fd);
