// SPDX-License-Identifier: GPL-2.0-only
// Lines of hosts: full ones, moved entries, room that grows, and counters that stay exact
// meanwhile.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "common/overlay.h"
#include "ctl/base/mem.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/overlay_hosts.h"
#include "ctl/datapath/overlay_shards.h"
#include "tests/datapath/rig.h"

#define ROOM (4u << 20)

static struct addr address4(uint32_t host_order)
{
	return addr_from_v4(__builtin_bswap32(host_order));
}

static struct addr address6(uint64_t low)
{
	uint64_t half[2] = {htobe64(0x20010db800000000), htobe64(low)};

	return addr_from_v6((const uint8_t *)half);
}

static struct addr address(int family, uint32_t n)
{
	return family == 4 ? address4(0x0a000000 + n) : address6(n);
}

static struct overlay_entry want_of(const struct addr *a, uint64_t until)
{
	return (struct overlay_entry){
		.prefix = prefix_of(a, (uint8_t)addr_bits(a)),
		.kind = OVERLAY_BLOCK_FROM,
		.until = until,
	};
}

// Entries that begin or, with until 0, end; the others stay.
static void change(const struct rig *rig, struct wants *w)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct err err = {0};

	wants_sort(w);
	if (overlay_stage(rig->instance, w->at, w->n, &plan, &err))
		test_die(&err);
	overlay_commit(rig->instance, &plan);
	w->n = 0;
}

static void change_one(const struct rig *rig, const struct addr *a, uint64_t until)
{
	CLEANUP_WANTS struct wants w = {0};

	vec_push(&w, want_of(a, until));
	change(rig, &w);
}

static void add_range(const struct rig *rig, int family, uint32_t from, uint32_t to, uint64_t until)
{
	CLEANUP_WANTS struct wants w = {0};

	for (uint32_t n = from; n < to; n++) {
		struct addr a = address(family, n);

		vec_push(&w, want_of(&a, until));
	}
	change(rig, &w);
}

static struct frame frame_from(const struct addr *a)
{
	struct addr dst = a->family == 4 ? address4(0xcb007101) : address6(~0ull);
	struct frame f;

	frame_udp_between(&f, a, &dst, 0);
	return f;
}

static uint32_t offer(struct rig *rig, const struct addr *a, uint32_t times)
{
	struct frame f = frame_from(a);

	return rig_verdict(rig, &f, times);
}

static struct overlay_hits hits_of(const struct rig *rig, const struct addr *a)
{
	struct prefix p = prefix_of(a, (uint8_t)addr_bits(a));
	struct overlay_entry entries[OVERLAY_KINDS];
	struct err err = {0};
	size_t n;

	if (overlay_read_one(rig->instance, &p, entries, &n, &err))
		test_die(&err);
	return n ? entries[0].hits : (struct overlay_hits){0};
}

static uint32_t shards(const struct rig *rig, int family)
{
	return rig->instance->knobs->shards[family == 6];
}

static uint64_t hash_of(const struct rig *rig, const struct addr *a)
{
	uint64_t seed = rig->instance->knobs->seed, half[2];
	uint32_t word;

	memcpy(&word, a->bytes, sizeof(word));
	memcpy(half, a->bytes, sizeof(half));
	return a->family == 4 ? overlay_hash4(word, seed)
			      : overlay_hash6(be64toh(half[0]), be64toh(half[1]), seed);
}

// Addresses with these lines, -1: any; each later than the last.
static struct addr next_in_lines(const struct rig *rig, int family, int first, int second,
				 uint32_t *after)
{
	for (;;) {
		struct addr a = address(family, ++*after);
		uint64_t hash = hash_of(rig, &a);

		if ((first < 0 || overlay_first(hash) == (uint32_t)first) &&
		    (second < 0 || overlay_second(hash) == (uint32_t)second))
			return a;
	}
}

// Both lines of an address are full: an entry moves, with its counters, and nothing else changes.
static void displaces(struct test *t, int family)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	const uint32_t slots = family == 4 ? OVERLAY_LINE4 : OVERLAY_LINE6;
	struct addr in[2 * OVERLAY_LINE4], last;
	uint32_t after = 0;

	for (uint32_t n = 0; n < 2 * slots; n++) {
		in[n] = next_in_lines(rig, family, n < slots ? 7 : 10, -1, &after);
		change_one(rig, &in[n], OVERLAY_FOREVER);
		offer(rig, &in[n], 1000 + n);
	}
	last = next_in_lines(rig, family, 7, 10, &after);
	change_one(rig, &last, OVERLAY_FOREVER);
	CHECK(t, shards(rig, family) == 1, "%u shards for %u addresses", shards(rig, family),
	      2 * slots + 1);
	CHECK(t, offer(rig, &last, 5) == DROPPED, "the displacing address passes");
	CHECK(t, hits_of(rig, &last).packets == 5, "it has counted %llu packets",
	      (unsigned long long)hits_of(rig, &last).packets);
	for (uint32_t n = 0; n < 2 * slots; n++) {
		CHECK(t, hits_of(rig, &in[n]).packets == 1000 + n, "address %u has %llu packets", n,
		      (unsigned long long)hits_of(rig, &in[n]).packets);
		CHECK(t, offer(rig, &in[n], 1) == DROPPED, "address %u passes", n);
	}
}

static void test_full_lines4(struct test *t)
{
	displaces(t, 4);
}

static void test_full_lines6(struct test *t)
{
	displaces(t, 6);
}

// An entry that ends leaves no counter to the next one in its place, however often.
static void comes_and_goes(struct test *t, int family, uint64_t until)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	uint32_t after = 0;

	for (uint32_t n = 0; n < 30; n++) {
		struct addr a = next_in_lines(rig, family, 100, -1, &after);

		change_one(rig, &a, until);
		CHECK(t, !hits_of(rig, &a).packets, "round %u: a new entry has counters", n);
		CHECK(t, offer(rig, &a, 3) == DROPPED, "round %u: it passes", n);
		CHECK(t, hits_of(rig, &a).packets == 3, "round %u: %llu packets", n,
		      (unsigned long long)hits_of(rig, &a).packets);
		change_one(rig, &a, 0);
		CHECK(t, offer(rig, &a, 1) == PASSED, "round %u: it is still dropped", n);
	}
	CHECK(t, shards(rig, family) == 1, "%u shards", shards(rig, family));
}

static void test_slots_are_used_again(struct test *t)
{
	comes_and_goes(t, 4, OVERLAY_FOREVER);
	comes_and_goes(t, 6, OVERLAY_FOREVER);
	comes_and_goes(t, 4, OVERLAY_FOREVER - 1);
	comes_and_goes(t, 6, OVERLAY_FOREVER - 1);
}

// Permanent, timed, permanent, ended: counters stay.
static void test_expiry_changes_in_place(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);

	for (int family = 4; family <= 6; family += 2) {
		struct addr a = address(family, 77);
		uint64_t far = rig_after_ms(rig, 1000000), soon = rig_after_ms(rig, 100);
		const uint64_t untils[] = {OVERLAY_FOREVER, far, far * 2, OVERLAY_FOREVER, soon};

		for (size_t n = 0; n < ARRAY_SIZE(untils); n++) {
			change_one(rig, &a, untils[n]);
			CHECK(t, offer(rig, &a, 10) == DROPPED || n == 4, "step %zu: it passes", n);
		}
		CHECK(t, hits_of(rig, &a).packets >= 40, "%llu packets",
		      (unsigned long long)hits_of(rig, &a).packets);
		rig_wait(rig, soon);
		CHECK(t, offer(rig, &a, 1) == PASSED, "it has not expired");
	}
}

// Sends packets of one address all the time, on its own CPU.
struct sender {
	struct rig *rig;
	struct frame frame;
	int cpu;
	bool stop;
	uint64_t sent, passed;
};

static void *send_all_the_time(void *arg)
{
	struct sender *s = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)s->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		s->passed += rig_verdict(s->rig, &s->frame, 100) != DROPPED;
		s->sent += 100;
	}
	return NULL;
}

#define SENDERS 4

// Entries move to other lines and shards, and come and go beside them, while their packets are
// counted.
static void counts_while_moving(struct test *t, struct rig *rig, int family, uint32_t until_n)
{
	struct sender senders[SENDERS] = {0};
	pthread_t threads[SENDERS];
	uint32_t step = until_n / 16;

	for (uint32_t s = 0; s < SENDERS; s++) {
		struct addr a = address(family, s);

		change_one(rig, &a, OVERLAY_FOREVER);
		senders[s] = (struct sender){.rig = rig, .frame = frame_from(&a), .cpu = s % 2};
		pthread_create(&threads[s], NULL, send_all_the_time, &senders[s]);
	}
	for (uint32_t n = step; n < until_n; n += step) {
		add_range(rig, family, n, n + step, OVERLAY_FOREVER);
		add_range(rig, family, n, n + step / 2, 0);
	}
	for (uint32_t s = 0; s < SENDERS; s++) {
		struct addr a = address(family, s);
		struct overlay_hits hits;

		__atomic_store_n(&senders[s].stop, true, __ATOMIC_RELEASE);
		pthread_join(threads[s], NULL);
		hits = hits_of(rig, &a);
		CHECK(t, hits.packets == senders[s].sent, "%llu packets of %llu are counted",
		      (unsigned long long)hits.packets, (unsigned long long)senders[s].sent);
		CHECK(t, hits.bytes == senders[s].sent * (family == 4 ? 28 : 48), "%llu bytes",
		      (unsigned long long)hits.bytes);
		CHECK(t, !senders[s].passed, "%llu times a packet has passed",
		      (unsigned long long)senders[s].passed);
	}
	CHECK(t, shards(rig, family) > 1, "the room has not grown");
}

static void test_counts_while_moving(struct test *t)
{
	CLEANUP_RIG struct rig *rig4 = rig_new(ROOM), *rig6 = rig_new(ROOM);

	counts_while_moving(t, rig4, 4, 100000);
	counts_while_moving(t, rig6, 6, 40000);
}

#define ONLINE "/sys/devices/system/cpu/online"

// A rig that was made when only these CPUs were online: a mount that only this process sees hides
// the kernel's list.
static struct rig *rig_when_online(const char *cpus)
{
	char path[] = "/tmp/weir-online.XXXXXX";
	int fd = mkstemp(path);
	struct rig *rig;

	if (fd < 0 || write(fd, cpus, strlen(cpus)) < 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(path, ONLINE, NULL, MS_BIND, NULL)) {
		perror(ONLINE);
		exit(2);
	}
	rig = rig_new(ROOM);
	umount(ONLINE);
	unlink(path);
	close(fd);
	return rig;
}

static void test_size_by_online(struct test *t)
{
	static const struct {
		const char *online;
		uint32_t cpus;
	} cases[] = {{"0\n", 1}, {"0-1\n", 2}, {"0,1\n", 2}, {"1\n", 2}};
	long possible = sysconf(_SC_NPROCESSORS_CONF);

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		CLEANUP_RIG struct rig *rig = rig_when_online(cases[n].online);

		CHECK(t, rig->instance->meta.cpus == cases[n].cpus || possible < 2,
		      "%u CPUs for %s", rig->instance->meta.cpus, cases[n].online);
	}
	for (size_t n = 0; n < 2; n++) { // more than possible, and text that is no list
		CLEANUP_RIG struct rig *rig = rig_when_online(n ? "nonsense" : "0-999999\n");

		CHECK(t, rig->instance->meta.cpus == (uint32_t)possible, "%u CPUs of %ld",
		      rig->instance->meta.cpus, possible);
	}
}

// CPUs that were added later have no small counters: counts are exact, and an entry that only they
// use is seen as used.
static void test_cpus_that_came_later(struct test *t)
{
	CLEANUP_RIG struct rig *rig4 = rig_when_online("0\n"), *rig6 = rig_when_online("0\n");

	for (int family = 4; family <= 6; family += 2) {
		struct rig *rig = family == 4 ? rig4 : rig6;
		struct addr a = address(family, 77);
		struct prefix p = prefix_of(&a, (uint8_t)addr_bits(&a));
		struct overlay_entry entries[OVERLAY_KINDS];
		struct sender s = {.rig = rig, .frame = frame_from(&a), .cpu = 1};
		uint64_t before = rig_clock(rig).jiffies;
		struct err err = {0};
		pthread_t thread;
		size_t n;

		change_one(rig, &a, OVERLAY_FOREVER);
		pthread_create(&thread, NULL, send_all_the_time, &s);
		rig_wait(rig, rig_after_ms(rig, 1000));
		__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		CHECK(t, !overlay_read_one(rig->instance, &p, entries, &n, &err) && n == 1, "%s",
		      err.text);
		CHECK(t, entries[0].hits.packets == s.sent, "%llu packets of %llu are counted",
		      (unsigned long long)entries[0].hits.packets, (unsigned long long)s.sent);
		CHECK(t, entries[0].seen > before, "heard at %llu, sent after %llu",
		      (unsigned long long)entries[0].seen, (unsigned long long)before);
		change_one(rig, &a, 0);
		counts_while_moving(t, rig, family, family == 4 ? 100000 : 40000);
	}
}

static void check_all(struct test *t, struct rig *rig, int family, uint32_t n, uint32_t step)
{
	for (uint32_t a = 0; a < n; a += step) {
		struct addr in = address(family, a), out = address(family, a + n);

		CHECK(t, offer(rig, &in, 1) == DROPPED, "%u of %u passes", a, n);
		CHECK(t, offer(rig, &out, 1) == PASSED, "%u, beyond %u, is dropped", a + n, n);
	}
}

static double ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)(now.tv_sec - start->tv_sec) * 1e3 +
	       (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

static double add_one_ms(const struct rig *rig, uint32_t n)
{
	struct addr a = address(4, n);
	struct timespec start;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	change_one(rig, &a, OVERLAY_FOREVER);
	return ms_since(&start);
}

// The least of some, as the machine does other work.
static double add_some_ms(const struct rig *rig, uint32_t from)
{
	double least = add_one_ms(rig, from);

	for (uint32_t n = 1; n < 10; n++) {
		double one = add_one_ms(rig, from + n);

		least = one < least ? one : least;
	}
	return least;
}

// One more entry costs as much beside a million as beside a thousand, but for more shards to open:
// a step over all entries would cost a hundred times as much.
static void test_a_million(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	struct timespec start;
	double few, many;

	add_range(rig, 4, 0, 1000, OVERLAY_FOREVER);
	few = add_some_ms(rig, 2000000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	add_range(rig, 4, 1000, 1000000, OVERLAY_FOREVER);
	printf("a million hosts in %.0f ms of processor time, %u shards\n", ms_since(&start),
	       shards(rig, 4));
	many = add_some_ms(rig, 2000100);
	printf("one more takes %.2f ms, beside a thousand %.2f ms\n", many, few);
	CHECK(t, many < 5 * few, "one more entry takes %.2f ms, beside a thousand %.2f ms", many,
	      few);
	check_all(t, rig, 4, 1000000, 9973);
	add_range(rig, 6, 0, 200000, OVERLAY_FOREVER);
	check_all(t, rig, 6, 200000, 9973);
}

struct census {
	struct test *test;
	uint64_t entries, packets;
};

static int count_entry(void *ctx, const struct overlay_entry *entry)
{
	struct census *c = ctx;

	c->entries++;
	c->packets += entry->hits.packets;
	return 0;
}

static struct census census(struct test *t, const struct rig *rig)
{
	struct census c = {.test = t};
	struct err err = {0};

	if (overlay_each(rig->instance, count_entry, &c, &err))
		test_die(&err);
	return c;
}

// A free slot of the address's first line in another shard; false: the line is full.
static bool find_beside(const struct rig *rig, struct shards *all, const struct addr *a,
			struct spot *ret)
{
	uint64_t hash = hash_of(rig, a);
	struct spot at = {.shard = ((uint32_t)hash & (shards_n(all) - 1)) ^ 1};
	struct err err = {0};

	if (shard_map(all, at.shard, &err))
		test_die(&err);
	at.slot = overlay_first(hash) * line_numbers(all);
	for (uint32_t slot = 0; slot < line_slots(all); slot++, at.slot++) {
		if (slot_meta(all, at))
			continue;
		*ret = at;
		return true;
	}
	return false;
}

// The first address of the range from n/2 on that find_beside finds a slot for.
static struct addr with_room_beside(const struct rig *rig, int family, uint32_t n)
{
	struct shards *all = shards_new(rig->instance, family == 6);
	struct spot at;
	uint32_t i = n / 2;

	while (i < n - 1) {
		struct addr a = address(family, i);

		if (find_beside(rig, all, &a, &at))
			break;
		i++;
	}
	shards_free(all);
	return address(family, i);
}

// A slot of an entry in the shard where it was before the room grew, with counters: a command was
// killed before it had taken them along.
static void leave_behind(struct test *t, struct rig *rig, const struct addr *a)
{
	struct shards *all = shards_new(rig->instance, a->family == 6);
	struct prefix p = prefix_of(a, (uint8_t)addr_bits(a));
	struct lines_key key = lines_key(&p, OVERLAY_BLOCK_FROM);
	struct spot at = {0};

	if (CHECK(t, find_beside(rig, all, a, &at), "the line is full")) {
		slot_put(all, at, key.high, key.low, 1u << OVERLAY_BLOCK_FROM);
		*slot_word(all, at, OVERLAY_PACKETS) = 5000;
		*slot_word(all, at, OVERLAY_CPUS) = 7ull << OVERLAY_SMALL_BYTES;
	}
	shards_free(all);
	rig->instance->knobs->moving = 1;
}

static void recovers_moves(struct test *t, int family, uint32_t n)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	struct census c;
	struct addr a;
	struct err err = {0};

	add_range(rig, family, 0, n, OVERLAY_FOREVER);
	CHECK(t, shards(rig, family) > 1, "%u shards", shards(rig, family));
	a = with_room_beside(rig, family, n);
	offer(rig, &a, 2000);
	leave_behind(t, rig, &a);
	CHECK(t, !overlay_tidy(rig->instance, &err), "%s", err.text);
	c = census(t, rig);
	CHECK(t, c.entries == n && c.packets == 7007, "%llu entries, %llu packets",
	      (unsigned long long)c.entries, (unsigned long long)c.packets);
	CHECK(t, hits_of(rig, &a).packets == 7007, "%llu packets",
	      (unsigned long long)hits_of(rig, &a).packets);
	CHECK(t, rig->instance->knobs->entries[family == 6][OVERLAY_BLOCK_FROM] == n,
	      "%u entries are known",
	      rig->instance->knobs->entries[family == 6][OVERLAY_BLOCK_FROM]);
}

static void test_killed_while_moving(struct test *t)
{
	recovers_moves(t, 4, 30000);
	recovers_moves(t, 6, 10000);
}

// A command was killed between the copy of an entry to its second line and the mark in the first
// one.
static void copy_beside(struct test *t, struct rig *rig, const struct addr *a)
{
	struct shards *all = shards_new(rig->instance, a->family == 6);
	struct prefix p = prefix_of(a, (uint8_t)addr_bits(a));
	struct lines_key key = lines_key(&p, OVERLAY_BLOCK_FROM);
	uint64_t hash = hash_of(rig, a);
	uint32_t line = overlay_first(hash), kinds = 1u << OVERLAY_BLOCK_FROM;
	struct spot from = {0}, to = {.slot = overlay_second(hash) * line_numbers(all)};
	struct err err = {0};

	if (shard_map(all, 0, &err))
		test_die(&err);
	from.slot = line_find(all, 0, line, key.high, key.low, kinds);
	if (CHECK(t, from.slot != UINT32_MAX && !slot_meta(all, to), "no such state")) {
		line_set_more(all, 0, line, true);
		slot_put(all, to, key.high, key.low, kinds);
		slot_set_meta(all, from, kinds | OVERLAY_META_MOVED);
	}
	shards_free(all);
	rig->instance->knobs->moving = 1;
}

static void recovers_copy(struct test *t, int family)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	struct addr a = address(family, 1);
	struct err err = {0};
	struct census c;

	change_one(rig, &a, OVERLAY_FOREVER);
	offer(rig, &a, 2000);
	copy_beside(t, rig, &a);
	for (int round = 0; round < 2; round++) {
		c = census(t, rig);
		CHECK(t, c.entries == 1 && c.packets == 2000 + 7 * (uint64_t)round,
		      "round %d: %llu entries, %llu packets", round, (unsigned long long)c.entries,
		      (unsigned long long)c.packets);
		CHECK(t, offer(rig, &a, 7) == DROPPED, "round %d: it passes", round);
		CHECK(t, !overlay_tidy(rig->instance, &err), "%s", err.text);
	}
	change_one(rig, &a, 0);
	CHECK(t, offer(rig, &a, 1) == PASSED, "it is dropped after its removal");
}

static void test_killed_before_mark(struct test *t)
{
	recovers_copy(t, 4);
	recovers_copy(t, 6);
}

// Killed after the commit: the slots are staged still, and the next command gives them their final
// form.
static void test_killed_before_settling(struct test *t)
{
	CLEANUP_RIG struct rig *rig = rig_new(ROOM);
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	CLEANUP_WANTS struct wants w = {0};
	struct addr old = address(4, 1), timed = address(4, 2), fresh = address(4, 3);
	struct err err = {0};

	change_one(rig, &old, OVERLAY_FOREVER);
	change_one(rig, &timed, OVERLAY_FOREVER);
	offer(rig, &timed, 4);
	vec_push(&w, want_of(&old, 0));
	vec_push(&w, want_of(&timed, rig_after_ms(rig, 1000000)));
	vec_push(&w, want_of(&fresh, OVERLAY_FOREVER));
	wants_sort(&w);
	CHECK(t, !overlay_stage(rig->instance, w.at, w.n, &plan, &err), "%s", err.text);
	rig->instance->knobs->epoch = plan.epoch;
	for (int round = 0; round < 2; round++) {
		CHECK(t, offer(rig, &old, 1) == PASSED, "round %d: the old one is dropped", round);
		CHECK(t, offer(rig, &timed, 1) == DROPPED, "round %d: the timed one passes", round);
		CHECK(t, offer(rig, &fresh, 1) == DROPPED, "round %d: the new one passes", round);
		CHECK(t, !overlay_tidy(rig->instance, &err), "%s", err.text);
	}
	CHECK(t, hits_of(rig, &timed).packets == 6, "%llu packets",
	      (unsigned long long)hits_of(rig, &timed).packets);
	CHECK(t, rig->instance->knobs->entries[0][OVERLAY_BLOCK_FROM] == 2, "%u entries are known",
	      rig->instance->knobs->entries[0][OVERLAY_BLOCK_FROM]);
}

const struct named_test lines_tests[] = {
	{"lines: full ones of IPv4", test_full_lines4},
	{"lines: full ones of IPv6", test_full_lines6},
	{"lines: slots are used again", test_slots_are_used_again},
	{"lines: expiry changes in place", test_expiry_changes_in_place},
	{"lines: counters while entries move", test_counts_while_moving},
	{"lines: size by the CPUs that are online", test_size_by_online},
	{"lines: counters of CPUs that came later", test_cpus_that_came_later},
	{"lines: a million hosts", test_a_million},
	{"lines: killed while moving", test_killed_while_moving},
	{"lines: killed before a moved entry is marked", test_killed_before_mark},
	{"lines: killed before settling", test_killed_before_settling},
	{NULL, NULL},
};
