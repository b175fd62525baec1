// SPDX-License-Identifier: GPL-2.0-only
// Loads the objects of peers, several times each.
#pragma once

#include <stddef.h>

#include "tests/bench/subject.h"

// How a peer is opened and sized; all loads share the maps of the first.
struct peer_form {
	const char *name;
	const char *path; // name of the object; NULL: `elf`
	const void *elf;
	size_t elf_bytes;
	const char *program;       // NULL: the only one
	const char *map;           // maps to be sized, by the beginning of their names
	size_t entries, key_bytes; // key_bytes 0: as they are
};

// 0 or -errno; the subject has a name and is to be freed in either case.
int peer_load(const struct peer_form *f, struct subject *ret);
// The same, but ends the bench on failure.
void peer_need(const struct peer_form *f, struct subject *ret);
// A map of the peer, which all loads share.
int peer_map(const struct subject *s, const char *name);
