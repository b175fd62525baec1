// SPDX-License-Identifier: GPL-2.0-only
// Rows of samples: keys, prefixes, and that 95 of 100 intervals contain the true share.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/counters.h"
#include "ctl/base/mem.h"
#include "ctl/control/sampled_packet.h"
#include "ctl/control/sampled_rows.h"

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1du >> 16;
}

// ---- packets ------------------------------------------------------------------------------------

// TCP with SYN from an IPv4 address; `bytes` is its IP length.
static struct sampled made(uint32_t from, uint16_t port, uint32_t bytes, uint32_t share)
{
	struct sampled s = {
		.time_ns = 1000,
		.reason = REASON_PASS_DEFAULT,
		.captured = 54,
		.rule = EVENT_NO_RULE,
		.share = share,
		.length = bytes + 14,
		.bytes = bytes,
	};
	uint8_t *ip = s.packet + 14;

	s.packet[12] = 8;
	ip[0] = 0x45;
	ip[2] = (uint8_t)(bytes >> 8);
	ip[3] = (uint8_t)bytes;
	ip[8] = 57;
	ip[9] = 6;
	for (int n = 0; n < 4; n++)
		ip[12 + n] = (uint8_t)(from >> (24 - 8 * n));
	ip[16] = 192;
	ip[19] = 1;
	ip[22] = (uint8_t)(port >> 8);
	ip[23] = (uint8_t)port;
	ip[20 + 13] = 2;
	return s;
}

static void add(struct sampled_window *w, uint32_t from, size_t n)
{
	struct sampled s = made(from, 443, 60, UINT32_MAX);

	while (n--)
		sampled_add(w, &s);
}

static const struct sampled_row *row_of(const struct sampled_list *l, const char *text)
{
	vec_each (&l->rows, row)
		if (!strcmp(row->text, text))
			return row;
	return NULL;
}

static uint64_t samples_of(const struct sampled_list *l, const char *text)
{
	const struct sampled_row *row = row_of(l, text);

	return row ? row->samples : 0;
}

static void prefixes_have_more_than_their_parts(void **unused)
{
	struct sampled_window w = {0};
	struct sampled_list l;

	add(&w, 0xc6336401, 20); // 198.51.100.1
	add(&w, 0xc6336402, 12);
	add(&w, 0xc6336503, 11); // 198.51.101.3
	add(&w, 0x0a000001, 30); // 10.0.0.1, the only one of its /16
	add(&w, 0x0a010001, 9);
	sampled_rows(&w, SAMPLED_BY_SOURCE, &l);
	assert_int_equal(samples_of(&l, "198.51.100.1"), 20);
	assert_int_equal(samples_of(&l, "198.51.100.2"), 12);
	assert_int_equal(samples_of(&l, "198.51.100.0/24"), 32);
	assert_int_equal(samples_of(&l, "198.51.0.0/16"), 43);
	assert_int_equal(samples_of(&l, "10.0.0.1"), 30);
	assert_null(row_of(&l, "10.0.0.0/24"));
	assert_null(row_of(&l, "10.0.0.0/16"));
	assert_null(row_of(&l, "10.1.0.1")); // nine samples
	assert_null(row_of(&l, "198.51.101.0/24"));
	assert_int_equal(l.rows.n, 6);
	assert_string_equal(l.rows.at[0].text, "198.51.0.0/16");
	sampled_list_free(&l);
	sampled_free(&w);
}

static void check_only(enum sampled_by by, const struct sampled *s, const char *text)
{
	struct sampled_window w = {0};
	struct sampled_list l;

	for (int n = 0; n < 10; n++)
		sampled_add(&w, s);
	sampled_rows(&w, by, &l);
	assert_int_equal(l.rows.n, 1);
	assert_string_equal(l.rows.at[0].text, text);
	assert_true(l.rows.at[0].share == 1);
	sampled_list_free(&l);
	sampled_free(&w);
}

static void each_key_has_its_text(void **unused)
{
	struct sampled s = made(0xc6336401, 443, 60, UINT32_MAX), other = {.share = 1, .bytes = 42};

	check_only(SAMPLED_BY_SOURCE, &s, "198.51.100.1");
	check_only(SAMPLED_BY_DESTINATION, &s, "192.0.0.1");
	check_only(SAMPLED_BY_PORT, &s, "tcp 443");
	check_only(SAMPLED_BY_LENGTH, &s, "60");
	check_only(SAMPLED_BY_TTL, &s, "57");
	check_only(SAMPLED_BY_FLAGS, &s, "syn");
	s.packet[14 + 9] = 47;
	check_only(SAMPLED_BY_PORT, &s, "gre");
	check_only(SAMPLED_BY_FLAGS, &s, "(not TCP)");
	check_only(SAMPLED_BY_SOURCE, &other, "(not IP)");
	check_only(SAMPLED_BY_PORT, &other, "(not IP)");
}

// The headers that Weir has written are removed: IP in IP, ICMP "too big", a VLAN tag.
static void packets_are_as_they_arrived(void **unused)
{
	struct sampled s = made(0xc6336401, 443, 60, UINT32_MAX);
	struct sampled t = s;
	struct sampled_packet p;

	memmove(t.packet + 18 + 20, s.packet + 14, 40);
	t.packet[12] = 0x81;
	t.packet[13] = 0;
	memset(t.packet + 14, 0, 24);
	t.packet[16] = 8;
	t.packet[18] = 0x45;
	t.packet[18 + 3] = 80;
	t.packet[18 + 9] = 4;
	t.captured = 78;
	t.reason = REASON_PASS_SERVICE;
	sampled_read(&t, &p);
	assert_int_equal(p.front, 20);
	assert_true(p.fields.ip && p.fields.tcp);
	assert_int_equal(p.fields.to_port, 443);
	assert_int_equal(p.ttl, 57);
	assert_int_equal(p.fields.from.bytes[3], 1);
	// Without the reason these are packets of the network.
	t.reason = REASON_PASS_DEFAULT;
	sampled_read(&t, &p);
	assert_int_equal(p.front, 0);
	assert_int_equal(p.fields.proto, 4);
	t.reason = REASON_PASS_TOO_BIG;
	memmove(t.packet + 18 + 28, s.packet + 14, 28);
	sampled_read(&t, &p);
	assert_int_equal(p.front, 28);
	assert_int_equal(p.fields.from_port + p.fields.to_port, 443);
}

// A frame of a capture file: the packet is restored, with the VLAN tag of the frame.
static void frames_are_restored(void **unused)
{
	struct sampled s = made(0xc6336401, 443, 60, UINT32_MAX), got = {.length = 100};
	uint8_t frame[112] = {[12] = 0x81, [15] = 7, [16] = 0x86, [17] = 0xdd}, out[112];
	size_t length = 112;

	frame[18] = 0x60; // 40 bytes of IPv6 before the packet
	memcpy(frame + 58, s.packet + 14, 40);
	assert_int_equal(sampled_restore(frame, 98, 40, out, &length), 58);
	assert_int_equal(length, 18 + 60);
	assert_memory_equal(out + 12, "\x81\0\0\7\x08\0\x45", 7);
	assert_memory_equal(out + 18, s.packet + 14, 40);
	sampled_fill(&got, frame, 98, 40);
	assert_int_equal(got.bytes, 60);
	assert_int_equal(got.captured, 98);
	length = 112;
	assert_int_equal(sampled_restore(frame, 98, 0, out, &length), 98);
	assert_int_equal(length, 112);
	assert_memory_equal(out, frame, 98);
	// A frame that is shorter than its headers is left as it is.
	assert_int_equal(sampled_restore(frame, 60, 40, out, &length), 60);
	assert_int_equal(sampled_restore(frame, 9, 40, out, &length), 9);
	sampled_fill(&got, frame, 9, 40);
	assert_int_equal(got.bytes, 100);
}

static bool place(void *ctx, enum geo_kind kind, const struct addr *a, struct geo *ret)
{
	*ret = (struct geo){.kind = kind, .country = "DE", .asn = 64500};
	return a->bytes[0] == *(const uint8_t *)ctx;
}

static void places_of_sources(void **unused)
{
	uint8_t first = 198;
	struct sampled_window w = {.exact = true, .place = place, .place_ctx = &first};
	struct sampled_list l;

	add(&w, 0xc6336401, 7);
	add(&w, 0xc6330001, 3);
	add(&w, 0x0a000001, 1);
	sampled_rows(&w, SAMPLED_BY_COUNTRY, &l);
	assert_int_equal(samples_of(&l, "DE"), 10);
	assert_int_equal(samples_of(&l, "(unknown)"), 1);
	sampled_list_free(&l);
	sampled_rows(&w, SAMPLED_BY_ASN, &l);
	assert_int_equal(samples_of(&l, "64500"), 10);
	sampled_list_free(&l);
	sampled_free(&w);
}

// Few packets are a row of their own if they were all counted.
static void exact_rows_need_no_number(void **unused)
{
	struct sampled s = made(0xc6336402, 443, 60, 1u << 31);
	struct sampled_window w = {.exact = true};
	struct sampled_list l;

	add(&w, 0xc6336401, 1);
	sampled_add(&w, &s);
	sampled_rows(&w, SAMPLED_BY_SOURCE, &l);
	assert_int_equal(l.rows.n, 1);
	assert_string_equal(l.rows.at[0].text, "198.51.100.1");
	assert_true(l.rows.at[0].packets == 1);
	sampled_list_free(&l);
	sampled_free(&w);
}

// Any bytes: what was not captured is not read.
static void broken_records_are_survived(void **unused)
{
	struct sampled_window w = {0};
	struct sampled_list l;

	for (int n = 0; n < 200000; n++) {
		struct sampled s;

		for (size_t b = 0; b < sizeof(s); b++)
			((uint8_t *)&s)[b] = (uint8_t)draw();
		if (n & 1) {
			s.captured = (uint16_t)(draw() % 140);
			s.packet[12] = 8;
			s.packet[13] = 0;
			s.packet[14] = 0x45;
		}
		s.reason = (uint16_t)(draw() % (WEIR_REASON_COUNT + 1));
		sampled_add(&w, &s);
		if (sampled_n(&w) > 5000)
			sampled_free(&w);
	}
	for (enum sampled_by by = 0; by < SAMPLED_BY_COUNT; by++) {
		sampled_rows(&w, by, &l);
		sampled_list_free(&l);
	}
	sampled_free(&w);
}

static void old_samples_are_forgotten(void **unused)
{
	struct sampled s = made(1, 2, 60, UINT32_MAX);
	struct sampled_window w = {0};

	for (uint64_t n = 0; n < 100; n++) {
		s.time_ns = n * 1000000000;
		sampled_add(&w, &s);
		sampled_forget(&w, s.time_ns);
		assert_int_equal(sampled_n(&w), n < 11 ? n + 1 : 11);
	}
	assert_true(w.facts.n <= 23);
	sampled_free(&w);
}

// ---- the error ----------------------------------------------------------------------------------

#define RUNS    100
#define SOURCES 10
#define PACKETS 100000

static const double parts[SOURCES] = {0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01};

// So many packets of each source, in any order.
static void fill(uint8_t *of)
{
	size_t n = 0;

	for (size_t s = 0; s < SOURCES; s++)
		for (size_t k = 0; k < (size_t)(parts[s] * PACKETS + 0.5); k++)
			of[n++] = (uint8_t)s;
	for (size_t i = n - 1; i; i--) {
		size_t j = draw() % (i + 1);
		uint8_t t = of[i];

		of[i] = of[j];
		of[j] = t;
	}
}

// The datapath's choice on two CPUs. shares: of the first and of the second half.
static void sample_all(struct sampled_window *w, const uint8_t *of, const uint32_t shares[2])
{
	uint64_t packets[2] = {0}, bytes[2] = {0}, seed = draw() << 20 ^ draw();

	for (size_t p = 0; p < PACKETS; p++) {
		uint32_t length = 60 + 8u * of[p], share = shares[p >= PACKETS / 2];
		int cpu = draw() & 1;
		struct sampled s;

		bytes[cpu] += length;
		packets[cpu]++;
		if (!sample_chooses(packets[cpu], bytes[cpu], seed, share))
			continue;
		s = made(0xc6330000u + ((uint32_t)of[p] << 8), 443, length, share);
		sampled_add(w, &s);
	}
}

struct hits {
	int exact, narrow,
		wide; // intervals that contain the share; a fifth smaller, a third larger
};

static void judge(const struct sampled_list *l, struct hits *h)
{
	for (unsigned s = 0; s < SOURCES; s++) {
		const struct sampled_row *row;
		char text[32];
		double off;

		snprintf(text, sizeof(text), "%u", 60 + 8 * s);
		row = row_of(l, text);
		if (!row)
			continue;
		off = fabs(row->share - parts[s]);
		h->exact += off <= row->error;
		h->narrow += off <= row->error * 0.8;
		h->wide += off <= row->error * 4 / 3;
	}
}

static void check_intervals(uint32_t first, uint32_t second)
{
	const uint32_t shares[2] = {first, second};
	CLEANUP_FREE uint8_t *of = mem_zalloc(PACKETS, 1);
	struct hits h = {0};

	for (int run = 0; run < RUNS; run++) {
		struct sampled_window w = {0};
		struct sampled_list l;

		fill(of);
		sample_all(&w, of, shares);
		sampled_rows(&w, SAMPLED_BY_LENGTH, &l);
		judge(&l, &h);
		sampled_list_free(&l);
		sampled_free(&w);
	}
	if (h.exact < 925 || h.exact > 975 || h.narrow >= 925 || h.wide <= 975)
		fail_msg(
			"shares %u and %u: %d of 1,000 intervals contain the true share, %d if they "
			"are a fifth smaller, %d a third larger",
			first, second, h.exact, h.narrow, h.wide);
}

// Also if half of all packets are sampled, and if the share falls while they are.
static void intervals_contain_the_share(void **unused)
{
	check_intervals(UINT32_MAX / 50, UINT32_MAX / 50);
	check_intervals(UINT32_MAX / 2, UINT32_MAX / 2);
	check_intervals(UINT32_MAX / 5, UINT32_MAX / 50);
}

static void rates_are_as_the_shares_say(void **unused)
{
	struct sampled_window w = {0};
	struct sampled_list l;
	struct sampled s = made(0xc6336401, 443, 60, 1u << 22);

	for (int n = 0; n < 100; n++)
		sampled_add(&w, &s);
	sampled_rows(&w, SAMPLED_BY_SOURCE, &l);
	assert_true(l.rows.at[0].packets == 102400 && l.rows.at[0].bytes == 6144000);
	assert_true(l.rows.at[0].error > 0.029 && l.rows.at[0].error < 0.031); // 3 of 100
	sampled_list_free(&l);
	sampled_free(&w);
	assert_int_equal(sampled_share(10), UINT32_MAX);
	assert_int_equal(sampled_share(2000), UINT32_MAX);
	assert_int_equal(sampled_share(2000 * 1024.0), 1u << 22);
	assert_int_equal(sampled_share(1e30), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_have_more_than_their_parts),
		cmocka_unit_test(each_key_has_its_text),
		cmocka_unit_test(packets_are_as_they_arrived),
		cmocka_unit_test(frames_are_restored),
		cmocka_unit_test(places_of_sources),
		cmocka_unit_test(exact_rows_need_no_number),
		cmocka_unit_test(broken_records_are_survived),
		cmocka_unit_test(old_samples_are_forgotten),
		cmocka_unit_test(intervals_contain_the_share),
		cmocka_unit_test(rates_are_as_the_shares_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
