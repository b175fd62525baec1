// SPDX-License-Identifier: GPL-2.0-only
// Weir as a subject: a private instance, a policy from the real compiler, the real root program.
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/control/candidate.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/generation_load.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/instance_create.h"
#include "ctl/datapath/overlay.h"
#include "ctl/datapath/root_program.h"
#include "tests/bench/bench.h"
#include "tests/bench/subject.h"

#define IFACE   1
#define ONE_DAY 86400000
#define SEED    0x5eed0fbe0c400001ull // seed of the hashes of the overlay and of limits

struct weir {
	struct instance *instance;
	// They keep the links between their programs.
	struct generation *first, *generations[SUBJECT_LOADS];
	struct root_program *root;
	struct subject empty;
	struct ring_buffer *samples; // NULL: none are taken
};

static void release(void *own)
{
	struct weir *w = own;

	ring_buffer__free(w->samples);
	root_free(w->root);
	generation_free(w->first);
	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		generation_free(w->generations[i]);
	instance_free(w->instance);
	subject_free(&w->empty);
	free(w);
}

static void put_program(const struct weir *w, int program)
{
	uint32_t index = PROG_ACTIVE;

	if (bpf_map_update_elem(w->instance->progs, &index, &program, BPF_ANY))
		bench_fail(errno, "cannot write the program array");
}

static int ignore(void *ctx, void *data, size_t size)
{
	return 0;
}

static void choose(void *own, size_t load)
{
	const struct weir *w = own;

	if (w->samples)
		ring_buffer__consume(w->samples);
	if (w->generations[load])
		put_program(w, generation_program(w->generations[load]));
}

// ---- services -----------------------------------------------------------------------------------

// All backends are on the interface on which packets arrive, in both families.
static void invent_nexthops(struct candidate *c)
{
	static const struct addr source4 = {.family = 4, .bytes = {10, 0, 0, 1}};
	static const struct addr source6 = {.family = 6, .bytes = {0xfd, [15] = 1}};
	struct lb_apply *s = &c->lb;

	for (size_t v = 0; v < c->resolved->n_services; v++)
		s->n_nexthops += c->resolved->services[v].n_backends;
	s->nexthops = mem_zalloc(s->n_nexthops, sizeof(*s->nexthops));
	for (size_t v = 0, h = 0; v < c->resolved->n_services; v++) {
		const struct resolved_service *service = &c->resolved->services[v];

		for (size_t b = 0; b < service->n_backends; b++)
			s->nexthops[h++].hop = (struct nexthop){
				.ifindex = 1,
				.mtu = 1600,
				.mac = {2, 0, 0, 0, 1, (uint8_t)b},
				.mac_own = {2, 0, 0, 0, 0, 2},
				.source = service->backends[b].addr.family == 4 ? source4 : source6,
				.xmit = NEXTHOP_XMIT_YES,
			};
	}
}

// Gives each slot a former owner, as if it had just changed: the owner of a neighbouring slot.
static void change_slots(struct lb_state *b, uint64_t jiffies)
{
	uint32_t other = BACKEND_NONE, last = slot_owner(b->slots[b->n_slots - 1]);

	for (size_t n = 0; n < b->n_slots; n++) {
		uint32_t owner = slot_owner(b->slots[n]);

		other = owner != last ? last : other;
		last = owner;
		b->slots[n] = slot_pack(owner, other, slot_time(jiffies));
	}
}

// Connections of nat and fullnat are in a table of the instance.
static bool translates(const struct candidate *c)
{
	for (size_t s = 0; s < c->resolved->n_services; s++)
		if (service_mode_does(c->resolved->services[s].mode) & MODE_NAT)
			return true;
	return false;
}

static int plan_services(const struct weir *w, const struct weir_options *o, struct candidate *c,
			 struct err *err)
{
	struct clock now;
	int code;

	invent_nexthops(c);
	if ((code = instance_clock(w->instance, &now, err)) ||
	    (code = lb_apply_plan(&c->lb, c->resolved, NULL, 0, c->diag, err)))
		return code;
	if (translates(c) && (code = nat_apply_prepare(&c->lb.nat, w->instance, &c->lb.clock, err)))
		return code;
	if (o->changing)
		change_slots(c->lb.lb, now.jiffies);
	return 0;
}

static int load_generations(struct weir *w, const struct candidate *c, struct err *err)
{
	const struct generation_options options = {.load = c->resolved->n_services ? &c->lb.load
										   : NULL};
	int code;

	for (size_t i = 0; i < SUBJECT_LOADS; i++) {
		struct generation **g = &w->generations[i];

		if ((code = generation_load(w->instance, c->image, &options, g, NULL, err)) ||
		    (code = generation_set_iface(*g, IFACE, 1, err)))
			return code;
	}
	return 0;
}

static void add_quick(struct candidate *c, const char *words)
{
	static const struct quick_place at_the_end;
	struct quick_rule rule = {.by = mem_strdup("bench"), .note = mem_strdup("")};
	struct err err = {0};

	if (quick_read_words(words, NULL, &rule, &err) ||
	    quick_insert(&c->quick, &rule, &at_the_end, &err))
		bench_die(&err);
	quick_free_rule(&rule);
}

static int load_policy(struct weir *w, const struct weir_options *o, struct err *err)
{
	static const struct dns_options none;
	CLEANUP_CANDIDATE struct candidate *c = candidate_new(&none, NULL);
	int code;

	if (o->quick)
		add_quick(c, o->quick);
	if (candidate_compile(c, o->policy, NULL, 0)) {
		diag_print(c->diag, stderr, false);
		bench_fail(EINVAL, "'%s' does not compile", o->policy);
	}
	for (size_t r = 0; r < c->image->n_rules; r++)
		c->image->rules[r].counter = (uint32_t)r;
	if (c->resolved->n_services && (code = plan_services(w, o, c, err)))
		return code;
	return load_generations(w, c, err);
}

static int block(const struct weir *w, const struct set *s, struct err *err)
{
	CLEANUP_FREE struct overlay_entry *want = mem_zalloc(s->n, sizeof(*want));
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	int code;

	for (size_t i = 0; i < s->n; i++)
		want[i] = (struct overlay_entry){
			.prefix = s->at[i], .kind = OVERLAY_BLOCK_FROM, .until = OVERLAY_FOREVER};
	code = overlay_stage_whole(w->instance, want, s->n, &plan, err);
	if (code)
		return code;
	overlay_commit(w->instance, &plan);
	return 0;
}

static void arm(const struct weir *w)
{
	struct clock clock;
	struct err err = {0};

	if (instance_clock(w->instance, &clock, &err))
		bench_die(&err);
	w->instance->knobs->deadline = clock_after_ms(&clock, ONE_DAY);
}

void subject_weir_sample(const struct subject *s, uint32_t share)
{
	const struct weir *w = s->own;
	struct clock clock;
	struct err err = {0};

	if (instance_clock(w->instance, &clock, &err))
		bench_die(&err);
	w->instance->knobs->sample_until = clock_after_ms(&clock, ONE_DAY);
	w->instance->knobs->sample = w->instance->knobs->chosen = share;
}

static int make_instance(struct weir *w, const struct weir_options *o, struct err *err)
{
	uint32_t room = o->blocked ? (uint32_t)o->blocked->n + 1 : 1024;
	int code = instance_create_private(room, &w->instance, &w->first, err);

	// The lines of the overlay are the same in each run. With a random seed, one run in 500 had
	// the line of a row's only client full, so that its packets took the general way: 1,113
	// instructions in place of 736.
	if (!code)
		w->instance->knobs->seed = SEED;
	return code ? code : root_open(w->instance, &w->root, err);
}

static void load_root(const struct weir *w, struct subject *ret)
{
	int program = root_load(w->root);

	if (program < 0)
		bench_fail(-program, "cannot load the root program");
	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		ret->programs[i] = program;
	subject_weir_iface(ret, 1);
}

// They are read whenever the subject is chosen, so that the ring does not fill.
static void take_samples(const struct subject *s, struct weir *w, uint32_t share)
{
	w->samples = ring_buffer__new(w->instance->samples, ignore, NULL, NULL);
	if (!w->samples)
		bench_fail(errno, "cannot read samples");
	subject_weir_sample(s, share);
}

static void refuse(const struct err *err, struct subject *ret)
{
	ret->loads = 0;
	ret->skipped = mem_printf("%s%s%s", err->text, err->hint[0] ? ": " : "", err->hint);
}

void subject_weir(const struct weir_options *o, struct subject *ret)
{
	struct weir *w = mem_new(struct weir);
	struct err err = {0};

	*ret = (struct subject){.name = "weir",
				.loads = o->policy ? SUBJECT_LOADS : 1,
				.own = w,
				.choose = choose,
				.release = release};
	if (make_instance(w, o, &err)) {
		refuse(&err, ret);
		return;
	}
	load_root(w, ret);
	if ((o->policy && load_policy(w, o, &err)) || (o->blocked && block(w, o->blocked, &err))) {
		refuse(&err, ret);
		return;
	}
	if (o->armed)
		arm(w);
	if (o->sample)
		take_samples(ret, w, o->sample);
	if (o->root_only) {
		subject_empty(&w->empty);
		put_program(w, subject_load(&w->empty, 0));
	}
}

void subject_weir_iface(struct subject *s, uint32_t ifindex)
{
	const struct weir *w = s->own;
	struct iface row = {.name = "bench", .ifindex = ifindex, .state = IFACE_ATTACHED};
	struct err err = {0};

	if (instance_set_iface(w->instance, IFACE, &row, &err))
		bench_die(&err);
	iface_table_set(w->instance->knobs, ifindex, IFACE);
}

int subject_weir_policy(const struct subject *s)
{
	const struct weir *w = s->own;
	uint32_t index = PROG_ACTIVE, id;
	int program;

	subject_load(s, 0);
	if (bpf_map_lookup_elem(w->instance->progs, &index, &id))
		bench_fail(errno, "cannot read the program array");
	program = bpf_prog_get_fd_by_id(id);
	if (program < 0)
		bench_fail(-program, "cannot open the policy");
	return program;
}
