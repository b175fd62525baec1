// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: libpcap reads the packets that pcapng.h has written, whatever frames, names and
// comments are.
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/net/capture_file.h"
#include "ctl/net/pcapng.h"
#include "tests/fuzz/fuzz.h"

#define SNAP 64

// Bytes of the input that are not read yet.
struct input {
	const uint8_t *at;
	size_t left;
};

static const uint8_t *take(struct input *in, size_t most, size_t *ret)
{
	const uint8_t *at = in->at;

	*ret = in->left < most ? in->left : most;
	in->at += *ret;
	in->left -= *ret;
	return at;
}

static uint8_t take_byte(struct input *in)
{
	size_t n;
	const uint8_t *at = take(in, 1, &n);

	return n ? *at : 0;
}

static char *take_words(struct input *in)
{
	size_t n, length = take_byte(in);
	const uint8_t *at = take(in, length, &n);
	char *words = calloc(1, n + 1);

	fuzz_check(words);
	if (n)
		memcpy(words, at, n);
	return words;
}

static void write_file(struct input in, struct text *ret)
{
	char *name = take_words(&in), *comment;

	pcapng_section(ret, "fuzz", name);
	pcapng_interface(ret, name, SNAP);
	free(name);
	while (in.left) {
		size_t n;
		struct pcapng_packet p = {.time_ns = (uint64_t)take_byte(&in) << 40};

		p.bytes = take(&in, take_byte(&in) % (SNAP + 1), &n);
		p.captured = (uint32_t)n;
		p.length = (uint32_t)n + take_byte(&in);
		p.comment = comment = take_words(&in);
		pcapng_packet(ret, &p);
		free(comment);
	}
	pcapng_statistics(ret, &(struct pcapng_statistics){.received = 1});
}

// Frees `wanted`.
static void check_words(const struct pcapng_words *words, char *wanted)
{
	fuzz_check(words->len == strlen(wanted) && !memcmp(words->at, wanted, words->len));
	free(wanted);
}

static void compare(struct input in, const char *path)
{
	struct capture_file file;
	struct captured_packet packet;
	struct err err = {0};
	char *name = take_words(&in);

	fuzz_check(capture_file_open(path, &file, &err) == 0);
	while (in.left) {
		const uint8_t *bytes;
		size_t n;

		take_byte(&in);
		bytes = take(&in, take_byte(&in) % (SNAP + 1), &n);
		fuzz_check(capture_file_next(&file, &packet, &err) == 1);
		fuzz_check(packet.captured == n && packet.length == n + take_byte(&in));
		fuzz_check(!n || !memcmp(packet.bytes, bytes, n));
		check_words(&packet.note.comment, take_words(&in));
		check_words(&packet.note.interface, mem_strdup(name));
	}
	fuzz_check(capture_file_next(&file, &packet, &err) == 0);
	capture_file_close(&file);
	free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[32];
	struct text file = {0};

	if (fd < 0) {
		fd = memfd_create("capture", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	write_file((struct input){data, size}, &file);
	fuzz_check(ftruncate(fd, 0) == 0);
	fuzz_check(pwrite(fd, file.at, file.len, 0) == (ssize_t)file.len);
	compare((struct input){data, size}, path);
	text_free(&file);
	return 0;
}
