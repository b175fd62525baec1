// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: capture files, as `explain --pcap` and `top -r` read them.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/control/sampled_packet.h"
#include "ctl/net/capture_file.h"
#include "tests/fuzz/fuzz.h"

static void restore(const struct captured_packet *p, uint32_t front)
{
	uint8_t *frame = malloc(p->captured + 1);
	struct sampled sample = {.length = (uint32_t)p->length};
	struct sampled_packet read;
	size_t length = p->length;

	fuzz_check(frame);
	fuzz_check(sampled_restore(p->bytes, p->captured, front, frame, &length) <= p->captured);
	sampled_fill(&sample, p->bytes, p->captured, front);
	sampled_read(&sample, &read);
	free(frame);
}

static void read_all(struct capture_file *file)
{
	struct captured_packet packet;
	struct err err = {0};
	uint64_t number = 0;
	unsigned sum = 0;
	int more;

	while ((more = capture_file_next(file, &packet, &err)) > 0) {
		fuzz_check(packet.number == ++number && packet.length >= packet.captured);
		for (size_t i = 0; i < packet.captured; i++)
			sum += packet.bytes[i];
		for (size_t i = 0; i < packet.note.comment.len; i++)
			sum += (unsigned char)packet.note.comment.at[i];
		restore(&packet, (uint32_t)packet.note.comment.len);
	}
	fuzz_check(more == 0 || err.text[0]);
	fuzz_check(sum < UINT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[32];
	struct capture_file file = {0};
	struct err err = {0};

	if (fd < 0) {
		fd = memfd_create("capture", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	fuzz_check(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
	if (capture_file_open(path, &file, &err) == 0)
		read_all(&file);
	else
		fuzz_check(err.text[0] && !file.text);
	capture_file_close(&file);
	return 0;
}
