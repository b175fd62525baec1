// SPDX-License-Identifier: GPL-2.0-only
// Reads captures: the file as a whole, so that a pipe is as good as a file, and its format by
// libpcap.
#include "ctl/net/capture_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/net/pcap_calls.h"

#define FILE_BYTES_MAX (256u << 20)

static int refuse_compressed(const char *path, struct err *err)
{
	err_input(err, "'%s' is compressed", path);
	return err_hint(err, "gunzip it first");
}

static int refuse_format(const char *path, const char *why, struct err *err)
{
	err_input(err, "'%s' is not a pcap or pcapng file: %s", path, why);
	return err_hint(err, "editcap converts other formats");
}

static int check_link(const char *path, int link, struct err *err)
{
	if (link == DLT_EN10MB)
		return 0;
	err_input(err, "'%s' contains packets of link type %d, not Ethernet frames", path, link);
	return err_hint(err, "capture on one Ethernet interface, not on 'any'");
}

// libpcap closes the stream with the capture.
static int open_text(const struct pcap_calls *pcap, const char *path, struct capture_file *f,
		     size_t length, struct err *err)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	FILE *stream;

	if (!length)
		return refuse_format(path, "it is empty", err);
	if (length >= 2 && !memcmp(f->text, "\x1f\x8b", 2))
		return refuse_compressed(path, err);
	stream = fmemopen(f->text, length, "rb");
	if (!stream)
		return err_system(err, errno, "cannot read '%s'", path);
	f->opened = pcap->fopen_offline(stream, why);
	if (!f->opened) {
		fclose(stream);
		return refuse_format(path, why, err);
	}
	pcapng_notes_begin(&f->notes, f->text, length);
	return check_link(path, pcap->datalink(f->opened), err);
}

int capture_file_open(const char *path, struct capture_file *ret, struct err *err)
{
	CLEANUP_CAPTURE_FILE struct capture_file f = {0};
	const struct pcap_calls *pcap;
	size_t length;
	int code = file_read_stream(path, FILE_BYTES_MAX, &f.text, &length, err);

	if (code)
		return code;
	pcap = pcap_calls_load(err);
	if (!pcap)
		return -ENOENT;
	if ((code = open_text(pcap, path, &f, length, err)))
		return code;
	*ret = f;
	f = (struct capture_file){0};
	return 0;
}

int capture_file_next(struct capture_file *f, struct captured_packet *ret, struct err *err)
{
	const struct pcap_calls *pcap = pcap_calls_load(err);
	struct pcap_pkthdr *head;
	const uint8_t *bytes;
	struct pcapng_note note;
	int code;

	if (!pcap)
		return -ENOENT;
	code = pcap->next_ex(f->opened, &head, &bytes);
	pcapng_notes_next(&f->notes, &note);
	if (code == PCAP_ERROR_BREAK)
		return 0;
	if (code != 1)
		return err_input(err, "the file is damaged after packet %llu: %s",
				 (unsigned long long)f->number, pcap->geterr(f->opened));
	*ret = (struct captured_packet){
		.number = ++f->number,
		.bytes = bytes,
		.captured = head->caplen,
		.length = head->len > head->caplen ? head->len : head->caplen,
		.time_us = (uint64_t)head->ts.tv_sec * 1000000 + (uint64_t)head->ts.tv_usec,
		.note = note,
	};
	return 1;
}

void capture_file_close(struct capture_file *f)
{
	if (f->opened)
		pcap_calls_load(NULL)->close(f->opened);
	pcapng_notes_free(&f->notes);
	free(f->text);
	*f = (struct capture_file){0};
}
