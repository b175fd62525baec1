// SPDX-License-Identifier: GPL-2.0-only
// Notes in a pcapng file (draft-ietf-opsawg-pcapng) that libpcap does not return: comments, names
// of interfaces, numbers of lost packets.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"

// Bytes of a file of anyone, not a string; they belong to the file.
struct pcapng_words {
	const char *at;
	size_t len; // 0: none
};

struct pcapng_notes {
	const uint8_t *at; // a block; the rest of the file
	size_t left;
	bool swapped; // the section has the other byte order than this machine
	VEC(struct pcapng_words) interfaces; // their names, in this section
	uint64_t lost; // packets that the statistics blocks so far report as lost
};

struct pcapng_note {
	struct pcapng_words comment, interface;
};

// Begins before the first packet of a file. Other formats have no notes.
void pcapng_notes_begin(struct pcapng_notes *n, const void *file, size_t len);
// The first comment of the next packet, in the order in which libpcap has them, and the name of its
// interface. False: no further packet, or the file is damaged here; *ret is empty then.
bool pcapng_notes_next(struct pcapng_notes *n, struct pcapng_note *ret);
void pcapng_notes_free(struct pcapng_notes *n);
