// SPDX-License-Identifier: GPL-2.0-only
// Reads a test case's packet, written in words, and builds its bytes.
#include "packet_text.h"

#include <string.h>

#include "names.h"

struct reader {
	char *save;
	char *word; /* the current one, NULL at the end */
	struct build_spec spec;
	struct build_frame *frame;
	struct ref_packet *packet;
	char *iface;
	bool built;
	bool failed;
};

static char *next(struct reader *reader)
{
	reader->word = strtok_r(NULL, " ", &reader->save);
	return reader->word;
}

static bool is(const struct reader *reader, const char *word)
{
	return reader->word && !strcmp(reader->word, word);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* len bytes of decimal digits, or 0x and lower case ones. */
static uint32_t number_of(struct reader *reader, const char *text, size_t len)
{
	uint64_t value = 0;

	if (len > 2 && !strncmp(text, "0x", 2)) {
		for (size_t i = 2; i < len; i++) {
			reader->failed |= hex_value(text[i]) < 0;
			value = value * 16 + (uint64_t)(hex_value(text[i]) & 15);
		}
	} else if (!number_parse(text, len, UINT32_MAX, &value)) {
		reader->failed = true;
	}
	return (uint32_t)value;
}

static uint32_t number(struct reader *reader)
{
	if (next(reader))
		return number_of(reader, reader->word, strlen(reader->word));
	reader->failed = true;
	return 0;
}

static void read_addr(struct reader *reader, struct addr *addr, uint16_t *port)
{
	if (!next(reader) || !addr_parse(reader->word, addr)) {
		reader->failed = true;
		return;
	}
	reader->spec.family = addr->family;
	if (*reader->save >= '0' && *reader->save <= '9')
		*port = (uint16_t)number(reader);
}

static void read_flags(struct reader *reader)
{
	char *save = NULL;

	reader->spec.flags = 0;
	if (!next(reader)) {
		reader->failed = true;
		return;
	}
	if (reader->word[0] == '0') {
		reader->spec.flags = (uint8_t)number_of(reader, reader->word, strlen(reader->word));
		return;
	}
	for (char *name = strtok_r(reader->word, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		int flag = name_flag(name, (unsigned int)strlen(name));

		reader->failed |= flag < 0 && strcmp(name, "none") != 0;
		reader->spec.flags |= flag < 0 ? 0 : (uint8_t)flag;
	}
}

/* A number, then maybe a mark and another number. */
static void read_pair(struct reader *reader, char mark, uint32_t *first, uint32_t *second)
{
	const char *cut = next(reader) ? strchr(reader->word, mark) : NULL;

	if (!reader->word) {
		reader->failed = true;
		return;
	}
	if (cut)
		*second = number_of(reader, cut + 1, strlen(cut + 1));
	*first = number_of(reader, reader->word,
			   cut ? (size_t)(cut - reader->word) : strlen(reader->word));
}

static void read_vlan(struct reader *reader)
{
	uint32_t tci = 0, type = 0x8100;

	read_pair(reader, '@', &tci, &type);
	if (reader->spec.tags_len == BUILD_TAGS_MAX) {
		reader->failed = true;
		return;
	}
	reader->spec.tags[reader->spec.tags_len++] =
		(struct build_tag){.type = (uint16_t)type, .tci = (uint16_t)tci};
}

static void read_ext(struct reader *reader)
{
	uint32_t type = 0, words = 0;

	read_pair(reader, '+', &type, &words);
	if (reader->spec.ext_len == BUILD_EXT_MAX) {
		reader->failed = true;
		return;
	}
	reader->spec.ext[reader->spec.ext_len++] =
		(struct build_ext){.type = (uint8_t)type, .words = (uint8_t)words};
}

static void read_iface(struct reader *reader)
{
	if (!next(reader) || strlen(reader->word) >= 16) {
		reader->failed = true;
		return;
	}
	memcpy(reader->iface, reader->word, strlen(reader->word) + 1);
	reader->packet->iface = reader->iface;
}

static bool read_proto(struct reader *reader)
{
	static const char *const protos[] = {"tcp", "udp", "sctp", "icmp", "icmp6"};

	for (size_t i = 0; i < sizeof(protos) / sizeof(protos[0]); i++) {
		if (!is(reader, protos[i]))
			continue;
		reader->spec.proto = (uint8_t)name_proto(protos[i]);
		return true;
	}
	return false;
}

static bool read_fragment(struct reader *reader)
{
	if (is(reader, "first"))
		reader->spec.fragment = BUILD_FIRST;
	else if (is(reader, "later"))
		reader->spec.fragment = BUILD_LATER;
	else if (is(reader, "atomic"))
		reader->spec.fragment = BUILD_ATOMIC;
	else
		return false;
	return true;
}

static bool read_number_field(struct reader *reader)
{
	struct build_spec *spec = &reader->spec;

	if (is(reader, "proto"))
		spec->proto = (uint8_t)number(reader);
	else if (is(reader, "type"))
		spec->type = (uint8_t)number(reader);
	else if (is(reader, "code"))
		spec->code = (uint8_t)number(reader);
	else if (is(reader, "ttl"))
		spec->ttl = (uint8_t)number(reader);
	else if (is(reader, "dscp"))
		spec->dscp = (uint8_t)number(reader);
	else if (is(reader, "length"))
		spec->length = number(reader);
	else if (is(reader, "options"))
		spec->options = number(reader);
	else if (is(reader, "tcpoptions"))
		spec->tcp_options = number(reader);
	else if (is(reader, "at"))
		spec->fragment_at = number(reader);
	else if (is(reader, "pad"))
		spec->padding = number(reader);
	else if (is(reader, "ethertype"))
		spec->ethertype = (uint16_t)number(reader);
	else
		return false;
	return true;
}

static bool read_word(struct reader *reader)
{
	struct build_spec *spec = &reader->spec;

	if (read_proto(reader) || read_fragment(reader) || read_number_field(reader))
		return true;
	if (is(reader, "from"))
		read_addr(reader, &spec->src, &spec->sport);
	else if (is(reader, "to"))
		read_addr(reader, &spec->dst, &spec->dport);
	else if (is(reader, "flags"))
		read_flags(reader);
	else if (is(reader, "vlan"))
		read_vlan(reader);
	else if (is(reader, "ext"))
		read_ext(reader);
	else if (is(reader, "on"))
		read_iface(reader);
	else if (is(reader, "over"))
		reader->packet->over = true;
	else if (is(reader, "established"))
		reader->packet->established = true;
	else
		return false;
	return true;
}

static void build_once(struct reader *reader)
{
	if (!reader->built)
		build_frame(&reader->spec, reader->frame);
	reader->built = true;
}

/* Hex digits over the bytes from at on; the frame grows only if it may. */
static void put_hex(struct reader *reader, const char *hex, size_t at, bool grow)
{
	for (; hex[0] && hex[1]; hex += 2, at++) {
		int high = hex_value(hex[0]), low = hex_value(hex[1]);

		reader->failed |= high < 0 || low < 0;
		if (at >= BUILD_FRAME_MAX || (at >= reader->frame->len && !grow)) {
			reader->failed = true;
			return;
		}
		reader->frame->bytes[at] = (uint8_t)(high * 16 + low);
		if (at >= reader->frame->len)
			reader->frame->len = at + 1;
	}
}

static void read_patch(struct reader *reader, bool transport)
{
	size_t at;

	build_once(reader);
	at = (transport ? reader->frame->transport : reader->frame->ip) + number(reader);
	if (!next(reader) || strncmp(reader->word, "0x", 2) != 0)
		reader->failed = true;
	else
		put_hex(reader, reader->word + 2, at, false);
}

static void read_cut(struct reader *reader)
{
	size_t bytes = number(reader);

	build_once(reader);
	reader->frame->len = bytes < reader->frame->len ? reader->frame->len - bytes : 0;
}

static bool read_change(struct reader *reader)
{
	if (is(reader, "ip")) {
		read_patch(reader, false);
	} else if (is(reader, "l4")) {
		read_patch(reader, true);
	} else if (is(reader, "cut")) {
		read_cut(reader);
	} else if (is(reader, "raw")) {
		reader->built = true;
		reader->frame->len = 0;
		if (next(reader))
			put_hex(reader, reader->word, 0, true);
	} else {
		return false;
	}
	return true;
}

bool packet_text_build(const char *text, struct build_frame *ret_frame,
		       struct ref_packet *ret_packet, char iface[16])
{
	char copy[1024];
	struct reader reader = {
		.spec = {.proto = 6, .ttl = 64, .flags = 2, .offset = 100},
		.frame = ret_frame,
		.packet = ret_packet,
		.iface = iface,
	};

	if (strlen(text) >= sizeof(copy))
		return false;
	memcpy(copy, text, strlen(text) + 1);
	memset(ret_packet, 0, sizeof(*ret_packet));
	reader.word = strtok_r(copy, " ", &reader.save);
	while (reader.word && !reader.failed) {
		if (!read_word(&reader) && !read_change(&reader))
			return false;
		next(&reader);
	}
	build_once(&reader);
	ret_packet->bytes = ret_frame->bytes;
	ret_packet->len = ret_frame->len;
	return !reader.failed;
}
