// SPDX-License-Identifier: GPL-2.0-only
// Reads the overlay as a list, and stages the difference between what is there and what is wanted.
#include "ctl/datapath/overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/overlay_table.h"

_Static_assert(TABLES == OVERLAY_TABLES, "one number of maps");

struct overlay_dead {
	enum overlay_table table;
	union overlay_key key;
};

static bool committed(const struct instance *i, uint64_t epoch)
{
	return epoch && epoch <= i->knobs->epoch;
}

// The states of a host that are in force, by kind.
static const __u64 *host_states(const struct instance *i, const struct overlay_host *h)
{
	return committed(i, h->epoch) ? h->next : h->now;
}

static uint64_t net_own(const struct instance *i, const struct overlay_net *n)
{
	return committed(i, n->epoch) ? n->own_next : n->own_now;
}

static uint64_t net_state(const struct instance *i, const struct overlay_net *n)
{
	return committed(i, n->epoch) ? n->next : n->now;
}

// Reading

static void add_host(const struct instance *i, const struct overlay_raw *raw,
		     struct overlay_entries *ret)
{
	const __u64 *states = host_states(i, &raw->value.host);

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
		if (states[kind])
			*vec_add(ret) = (struct overlay_entry){
				.prefix = raw->prefix,
				.kind = kind,
				.until = states[kind],
				.hits = raw->value.host.hits[kind],
				.seen = raw->value.host.seen,
			};
}

static void add_net(const struct instance *i, const struct overlay_raw *raw,
		    struct overlay_entries *ret)
{
	uint64_t own = net_own(i, &raw->value.net);

	if (own)
		*vec_add(ret) = (struct overlay_entry){
			.prefix = raw->prefix,
			.kind = raw->kind,
			.until = own,
			.hits = raw->value.net.hits,
			.seen = raw->value.net.seen,
		};
}

static void add_entries(const struct instance *i, enum overlay_table t,
			const struct overlay_raw *raw, struct overlay_entries *ret)
{
	if (table_is_hosts(t))
		add_host(i, raw, ret);
	else
		add_net(i, raw, ret);
}

static int compare_entries(const void *a, const void *b)
{
	const struct overlay_entry *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order ? order : (int)x->kind - (int)y->kind;
}

static void entries_free(struct overlay_entries *entries)
{
	vec_free(entries);
}
#define CLEANUP_ENTRIES CLEANUP(entries_free)

struct overlay_visit {
	const struct instance *instance;
	int (*visit)(void *ctx, const struct overlay_entry *entry);
	void *ctx;
};

static int visit_raw(void *ctx, enum overlay_table t, const struct overlay_raw *raw)
{
	const struct overlay_visit *v = ctx;
	CLEANUP_ENTRIES struct overlay_entries entries = {0};

	add_entries(v->instance, t, raw, &entries);
	vec_each (&entries, entry) {
		int code = v->visit(v->ctx, entry);

		if (code)
			return code;
	}
	return 0;
}

int overlay_each(const struct instance *i,
		 int (*visit)(void *ctx, const struct overlay_entry *entry), void *ctx,
		 struct err *err)
{
	struct overlay_visit v = {.instance = i, .visit = visit, .ctx = ctx};

	for (enum overlay_table t = 0; t < TABLES; t++) {
		int code = table_each(i, t, visit_raw, &v, err);

		if (code)
			return code;
	}
	return 0;
}

static int keep_entry(void *ctx, const struct overlay_entry *entry)
{
	struct overlay_entries *ret = ctx;

	vec_push(ret, *entry);
	return 0;
}

int overlay_read(const struct instance *i, struct overlay_entries *ret, struct err *err)
{
	CLEANUP_ENTRIES struct overlay_entries entries = {0};
	int code = overlay_each(i, keep_entry, &entries, err);

	if (code)
		return code;
	if (entries.n)
		qsort(entries.at, entries.n, sizeof(*entries.at), compare_entries);
	*ret = entries;
	entries = (struct overlay_entries){0};
	return 0;
}

int overlay_read_one(const struct instance *i, const struct prefix *p,
		     struct overlay_entry ret[OVERLAY_KINDS], size_t *ret_n, struct err *err)
{
	enum overlay_table t = table_of(p);
	CLEANUP_ENTRIES struct overlay_entries entries = {0};

	for (uint8_t kind = 0; kind < (table_is_hosts(t) ? 1 : OVERLAY_KINDS); kind++) {
		struct overlay_raw raw = {.prefix = *p, .kind = kind};
		union overlay_key key;

		table_key(t, p, kind, &key);
		if (!bpf_map_lookup_elem(table_fd(i, t), &key, &raw.value))
			add_entries(i, t, &raw, &entries);
		else if (errno != ENOENT)
			return err_system(err, errno, "cannot read the overlay");
	}
	if (entries.n)
		memcpy(ret, entries.at, entries.n * sizeof(*entries.at));
	*ret_n = entries.n;
	return 0;
}

int overlay_fill(const struct instance *i, size_t ret_n[OVERLAY_TABLES], struct err *err)
{
	for (enum overlay_table t = 0; t < TABLES; t++) {
		CLEANUP_RAWS struct overlay_raws raws = {0};
		int code = table_read(i, t, &raws, err);

		if (code)
			return code;
		ret_n[t] = raws.n;
	}
	return 0;
}

// Staging: for each map a list of elements to write

struct overlay_change {
	union overlay_key key;
	union overlay_value value; // of a new element; of an old one only next, own_next
	bool old;
};
struct overlay_changes {
	struct overlay_change *at;
	size_t n, cap;
};

struct overlay_stage {
	const struct instance *instance;
	const struct overlay_want *want;
	size_t want_n;
	uint64_t now; // jiffies
	uint32_t hz;
	struct overlay_changes changes[TABLES];
	VEC(struct overlay_dead) dead;    // to be removed after the commit
	VEC(struct overlay_dead) expired; // to be removed at once: they have no effect
	size_t used[TABLES];              // elements of each map
	struct overlay_plan plan;
};

static void stage_free(struct overlay_stage *s)
{
	for (enum overlay_table t = 0; t < TABLES; t++)
		vec_free(&s->changes[t]);
	vec_free(&s->dead);
	vec_free(&s->expired);
}

static struct overlay_dead dead_key(enum overlay_table t, const struct prefix *p, uint8_t kind)
{
	struct overlay_dead dead = {.table = t};

	table_key(t, p, kind, &dead.key);
	return dead;
}

// Expiries are converted from wall-clock seconds at each command: a difference of less than two seconds comes from
// the clocks, not from the user.
static bool same_state(const struct overlay_stage *s, uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return a == b || (a && b && a != OVERLAY_FOREVER && b != OVERLAY_FOREVER &&
			  apart < 2 * (uint64_t)s->hz);
}

static void tally(struct overlay_stage *s, uint64_t old, uint64_t new)
{
	if (!old && new)
		s->plan.added++;
	else if (old && !new)
		s->plan.removed++;
	else if (!same_state(s, old, new))
		s->plan.changed++;
}

static void use_host_bits(struct overlay_stage *s, enum overlay_table t, const uint64_t states[])
{
	uint32_t from = t == TABLE_HOSTS4 ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS6_FROM;
	uint32_t to = t == TABLE_HOSTS4 ? OVERLAY_HOSTS4_TO : OVERLAY_HOSTS6_TO;

	if (states[OVERLAY_BLOCK_FROM] || states[OVERLAY_ALLOW_FROM])
		s->plan.bits |= from;
	if (states[OVERLAY_BLOCK_TO] || states[OVERLAY_ALLOW_TO])
		s->plan.bits |= to;
}

// One host: its element (NULL: it has none) and the wanted states.
static void stage_host(struct overlay_stage *s, enum overlay_table t, const struct prefix *p,
		       const struct overlay_raw *raw, const uint64_t want[OVERLAY_KINDS])
{
	static const __u64 nothing[OVERLAY_KINDS];
	const __u64 *have = raw ? host_states(s->instance, &raw->value.host) : nothing;
	struct overlay_change change = {.old = raw};
	bool wanted = false, differs = false, alive = false;

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		wanted |= want[kind] != 0;
		alive |= have[kind] > s->now;
		differs |= !same_state(s, have[kind], want[kind]);
		tally(s, have[kind], want[kind]);
		change.value.host.next[kind] =
			same_state(s, have[kind], want[kind]) ? have[kind] : want[kind];
	}
	use_host_bits(s, t, want);
	if (!wanted && !alive) {
		vec_push(&s->expired, dead_key(t, p, 0));
		return;
	}
	if (!wanted)
		vec_push(&s->dead, dead_key(t, p, 0));
	if (!differs)
		return;
	table_key(t, p, 0, &change.key);
	vec_push(&s->changes[t], change);
}

static void stage_hosts(struct overlay_stage *s, enum overlay_table t,
			const struct overlay_raws *raws)
{
	size_t w = 0, r = 0;

	for (;;) {
		const struct prefix *p;
		uint64_t want[OVERLAY_KINDS] = {0};
		const struct overlay_raw *raw = r < raws->n ? &raws->at[r] : NULL;

		while (w < s->want_n && !table_holds(t, &s->want[w].prefix))
			w++;
		if (w == s->want_n && !raw)
			return;
		p = w < s->want_n ? &s->want[w].prefix : &raw->prefix;
		if (raw && prefix_compare(&raw->prefix, p) < 0)
			p = &raw->prefix;
		else if (raw && prefix_compare(&raw->prefix, p) > 0)
			raw = NULL;
		for (; w < s->want_n && !prefix_compare(&s->want[w].prefix, p); w++)
			want[s->want[w].kind] = s->want[w].until;
		r += raw != NULL;
		stage_host(s, t, p, raw, want);
	}
}

// The wider prefixes that contain the present one, widest first, each with the latest expiry so far.
struct overlay_around {
	struct {
		struct prefix prefix;
		uint64_t state;
	} at[129];
	size_t n;
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

// The latest expiry of the prefixes that contain p. Prefixes are sorted: a wider one precedes what it contains.
static uint64_t cover(struct overlay_around *a, const struct prefix *p)
{
	while (a->n && !prefix_contains(&a->at[a->n - 1].prefix, p))
		a->n--;
	return a->n ? a->at[a->n - 1].state : 0;
}

// The same including p's own expiry; p may contain those that follow.
static uint64_t inherit(struct overlay_around *a, const struct prefix *p, uint64_t own)
{
	uint64_t state = later(own, cover(a, p));

	a->at[a->n].prefix = *p;
	a->at[a->n++].state = state;
	return state;
}

// One prefix: its element (raw NULL: it has none), its own expiry and the latest of all that contain it, after the
// commit and, for a new element, before: an element that is not yet in force must not hide a wider one that is.
static void stage_net(struct overlay_stage *s, enum overlay_table t, const struct prefix *p,
		      uint8_t kind, const struct overlay_raw *raw, uint64_t own, uint64_t state,
		      uint64_t until_then)
{
	uint64_t have_own = raw ? net_own(s->instance, &raw->value.net) : 0;
	uint64_t have = raw ? net_state(s->instance, &raw->value.net) : 0;
	struct overlay_change change = {.old = raw};

	tally(s, have_own, own);
	if (own) {
		s->plan.bits |= (t == TABLE_NETS4 ? OVERLAY_NETS4 : OVERLAY_NETS6) << kind;
	} else if (have <= s->now) {
		vec_push(&s->expired, dead_key(t, p, kind));
		return;
	} else {
		vec_push(&s->dead, dead_key(t, p, kind));
	}
	if (same_state(s, have_own, own) && same_state(s, have, state))
		return;
	change.value.net.own_next = same_state(s, have_own, own) ? have_own : own;
	change.value.net.next = same_state(s, have, state) ? have : state;
	change.value.net.now = until_then;
	table_key(t, p, kind, &change.key);
	vec_push(&s->changes[t], change);
}

static int compare_net(const struct overlay_raw *raw, const struct overlay_want *want)
{
	int order = prefix_compare(&raw->prefix, &want->prefix);

	return order ? order : (int)raw->kind - (int)want->kind;
}

// The wider prefixes during a walk through a map, by kind: as they are, and as they are wanted.
struct overlay_walk {
	struct overlay_around have[OVERLAY_KINDS], want[OVERLAY_KINDS];
};

static void stage_pair(struct overlay_stage *s, enum overlay_table t, struct overlay_walk *walk,
		       const struct overlay_raw *raw, const struct overlay_want *want)
{
	const struct prefix *p = want ? &want->prefix : &raw->prefix;
	uint8_t kind = want ? want->kind : raw->kind;
	uint64_t until_then = cover(&walk->have[kind], p);
	uint64_t state =
		want ? inherit(&walk->want[kind], p, want->until) : cover(&walk->want[kind], p);

	if (raw)
		inherit(&walk->have[kind], p, net_own(s->instance, &raw->value.net));
	stage_net(s, t, p, kind, raw, want ? want->until : 0, state, until_then);
}

static void stage_nets(struct overlay_stage *s, enum overlay_table t,
		       const struct overlay_raws *raws)
{
	CLEANUP_FREE struct overlay_walk *walk = mem_new(struct overlay_walk);
	size_t w = 0, r = 0;

	for (;;) {
		const struct overlay_raw *raw = r < raws->n ? &raws->at[r] : NULL;
		const struct overlay_want *want;
		int order;

		while (w < s->want_n && !table_holds(t, &s->want[w].prefix))
			w++;
		want = w < s->want_n ? &s->want[w] : NULL;
		if (!raw && !want)
			return;
		order = !raw ? 1 : !want ? -1 : compare_net(raw, want);
		r += order <= 0;
		w += order >= 0;
		stage_pair(s, t, walk, order <= 0 ? raw : NULL, order >= 0 ? want : NULL);
	}
}

static int plan_table(struct overlay_stage *s, enum overlay_table t, struct err *err)
{
	CLEANUP_RAWS struct overlay_raws raws = {0};
	int code = table_read(s->instance, t, &raws, err);

	if (code)
		return code;
	s->used[t] = raws.n;
	if (table_is_hosts(t))
		stage_hosts(s, t, &raws);
	else
		stage_nets(s, t, &raws);
	return 0;
}

static void delete_dead(const struct instance *i, const struct overlay_dead *dead, size_t n)
{
	for (size_t d = 0; d < n; d++)
		bpf_map_delete_elem(table_fd(i, dead[d].table), &dead[d].key);
}

static int check_space(const struct overlay_stage *s, enum overlay_table t, struct err *err)
{
	uint32_t max = s->instance->meta.max_entries;
	size_t used = s->used[t];

	vec_each (&s->expired, expired)
		used -= expired->table == t;
	vec_each (&s->changes[t], change)
		used += !change->old;
	if (used <= max)
		return 0;
	err_refused(err, "%zu IPv%d %s entries would be more than the limit of %u", used,
		    t == TABLE_HOSTS4 || t == TABLE_NETS4 ? 4 : 6,
		    table_is_hosts(t) ? "host" : "prefix", max);
	err_hint(err, "weir detach, then weir attach --max-entries N; what is blocked is kept");
	return -ENOSPC;
}

static int write_new(const struct overlay_stage *s, enum overlay_table t)
{
	const struct overlay_changes *changes = &s->changes[t];
	size_t key_size = table_key_size(t), value_size = table_value_size(t);
	CLEANUP_FREE char *keys = mem_zalloc(changes->n, key_size);
	CLEANUP_FREE char *values = mem_zalloc(changes->n, value_size);
	uint32_t n = 0;

	vec_each (changes, change) {
		if (change->old)
			continue;
		if (table_is_hosts(t))
			change->value.host.epoch = s->plan.epoch;
		else
			change->value.net.epoch = s->plan.epoch;
		memcpy(keys + n * key_size, &change->key, key_size);
		memcpy(values + n * value_size, &change->value, value_size);
		n++;
	}
	return n ? bpf_map_update_batch(table_fd(s->instance, t), keys, values, &n, NULL) : 0;
}

static void restage(const struct overlay_stage *s, enum overlay_table t,
		    const union overlay_value *next, union overlay_value *value)
{
	const struct instance *i = s->instance;

	if (table_is_hosts(t)) {
		memmove(value->host.now, host_states(i, &value->host), sizeof(value->host.now));
		memcpy(value->host.next, next->host.next, sizeof(value->host.next));
		value->host.epoch = s->plan.epoch;
	} else {
		value->net.now = net_state(i, &value->net);
		value->net.own_now = net_own(i, &value->net);
		value->net.next = next->net.next;
		value->net.own_next = next->net.own_next;
		value->net.epoch = s->plan.epoch;
	}
}

// One by one, and read just before: the count of a packet that comes between the read and the write is lost.
static int write_old(const struct overlay_stage *s, enum overlay_table t)
{
	int fd = table_fd(s->instance, t);

	vec_each (&s->changes[t], change) {
		union overlay_value value;

		if (!change->old)
			continue;
		if (bpf_map_lookup_elem(fd, &change->key, &value))
			return -errno;
		restage(s, t, &change->value, &value);
		if (bpf_map_update_elem(fd, &change->key, &value, BPF_EXIST))
			return -errno;
	}
	return 0;
}

static int write_tables(const struct overlay_stage *s)
{
	for (enum overlay_table t = 0; t < TABLES; t++) {
		int code = write_new(s, t);

		if (code || (code = write_old(s, t)))
			return code;
	}
	return 0;
}

static int write_stage(struct overlay_stage *s, struct err *err)
{
	struct knobs *knobs = s->instance->knobs;
	int code;

	__atomic_store_n(&knobs->staging, s->plan.epoch, __ATOMIC_SEQ_CST);
	// A look-up that finds nothing yet does no harm; one that is missing at the commit would.
	__atomic_or_fetch(&knobs->overlay, s->plan.bits, __ATOMIC_SEQ_CST);
	if (!(code = write_tables(s)))
		return 0;
	err_system(err, -code, "cannot write the overlay");
	overlay_tidy(s->instance, NULL);
	return code;
}

static int stage_all(struct overlay_stage *s, struct err *err)
{
	int code = overlay_tidy(s->instance, err);

	if (code)
		return code;
	for (enum overlay_table t = 0; t < TABLES; t++)
		if ((code = plan_table(s, t, err)))
			return code;
	for (enum overlay_table t = 0; t < TABLES; t++)
		if ((code = check_space(s, t, err)))
			return code;
	delete_dead(s->instance, s->expired.at, s->expired.n);
	s->plan.epoch = s->instance->knobs->epoch + 1;
	return write_stage(s, err);
}

int overlay_stage_whole(const struct instance *i, const struct overlay_want *want, size_t n,
			struct overlay_plan *ret, struct err *err)
{
	CLEANUP(stage_free) struct overlay_stage s = {.instance = i, .want = want, .want_n = n};
	struct clock clock;
	int code = instance_clock(i, &clock, err);

	if (code)
		return code;
	s.now = clock.jiffies;
	s.hz = clock.hz;
	if ((code = stage_all(&s, err)))
		return code;
	*ret = s.plan;
	ret->dead_n = s.dead.n;
	ret->dead = TAKE_PTR(s.dead.at);
	return 0;
}

static int compare_wants(const struct overlay_want *a, const struct overlay_want *b)
{
	int order = prefix_compare(&a->prefix, &b->prefix);

	return order ? order : (int)a->kind - (int)b->kind;
}

int overlay_stage(const struct instance *i, const struct overlay_want *change, size_t n,
		  struct overlay_plan *ret, struct err *err)
{
	CLEANUP_ENTRIES struct overlay_entries have = {0};
	CLEANUP_VEC VEC(struct overlay_want) whole = {0};
	size_t c = 0;
	int code = overlay_tidy(i, err);

	if (code || (code = overlay_read(i, &have, err)))
		return code;
	vec_each (&have, entry) {
		struct overlay_want kept = {entry->prefix, entry->kind, entry->until};

		for (; c < n && compare_wants(&change[c], &kept) < 0; c++)
			if (change[c].until)
				vec_push(&whole, change[c]);
		if (c < n && !compare_wants(&change[c], &kept))
			kept = change[c++];
		if (kept.until)
			vec_push(&whole, kept);
	}
	for (; c < n; c++)
		if (change[c].until)
			vec_push(&whole, change[c]);
	return overlay_stage_whole(i, whole.at, whole.n, ret, err);
}

void overlay_commit(const struct instance *i, const struct overlay_plan *plan)
{
	__atomic_store_n(&i->knobs->epoch, plan->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&i->knobs->overlay, plan->bits, __ATOMIC_SEQ_CST);
	delete_dead(i, plan->dead, plan->dead_n);
}

void overlay_plan_free(struct overlay_plan *p)
{
	free(p->dead);
	*p = (struct overlay_plan){0};
}

// Taking back

// The element as it was before it was staged; false when it did not exist.
static bool unstage(enum overlay_table t, union overlay_value *value)
{
	if (table_is_hosts(t)) {
		bool was = false;

		for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
			was |= value->host.now[kind] != 0;
		value->host.epoch = 0;
		return was;
	}
	value->net.epoch = 0;
	return value->net.own_now != 0;
}

static int tidy_element(const struct instance *i, enum overlay_table t, struct overlay_raw *raw)
{
	uint64_t epoch = table_is_hosts(t) ? raw->value.host.epoch : raw->value.net.epoch;
	union overlay_key key;

	if (epoch <= i->knobs->epoch)
		return 0;
	table_key(t, &raw->prefix, raw->kind, &key);
	if (unstage(t, &raw->value))
		return bpf_map_update_elem(table_fd(i, t), &key, &raw->value, BPF_EXIST) ? -errno
											 : 0;
	return bpf_map_delete_elem(table_fd(i, t), &key) ? -errno : 0;
}

static int tidy_table(const struct instance *i, enum overlay_table t, struct err *err)
{
	CLEANUP_RAWS struct overlay_raws raws = {0};
	int code = table_read(i, t, &raws, err);

	if (code)
		return code;
	vec_each (&raws, raw)
		if ((code = tidy_element(i, t, raw)))
			return err_system(err, -code,
					  "cannot remove the leftovers of an interrupted command");
	return 0;
}

int overlay_tidy(const struct instance *i, struct err *err)
{
	if (i->knobs->staging == i->knobs->epoch)
		return 0;
	for (enum overlay_table t = 0; t < TABLES; t++) {
		int code = tidy_table(i, t, err);

		if (code)
			return code;
	}
	__atomic_store_n(&i->knobs->staging, i->knobs->epoch, __ATOMIC_SEQ_CST);
	return 0;
}
