// SPDX-License-Identifier: GPL-2.0-only
// Reads classic pcap (draft-ietf-opsawg-pcap): a header of 24 bytes, then 16 bytes before each
// packet.
#include "ctl/control/pcap.h"

#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"

#define FILE_BYTES_MAX   (256u << 20)
#define PACKET_BYTES_MAX (256u << 10) // larger values are considered damage by tools
#define HEADER_BYTES     24
#define RECORD_BYTES     16
#define MAGIC_MICRO      0xa1b2c3d4
#define MAGIC_NANO       0xa1b23c4d
#define MAGIC_PCAPNG     0x0a0d0d0a // reads the same in both orders
#define LINK_ETHERNET    1

static uint32_t word(const struct pcap *p, size_t at)
{
	uint32_t value;

	memcpy(&value, p->text + at, sizeof(value));
	return p->swapped ? bswap_32(value) : value;
}

static bool is_pcap(uint32_t magic)
{
	return magic == MAGIC_MICRO || magic == MAGIC_NANO;
}

static int refuse_format(const char *path, const struct pcap *p, struct err *err)
{
	if (p->length >= 4 && word(p, 0) == MAGIC_PCAPNG) {
		err_input(err, "'%s' is a pcapng file, not pcap", path);
		return err_hint(err, "editcap -F pcap '%s' OTHER.pcap", path);
	}
	if (p->length >= 2 && !memcmp(p->text, "\x1f\x8b", 2)) {
		err_input(err, "'%s' is compressed", path);
		return err_hint(err, "gunzip it first");
	}
	err_input(err, "'%s' is not a pcap file", path);
	return err_hint(err, "editcap -F pcap converts other formats");
}

static int check_link(const char *path, const struct pcap *p, struct err *err)
{
	uint32_t link =
		word(p, 20) & 0xffff; // the upper bits are the length of the frame check sequence

	if (link == LINK_ETHERNET)
		return 0;
	err_input(err, "'%s' contains packets of link type %u, not Ethernet frames", path, link);
	return err_hint(err, "capture on one Ethernet interface, not on 'any'");
}

int pcap_open(const char *path, struct pcap *ret, struct err *err)
{
	struct pcap p = {0};
	int code = file_read_stream(path, FILE_BYTES_MAX, &p.text, &p.length, err);

	if (code)
		return code;
	p.swapped = p.length >= HEADER_BYTES && is_pcap(bswap_32(word(&p, 0)));
	if (p.length < HEADER_BYTES || !is_pcap(word(&p, 0)))
		code = refuse_format(path, &p, err);
	else
		code = check_link(path, &p, err);
	if (code) {
		pcap_free(&p);
		return code;
	}
	p.at = HEADER_BYTES;
	*ret = p;
	return 0;
}

int pcap_next(struct pcap *p, struct pcap_packet *ret, struct err *err)
{
	size_t left = p->length - p->at;
	uint32_t captured, length;

	if (!left)
		return 0;
	p->number++;
	if (left < RECORD_BYTES)
		return err_input(err, "the file ends inside the header of packet %llu",
				 (unsigned long long)p->number);
	captured = word(p, p->at + 8);
	length = word(p, p->at + 12);
	if (captured > PACKET_BYTES_MAX)
		return err_input(err, "packet %llu has %u bytes: the file is damaged",
				 (unsigned long long)p->number, captured);
	if (captured > left - RECORD_BYTES)
		return err_input(err, "the file ends inside packet %llu",
				 (unsigned long long)p->number);
	*ret = (struct pcap_packet){
		.number = p->number,
		.bytes = (const uint8_t *)p->text + p->at + RECORD_BYTES,
		.captured = captured,
		.length = length > captured ? length : captured,
	};
	p->at += RECORD_BYTES + captured;
	return 1;
}

void pcap_free(struct pcap *p)
{
	free(p->text);
	*p = (struct pcap){0};
}
