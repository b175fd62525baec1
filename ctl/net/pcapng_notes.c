// SPDX-License-Identifier: GPL-2.0-only
// Walks over the blocks of a file that anyone may have written.
#include "ctl/net/pcapng_notes.h"

#include <string.h>

#define BLOCK_HEAD      8  // type, length
#define BLOCK_LEAST     12 // and the length again
#define ORDER_MAGIC     0x1a2b3c4du
#define OPTION_HEAD     4
#define INTERFACES_MOST 4096 // further ones have no name

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	PACKET_OLD = 2,
	PACKET_SIMPLE = 3,
	STATISTICS = 5,
	PACKET = 6,
};
enum { OPTION_END = 0, COMMENT = 1, NAME = 2, LOST = 5 }; // in a packet, interface, statistics

struct pcapng_block {
	uint32_t type;
	const uint8_t *at; // its body
	size_t left;
};

static uint32_t word(const struct pcapng_notes *n, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return n->swapped ? __builtin_bswap32(value) : value;
}

static uint16_t half(const struct pcapng_notes *n, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return n->swapped ? __builtin_bswap16(value) : value;
}

// A section has its own byte order; its type reads the same in both.
static bool begin_section(struct pcapng_notes *n)
{
	n->swapped = false;
	if (n->left < BLOCK_LEAST)
		return false;
	if (word(n, n->at + BLOCK_HEAD) == ORDER_MAGIC)
		return true;
	n->swapped = true;
	return word(n, n->at + BLOCK_HEAD) == ORDER_MAGIC;
}

void pcapng_notes_begin(struct pcapng_notes *n, const void *file, size_t len)
{
	*n = (struct pcapng_notes){.at = file, .left = len};
	if (len < BLOCK_LEAST || word(n, n->at) != SECTION)
		n->left = 0;
}

static bool next_block(struct pcapng_notes *n, struct pcapng_block *ret)
{
	size_t length;

	if (n->left < BLOCK_LEAST || (word(n, n->at) == SECTION && !begin_section(n)))
		return false;
	length = word(n, n->at + 4);
	if (length < BLOCK_LEAST || length % 4 || length > n->left)
		return false;
	*ret = (struct pcapng_block){
		.type = word(n, n->at),
		.at = n->at + BLOCK_HEAD,
		.left = length - BLOCK_LEAST,
	};
	n->at += length;
	n->left -= length;
	return true;
}

static bool skip(struct pcapng_block *b, size_t bytes)
{
	if (bytes > b->left)
		return false;
	b->at += bytes;
	b->left -= bytes;
	return true;
}

// The first option of this number among those that the block now begins with.
static struct pcapng_words find_option(const struct pcapng_notes *n, struct pcapng_block b,
				       uint16_t wanted)
{
	while (b.left >= OPTION_HEAD) {
		uint16_t option = half(n, b.at);
		size_t len = half(n, b.at + 2);

		skip(&b, OPTION_HEAD);
		if (option == OPTION_END || len > b.left)
			break;
		if (option == wanted)
			return (struct pcapng_words){(const char *)b.at, len};
		if (!skip(&b, (len + 3) & ~(size_t)3))
			break;
	}
	return (struct pcapng_words){"", 0};
}

// The options of an interface follow 8 bytes.
static void add_interface(struct pcapng_notes *n, struct pcapng_block b)
{
	if (skip(&b, 8) && n->interfaces.n < INTERFACES_MOST)
		vec_push(&n->interfaces, find_option(n, b, NAME));
}

// The options of a packet follow its bytes, which follow 20 bytes in both kinds of blocks.
static void read_packet(const struct pcapng_notes *n, struct pcapng_block b,
			struct pcapng_note *ret)
{
	size_t captured, interface;

	if (b.left < 20)
		return;
	captured = word(n, b.at + 12);
	interface = b.type == PACKET ? word(n, b.at) : half(n, b.at);
	if (interface < n->interfaces.n)
		ret->interface = n->interfaces.at[interface];
	if (captured <= b.left && skip(&b, 20 + ((captured + 3) & ~(size_t)3)))
		ret->comment = find_option(n, b, COMMENT);
}

static void add_lost(struct pcapng_notes *n, struct pcapng_block b)
{
	struct pcapng_words words = {0};
	uint64_t lost;

	if (skip(&b, 12))
		words = find_option(n, b, LOST);
	if (words.len != sizeof(lost))
		return;
	memcpy(&lost, words.at, sizeof(lost));
	n->lost += n->swapped ? __builtin_bswap64(lost) : lost;
}

// True: it has a packet.
static bool read_block(struct pcapng_notes *n, struct pcapng_block b, struct pcapng_note *ret)
{
	switch (b.type) {
	case SECTION:
		n->interfaces.n = 0;
		return false;
	case INTERFACE:
		add_interface(n, b);
		return false;
	case STATISTICS:
		add_lost(n, b);
		return false;
	case PACKET:
	case PACKET_OLD:
		read_packet(n, b, ret);
		return true;
	default:
		return b.type == PACKET_SIMPLE;
	}
}

bool pcapng_notes_next(struct pcapng_notes *n, struct pcapng_note *ret)
{
	struct pcapng_block b;

	*ret = (struct pcapng_note){{"", 0}, {"", 0}};
	while (next_block(n, &b))
		if (read_block(n, b, ret))
			return true;
	return false;
}

void pcapng_notes_free(struct pcapng_notes *n)
{
	vec_free(&n->interfaces);
}
