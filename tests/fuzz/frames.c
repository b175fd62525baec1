// SPDX-License-Identifier: GPL-2.0-only
// Generates frames to test a policy with: valid frames, all their truncations, and random changes.
//
// usage: frames POLICY CASES SEED COUNT > FRAMES. The same arguments give the same frames. The
// corpus is the packets of the expect lines in the policy and the "frame HEX" lines of CASES
// (build/tests/datapath/cases.txt). SEED 0 prints every truncation of the expected packets and of
// one case in sixteen, followed by COUNT complete cases. Any other SEED changes COUNT frames at
// random; half remain common packets. Lines are "IFACE FLAGS HEX".
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/err.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/control/candidate.h"
#include "ctl/control/frame.h"

#define FRAME_LEAST   14 // minimum that the kernel accepts for a test run
#define FRAME_LARGEST 9018
#define CASE_STRIDE   16

struct sample {
	uint8_t *bytes;
	size_t length;
	uint32_t iface;
	bool over, established;
};

struct corpus {
	const struct resolved *policy;
	VEC(struct sample) all;
	size_t expected; // number of frames from expect lines, which come first
	uint64_t random;
};

struct frame {
	uint8_t at[FRAME_LARGEST];
	size_t length;
};

// xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators" (2016).
static uint32_t below(struct corpus *c, uint32_t n)
{
	c->random ^= c->random >> 12;
	c->random ^= c->random << 25;
	c->random ^= c->random >> 27;
	return (uint32_t)((c->random * 2685821657736338717ull >> 32) * n >> 32);
}

// ---- the corpus ---------------------------------------------------------------------------------

static int add_expected(struct corpus *c, const struct resolved_packet *p)
{
	uint8_t bytes[FRAME_MAX];
	struct sample s = {.iface = p->iface, .over = p->over, .established = p->established};
	struct err err = {0};

	if (frame_build(p, bytes, &s.length, &err)) {
		fprintf(stderr, "frames: %s\n", err.text);
		return -1;
	}
	s.bytes = mem_realloc(NULL, s.length, 1);
	memcpy(s.bytes, bytes, s.length);
	vec_push(&c->all, s);
	return 0;
}

static int read_expected(struct corpus *c)
{
	for (size_t i = 0; i < c->policy->n_expects; i++)
		for (size_t k = 0; k < c->policy->expects[i].n_packets; k++)
			if (add_expected(c, &c->policy->expects[i].packets[k]))
				return -1;
	c->expected = c->all.n;
	return 0;
}

static uint8_t digit(char d)
{
	return (uint8_t)(d <= '9' ? d - '0' : d - 'a' + 10);
}

static void add_case(struct corpus *c, const char *hex)
{
	struct sample s = {.length = strspn(hex, "0123456789abcdef") / 2};

	if (s.length < FRAME_LEAST || s.length > FRAME_LARGEST)
		return;
	s.bytes = mem_realloc(NULL, s.length, 1);
	for (size_t i = 0; i < s.length; i++)
		s.bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	vec_push(&c->all, s);
}

static int read_cases(struct corpus *c, const char *path)
{
	CLEANUP_FILE FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return -1;
	while (getline(&line, &size, file) > 0)
		if (!strncmp(line, "frame ", 6))
			add_case(c, line + 6);
	free(line);
	return c->all.n > c->expected ? 0 : -1;
}

static void corpus_free(struct corpus *c)
{
	vec_each (&c->all, s)
		free(s->bytes);
	vec_free(&c->all);
}

// ---- output -------------------------------------------------------------------------------------

static void print_frame(const struct corpus *c, uint32_t iface, unsigned flags,
			const uint8_t *bytes, size_t length)
{
	static const char *const words[] = {"-", "over", "established", "over,established"};
	static const char digits[] = "0123456789abcdef";
	char hex[2 * FRAME_LARGEST + 1];

	for (size_t i = 0; i < length; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	hex[2 * length] = '\0';
	printf("%s %s %s\n", c->policy->n_interfaces ? c->policy->interfaces[iface].name : "-",
	       words[flags], hex);
}

static unsigned flags_of(const struct sample *s)
{
	return s->over + 2u * s->established;
}

static void print_truncations(const struct corpus *c, const struct sample *s)
{
	for (size_t length = FRAME_LEAST; length <= s->length; length++)
		print_frame(c, s->iface, flags_of(s), s->bytes, length);
}

static void print_valid(const struct corpus *c, uint64_t count)
{
	for (size_t i = 0; i < c->expected; i++)
		print_truncations(c, &c->all.at[i]);
	for (size_t i = c->expected; i < c->all.n; i += CASE_STRIDE)
		print_truncations(c, &c->all.at[i]);
	for (size_t i = c->expected; i < c->all.n && count; i++, count--)
		print_frame(c, 0, 0, c->all.at[i].bytes, c->all.at[i].length);
}

// ---- changes ------------------------------------------------------------------------------------

// Half of the frames are expected packets, which have addresses and ports of this policy.
static const struct sample *pick(struct corpus *c)
{
	if (c->expected && below(c, 2))
		return &c->all.at[below(c, (uint32_t)c->expected)];
	return &c->all.at[below(c, (uint32_t)c->all.n)];
}

// Prefers headers to payload.
static size_t pick_offset(struct corpus *c, const struct frame *f)
{
	size_t most = below(c, 8) && f->length > 90 ? 90 : f->length;

	return below(c, (uint32_t)most);
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

// The offset of the IP header, 0 if the frame has none. Sets *ret_v6.
static size_t find_ip(const uint8_t *bytes, size_t length, bool *ret_v6)
{
	size_t at = 12;

	while (at + 6 < length && (get16(bytes + at) == 0x8100 || get16(bytes + at) == 0x88a8))
		at += 4;
	if (at + 2 > length)
		return 0;
	*ret_v6 = get16(bytes + at) == 0x86dd;
	if (*ret_v6)
		return at + 42 <= length ? at + 2 : 0;
	return get16(bytes + at) == 0x0800 && at + 22 <= length ? at + 2 : 0;
}

// Sets the length in the IP header to the length of the frame.
static void fix_length(struct frame *f)
{
	bool v6;
	size_t ip = find_ip(f->at, f->length, &v6);

	if (ip && v6)
		put16(f->at + ip + 4, f->length - ip - 40);
	else if (ip)
		put16(f->at + ip + 2, f->length - ip);
}

static void flip_bit(struct corpus *c, struct frame *f)
{
	f->at[pick_offset(c, f)] ^= (uint8_t)(1u << below(c, 8));
}

static void set_byte(struct corpus *c, struct frame *f)
{
	static const uint8_t telling[] = {0,  1,  2,  4,  5,  6,   8,   17,  20,  40,  43, 44,
					  50, 51, 58, 59, 60, 127, 128, 132, 135, 255, 69, 96};

	f->at[pick_offset(c, f)] =
		below(c, 3) ? telling[below(c, sizeof(telling))] : (uint8_t)below(c, 256);
}

static void set_word(struct corpus *c, struct frame *f)
{
	static const uint16_t telling[] = {0,      1,      7,      8,      20,     40,
					   0x1fff, 0x2000, 0x4000, 0x3fff, 0x7fff, 0x8000,
					   0xffff, 0x0800, 0x86dd, 0x8100, 0x88a8, 0x0806};
	size_t at = pick_offset(c, f) & ~(size_t)1;

	if (at + 2 <= f->length)
		put16(f->at + at,
		      below(c, 3) ? telling[below(c, ARRAY_SIZE(telling))] : below(c, 65536));
}

static void truncate_frame(struct corpus *c, struct frame *f)
{
	f->length = FRAME_LEAST + below(c, (uint32_t)(f->length - FRAME_LEAST) + 1);
	if (below(c, 2))
		fix_length(f);
}

static void grow(struct corpus *c, struct frame *f)
{
	size_t most = below(c, 4) ? 200 : FRAME_LARGEST, add = below(c, (uint32_t)most);
	uint8_t fill = (uint8_t)below(c, 256);

	if (add > FRAME_LARGEST - f->length)
		add = FRAME_LARGEST - f->length;
	memset(f->at + f->length, fill, add);
	f->length += add;
	if (below(c, 4))
		fix_length(f);
}

static bool insert(struct frame *f, size_t at, const uint8_t *bytes, size_t n)
{
	if (at > f->length || f->length + n > FRAME_LARGEST)
		return false;
	memmove(f->at + at + n, f->at + at, f->length - at);
	memcpy(f->at + at, bytes, n);
	f->length += n;
	return true;
}

static void add_tag(struct corpus *c, struct frame *f)
{
	uint8_t tag[4] = {below(c, 3) ? 0x81 : 0x88, 0, (uint8_t)below(c, 256),
			  (uint8_t)below(c, 64)};

	tag[1] = tag[0] == 0x88 ? 0xa8 : 0;
	insert(f, 12, tag, sizeof(tag));
}

// Inserts an extension header or a fragment header of eight bytes or more after the IPv6 header.
static void add_extension(struct corpus *c, struct frame *f)
{
	static const uint8_t kinds[] = {0, 43, 44, 60, 51, 135};
	uint8_t header[24] = {0}, kind = kinds[below(c, sizeof(kinds))];
	bool v6;
	size_t ip = find_ip(f->at, f->length, &v6), n = 8 + 8 * (size_t)below(c, 3);

	if (!ip || !v6)
		return;
	header[0] = f->at[ip + 6];
	header[1] = (uint8_t)(n / 8 - 1);
	if (kind == 44)
		put16(header + 2, below(c, 2) ? 0 : below(c, 65536));
	if (!insert(f, ip + 40, header, n))
		return;
	f->at[ip + 6] = kind;
	fix_length(f);
}

// Uses addresses of another packet of the same family, some also in the policy.
static void move_addresses(struct corpus *c, struct frame *f)
{
	const struct sample *s = pick(c);
	bool v6, v6_there;
	size_t here = find_ip(f->at, f->length, &v6);
	size_t there = find_ip(s->bytes, s->length, &v6_there), from, size;

	if (!here || !there || v6 != v6_there)
		return;
	size = v6 ? 16 : 4;
	from = (v6 ? 8 : 12) + size * below(c, 2);
	memcpy(f->at + here + from, s->bytes + there + (below(c, 4) ? from : v6 ? 8 : 12), size);
}

// Uses what follows the IP header (without options) of another packet: ports, flags, types.
static void move_transport(struct corpus *c, struct frame *f)
{
	const struct sample *s = pick(c);
	bool v6, v6_there;
	size_t here = find_ip(f->at, f->length, &v6);
	size_t there = find_ip(s->bytes, s->length, &v6_there), n;

	if (!here || !there)
		return;
	f->at[here + (v6 ? 6 : 9)] = s->bytes[there + (v6_there ? 6 : 9)];
	here += v6 ? 40 : 20;
	there += v6_there ? 40 : 20;
	n = s->length - there;
	if (n > FRAME_LARGEST - here)
		n = FRAME_LARGEST - here;
	memcpy(f->at + here, s->bytes + there, n);
	f->length = here + n;
	fix_length(f);
}

static void scramble(struct corpus *c, struct frame *f)
{
	size_t at = pick_offset(c, f), n = 1 + below(c, 16);

	for (size_t i = at; i < f->length && i < at + n; i++)
		f->at[i] = (uint8_t)below(c, 256);
}

static void change(struct corpus *c, struct frame *f)
{
	static void (*const changes[])(struct corpus *, struct frame *) = {
		flip_bit, set_byte,      set_word,       truncate_frame, grow,
		add_tag,  add_extension, move_addresses, move_transport, scramble,
	};

	changes[below(c, ARRAY_SIZE(changes))](c, f);
}

// A port, flags, or an ICMP type and code: the first four bytes of the transport header, and TCP's
// flags.
static void set_transport(struct corpus *c, struct frame *f)
{
	bool v6;
	size_t ip = find_ip(f->at, f->length, &v6), l4 = ip + (v6 ? 40 : 20);

	if (!ip || l4 + 14 > f->length)
		return;
	if (below(c, 3))
		f->at[l4 + below(c, 4)] = (uint8_t)below(c, 256);
	else if (f->at[ip + (v6 ? 6 : 9)] == IPPROTO_TCP)
		f->at[l4 + 13] = (uint8_t)below(c, 256);
}

// A neighbour of an address.
static void move_next(struct corpus *c, struct frame *f)
{
	bool v6;
	size_t ip = find_ip(f->at, f->length, &v6), end = below(c, 2);

	if (ip)
		f->at[ip + (v6 ? 23 + 16 * end : 15 + 4 * end)] ^= (uint8_t)(1u << below(c, 2));
}

// An expected packet that stays what most packets are: well-formed, at most one tag.
static void make_common(struct corpus *c, struct frame *f)
{
	static void (*const changes[])(struct corpus *, struct frame *) = {
		move_addresses,
		set_transport,
		move_next,
	};
	const struct sample *s = &c->all.at[below(c, (uint32_t)c->expected)];

	memcpy(f->at, s->bytes, s->length);
	f->length = s->length;
	for (uint32_t i = below(c, 4); i; i--)
		changes[below(c, ARRAY_SIZE(changes))](c, f);
	if (!below(c, 10))
		add_tag(c, f);
}

// One frame in twenty is noise after an ethertype.
static void make_any(struct corpus *c, struct frame *f)
{
	const struct sample *s = pick(c);

	memcpy(f->at, s->bytes, s->length);
	f->length = s->length;
	if (!below(c, 20)) {
		f->length = FRAME_LEAST + below(c, below(c, 8) ? 120 : FRAME_LARGEST - FRAME_LEAST);
		for (size_t i = FRAME_LEAST; i < f->length; i++)
			f->at[i] = (uint8_t)below(c, 256);
	}
	for (uint32_t i = below(c, 5) + !!below(c, 8); i; i--)
		change(c, f);
}

static void make(struct corpus *c, struct frame *f)
{
	if (c->expected && below(c, 2))
		make_common(c, f);
	else
		make_any(c, f);
}

static void print_changed(struct corpus *c, uint64_t count)
{
	static struct frame f;
	size_t ifaces = c->policy->n_interfaces;

	for (; count; count--) {
		uint32_t iface = ifaces ? below(c, (uint32_t)ifaces) : 0;

		make(c, &f);
		print_frame(c, iface, below(c, 4), f.at, f.length);
	}
}

int main(int argc, char **argv)
{
	static const struct dns_options none;
	CLEANUP_CANDIDATE struct candidate *c = candidate_new(&none, NULL);
	struct corpus corpus = {0};
	uint64_t seed, count;
	int failed;

	if (argc != 5 || num_parse_u64(argv[3], strlen(argv[3]), 0, UINT64_MAX, &seed) ||
	    num_parse_u64(argv[4], strlen(argv[4]), 0, UINT64_MAX, &count)) {
		fputs("usage: frames POLICY CASES SEED COUNT\n", stderr);
		return 2;
	}
	if (candidate_compile(c, argv[1], NULL, 0)) {
		diag_print(c->diag, stderr, false);
		return 2;
	}
	corpus.policy = c->resolved;
	corpus.random = seed * 0x9e3779b97f4a7c15ull | 1;
	failed = read_expected(&corpus) || read_cases(&corpus, argv[2]);
	if (failed)
		fprintf(stderr, "frames: no packets in '%s' and '%s'\n", argv[1], argv[2]);
	else if (seed)
		print_changed(&corpus, count);
	else
		print_valid(&corpus, count);
	corpus_free(&corpus);
	return failed || fflush(stdout);
}
