// SPDX-License-Identifier: GPL-2.0-only
// Runs frames through policies with services; compares verdict, counters and output frame.
//
//     balance-policy LINE         a line of a policy's text; the first after a case begins another policy
//     balance-hop SERVICE ADDRESS WORD VALUE …  the path to a backend: device in|out|lost|none, mac and own
//                                 (of the frame), vlan, mtu, source PREFIX, no-xmit 0|1; path: the
//                                 MTU that a router reported, now or path-age seconds ago
//     balance-path SERVICE ADDRESS MTU   the known path MTU after the case; 0: unknown
//     balance-case NAME           begins a case, `balance-expect` runs it
//     balance-overlay ENTRY, …    the entries of the overlay
//     balance-hit ENTRY           the one of them that counts the frame, once; without: none counts it
//     balance-generic 1           the interface is in generic mode
//     balance-stations MAC …      MAC addresses of this host; without: any
//     balance-foreign 1           counted as a frame to another station
//     balance-await PROTO SOURCE PORT DEST PORT MS   an answer to a check via path is awaited, so long
//     balance-linear N            bytes in the first buffer; skipped where the kernel has no such test
//     balance-frame HEX           from the Ethernet header on
//     balance-out HEX             the output frame; without: the input frame
//     balance-count SERVICE ADDRESS|- NAME N …  counters that change: packets, bytes, a reason or an event;
//                                 no other counter changes
//     balance-burst N             then sent N times at once: a few are answered, the others dropped
//     balance-pin SERVICE ADDRESS HASH   a living pin of the flow with this hash of its tuple
//     balance-first HEX           a frame that is sent first, once; at most eight
//     balance-flood HEX           a frame that is sent first until it is no longer answered; the case is answered
//     balance-crowd N             then sent from N addresses of IPv4: some are answered, the others dropped
//     balance-own ADDRESS …       addresses of this host and broadcast addresses of its subnets
//     balance-expect VERDICT REASON BYTES  pass, drop, tx, redirect; the one counter that changes, by 1 packet
#include "tests/datapath/balance.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/test_program.h"
#include "tests/datapath/balance_mutate.h"
#include "tests/datapath/balance_rig.h"

#define COUNTS_MAX 4
#define FLOOD_MAX  (4 * WEIR_REPLY_BURST)
#define PATHS_MAX  4
#define FIRST_MAX  8

struct count {
	uint32_t id;
	struct service_counter by;
};

static struct {
	struct text policy; // nothing is loaded yet
	struct balance_rig *loaded;
	const char *in_force; // text of the overlay
	const char *name, *overlay, *hit, *stations;
	bool generic, has_out, foreign, awaits;
	uint32_t linear, burst, crowd;
	bool has_own;
	struct frame in, out, flood;
	struct count counts[COUNTS_MAX];
	size_t n_counts;
	struct {
		uint32_t id, mtu;
	} paths[PATHS_MAX];
	size_t n_paths;
	struct frame first[FIRST_MAX];
	size_t n_first;
	bool pinned;
	uint64_t cases; // a seed for each
} all;

static const char *const verdicts[] = {
	[XDP_DROP] = "drop", [XDP_PASS] = "pass", [XDP_TX] = "tx", [XDP_REDIRECT] = "redirect"};

// Reading

static bool read_number(const char *text, uint32_t *ret)
{
	return text && !num_parse_u32(text, strlen(text), 0, UINT32_MAX, ret);
}

static bool read_policy(struct rig *rig, const char *line)
{
	if (all.loaded)
		balance_cases_end(rig);
	text_addf(&all.policy, "%s\n", line);
	return true;
}

static void load(struct rig *rig)
{
	if (!all.loaded)
		all.loaded = balance_rig_new(rig, text_get(&all.policy));
}

static __u64 *count_named(struct service_counter *c, const char *name)
{
	static const char *const events[] = {
#define X(symbol, word, text) [SERVICE_##symbol] = word,
		SERVICE_EVENTS(X)
#undef X
	};

	for (size_t e = 0; e < ARRAY_SIZE(events); e++)
		if (!strcmp(events[e], name))
			return &c->event[e];
	for (uint32_t d = 0; d < SERVICE_DROPS; d++)
		if (!strcmp(reason_name((enum weir_reason)(REASON_DROP_NO_BACKEND + d)), name))
			return &c->dropped[d];
	return !strcmp(name, "packets") ? &c->packets : !strcmp(name, "bytes") ? &c->bytes : NULL;
}

static bool read_count(char *text)
{
	const char *service = strsep(&text, " "), *address = strsep(&text, " ");
	struct count *c = &all.counts[all.n_counts];

	if (!address || all.n_counts == COUNTS_MAX ||
	    !balance_rig_id(all.loaded, service, strcmp(address, "-") ? address : NULL, &c->id))
		return false;
	all.n_counts++;
	c->by = (struct service_counter){0};
	while (text) {
		const char *name = strsep(&text, " ");
		__u64 *at = count_named(&c->by, name);
		uint32_t n;

		if (!at || !read_number(strsep(&text, " "), &n))
			return false;
		*at = n;
	}
	return true;
}

static bool read_path(char *text)
{
	const char *service = strsep(&text, " "), *address = strsep(&text, " ");
	size_t n = all.n_paths;

	if (n == PATHS_MAX || !read_number(text, &all.paths[n].mtu) ||
	    !balance_rig_id(all.loaded, service, address, &all.paths[n].id))
		return false;
	all.n_paths++;
	return true;
}

static bool read_pin(char *text)
{
	const char *service = strsep(&text, " "), *address = strsep(&text, " ");
	uint64_t hash;

	return text && !num_parse_u64(text, strlen(text), 0, UINT64_MAX, &hash) &&
	       (all.pinned = balance_rig_pin(all.loaded, service, address, hash));
}

static bool read_first(const char *hex)
{
	return all.n_first < FIRST_MAX && frame_read_hex(hex, &all.first[all.n_first++]);
}

static bool begin_case(struct rig *rig, const char *name)
{
	load(rig);
	all.name = name;
	all.overlay = all.hit = all.stations = "";
	all.foreign = all.awaits = false;
	all.generic = all.has_out = false;
	all.linear = all.burst = all.crowd = 0;
	if (all.has_own)
		balance_rig_own(all.loaded, "");
	all.has_own = false;
	all.flood.len = 0;
	all.n_counts = all.n_paths = all.n_first = 0;
	if (all.pinned)
		balance_rig_unpin(all.loaded);
	all.pinned = false;
	return true;
}

// Comparing: each of these adds a sentence for each difference

static const struct service_counter *wanted_by(uint32_t id)
{
	static const struct service_counter nothing;

	for (size_t n = 0; n < all.n_counts; n++)
		if (all.counts[n].id == id)
			return &all.counts[n].by;
	return &nothing;
}

static uint64_t dropped_of(const struct service_counter *c)
{
	uint64_t sum = 0;

	for (uint32_t d = 0; d < SERVICE_DROPS; d++)
		sum += c->dropped[d];
	return sum;
}

static void check_counter(uint32_t id, const struct service_counter *by, struct text *why)
{
	const struct service_counter *want = wanted_by(id);
	char name[96];

	if (!memcmp(by, want, sizeof(*by)))
		return;
	text_addf(why,
		  "%s counted %llu packets, %llu bytes, %llu dropped, %llu opened, %llu completed, "
		  "%llu quoted; ",
		  balance_rig_name(all.loaded, id, name, sizeof(name)),
		  (unsigned long long)by->packets, (unsigned long long)by->bytes,
		  (unsigned long long)dropped_of(by), (unsigned long long)by->event[SERVICE_OPENED],
		  (unsigned long long)by->event[SERVICE_COMPLETED],
		  (unsigned long long)by->event[SERVICE_QUOTED]);
}

static void check_counters(struct text *why)
{
	const struct service_counter *moved = balance_rig_moved(all.loaded);

	for (uint32_t id = 0; id < all.loaded->ids; id++)
		check_counter(id, &moved[id], why);
}

static void check_verdict(const struct outcome *o, const char *verdict, const char *reason,
			  uint32_t bytes, struct text *why)
{
	const struct moved *m = &o->moved[0];

	if (o->verdict >= ARRAY_SIZE(verdicts) || !verdicts[o->verdict] ||
	    strcmp(verdicts[o->verdict], verdict) != 0)
		text_addf(why, "verdict %u, expected %s; ", o->verdict, verdict);
	if (o->moved_n == 1 && !strcmp(reason_name(m->reason), reason) && m->by.packets == 1 &&
	    m->by.bytes == bytes)
		return;
	text_addf(why,
		  "%zu counters, the first '%s' by %llu packets, %llu bytes, expected '%s', %u; ",
		  o->moved_n, o->moved_n ? reason_name(m->reason) : "",
		  (unsigned long long)m->by.packets, (unsigned long long)m->by.bytes, reason,
		  bytes);
}

static void check_frame(const struct outcome *o, const char *verdict, struct text *why)
{
	const struct frame *want = all.has_out ? &all.out : &all.in;

	if (!strcmp(verdict, "drop"))
		return;
	if (o->out->len != want->len || memcmp(o->out->at, want->at, want->len) != 0)
		text_addf(why, "another output frame, of %zu bytes, expected %zu; ", o->out->len,
			  want->len);
}

// The test program has the same verdict and counts nothing, also without the short program.
static void check_test_program(const struct outcome *o, const char *reason, struct text *why)
{
	struct test_result test = balance_rig_ask(all.loaded, &all.in);
	struct test_result general = balance_rig_ask_general(all.loaded, &all.in);
	const char *differs = balance_rig_difference(&test, &general);

	if (differs)
		text_addf(why, "%s; ", differs);
	if (test.verdict != o->verdict ||
	    strcmp(reason_name((enum weir_reason)test.reason), reason) != 0)
		text_addf(why, "the test program has '%s', verdict %u; ",
			  reason_name((enum weir_reason)test.reason), test.verdict);
	if (o->verdict != XDP_DROP &&
	    (test.length != o->out->len || memcmp(test.packet, o->out->at, test.length) != 0))
		text_add(why, "the test program has another output frame; ");
}

static void read_overlay(const struct rig *rig, struct overlay_entries *ret)
{
	struct err err = {0};

	if (*all.overlay && overlay_read(rig->instance, ret, &err))
		test_die(&err);
}

static void check_entry(const struct overlay_entry *before, const struct overlay_entry *after,
			const struct overlay_entry *hit, uint32_t bytes, struct text *why)
{
	bool is = *all.hit && hit->kind == after->kind &&
		  !prefix_compare(&hit->prefix, &after->prefix);
	uint64_t packets = after->hits.packets - before->hits.packets;
	addr_text buf;

	if (packets != is || after->hits.bytes - before->hits.bytes != (is ? bytes : 0))
		text_addf(why, "entry '%s %s' counted %llu packets; ", kind_name(after->kind),
			  prefix_format(&after->prefix, buf), (unsigned long long)packets);
}

static void check_entries(const struct rig *rig, const struct overlay_entries *before,
			  uint32_t bytes, struct text *why)
{
	struct overlay_entries after = {0};
	struct overlay_entry hit = {0};
	struct err err = {0};

	if (*all.hit && want_parse(all.hit, 0, &hit, &err))
		test_die(&err);
	read_overlay(rig, &after);
	if (before->n != after.n || (*all.hit && !after.n))
		text_add(why, "the overlay has other entries; ");
	for (size_t n = 0; n < before->n && n < after.n; n++)
		check_entry(&before->at[n], &after.at[n], &hit, bytes, why);
	vec_free(&after);
}

static void check_paths(struct text *why)
{
	for (size_t n = 0; n < all.n_paths; n++) {
		uint32_t mtu = balance_rig_path(all.loaded, all.paths[n].id);

		if (mtu != all.paths[n].mtu)
			text_addf(why, "path MTU %u, expected %u; ", mtu, all.paths[n].mtu);
	}
}

// Answers are limited, so that the balancer cannot be used as a reflector.
static void check_burst(struct rig *rig, struct text *why)
{
	uint64_t begin = rig_clock(rig).jiffies, jiffies, most;
	uint32_t answered = 0;

	for (uint32_t n = 0; n < all.burst; n++)
		answered += rig_try(rig, &all.in, 0).verdict == XDP_TX;
	jiffies = rig_clock(rig).jiffies - begin + 1;
	most = WEIR_REPLY_BURST + 1 + jiffies * WEIR_REPLIES_S / clock_hz();
	if (answered + 1 < WEIR_REPLY_BURST || answered > most)
		text_addf(why, "%u of %u answered in %llu jiffies; ", answered, all.burst,
			  (unsigned long long)jiffies);
}

// Sends the limit of answers for all receivers together; the others are counted.
static void check_crowd(struct rig *rig, struct text *why)
{
	uint64_t begin = rig_clock(rig).jiffies, limited = balance_rig_limited(all.loaded), most;
	uint64_t handed_on = rig_handed_on(rig), sent = rig->sent;
	const uint32_t source = 14 + 12;
	struct frame one = all.in;
	uint32_t answered = 0;

	for (uint32_t n = 0; n < all.crowd; n++) {
		one.at[source] = (uint8_t)(11 + n % 97);
		one.at[source + 1] = (uint8_t)(n >> 8);
		one.at[source + 2] = (uint8_t)n;
		answered += rig_try(rig, &one, 0).verdict == XDP_TX;
	}
	rig->aside += rig_handed_on(rig) - handed_on;
	rig->sent = sent;
	most = WEIR_REPLY_BURST_ALL + 1 +
	       (rig_clock(rig).jiffies - begin + 1) * WEIR_REPLIES_ALL_S / clock_hz();
	limited = balance_rig_limited(all.loaded) - limited;
	if (answered + 1 < WEIR_REPLY_BURST_ALL || answered > most || !limited ||
	    answered + limited > all.crowd)
		text_addf(why, "%u of %u answered, at most %llu expected, %llu counted; ", answered,
			  all.crowd, (unsigned long long)most, (unsigned long long)limited);
}

// Running

static void print_failure(const struct outcome *o, const char *why)
{
	printf("FAIL case '%s': %s\n", all.name, why);
	print_hex(all.in.at, all.in.len);
	if (o->code || !o->out)
		return;
	printf("     came out\n");
	print_hex(o->out->at, o->out->len);
	if (!all.has_out)
		return;
	printf("     expected\n");
	print_hex(all.out.at, all.out.len);
}

// Until one is dropped: the limit of its receiver is reached.
static void flood(struct rig *rig)
{
	for (int n = 0; all.flood.len && n < FLOOD_MAX; n++)
		if (rig_try(rig, &all.flood, 0).verdict == XDP_DROP)
			break;
}

static void send_first(struct rig *rig)
{
	for (size_t n = 0; n < all.n_first; n++)
		rig_try(rig, &all.first[n], 0);
}

static void prepare(struct rig *rig)
{
	struct outcome before = {0};

	if (!all.in_force || strcmp(all.in_force, all.overlay) != 0)
		rig_overlay_text(rig, all.overlay);
	all.in_force = all.overlay;
	rig->instance->knobs->generic = all.generic ? 1ull << RIG_IFACE : 0;
	balance_rig_forget_answers(all.loaded);
	balance_rig_stations(all.loaded, all.stations);
	flood(rig);
	send_first(rig);
	balance_rig_moved(all.loaded);
	balance_rig_reasons(all.loaded, &before);
}

static void check_foreign(uint64_t before, struct text *why)
{
	uint64_t by = balance_rig_foreign(all.loaded) - before;

	if (by != all.foreign)
		text_addf(why, "%llu counted as frames to another station; ",
			  (unsigned long long)by);
}

static void check_more(struct rig *rig, const struct outcome *o, const char *reason,
		       struct text *why)
{
	bool test_knows =
		!all.linear && !all.flood.len && !all.n_first && !*all.stations && !all.awaits;

	if (test_knows)
		check_test_program(o, reason, why);
	check_counters(why);
	check_paths(why);
	if (all.burst)
		check_burst(rig, why);
	if (all.crowd)
		check_crowd(rig, why);
	if (!why->len && !all.linear && !*all.stations && !all.awaits)
		balance_mutate(all.loaded, &all.in, all.cases++, why);
}

static void run_case(struct rig *rig, const char *verdict, const char *reason, uint32_t bytes,
		     struct tally *tally)
{
	struct overlay_entries entries = {0};
	struct text why = {0};
	uint64_t foreign = 0;
	struct outcome o;

	prepare(rig);
	read_overlay(rig, &entries);
	if (*all.stations) // reading all counters is slow
		foreign = balance_rig_foreign(all.loaded);
	o = rig_try(rig, &all.in, all.linear);
	if (o.code == -EINVAL && all.linear) {
		tally->skipped++;
		return;
	}
	if (o.code) {
		text_addf(&why, "not run: %s; ", err_name(o.code));
	} else {
		balance_rig_reasons(all.loaded, &o);
		check_verdict(&o, verdict, reason, bytes, &why);
		check_frame(&o, verdict, &why);
		check_entries(rig, &entries, bytes, &why);
		if (*all.stations)
			check_foreign(foreign, &why);
	}
	if (why.len)
		print_failure(&o, text_get(&why));
	else if (check_more(rig, &o, reason, &why), why.len)
		print_failure(&o, text_get(&why));
	tally->failed += why.len != 0;
	tally->passed += !why.len;
	text_free(&why);
	vec_free(&entries);
	balance_rig_await_nothing(all.loaded);
}

static bool expect(struct rig *rig, char *value, const char *only, struct tally *tally)
{
	const char *verdict = strsep(&value, " "), *reason = strsep(&value, " ");
	uint32_t bytes;

	if (!all.name || !reason || !read_number(value, &bytes))
		return false;
	if (!only || strstr(all.name, only))
		run_case(rig, verdict, reason, bytes, tally);
	return true;
}

bool balance_case_line(struct rig *rig, const char *word, char *value, const char *only,
		       struct tally *tally)
{
	if (!strcmp(word, "policy"))
		return read_policy(rig, value);
	if (!strcmp(word, "hop")) {
		load(rig);
		return balance_rig_hop(all.loaded, value);
	}
	if (!strcmp(word, "case"))
		return begin_case(rig, value);
	if (!strcmp(word, "overlay"))
		return (all.overlay = value);
	if (!strcmp(word, "hit"))
		return (all.hit = value);
	if (!strcmp(word, "stations"))
		return balance_rig_stations(all.loaded, all.stations = value);
	if (!strcmp(word, "foreign"))
		return all.foreign = true;
	if (!strcmp(word, "generic"))
		return all.generic = true;
	if (!strcmp(word, "await"))
		return all.awaits = balance_rig_await(all.loaded, value);
	if (!strcmp(word, "linear"))
		return read_number(value, &all.linear);
	if (!strcmp(word, "frame"))
		return frame_read_hex(value, &all.in);
	if (!strcmp(word, "out"))
		return all.has_out = frame_read_hex(value, &all.out);
	if (!strcmp(word, "count"))
		return read_count(value);
	if (!strcmp(word, "path"))
		return read_path(value);
	if (!strcmp(word, "pin"))
		return read_pin(value);
	if (!strcmp(word, "first"))
		return read_first(value);
	if (!strcmp(word, "flood"))
		return frame_read_hex(value, &all.flood);
	if (!strcmp(word, "crowd"))
		return read_number(value, &all.crowd);
	if (!strcmp(word, "own"))
		return all.has_own = balance_rig_own(all.loaded, value);
	if (!strcmp(word, "burst"))
		return read_number(value, &all.burst);
	return !strcmp(word, "expect") && expect(rig, value, only, tally);
}

void balance_cases_end(struct rig *rig)
{
	balance_rig_free(all.loaded);
	all.loaded = NULL;
	all.name = NULL;
	all.in_force = NULL;
	rig->instance->knobs->generic = 0;
	rig_overlay_text(rig, "");
	text_free(&all.policy);
}
