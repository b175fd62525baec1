// SPDX-License-Identifier: GPL-2.0-only
// Compiles and loads a policy around a rig's maps, as `apply` does around an instance's.
#include "tests/datapath/balance_rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/answers.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/stations.h"
#include "ctl/datapath/test_program.h"

#define COUNTERS 256                                              // the maximum in these tests
#define WORDS    (sizeof(struct service_counter) / sizeof(__u64)) // it has nothing else

_Noreturn static void die(int code, const char *what)
{
	struct err err = {0};

	err_system(&err, code, "%s", what);
	test_die(&err);
}

// From the text to the kernel

void balance_rig_compile(struct candidate *c, const char *policy)
{
	size_t len = strlen(policy);
	CLEANUP_FD int fd = memfd_create("policy", MFD_CLOEXEC);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, policy, len) != (ssize_t)len)
		die(errno, "cannot keep a policy");
	if (!candidate_compile(c, path, NULL, 0))
		return;
	diag_print(c->diag, stderr, false);
	exit(2);
}

static bool log_all, leave_nat;

void balance_rig_log_all(bool yes)
{
	log_all = yes;
}

void balance_rig_leave_nat(bool yes)
{
	leave_nat = yes;
}

// Services and ends as a policy has them after one in which they were in nat and fullnat.
static void set_former(struct lb_apply *lb)
{
	for (size_t s = 0; s < lb->lb->n_services; s++)
		lb->lb->services[s].mode = SERVICE_DR;
	for (uint32_t e = 0; e < NAT_ENDS; e++)
		if (lb->nat.plan->use[e].mode != NAT_USE_NONE)
			lb->nat.plan->use[e].mode = NAT_USE_FORMER;
}

static void plan(struct balance_rig *b)
{
	struct candidate *c = b->c;
	struct err err = {0};

	if (lb_apply_plan(&c->lb, c->resolved, NULL, 0, c->diag, &err) ||
	    nat_apply_prepare(&c->lb.nat, b->rig->instance, &c->lb.clock, &err))
		test_die(&err);
	if (leave_nat)
		set_former(&c->lb);
}

static void load(struct balance_rig *b)
{
	struct generation_options options = {.load = &b->c->lb.load};
	struct err err = {0};

	options.malformed_pass = b->c->resolved->malformed_pass;
	options.general_only = rig_is_general_only();
	options.reorders = rig_is_reordering();
	for (size_t r = 0; r < b->c->image->n_rules; r++) {
		b->c->image->rules[r].counter = (uint32_t)r;
		if (log_all)
			b->c->image->rules[r].log_interval = 0;
	}
	if (generation_load(b->rig->instance, b->c->image, &options, &b->c->generation, &b->cost,
			    &err))
		test_die(&err);
}

static void link_devices(const struct balance_rig *b)
{
	uint32_t out = BALANCE_OUT, in = b->rig->ifindex;

	if (bpf_map_update_elem(b->c->generation->fd[PART_EGRESS], &out, &in, BPF_ANY))
		die(errno, "cannot redirect to a device");
}

static void map_backends(struct balance_rig *b)
{
	int fd = b->c->generation->fd[PART_BACKENDS];
	struct err err = {0};
	size_t bytes;

	if (mapping_bytes(fd, &bytes, &err) || mapping_open(&b->backends, fd, bytes, &err))
		test_die(&err);
}

static void map_budgets(struct balance_rig *b)
{
	int fd = b->rig->instance->budgets;
	struct err err = {0};
	uint32_t n;

	if (mapping_entries(fd, &n, &err) || mapping_open(&b->budgets, fd, n * sizeof(__u64), &err))
		test_die(&err);
}

static void map_votes(struct balance_rig *b)
{
	int fd = b->rig->instance->pathvotes;
	struct err err = {0};
	size_t bytes;

	if (mapping_bytes(fd, &bytes, &err) || mapping_open(&b->votes, fd, bytes, &err))
		test_die(&err);
}

void balance_rig_forget_answers(struct balance_rig *b)
{
	memset(b->budgets.at, 0, b->budgets.size);
}

static uint32_t count_ids(const struct lb_state *state)
{
	uint32_t ids = 0;

	for (size_t s = 0; s < state->n_services; s++)
		ids = state->services[s].id >= ids ? state->services[s].id + 1u : ids;
	for (size_t m = 0; m < state->n_members; m++)
		ids = state->members[m].id >= ids ? state->members[m].id + 1u : ids;
	if (ids > COUNTERS)
		die(E2BIG, "cannot look at so many backends");
	return ids;
}

struct balance_rig *balance_rig_new(struct rig *rig, const char *policy)
{
	static const struct dns_options no_names;
	struct balance_rig *b = mem_new(struct balance_rig);

	b->rig = rig;
	b->c = candidate_new(&no_names, NULL);
	balance_rig_compile(b->c, policy);
	plan(b);
	load(b);
	link_devices(b);
	map_backends(b);
	map_budgets(b);
	map_votes(b);
	rig_policy(rig, PROG_ACTIVE, b->c->generation);
	rig_iface(rig, RIG_IFACE);
	b->ids = count_ids(b->c->lb.lb);
	b->counts = mem_zalloc(b->ids, sizeof(*b->counts));
	return b;
}

void balance_rig_free(struct balance_rig *b)
{
	if (!b)
		return;
	rig_policy(b->rig, PROG_ACTIVE, b->rig->policy);
	mapping_close(&b->backends);
	mapping_close(&b->budgets);
	mapping_close(&b->votes);
	test_program_free(b->general);
	candidate_free(b->c);
	free(b->counts);
	free(b);
}

// Next hops

static bool number(const char *text, uint32_t max, uint32_t *ret)
{
	return text && !num_parse_u32(text, strlen(text), 0, max, ret);
}

static bool mac(const char *text, uint8_t ret[6])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < 6; i++) {
		const char *high = text && text[0] ? strchr(digits, text[0]) : NULL;
		const char *low = high && text[1] ? strchr(digits, text[1]) : NULL;

		if (!low)
			return false;
		ret[i] = (uint8_t)((high - digits) << 4 | (low - digits));
		text += 3;
	}
	return true;
}

static bool device(const struct balance_rig *b, const char *text, uint32_t *ret)
{
	const struct {
		const char *name;
		uint32_t ifindex;
	} devices[] = {
		{"in", b->rig->ifindex}, {"out", BALANCE_OUT}, {"lost", BALANCE_LOST}, {"none", 0}};

	for (size_t d = 0; text && d < ARRAY_SIZE(devices); d++)
		if (!strcmp(devices[d].name, text)) {
			*ret = devices[d].ifindex;
			return true;
		}
	return false;
}

static bool source(const char *text, struct backend *ret)
{
	struct prefix p;

	if (!text || prefix_parse_quiet(text, strlen(text), &p, NULL))
		return false;
	memcpy(ret->source, p.addr.bytes, sizeof(ret->source));
	ret->source_len = p.len;
	return true;
}

// So many seconds ago, in the unit of backends, rounded up.
static uint32_t ticks(const struct balance_rig *b, uint32_t ago_s)
{
	uint32_t shift = pin_shift(clock_hz());
	uint32_t now = pin_time(rig_clock(b->rig).jiffies, shift);

	return now - pin_ticks((uint64_t)ago_s * clock_hz(), shift);
}

static bool word(const struct balance_rig *b, const char *name, const char *value,
		 struct backend *backend)
{
	uint32_t n = 0;
	bool good;

	if (!strcmp(name, "mac"))
		return mac(value, backend->mac);
	if (!strcmp(name, "own"))
		return mac(value, backend->mac_own);
	if (!strcmp(name, "device"))
		return device(b, value, &backend->ifindex);
	if (!strcmp(name, "source"))
		return source(value, backend);
	good = number(value, UINT16_MAX, &n);
	if (!strcmp(name, "vlan"))
		backend->vlan = (uint16_t)n;
	else if (!strcmp(name, "mtu"))
		backend->mtu = (uint16_t)n;
	else if (!strcmp(name, "path"))
		backend->path = path_pack(n, ticks(b, 0));
	else if (!strcmp(name, "path-age"))
		backend->path = path_pack(path_mtu(backend->path), ticks(b, n));
	else if (!strcmp(name, "no-xmit"))
		backend->no_xmit = n != 0;
	else
		return false;
	return good;
}

bool balance_rig_hop(struct balance_rig *b, char *text)
{
	const char *service = strsep(&text, " "), *address = strsep(&text, " ");
	struct backend backend;
	uint32_t id;

	if (!address || !balance_rig_id(b, service, address, &id))
		return false;
	backend = b->c->lb.backends[id];
	while (text) {
		const char *name = strsep(&text, " "), *value = strsep(&text, " ");

		if (!word(b, name, value, &backend))
			return false;
	}
	lb_backend_complete(&backend);
	((struct backend *)b->backends.at)[id] = backend;
	return true;
}

bool balance_rig_own(struct balance_rig *b, const char *text)
{
	CLEANUP_VEC VEC(struct addr) all = {0};
	struct err err = {0};

	for (; *text; text += strcspn(text, " "), text += strspn(text, " "))
		if (addr_parse(text, strcspn(text, " "), vec_add(&all), NULL))
			return false;
	if (own_write(b->rig->instance, all.at, all.n, &err))
		test_die(&err);
	return true;
}

bool balance_rig_stations(struct balance_rig *b, const char *text)
{
	CLEANUP_STATIONS struct stations stations = {0};
	struct err err = {0};

	for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
		uint8_t bytes[6];

		if (!mac(text, bytes))
			return false;
		vec_push(&stations, ((struct station){RIG_IFACE, station_of(bytes)}));
	}
	if (stations_write(b->rig->instance, &stations, &err))
		test_die(&err);
	return true;
}

// The pins of a service, mapped; its number of buckets is the caller's.
static const struct lb_service *map_pins(const struct balance_rig *b, const char *name,
					 struct mapping *m)
{
	const struct lb_state *lb = b->c->lb.load.lb;
	struct err err = {0};

	for (uint32_t n = 0; n < lb->n_services; n++) {
		const struct lb_service *s = &lb->services[n];

		if (strcmp(s->name, name) != 0)
			continue;
		if (mapping_open(m, b->c->generation->pins.at[n].fd,
				 (size_t)s->buckets * sizeof(struct pin_bucket), &err))
			test_die(&err);
		return s;
	}
	return NULL;
}

bool balance_rig_pin(struct balance_rig *b, const char *service, const char *address, uint64_t hash)
{
	CLEANUP_MAPPING struct mapping m = {0};
	const struct lb_service *s;
	uint32_t id;

	if (!balance_rig_id(b, service, address, &id) || !(s = map_pins(b, service, &m)))
		return false;
	((struct pin_bucket *)m.at)[pin_bucket_of(hash, s->buckets)].pin[0] =
		pin_pack(pin_flow_of(hash), id, PIN_TALKS, ticks(b, 0));
	return true;
}

void balance_rig_unpin(struct balance_rig *b)
{
	const struct lb_state *lb = b->c->lb.load.lb;

	for (uint32_t n = 0; n < lb->n_services; n++) {
		CLEANUP_MAPPING struct mapping m = {0};

		if (map_pins(b, lb->services[n].name, &m))
			memset(m.at, 0, m.size);
	}
	memset(b->votes.at, 0, b->votes.size);
}

uint32_t balance_rig_path(const struct balance_rig *b, uint32_t id)
{
	return path_mtu(((const struct backend *)b->backends.at)[id].path);
}

// Answers to checks via path

static bool answer_end(const char *address, const char *port, __u32 ret_address[4], __u16 *ret_port)
{
	struct addr a;
	uint32_t n;

	if (!address || addr_parse(address, strlen(address), &a, NULL) ||
	    !number(port, UINT16_MAX, &n))
		return false;
	memcpy(ret_address, a.bytes, sizeof(a.bytes));
	*ret_port = (__u16)n;
	return true;
}

bool balance_rig_await(struct balance_rig *b, char *text)
{
	const char *proto = strsep(&text, " ");
	const char *words[5];
	struct answer_key *key = &b->awaited;
	uint32_t ms;

	for (size_t n = 0; n < ARRAY_SIZE(words); n++)
		words[n] = strsep(&text, " ");
	*key = (struct answer_key){0};
	return number(proto, UINT8_MAX, &key->proto) &&
	       answer_end(words[0], words[1], key->source, &key->sport) &&
	       answer_end(words[2], words[3], key->dest, &key->dport) &&
	       number(words[4], UINT32_MAX, &ms) && !answers_await(b->rig->instance, key, ms);
}

void balance_rig_await_nothing(struct balance_rig *b)
{
	answers_forget(b->rig->instance, &b->awaited);
}

// Counters

static uint64_t tallied(const struct balance_rig *b, enum weir_tally which)
{
	struct counters *now = mem_new(struct counters);
	struct err err = {0};
	uint64_t n;

	if (counters_read(b->rig->instance, now, &err))
		test_die(&err);
	n = now->tally[which];
	free(now);
	return n;
}

uint64_t balance_rig_foreign(const struct balance_rig *b)
{
	return tallied(b, TALLY_FOREIGN);
}

uint64_t balance_rig_limited(const struct balance_rig *b)
{
	return tallied(b, TALLY_REPLY_LIMIT);
}

bool balance_rig_id(const struct balance_rig *b, const char *service, const char *address,
		    uint32_t *ret)
{
	const struct lb_state *state = b->c->lb.lb;
	const struct lb_service *s = lb_state_find(state, service);
	const struct lb_member *m;
	struct addr a;
	bool here = address && !strcmp(address, "here");

	if (!s)
		return false;
	*ret = s->id;
	if (!address)
		return true;
	if (!here && addr_parse(address, strlen(address), &a, NULL))
		return false;
	m = lb_state_find_member(state, s, here ? NULL : &a, 0);
	if (m)
		*ret = m->id;
	return m != NULL;
}

const char *balance_rig_name(const struct balance_rig *b, uint32_t id, char *buf, size_t size)
{
	const struct lb_state *state = b->c->lb.lb;
	struct addr a;
	addr_text text;

	snprintf(buf, size, "id %u", id);
	for (size_t s = 0; s < state->n_services; s++)
		if (state->services[s].id == id)
			snprintf(buf, size, "service %s", state->services[s].name);
	for (size_t m = 0; m < state->n_members; m++)
		if (state->members[m].id == id) {
			lb_member_address(&state->members[m], &a);
			snprintf(buf, size, "backend %s",
				 a.family ? addr_format(&a, text) : "here");
		}
	return buf;
}

// `n` elements of a per-CPU array from `first` on, each with `words` words for each CPU. The caller
// frees them.
static __u64 *read_counters(int fd, uint32_t first, uint32_t n, size_t words, size_t *ret_cpus)
{
	struct err err = {0};
	__u64 *values;
	int code = percpu_values(n, words * sizeof(*values), &values, ret_cpus, &err);

	if (code)
		test_die(&err);
	if ((code = percpu_read(fd, first, n, values)))
		die(-code, "cannot read counters");
	return values;
}

static void sum_cpus(const __u64 *values, size_t cpus, size_t words, __u64 *ret)
{
	memset(ret, 0, words * sizeof(*ret));
	for (size_t n = 0; n < cpus * words; n++)
		ret[n % words] += values[n];
}

const struct service_counter *balance_rig_moved(struct balance_rig *b)
{
	static struct service_counter moved[COUNTERS];
	size_t cpus;
	CLEANUP_FREE __u64 *values =
		read_counters(b->c->generation->fd[PART_BACKEND_COUNTERS], 0, b->ids, WORDS, &cpus);

	for (uint32_t id = 0; id < b->ids; id++) {
		struct service_counter now, *was = &b->counts[id];

		sum_cpus(values + id * cpus * WORDS, cpus, WORDS, (__u64 *)&now);
		for (size_t w = 0; w < WORDS; w++)
			((__u64 *)&moved[id])[w] =
				((const __u64 *)&now)[w] - ((const __u64 *)was)[w];
		*was = now;
	}
	return moved;
}

void balance_rig_reasons(struct balance_rig *b, struct outcome *o)
{
	const size_t words = sizeof(struct counter) / sizeof(__u64);
	size_t cpus;
	CLEANUP_FREE __u64 *values =
		read_counters(b->rig->instance->counters, RIG_IFACE * WEIR_REASON_COUNT,
			      WEIR_REASON_COUNT, words, &cpus);

	o->moved_n = 0;
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++) {
		struct counter now, *was = &b->reasons[r];

		sum_cpus(values + r * cpus * words, cpus, words, (__u64 *)&now);
		if (now.packets != was->packets && o->moved_n < ARRAY_SIZE(o->moved))
			o->moved[o->moved_n++] = (struct moved){
				.number = RIG_IFACE,
				.reason = (enum weir_reason)r,
				.by = {now.packets - was->packets, now.bytes - was->bytes},
			};
		*was = now;
	}
}

// A test program sees all changes of a packet in the tables. It is loaded when it is asked first.
static struct test_result ask(const struct balance_rig *b, const struct generation *g,
			      struct test_program **program, const struct frame *f)
{
	const struct policy_test question = {.live = 1};
	struct test_result result;
	struct err err = {0};

	if ((!*program && test_program_open(b->rig->instance, g, program, &err)) ||
	    test_program_run(*program, f->at, f->len, &question, &result, &err))
		test_die(&err);
	return result;
}

struct test_result balance_rig_ask(struct balance_rig *b, const struct frame *f)
{
	return ask(b, b->c->generation, &b->c->test, f);
}

struct test_result balance_rig_ask_general(struct balance_rig *b, const struct frame *f)
{
	struct generation alone = *b->c->generation;

	alone.fd[PART_PROGRAM] = generation_program_of(&alone, GENERATION_GENERAL);
	alone.fd[PART_GENERAL] = -1;
	return ask(b, &alone, &b->general, f);
}

// Where the checksum of GUE in IPv6 is in a frame around TCP whose own checksum is 0; else 0.
static size_t sum_of_zero(const struct test_result *t)
{
	const uint8_t *f = t->packet;
	size_t ip = f[12] == 0x81 ? 18 : 14, inner = ip + 40 + 8, tcp;

	if (t->length < inner + 40 || f[ip] >> 4 != 6 || f[ip + 6] != IPPROTO_UDP)
		return 0;
	tcp = inner + (f[inner] >> 4 == 4 ? 20 : 40);
	return t->length >= tcp + 20 && !f[tcp + 16] && !f[tcp + 17] ? ip + 46 : 0;
}

// The general program adds such a packet up, so that only the inner checksum is wrong.
static bool is_same_frame(const struct test_result *test, const struct test_result *general)
{
	size_t sum = sum_of_zero(test);

	if (test->length != general->length)
		return false;
	return !memcmp(test->packet, general->packet, sum ? sum : test->length) &&
	       (!sum ||
		!memcmp(test->packet + sum + 2, general->packet + sum + 2, test->length - sum - 2));
}

const char *balance_rig_difference(const struct test_result *test,
				   const struct test_result *general)
{
	if (!general->general)
		return "the general program has not seen it";
	if (test->verdict != general->verdict)
		return "the general program has another verdict";
	if (test->reason != general->reason || test->rule != general->rule)
		return "the general program has another reason";
	if (test->service != general->service || test->backend != general->backend)
		return "the general program has another service or backend";
	if (test->service >= 0 &&
	    (test->passed != general->passed || test->slot != general->slot ||
	     test->slot_word != general->slot_word || test->pinned != general->pinned))
		return "the general program has another slot or pin";
	if (!is_same_frame(test, general))
		return "the general program has another output frame";
	return NULL;
}
