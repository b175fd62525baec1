// SPDX-License-Identifier: GPL-2.0-only
// The shards: made, published and mapped, with slots and counters.
#include "ctl/datapath/overlay_shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/maps.h"

#define HEARD_MASK ((1ull << (64 - OVERLAY_SMALL_HEARD)) - 1)

static size_t shard_bytes(const struct shards *s)
{
	return s->six ? OVERLAY_BYTES6((size_t)s->cpus) : OVERLAY_BYTES4((size_t)s->cpus);
}

static size_t time_bytes(const struct shards *s)
{
	return (size_t)OVERLAY_ELEMENT * (s->six ? OVERLAY_TIMES6 : OVERLAY_TIMES4);
}

static int hosts_fd(const struct shards *s)
{
	return s->six ? s->instance->hosts6 : s->instance->hosts4;
}

static int times_fd(const struct shards *s)
{
	return s->six ? s->instance->times6 : s->instance->times4;
}

struct shards *shards_new(const struct instance *i, bool six)
{
	struct shards *s = mem_new(struct shards);

	s->instance = i;
	s->six = six;
	s->cpus = i->meta.cpus;
	return s;
}

void shard_unmap(struct shards *s, uint32_t n)
{
	struct shard *shard = &s->shard[n];

	if (shard->at)
		munmap(shard->at, shard_bytes(s));
	if (shard->times)
		munmap(shard->times, time_bytes(s));
	*shard = (struct shard){0};
}

void shards_free(struct shards *s)
{
	if (!s)
		return;
	for (uint32_t n = 0; n < OVERLAY_SHARDS; n++)
		shard_unmap(s, n);
	free(s);
}

uint32_t shards_n(const struct shards *s)
{
	return s->instance->knobs->shards[s->six];
}

uint32_t shard_slots(const struct shards *s)
{
	return s->six ? 1 << OVERLAY_SLOTS6_LOG2 : 1 << OVERLAY_SLOTS4_LOG2;
}

uint32_t line_slots(const struct shards *s)
{
	return s->six ? OVERLAY_LINE6 : OVERLAY_LINE4;
}

uint32_t line_numbers(const struct shards *s)
{
	return shard_slots(s) / OVERLAY_LINES;
}

// ---- mapping ------------------------------------------------------------------------------------

static int map_memory(int fd, size_t bytes, void *ret)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	memcpy(ret, &at, sizeof(at));
	return 0;
}

// The map in the element of an array of maps. -ENOENT: the element is empty.
static int map_inner(int outer, uint32_t n, size_t bytes, void *ret)
{
	CLEANUP_FD int fd = -1;
	uint32_t id;

	if (bpf_map_lookup_elem(outer, &n, &id))
		return -errno;
	fd = bpf_map_get_fd_by_id(id);
	return fd < 0 ? fd : map_memory(fd, bytes, ret);
}

int shard_map(struct shards *s, uint32_t n, struct err *err)
{
	struct shard *shard = &s->shard[n];
	int code;

	if (shard->at)
		return 0;
	code = shard->timed ? 0 : map_inner(times_fd(s), n, time_bytes(s), &shard->times);
	if (code && code != -ENOENT)
		return err_system(err, -code, "cannot read the overlay");
	shard->timed = !code;
	code = map_inner(hosts_fd(s), n, shard_bytes(s), &shard->at);
	return code ? err_system(err, -code, "cannot read the overlay") : 0;
}

// ---- making -------------------------------------------------------------------------------------

// Maps that are to become elements of an array of maps.
struct inners {
	uint32_t number[OVERLAY_SHARDS];
	int fd[OVERLAY_SHARDS];
	uint32_t n;
};

static void inners_close(struct inners *i)
{
	for (uint32_t n = 0; n < i->n; n++)
		fd_close(i->fd[n]);
}

static int inners_add(struct inners *i, uint32_t number, const char *name, size_t bytes)
{
	int fd = mapping_make(name, bytes);

	if (fd < 0)
		return fd;
	i->number[i->n] = number;
	i->fd[i->n++] = fd;
	return 0;
}

// In one call: the kernel waits for a grace period at each, and where it is older than 6.8 for each
// element.
static int inners_publish(int outer, struct inners *i)
{
	uint32_t n = i->n;

	if (!n)
		return 0;
	if (n == 1)
		return bpf_map_update_elem(outer, i->number, i->fd, BPF_ANY) ? -errno : 0;
	return bpf_map_update_batch(outer, i->number, i->fd, &n, NULL);
}

static int make_times(struct shards *s, const bool *needs)
{
	CLEANUP(inners_close) struct inners made = {0};
	int code;

	for (uint32_t n = 0; n < OVERLAY_SHARDS; n++)
		if (needs[n] && (code = inners_add(&made, n, s->six ? "weir_times6" : "weir_times4",
						   time_bytes(s))))
			return code;
	for (uint32_t m = 0; m < made.n; m++) {
		struct shard *shard = &s->shard[made.number[m]];

		if ((code = map_memory(made.fd[m], time_bytes(s), &shard->times)))
			return code;
	}
	if ((code = inners_publish(times_fd(s), &made)))
		return code;
	for (uint32_t m = 0; m < made.n; m++)
		s->shard[made.number[m]].timed = true;
	return 0;
}

int shards_make_times(struct shards *s, const bool *needs, struct err *err)
{
	bool missing[OVERLAY_SHARDS] = {0};
	int code;

	for (uint32_t n = 0; n < shards_n(s); n++) {
		if (!needs[n])
			continue;
		if ((code = shard_map(s, n, err)))
			return code;
		missing[n] = !s->shard[n].timed;
	}
	code = make_times(s, missing);
	return code ? err_system(err, -code, "cannot make room for expiries") : 0;
}

static int make_shards(struct shards *s, uint32_t from, uint32_t to)
{
	CLEANUP(inners_close) struct inners made = {0};
	int code;

	for (uint32_t n = from; n < to; n++)
		if ((code = inners_add(&made, n, s->six ? "weir_hosts6" : "weir_hosts4",
				       shard_bytes(s))))
			return code;
	for (uint32_t m = 0; m < made.n; m++) {
		struct shard *shard = &s->shard[made.number[m]];

		if ((code = map_memory(made.fd[m], shard_bytes(s), &shard->at)))
			return code;
	}
	return inners_publish(hosts_fd(s), &made);
}

int shards_make(struct shards *s, uint32_t from, uint32_t to, struct err *err)
{
	bool timed[OVERLAY_SHARDS] = {0};
	int code;

	for (uint32_t n = from; n < to; n++) {
		shard_unmap(s, n);
		timed[n] = from && s->shard[n % from].timed;
	}
	if ((code = make_times(s, timed)) || (code = make_shards(s, from, to)))
		return err_system(err, -code, "cannot make room for more hosts");
	return 0;
}

// ---- slots --------------------------------------------------------------------------------------

static uint32_t line_of(const struct shards *s, uint32_t slot)
{
	return slot / line_numbers(s);
}

static uint32_t place_of(const struct shards *s, uint32_t slot)
{
	return slot % line_numbers(s);
}

static struct overlay_line4 *line4(const struct shards *s, uint32_t shard, uint32_t line)
{
	return &((struct overlay_lines4 *)(void *)s->shard[shard].at)->line[line];
}

static struct overlay_line6 *line6(const struct shards *s, uint32_t shard, uint32_t line)
{
	return &((struct overlay_lines6 *)(void *)s->shard[shard].at)->line[line];
}

static __u64 *word4(const struct shards *s, struct spot at)
{
	return &line4(s, at.shard, line_of(s, at.slot))->slot[place_of(s, at.slot)];
}

uint32_t slot_meta(const struct shards *s, struct spot at)
{
	if (s->six)
		return line6(s, at.shard, line_of(s, at.slot))->meta[place_of(s, at.slot)];
	return (uint32_t)(*word4(s, at) >> 32) & ~OVERLAY_META_MORE;
}

static void put4(__u64 *word, uint32_t addr, uint32_t meta)
{
	uint32_t more = (uint32_t)(*word >> 32) & OVERLAY_META_MORE;

	__atomic_store_n(word, addr | (uint64_t)(meta | more) << 32, __ATOMIC_RELEASE);
}

void slot_set_meta(struct shards *s, struct spot at, uint32_t meta)
{
	if (s->six)
		__atomic_store_n(
			&line6(s, at.shard, line_of(s, at.slot))->meta[place_of(s, at.slot)], meta,
			__ATOMIC_RELEASE);
	else
		put4(word4(s, at), (uint32_t)*word4(s, at), meta);
}

void slot_key(const struct shards *s, struct spot at, uint64_t *ret_high, uint64_t *ret_low)
{
	const __u64 *key;

	if (!s->six) {
		*ret_high = 0;
		*ret_low = (uint32_t)*word4(s, at);
		return;
	}
	key = line6(s, at.shard, line_of(s, at.slot))->key[place_of(s, at.slot)];
	*ret_high = key[0];
	*ret_low = key[1];
}

static uint32_t find4(const struct overlay_line4 *line, uint32_t addr, uint32_t kinds)
{
	for (uint32_t n = 0; n < OVERLAY_LINE4; n++)
		if ((uint32_t)line->slot[n] == addr && line->slot[n] >> 32 & kinds)
			return n;
	return UINT32_MAX;
}

static uint32_t find6(const struct overlay_line6 *line, uint64_t high, uint64_t low, uint32_t kinds)
{
	for (uint32_t n = 0; n < OVERLAY_LINE6; n++)
		if (line->key[n][1] == low && line->key[n][0] == high && line->meta[n] & kinds)
			return n;
	return UINT32_MAX;
}

uint32_t line_find(const struct shards *s, uint32_t shard, uint32_t line, uint64_t high,
		   uint64_t low, uint32_t kinds)
{
	uint32_t n = s->six ? find6(line6(s, shard, line), high, low, kinds)
			    : find4(line4(s, shard, line), (uint32_t)low, kinds);

	return n == UINT32_MAX ? n : line * line_numbers(s) + n;
}

void slot_put(struct shards *s, struct spot at, uint64_t high, uint64_t low, uint32_t meta)
{
	__u64 *key;

	if (!s->six) {
		put4(word4(s, at), (uint32_t)low, meta);
		return;
	}
	key = line6(s, at.shard, line_of(s, at.slot))->key[place_of(s, at.slot)];
	__atomic_store_n(&key[0], high, __ATOMIC_RELAXED);
	__atomic_store_n(&key[1], low, __ATOMIC_RELAXED);
	slot_set_meta(s, at, meta);
}

bool line_more(const struct shards *s, uint32_t shard, uint32_t line)
{
	if (s->six)
		return line6(s, shard, line)->line & OVERLAY_META_MORE;
	return line4(s, shard, line)->slot[0] >> 32 & OVERLAY_META_MORE;
}

void line_set_more(struct shards *s, uint32_t shard, uint32_t line, bool more)
{
	const uint64_t bit = (uint64_t)OVERLAY_META_MORE << 32;
	__u64 *word;

	if (s->six) {
		__atomic_store_n(&line6(s, shard, line)->line, more ? OVERLAY_META_MORE : 0,
				 __ATOMIC_RELEASE);
		return;
	}
	word = &line4(s, shard, line)->slot[0];
	__atomic_store_n(word, more ? *word | bit : *word & ~bit, __ATOMIC_RELEASE);
}

uint64_t *slot_word(const struct shards *s, struct spot at, uint32_t region)
{
	uint64_t *words = (uint64_t *)(void *)(s->shard[at.shard].at + OVERLAY_ELEMENT);

	return words + (s->six ? overlay_region6(region) : overlay_region4(region)) + at.slot;
}

uint64_t *slot_expiry(const struct shards *s, struct spot at, bool side)
{
	return s->shard[at.shard].times + (side ? shard_slots(s) : 0) + at.slot;
}

// ---- counters -----------------------------------------------------------------------------------

static uint64_t small_packets(uint64_t word)
{
	return word >> OVERLAY_SMALL_BYTES & OVERLAY_SMALL_FULL;
}

static uint64_t small_bytes(uint64_t word)
{
	return word & ((1ull << OVERLAY_SMALL_BYTES) - 1);
}

static uint64_t read_word(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static struct overlay_hits sum(const struct shards *s, struct spot at, uint64_t now,
			       uint64_t *ret_heard)
{
	struct overlay_hits hits = {
		.packets = read_word(slot_word(s, at, OVERLAY_PACKETS)),
		.bytes = read_word(slot_word(s, at, OVERLAY_BYTES)),
	};
	uint64_t youngest = HEARD_MASK;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		uint64_t word = read_word(slot_word(s, at, OVERLAY_CPUS + cpu));
		uint64_t age = (now - (word >> OVERLAY_SMALL_HEARD)) & HEARD_MASK;

		hits.packets += small_packets(word);
		hits.bytes += small_bytes(word);
		if (word && age < youngest)
			youngest = age;
	}
	*ret_heard = youngest == HEARD_MASK || youngest > now ? 0 : now - youngest;
	return hits;
}

struct overlay_hits slot_hits(const struct shards *s, struct spot at, uint64_t now,
			      uint64_t *ret_heard)
{
	// If a small counter was added to the big one in the meantime, the sum may be wrong: reads
	// again. Packets without a small counter change the big one too, but by less.
	for (;;) {
		uint64_t before = read_word(slot_word(s, at, OVERLAY_PACKETS));
		struct overlay_hits hits = sum(s, at, now, ret_heard);

		if (read_word(slot_word(s, at, OVERLAY_PACKETS)) - before < OVERLAY_SMALL_FULL)
			return hits;
	}
}

void slot_clear(struct shards *s, struct spot at)
{
	for (uint32_t region = 0; region < OVERLAY_CPUS + s->cpus; region++)
		*slot_word(s, at, region) = 0;
}

void slot_fold(struct shards *s, struct spot from, struct spot to)
{
	uint64_t heard;
	struct overlay_hits hits = sum(s, from, 0, &heard);

	slot_clear(s, from);
	__atomic_fetch_add(slot_word(s, to, OVERLAY_PACKETS), hits.packets, __ATOMIC_RELAXED);
	__atomic_fetch_add(slot_word(s, to, OVERLAY_BYTES), hits.bytes, __ATOMIC_RELAXED);
}

void slot_hear(struct shards *s, struct spot at, struct spot from)
{
	uint64_t newest = 0;

	for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
		uint64_t heard = *slot_word(s, from, OVERLAY_CPUS + cpu) >> OVERLAY_SMALL_HEARD;

		if (heard && (!newest || ((heard - newest) & HEARD_MASK) < HEARD_MASK / 2))
			newest = heard;
	}
	*slot_word(s, at, OVERLAY_CPUS) = newest << OVERLAY_SMALL_HEARD;
}
