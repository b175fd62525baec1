// SPDX-License-Identifier: GPL-2.0-only
// Plays a history of a service from stdin with the programs of the datapath, in the words of
// refslots.c, which has the language and plays the same with a model.
//
// Slots are changed by the functions of ctl/table that control uses; pins only by the programs,
// except for `tidy`. Prints what refslots prints, and at the end, as `refslots --check`, how many
// pins were pushed out and how many found no place. --mend: with the remedies of docs/ring.md,
// which the model does not have; a trial then has the longest duration, the longest idle.
// --general: without the short program. The last line has the number of packets that took the
// general way. Status 2: the history is invalid, or the kernel refuses.
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/probe.h"
#include "tests/reference/balancer/history_words.h"
#include "tests/reference/balancer/kernel.h"
#include "tests/reference/balancer/packet.h"

#define BUCKETS_MAX (1u << 24)
#define HZ_MAX      10000

// The remedies of docs/ring.md, as control has them, for the cases that the rules do not cover.
static bool mends;

static bool general_only; // without the short program

// The backends of which a ring is made.
struct members {
	struct lb_member at[POLICY_BACKENDS];
	uint32_t n;
};

struct play {
	struct words words;
	uint32_t hz;
	struct lb_service service;
	struct kernel *kernel;
	struct kernel_tables t;
	uint8_t state[SERVICE_BACKENDS]; // enum backend_state, from the history
	bool counts[SERVICE_BACKENDS];   // for new flows, when the last ring was made
	struct members edited, running;
	// On trial: the previous ring, which packets do not use.
	bool trial;
	struct members before;
	uint64_t *slots_before;
	uint64_t trial_end; // at the latest
};

// ---- the service --------------------------------------------------------------------------------

// 0: the service has no such protocol.
static uint32_t idle_of(const struct play *p, size_t i)
{
	uint32_t most = SERVICE_IDLE_MAX_MS / 1000 * p->hz;

	return strcmp(p->words.at[i], "-") != 0 ? words_u32(&p->words, i, most) : 0;
}

static uint32_t longest_idle(const struct play *p)
{
	const struct lb_service *s = &p->service;

	return s->idle_tcp > s->idle_udp ? s->idle_tcp : s->idle_udp;
}

static struct ring_rules rules_of(const struct play *p)
{
	return lb_service_rules(&p->service, *p->t.now, p->hz);
}

static void begin(struct play *p)
{
	const struct words *w = &p->words;
	struct lb_service *s = &p->service;

	if (!words_next(&p->words, stdin) || !words_are(w, "service", 10))
		words_fail(w, "'service' comes first");
	p->hz = words_u32(w, 8, HZ_MAX);
	*s = (struct lb_service){
		.name = "all",
		.key = words_key(w, 9),
		.size = words_u32(w, 1, POLICY_RING_MAX),
		.buckets = words_u32(w, 5, BUCKETS_MAX),
		.hold = words_u32(w, 4, SERVICE_HOLD_MAX),
		.idle_tcp = idle_of(p, 2),
		.idle_udp = idle_of(p, 3),
		.mode = SERVICE_IPIP,
		.hash = words_flag(w, 6, "source", "tuple") ? SERVICE_HASH_SOURCE
							    : SERVICE_HASH_TUPLE,
		.udp_move = words_flag(w, 7, "move", "stay"),
	};
	s->protocols = (uint8_t)((s->idle_tcp ? SERVICE_TCP | SERVICE_SCTP : 0) |
				 (s->idle_udp ? SERVICE_UDP : 0));
	p->kernel = kernel_new(s, p->hz, general_only);
	p->t = kernel_tables(p->kernel);
	p->slots_before = mem_zalloc(s->size, sizeof(*p->slots_before));
}

static void end(struct play *p)
{
	static const enum service_event pushed[] = {SERVICE_PUSHED_HALF, SERVICE_PUSHED_FOUND,
						    SERVICE_PUSHED_TALKS, SERVICE_PUSHED_CLOSED};

	for (unsigned level = 0; level < ARRAY_SIZE(pushed); level++)
		printf("pushed-out-%u %" PRIu64 "\n", level,
		       kernel_counted(p->kernel, pushed[level]));
	printf("not-stored %" PRIu64 "\n", kernel_counted(p->kernel, SERVICE_UNPINNED));
	printf("general-way %" PRIu64 "\n", kernel_general(p->kernel));
	kernel_free(p->kernel);
	free(p->slots_before);
	words_free(&p->words);
}

// ---- the pool -----------------------------------------------------------------------------------

static uint32_t id_of(const struct play *p)
{
	return words_u32(&p->words, 1, SERVICE_BACKENDS - 1);
}

static struct lb_member *pool_find(struct members *pool, uint32_t id)
{
	for (uint32_t i = 0; i < pool->n; i++)
		if (pool->at[i].id == id)
			return &pool->at[i];
	return NULL;
}

// The state for packets: a backend that does not count is drained too.
static void show_state(const struct play *p, uint32_t id)
{
	bool rests = p->state[id] == BACKEND_UP && !p->counts[id];

	p->t.backends[id].state = rests ? BACKEND_DRAIN : p->state[id];
}

static void put_backend(struct play *p)
{
	const struct words *w = &p->words;
	struct addr addr = words_addr(w, 2);
	struct lb_member *m = pool_find(&p->edited, id_of(p));

	if (!m && p->edited.n == POLICY_BACKENDS)
		words_fail(w, "too many backends");
	if (!m)
		m = &p->edited.at[p->edited.n++];
	*m = (struct lb_member){
		.id = (uint16_t)id_of(p),
		.family = addr.family,
		.port = (uint16_t)words_u32(w, 3, UINT16_MAX),
		.weight = words_u32(w, 4, POLICY_WEIGHT_MAX),
		.backup = words_flag(w, 6, "backup", "primary"),
	};
	memcpy(m->addr, addr.bytes, sizeof(m->addr));
	p->state[m->id] = (uint8_t)words_state(w, 5);
	kernel_backend(p->kernel, m->id, m->family, BACKEND_UP);
	show_state(p, m->id);
}

static void remove_backend(struct play *p)
{
	struct lb_member *m = pool_find(&p->edited, id_of(p));

	if (m)
		*m = p->edited.at[--p->edited.n];
}

// ---- slots --------------------------------------------------------------------------------------

// The pool with the present states of its backends, as a history has them: none is kept
// (lb_service_keep).
static struct lb_state balancer_of(struct play *p, struct members *pool, uint64_t *slots)
{
	p->service.n_members = pool->n;
	for (uint32_t i = 0; i < pool->n; i++) {
		pool->at[i].health = p->state[pool->at[i].id];
		pool->at[i].cut = pool->at[i].health != BACKEND_UP;
	}
	return (struct lb_state){&p->service, 1, pool->at, pool->n, slots, p->service.size};
}

static void change(struct play *p, struct members *pool, uint64_t *slots)
{
	struct lb_state b = balancer_of(p, pool, slots);
	bool empty;

	lb_service_change(&b, 0, *p->t.now, p->hz, &empty);
}

// Which backends get new flows in the active ring.
static void show_states(struct play *p)
{
	struct lb_state b = balancer_of(p, &p->running, p->t.slots);
	uint8_t states[POLICY_BACKENDS];

	lb_member_states(&b, &p->service, states);
	memset(p->counts, 0, sizeof(p->counts));
	for (uint32_t i = 0; i < p->running.n; i++)
		p->counts[p->running.at[i].id] = states[i] == BACKEND_UP;
	for (uint32_t id = 1; id < SERVICE_BACKENDS; id++)
		show_state(p, id);
}

// In the slots whose owner differs on trial, the previous ring looks for pins.
static void prepare_way_back(struct play *p)
{
	struct ring_rules rules = rules_of(p);

	for (uint32_t i = 0; i < p->service.size; i++)
		if (slot_owner(p->slots_before[i]) != slot_owner(p->t.slots[i]))
			p->slots_before[i] = ring_trial(p->slots_before[i], &rules);
}

static void extend(struct play *p, uint64_t *slots)
{
	struct ring_rules rules = rules_of(p);

	if (mends)
		ring_extend(slots, p->service.size, p->trial_end, &rules);
}

static void ring(struct play *p)
{
	p->running = p->edited;
	change(p, &p->running, p->t.slots);
	show_states(p);
	if (!p->trial)
		return;
	change(p, &p->before, p->slots_before);
	extend(p, p->slots_before);
	prepare_way_back(p);
}

static void begin_trial(struct play *p)
{
	p->trial_end = *p->t.now + longest_idle(p);
	extend(p, p->t.slots);
	memcpy(p->slots_before, p->t.slots, p->service.size * sizeof(*p->slots_before));
	p->before = p->running;
	p->running = p->edited;
	p->trial = true;
	change(p, &p->running, p->t.slots);
	show_states(p);
	prepare_way_back(p);
}

static void end_trial(struct play *p, bool back)
{
	p->trial = false;
	if (!back)
		return;
	memcpy(p->t.slots, p->slots_before, p->service.size * sizeof(*p->slots_before));
	p->edited = p->running = p->before;
	show_states(p);
}

static void trial(struct play *p)
{
	if (!strcmp(p->words.at[1], "begin"))
		begin_trial(p);
	else
		end_trial(p, words_flag(&p->words, 1, "back", "confirm"));
}

// In two steps, because packets may arrive in between.
static void tidy(struct play *p)
{
	const struct lb_service *s = &p->service;
	size_t words = (s->size + 63) / 64;
	CLEANUP_FREE uint64_t *foreign = mem_zalloc(words, sizeof(*foreign));
	uint32_t shift = pin_shift(p->hz);
	struct ring_rules rules = rules_of(p);
	struct ring_pins pins = {
		.words = p->t.pins,
		.n = (size_t)s->buckets * SERVICE_PIN_WORDS,
		.time = pin_time(*p->t.now, shift),
		.life = pin_life(longest_idle(p), shift),
		.linger = pin_linger(s->idle_tcp, p->hz, shift),
		.hash = (enum service_hash)s->hash,
	};

	memset(foreign, 0xff, words * sizeof(*foreign));
	ring_tidy_all(p->t.slots, foreign, s->size, &rules);
	ring_walk(&pins, p->t.slots, s->size, foreign);
	ring_tidy_all(p->t.slots, foreign, s->size, &rules);
}

static void set_hold(struct play *p)
{
	uint32_t hold = words_u32(&p->words, 1, SERVICE_HOLD_MAX);
	struct service row;

	if (mends && hold > p->service.hold)
		tidy(p);
	p->service.hold = hold;
	lb_service_value(&p->service, p->hz, &row);
	p->t.service->hold_ticks = row.hold_ticks;
}

static void print_digest(const struct play *p, const char *name, const uint64_t *words, size_t n)
{
	printf("%s %016" PRIx64 "\n", name,
	       (uint64_t)hash_bytes(&p->service.key, words, n * sizeof(*words), HASH_ROUNDS,
				    HASH_ROUNDS_FINAL));
}

// ---- packets ------------------------------------------------------------------------------------

static struct flow flow_of(const struct play *p)
{
	const struct words *w = &p->words;
	bool udp = !strcmp(w->at[1], "udp");

	return (struct flow){
		.proto = udp                               ? IPPROTO_UDP
			 : words_flag(w, 1, "tcp", "sctp") ? IPPROTO_TCP
							   : IPPROTO_SCTP,
		.src = words_addr(w, 2),
		.sport = (uint16_t)words_u32(w, 3, UINT16_MAX),
		.dst = words_addr(w, 4),
		.dport = (uint16_t)words_u32(w, 5, UINT16_MAX),
	};
}

static uint64_t hash_of(const struct play *p, const struct flow *f, bool source)
{
	const struct flow_key *key = &p->t.service->key;
	uint32_t src[4], dst[4], ports = flow_ports(f->sport, f->dport);

	memcpy(src, f->src.bytes, sizeof(src));
	memcpy(dst, f->dst.bytes, sizeof(dst));
	if (f->src.family == 4)
		return source ? flow_source4(key, src[0])
			      : flow_tuple4(key, src[0], dst[0], ports, f->proto);
	return source ? flow_source6(key, src) : flow_tuple6(key, src, dst, ports, f->proto);
}

// The flow's pin in its bucket; 0: no pin.
static uint64_t pin_of(const struct play *p, uint64_t hash)
{
	const uint64_t *bucket =
		p->t.pins + (size_t)pin_bucket_of(hash, p->service.buckets) * SERVICE_PIN_WORDS;

	for (int i = 0; i < SERVICE_PIN_WORDS; i++)
		if (bucket[i] && pin_flow(bucket[i]) == pin_flow_of(hash))
			return bucket[i];
	return 0;
}

// In a stable slot, and with `udp move`, no pin is looked for.
static bool is_looked_for(const struct play *p, const struct flow *f)
{
	bool source = p->service.hash == SERVICE_HASH_SOURCE;
	uint32_t slot = slot_of(hash_of(p, f, source), p->service.size);

	return slot_former(p->t.slots[slot]) && !(p->service.udp_move && f->proto == IPPROTO_UDP);
}

// A pin that is searched and still exists was found. Its time is the packet's, or it was young
// enough.
static const char *found(const struct play *p, const struct flow *f, uint64_t pin)
{
	if (!pin || !is_looked_for(p, f))
		return "-";
	return pin_time_of(pin) == pin_time(*p->t.now, pin_shift(p->hz)) ? "time" : "kept";
}

static void print_written(const struct play *p, const struct flow *f, const struct kernel_answer *a)
{
	uint64_t pin = pin_of(p, hash_of(p, f, false));

	if (a->event[SERVICE_PINNED_HALF] || a->event[SERVICE_PINNED_FOUND] ||
	    a->event[SERVICE_PINNED_CLOSED])
		printf("pin %u %u\n", pin_level(pin), pin_backend(pin));
	else if (a->event[SERVICE_UNPINNED])
		puts("not-stored");
	else if (a->event[SERVICE_MOVED])
		puts("moved");
	else if (a->event[SERVICE_REOPENED])
		puts("reopened");
	else
		puts(found(p, f, pin));
}

static enum packet_kind kind_of(const struct words *w)
{
	if (!strcmp(w->at[6], "closes"))
		return PACKET_CLOSES;
	return words_flag(w, 6, "opens", "other") ? PACKET_OPENS : PACKET_OTHER;
}

static void packet(struct play *p)
{
	struct flow f = flow_of(p);
	struct kernel_answer a;
	uint8_t frame[PACKET_MAX];
	size_t len = packet_make(&f, kind_of(&p->words), frame);

	kernel_send(p->kernel, frame, len, &a);
	if (a.backend == BACKEND_NONE)
		fputs("none ", stdout);
	else
		printf("%u ", a.backend);
	print_written(p, &f, &a);
}

// ---- events -------------------------------------------------------------------------------------

static void set_state(struct play *p)
{
	p->state[id_of(p)] = (uint8_t)words_state(&p->words, 2);
	show_state(p, id_of(p));
}

static void play_pool(struct play *p)
{
	const struct words *w = &p->words;

	if (words_are(w, "backend", 7))
		put_backend(p);
	else if (words_are(w, "remove", 2))
		remove_backend(p);
	else if (words_are(w, "state", 3))
		set_state(p);
	else
		words_fail(w, "unknown event '%s'", w->at[0]);
}

static void play(struct play *p)
{
	const struct words *w = &p->words;

	if (words_are(w, "packet", 7))
		packet(p);
	else if (words_are(w, "time", 2))
		*p->t.now = words_u64(w, 1, UINT64_MAX);
	else if (words_are(w, "ring", 1))
		ring(p);
	else if (words_are(w, "hold", 2))
		set_hold(p);
	else if (words_are(w, "tidy", 1))
		tidy(p);
	else if (words_are(w, "trial", 2))
		trial(p);
	else if (words_are(w, "slots", 1))
		print_digest(p, "slots", p->t.slots, p->service.size);
	else if (words_are(w, "pins", 1))
		print_digest(p, "pins", p->t.pins, (size_t)p->service.buckets * SERVICE_PIN_WORDS);
	else
		play_pool(p);
}

int main(int argc, char **argv)
{
	static struct play p;

	mends = argc == 2 && !strcmp(argv[1], "--mend");
	general_only = argc == 2 && !strcmp(argv[1], "--general");
	if (argc > 1 && !mends && !general_only) {
		fputs("usage: histories [--mend|--general] < HISTORY\n", stderr);
		return 2;
	}
	probe_quiet(true);
	begin(&p);
	while (words_next(&p.words, stdin))
		play(&p);
	end(&p);
	return 0;
}
