/* SPDX-License-Identifier: GPL-2.0-only */
/* The only way to define an LPM map: its values must be aligned. The build includes this before
 * every program.
 *
 * An atomic operation on a word that is not aligned to its size is a fault on arm64, in the kernel.
 * The kernel aligns the values of all other maps to 8: values of arrays have a size rounded up to
 * 8, values of hashes follow a key whose size is rounded up to 8. In a trie (kernel/bpf/lpm_trie.c)
 * a value follows the key without its prefixlen, which begins at a multiple of 8. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Type, flags, key and value of the map. key_type: a struct that begins with a __u32, the prefix
 * length. */
#define LPM_MAP(key_type, value_type)                                                  \
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);                                           \
	__uint(map_flags, BPF_F_NO_PREALLOC); /* which a trie requires */              \
	__type(key, key_type);                                                         \
	__type(value, value_type);                                                     \
	_Static_assert((sizeof(key_type) - sizeof(__u32)) % _Alignof(value_type) == 0, \
		       "the values of this map are not aligned: pad the key")

#pragma GCC poison BPF_MAP_TYPE_LPM_TRIE
