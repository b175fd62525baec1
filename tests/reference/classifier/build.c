// SPDX-License-Identifier: GPL-2.0-only
// Builds Ethernet frames from a description; knows nothing of how they are read.
#include "build.h"

#include <string.h>

/* Bytes beyond the largest frame are not written, lengths are cut in build_frame(). */
static void put8(struct build_frame *frame, unsigned int value)
{
	if (frame->len < BUILD_FRAME_MAX)
		frame->bytes[frame->len++] = (uint8_t)value;
}

static void put16(struct build_frame *frame, unsigned int value)
{
	put8(frame, value >> 8);
	put8(frame, value & 0xff);
}

static void put_filler(struct build_frame *frame, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		put8(frame, (unsigned int)(i * 7 + 1) & 0xff);
}

static void put_addr(struct build_frame *frame, struct addr addr)
{
	uint8_t bytes[16];

	addr_to_bytes(addr, bytes);
	for (unsigned int i = 0; i < addr_bits(addr.family) / 8; i++)
		put8(frame, bytes[i]);
}

static void set16(struct build_frame *frame, size_t at, size_t value)
{
	frame->bytes[at] = (uint8_t)(value >> 8);
	frame->bytes[at + 1] = (uint8_t)value;
}

static void put_ethernet(struct build_frame *frame, const struct build_spec *spec)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
	unsigned int ethertype = spec->ethertype;

	for (size_t i = 0; i < sizeof(macs); i++)
		put8(frame, macs[i]);
	for (unsigned int i = 0; i < spec->tags_len; i++) {
		put16(frame, spec->tags[i].type);
		put16(frame, spec->tags[i].tci);
	}
	if (spec->family)
		ethertype = spec->family == 4 ? 0x0800 : 0x86dd;
	put16(frame, ethertype);
}

static void put_ip4(struct build_frame *frame, const struct build_spec *spec)
{
	unsigned int fragment = 0;

	if (spec->fragment == BUILD_FIRST)
		fragment = 0x2000;
	if (spec->fragment == BUILD_LATER)
		fragment = spec->offset & 0x1fff;
	put8(frame, 0x40 | (5 + spec->options));
	put8(frame, (unsigned int)spec->dscp << 2);
	put16(frame, 0); /* length: later */
	put16(frame, 0x1234);
	put16(frame, fragment);
	put8(frame, spec->ttl);
	put8(frame, spec->proto);
	put16(frame, 0); /* checksum: later */
	put_addr(frame, spec->src);
	put_addr(frame, spec->dst);
	for (unsigned int i = 0; i < spec->options * 4; i++)
		put8(frame, 1);
}

/* The type of the extension header at a place, counting the fragment header; proto at the end. */
static unsigned int ext_type(const struct build_spec *spec, unsigned int at)
{
	if (spec->fragment != BUILD_WHOLE) {
		if (at == spec->fragment_at)
			return 44;
		if (at > spec->fragment_at)
			at--;
	}
	return at < spec->ext_len ? spec->ext[at].type : spec->proto;
}

static void put_ext(struct build_frame *frame, const struct build_spec *spec, unsigned int at)
{
	const struct build_ext *ext;
	unsigned int word = 0;

	if (spec->fragment != BUILD_WHOLE && at == spec->fragment_at) {
		if (spec->fragment == BUILD_LATER)
			word = (unsigned int)spec->offset << 3 & 0xfff8;
		else if (spec->fragment == BUILD_FIRST)
			word = 1;
		put8(frame, ext_type(spec, at + 1));
		put8(frame, 0xff); /* reserved, not a length */
		put16(frame, word);
		put16(frame, 0);
		put16(frame, 0x4321);
		return;
	}
	if (spec->fragment != BUILD_WHOLE && at > spec->fragment_at)
		ext = &spec->ext[at - 1];
	else
		ext = &spec->ext[at];
	put8(frame, ext_type(spec, at + 1));
	put8(frame, ext->words);
	put8(frame, 1); /* one PadN, or a routing type nobody knows */
	put8(frame, ext->type == 43 ? 0 : 4);
	put16(frame, 0);
	put16(frame, 0);
	for (unsigned int i = 0; i < ext->words * 8U; i++)
		put8(frame, 0);
}

static void put_ip6(struct build_frame *frame, const struct build_spec *spec)
{
	unsigned int headers = spec->ext_len + (spec->fragment != BUILD_WHOLE);

	put16(frame, 0x6000 | (unsigned int)spec->dscp << 6);
	put16(frame, 0);
	put16(frame, 0); /* payload length: later */
	put8(frame, ext_type(spec, 0));
	put8(frame, spec->ttl);
	put_addr(frame, spec->src);
	put_addr(frame, spec->dst);
	for (unsigned int i = 0; i < headers; i++)
		put_ext(frame, spec, i);
}

static void put_tcp(struct build_frame *frame, const struct build_spec *spec)
{
	put16(frame, spec->sport);
	put16(frame, spec->dport);
	put16(frame, 0x0102);
	put16(frame, 0x0304);
	put16(frame, 0);
	put16(frame, 0);
	put8(frame, (5 + spec->tcp_options) << 4);
	put8(frame, spec->flags);
	put16(frame, 0x7210);
	put16(frame, 0);
	put16(frame, 0);
	for (unsigned int i = 0; i < spec->tcp_options * 4; i++)
		put8(frame, 1);
}

static void put_transport(struct build_frame *frame, const struct build_spec *spec)
{
	bool icmp = spec->proto == (spec->family == 4 ? 1 : 58);

	if (spec->proto == 6) {
		put_tcp(frame, spec);
	} else if (spec->proto == 17) {
		put16(frame, spec->sport);
		put16(frame, spec->dport);
		put16(frame, 0); /* length: later */
		put16(frame, 0);
	} else if (spec->proto == 132) {
		put16(frame, spec->sport);
		put16(frame, spec->dport);
		put_filler(frame, 8);
	} else if (icmp) {
		put8(frame, spec->type);
		put8(frame, spec->code);
		put_filler(frame, 6);
	}
}

/* IPv4 header checksum, RFC 1071. */
static void set_checksum(struct build_frame *frame)
{
	size_t header = (size_t)(frame->bytes[frame->ip] & 15) * 4;
	uint32_t sum = 0;

	for (size_t i = 0; i < header; i += 2)
		sum += (uint32_t)(frame->bytes[frame->ip + i] << 8 |
				  frame->bytes[frame->ip + i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	set16(frame, frame->ip + 10, ~sum & 0xffff);
}

static void set_lengths(struct build_frame *frame, const struct build_spec *spec)
{
	size_t udp = frame->len - frame->transport;

	if (spec->family == 4)
		set16(frame, frame->ip + 2, frame->len - frame->ip);
	else
		set16(frame, frame->ip + 4, frame->len - frame->ip - 40);
	if (spec->proto == 17 && spec->fragment == BUILD_FIRST)
		udp += 1000; /* the whole datagram's */
	if (spec->proto == 17)
		set16(frame, frame->transport + 4, udp);
	if (spec->family == 4)
		set_checksum(frame);
}

void build_frame(const struct build_spec *spec, struct build_frame *ret_frame)
{
	struct build_frame *frame = ret_frame;
	size_t length = spec->length < 65535 ? spec->length : 65535;

	frame->len = 0;
	put_ethernet(frame, spec);
	frame->ip = frame->len;
	if (spec->family == 4)
		put_ip4(frame, spec);
	else if (spec->family == 6)
		put_ip6(frame, spec);
	frame->transport = frame->len;
	if (spec->family)
		put_transport(frame, spec);
	else
		length = length > frame->ip ? length - frame->ip : 0;
	if (frame->len - frame->ip < length)
		put_filler(frame, length - (frame->len - frame->ip));
	if (spec->family)
		set_lengths(frame, spec);
	put_filler(frame, spec->padding);
}
