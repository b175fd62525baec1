// SPDX-License-Identifier: GPL-2.0-only
// All keys of a hash map by one call to the kernel, however many there are.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Reads the keys of a map of at most `max` entries, whose values have four bytes. *ret_keys: room
// for `max` keys, which the caller frees; *ret_n keys are set. 0 or -errno.
int map_keys(int fd, size_t key_size, uint32_t max, void **ret_keys, uint32_t *ret_n);
