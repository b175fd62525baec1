// SPDX-License-Identifier: GPL-2.0-only
// Writes pcapng, for which libpcap has no function: draft-ietf-opsawg-pcapng, sections 3 and 4.
#include "ctl/net/pcapng.h"

#include <string.h>

#define LINK_ETHERNET  1
#define ORDER_MAGIC    0x1a2b3c4du
#define VERSION        1u // 1.0: two words of 16 bits, the major one first
#define UNKNOWN_LENGTH UINT64_MAX
#define NANOSECONDS    9 // the resolution of times: 10^-9 s
#define OPTION_MAX     UINT16_MAX

enum block_type {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	STATISTICS_BEGIN = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_LOST = 5,
};

// ---- parts of blocks ----------------------------------------------------------------------------

static void add_u16(struct text *t, uint16_t value)
{
	text_addn(t, (const char *)&value, sizeof(value));
}

static void add_u32(struct text *t, uint32_t value)
{
	text_addn(t, (const char *)&value, sizeof(value));
}

static void add_u64(struct text *t, uint64_t value)
{
	text_addn(t, (const char *)&value, sizeof(value));
}

// A time is two words, the upper one first, in either byte order.
static void add_time(struct text *t, uint64_t time_ns)
{
	add_u32(t, (uint32_t)(time_ns >> 32));
	add_u32(t, (uint32_t)time_ns);
}

// Bytes, then zeros up to a multiple of 4.
static void add_padded(struct text *t, const void *bytes, size_t length)
{
	text_addn(t, bytes, length);
	text_addn(t, "\0\0\0", -length & 3);
}

static void add_option(struct text *t, enum option option, const void *value, size_t length)
{
	add_u16(t, (uint16_t)option);
	add_u16(t, (uint16_t)length);
	add_padded(t, value, length);
}

// A text of any length; cut off before a code point that does not fit.
static void add_words(struct text *t, enum option option, const char *words)
{
	size_t length = words ? strlen(words) : 0;

	if (!length)
		return;
	if (length > OPTION_MAX) {
		length = OPTION_MAX;
		while (length && ((unsigned char)words[length] & 0xc0) == 0x80)
			length--;
	}
	add_option(t, option, words, length);
}

static void add_number(struct text *t, enum option option, uint64_t value)
{
	add_option(t, option, &value, sizeof(value));
}

static void add_option_time(struct text *t, enum option option, uint64_t time_ns)
{
	uint32_t words[] = {(uint32_t)(time_ns >> 32), (uint32_t)time_ns};

	add_option(t, option, words, sizeof(words));
}

// Returns where the block begins. Its length is written by end_block().
static size_t begin_block(struct text *t, enum block_type type)
{
	size_t at = t->len;

	add_u32(t, type);
	add_u32(t, 0);
	return at;
}

// The length is at both ends, so that a reader can go backwards.
static void end_block(struct text *t, size_t at)
{
	uint32_t length;

	add_option(t, OPTION_END, "", 0);
	length = (uint32_t)(t->len - at + sizeof(length));
	memcpy(t->at + at + sizeof(uint32_t), &length, sizeof(length));
	add_u32(t, length);
}

// ---- blocks -------------------------------------------------------------------------------------

void pcapng_section(struct text *ret, const char *application, const char *comment)
{
	size_t at = begin_block(ret, BLOCK_SECTION);

	add_u32(ret, ORDER_MAGIC);
	add_u16(ret, VERSION);
	add_u16(ret, 0);
	add_u64(ret, UNKNOWN_LENGTH);
	add_words(ret, OPTION_COMMENT, comment);
	add_words(ret, SECTION_APPLICATION, application);
	end_block(ret, at);
}

void pcapng_interface(struct text *ret, const char *name, uint32_t snap)
{
	const uint8_t resolution = NANOSECONDS;
	size_t at = begin_block(ret, BLOCK_INTERFACE);

	add_u16(ret, LINK_ETHERNET);
	add_u16(ret, 0);
	add_u32(ret, snap);
	add_words(ret, INTERFACE_NAME, name);
	add_option(ret, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	end_block(ret, at);
}

void pcapng_packet(struct text *ret, const struct pcapng_packet *p)
{
	size_t at = begin_block(ret, BLOCK_PACKET);

	add_u32(ret, p->interface);
	add_time(ret, p->time_ns);
	add_u32(ret, p->captured);
	add_u32(ret, p->length);
	add_padded(ret, p->bytes, p->captured);
	add_words(ret, OPTION_COMMENT, p->comment);
	end_block(ret, at);
}

void pcapng_statistics(struct text *ret, const struct pcapng_statistics *s)
{
	size_t at = begin_block(ret, BLOCK_STATISTICS);

	add_u32(ret, s->interface);
	add_time(ret, s->end_ns);
	add_option_time(ret, STATISTICS_BEGIN, s->begin_ns);
	add_option_time(ret, STATISTICS_END, s->end_ns);
	add_number(ret, STATISTICS_RECEIVED, s->received);
	add_number(ret, STATISTICS_LOST, s->lost);
	end_block(ret, at);
}
