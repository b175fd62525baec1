// SPDX-License-Identifier: GPL-2.0-only
// Reads the overlay as a list, and stages the difference between what is there and what is wanted.
#include "ctl/datapath/overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/overlay_table.h"

struct overlay_dead {
	enum overlay_table table;
	union overlay_key key;
};

static bool committed(const struct instance *i, uint64_t epoch)
{
	return epoch && epoch <= i->knobs->epoch;
}

// States in force of a host, by kind.
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

static void add_host_rows(const struct instance *i, const struct overlay_raw *raw,
			  struct overlay_entries *rows)
{
	const __u64 *states = host_states(i, &raw->value.host);

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
		if (states[kind])
			*vec_add(rows) = (struct overlay_entry){
				.prefix = raw->prefix,
				.kind = kind,
				.until = states[kind],
				.hits = raw->value.host.hits[kind],
				.seen = raw->value.host.seen,
			};
}

static void add_net_row(const struct instance *i, const struct overlay_raw *raw,
			struct overlay_entries *rows)
{
	uint64_t own = net_own(i, &raw->value.net);

	if (own)
		*vec_add(rows) = (struct overlay_entry){
			.prefix = raw->prefix,
			.kind = raw->kind,
			.until = own,
			.hits = raw->value.net.hits,
			.seen = raw->value.net.seen,
		};
}

static void add_rows(const struct instance *i, enum overlay_table t, const struct overlay_raw *raw,
		     struct overlay_entries *rows)
{
	if (table_is_hosts(t))
		add_host_rows(i, raw, rows);
	else
		add_net_row(i, raw, rows);
}

static int compare_rows(const void *a, const void *b)
{
	const struct overlay_entry *x = a, *y = b;
	int order = prefix_compare(&x->prefix, &y->prefix);

	return order ? order : (int)x->kind - (int)y->kind;
}

int overlay_read(const struct instance *i, struct overlay_entries *ret, struct err *err)
{
	struct overlay_entries rows = {0};
	int code = 0;

	for (enum overlay_table t = 0; !code && t < TABLES; t++) {
		struct overlay_raws raws = {0};

		code = table_read(i, t, &raws, err);
		vec_each (&raws, raw)
			add_rows(i, t, raw, &rows);
		vec_free(&raws);
	}
	if (code) {
		vec_free(&rows);
		return code;
	}
	if (rows.n)
		qsort(rows.at, rows.n, sizeof(*rows.at), compare_rows);
	*ret = rows;
	return 0;
}

int overlay_read_one(const struct instance *i, const struct prefix *p,
		     struct overlay_entry ret[OVERLAY_KINDS], size_t *ret_n, struct err *err)
{
	enum overlay_table t = table_of(p);
	struct overlay_entries rows = {0};
	int code = 0;

	for (uint8_t kind = 0; kind < (table_is_hosts(t) ? 1 : OVERLAY_KINDS); kind++) {
		struct overlay_raw raw = {.prefix = *p, .kind = kind};
		union overlay_key key;

		table_key(t, p, kind, &key);
		if (!bpf_map_lookup_elem(table_fd(i, t), &key, &raw.value))
			add_rows(i, t, &raw, &rows);
		else if (errno != ENOENT)
			code = err_system(err, errno, "cannot read the overlay");
	}
	if (!code) {
		if (rows.n)
			memcpy(ret, rows.at, rows.n * sizeof(*rows.at));
		*ret_n = rows.n;
	}
	vec_free(&rows);
	return code;
}

int overlay_fill(const struct instance *i, size_t ret_rows[TABLES], struct err *err)
{
	int code = 0;

	for (enum overlay_table t = 0; !code && t < TABLES; t++) {
		struct overlay_raws raws = {0};

		if (!(code = table_read(i, t, &raws, err)))
			ret_rows[t] = raws.n;
		vec_free(&raws);
	}
	return code;
}

// Staging: for each table a list of rows to write

struct change {
	union overlay_key key;
	union overlay_value value; // of a new row; of an old one only next, own_next
	bool old;
};
struct changes {
	struct change *at;
	size_t n, cap;
};

struct stage {
	const struct instance *instance;
	const struct overlay_want *want;
	size_t want_n;
	uint64_t now; // jiffies
	uint32_t hz;
	struct changes changes[TABLES];
	VEC(struct overlay_dead) dead;    // after the commit
	VEC(struct overlay_dead) expired; // at once: they have no effect any more
	size_t rows[TABLES];
	struct overlay_plan plan;
};

static void stage_free(struct stage *s)
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

// Expiries are converted from wall-clock seconds at each command: a difference under two seconds is
// the clocks', not the user's.
static bool same_state(const struct stage *s, uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return a == b || (a && b && a != OVERLAY_FOREVER && b != OVERLAY_FOREVER &&
			  apart < 2 * (uint64_t)s->hz);
}

static void tally(struct stage *s, uint64_t old, uint64_t new)
{
	if (!old && new)
		s->plan.added++;
	else if (old && !new)
		s->plan.removed++;
	else if (!same_state(s, old, new))
		s->plan.changed++;
}

static void use_host_bits(struct stage *s, enum overlay_table t, const uint64_t states[])
{
	uint32_t from = t == TABLE_HOSTS4 ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS6_FROM;
	uint32_t to = t == TABLE_HOSTS4 ? OVERLAY_HOSTS4_TO : OVERLAY_HOSTS6_TO;

	if (states[OVERLAY_BLOCK_FROM] || states[OVERLAY_ALLOW_FROM])
		s->plan.bits |= from;
	if (states[OVERLAY_BLOCK_TO] || states[OVERLAY_ALLOW_TO])
		s->plan.bits |= to;
}

// One host: what it is (NULL: not there) and what it shall be.
static void stage_host(struct stage *s, enum overlay_table t, const struct prefix *p,
		       const struct overlay_raw *raw, const uint64_t want[OVERLAY_KINDS])
{
	static const __u64 nothing[OVERLAY_KINDS];
	const __u64 *have = raw ? host_states(s->instance, &raw->value.host) : nothing;
	struct change change = {.old = raw};
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

static void stage_hosts(struct stage *s, enum overlay_table t, const struct overlay_raws *raws)
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

// The wider prefixes around the one that is being looked at, widest first, and the latest expiry so far.
struct around {
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

// Prefixes come in order, so a wider one comes before what it contains.
// The latest expiry of those around p.
static uint64_t cover(struct around *a, const struct prefix *p)
{
	while (a->n && !prefix_contains(&a->at[a->n - 1].prefix, p))
		a->n--;
	return a->n ? a->at[a->n - 1].state : 0;
}

// The same with p's own; p is around what follows.
static uint64_t inherit(struct around *a, const struct prefix *p, uint64_t own)
{
	uint64_t state = later(own, cover(a, p));

	a->at[a->n].prefix = *p;
	a->at[a->n++].state = state;
	return state;
}

// One prefix: what it is (raw NULL: not there), its own end and that of all around it, after the commit
// and, for a new row, until then: a row that is not in force must not hide a wider one that is.
static void stage_net(struct stage *s, enum overlay_table t, const struct prefix *p, uint8_t kind,
		      const struct overlay_raw *raw, uint64_t own, uint64_t state,
		      uint64_t until_then)
{
	uint64_t have_own = raw ? net_own(s->instance, &raw->value.net) : 0;
	uint64_t have = raw ? net_state(s->instance, &raw->value.net) : 0;
	struct change change = {.old = raw};

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

// The wider prefixes on the way through a table, by kind: as they are, and as they shall be.
struct ways {
	struct around have[OVERLAY_KINDS], want[OVERLAY_KINDS];
};

static void stage_pair(struct stage *s, enum overlay_table t, struct ways *ways,
		       const struct overlay_raw *raw, const struct overlay_want *want)
{
	const struct prefix *p = want ? &want->prefix : &raw->prefix;
	uint8_t kind = want ? want->kind : raw->kind;
	uint64_t until_then = cover(&ways->have[kind], p);
	uint64_t state =
		want ? inherit(&ways->want[kind], p, want->until) : cover(&ways->want[kind], p);

	if (raw)
		inherit(&ways->have[kind], p, net_own(s->instance, &raw->value.net));
	stage_net(s, t, p, kind, raw, want ? want->until : 0, state, until_then);
}

static void stage_nets(struct stage *s, enum overlay_table t, const struct overlay_raws *raws)
{
	CLEANUP_FREE struct ways *ways = mem_new(struct ways);
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
		stage_pair(s, t, ways, order <= 0 ? raw : NULL, order >= 0 ? want : NULL);
	}
}

static int plan_table(struct stage *s, enum overlay_table t, struct err *err)
{
	struct overlay_raws raws = {0};
	int code = table_read(s->instance, t, &raws, err);

	if (code)
		return code;
	s->rows[t] = raws.n;
	if (table_is_hosts(t))
		stage_hosts(s, t, &raws);
	else
		stage_nets(s, t, &raws);
	vec_free(&raws);
	return 0;
}

static void delete_rows(const struct instance *i, const struct overlay_dead *dead, size_t n)
{
	for (size_t d = 0; d < n; d++)
		bpf_map_delete_elem(table_fd(i, dead[d].table), &dead[d].key);
}

static int check_space(const struct stage *s, enum overlay_table t, struct err *err)
{
	uint32_t max = s->instance->meta.max_entries;
	size_t rows = s->rows[t];

	for (size_t n = 0; n < s->expired.n; n++)
		rows -= s->expired.at[n].table == t;
	for (size_t n = 0; n < s->changes[t].n; n++)
		rows += !s->changes[t].at[n].old;
	if (rows <= max)
		return 0;
	err_refused(err, "%zu IPv%d %s entries would be more than the limit of %u", rows,
		    t == TABLE_HOSTS4 || t == TABLE_NETS4 ? 4 : 6,
		    table_is_hosts(t) ? "host" : "prefix", max);
	err_hint(err, "weir detach, then weir attach --max-entries N; what is blocked is kept");
	return -ENOSPC;
}

static int write_new(const struct stage *s, enum overlay_table t)
{
	const struct changes *changes = &s->changes[t];
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

static void restage(const struct stage *s, enum overlay_table t, const union overlay_value *next,
		    union overlay_value *value)
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

// One by one and read just before, so that hardly a packet's count is lost in the rewriting.
static int write_old(const struct stage *s, enum overlay_table t)
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

static int write_stage(struct stage *s, struct err *err)
{
	struct knobs *knobs = s->instance->knobs;
	int code = 0;

	__atomic_store_n(&knobs->staging, s->plan.epoch, __ATOMIC_SEQ_CST);
	// Look-ups that find nothing yet do no harm; one that is missing at the commit would.
	__atomic_or_fetch(&knobs->overlay, s->plan.bits, __ATOMIC_SEQ_CST);
	for (enum overlay_table t = 0; !code && t < TABLES; t++) {
		code = write_new(s, t);
		if (!code)
			code = write_old(s, t);
	}
	if (!code)
		return 0;
	err_system(err, -code, "cannot write the overlay");
	overlay_tidy(s->instance, NULL);
	return code;
}

static int stage_all(struct stage *s, struct err *err)
{
	int code = overlay_tidy(s->instance, err);

	for (enum overlay_table t = 0; !code && t < TABLES; t++)
		code = plan_table(s, t, err);
	for (enum overlay_table t = 0; !code && t < TABLES; t++)
		code = check_space(s, t, err);
	if (code)
		return code;
	delete_rows(s->instance, s->expired.at, s->expired.n);
	s->plan.epoch = s->instance->knobs->epoch + 1;
	return write_stage(s, err);
}

int overlay_stage(const struct instance *i, const struct overlay_want *want, size_t n,
		  struct overlay_plan *ret, struct err *err)
{
	struct stage s = {.instance = i, .want = want, .want_n = n};
	struct clock clock;
	int code = instance_clock(i, &clock, err);

	if (code)
		return code;
	s.now = clock.jiffies;
	s.hz = clock.hz;
	code = stage_all(&s, err);
	if (!code) {
		*ret = s.plan;
		ret->dead_n = s.dead.n;
		ret->dead = TAKE_PTR(s.dead.at);
	}
	stage_free(&s);
	return code;
}

void overlay_commit(const struct instance *i, const struct overlay_plan *plan)
{
	__atomic_store_n(&i->knobs->epoch, plan->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&i->knobs->overlay, plan->bits, __ATOMIC_SEQ_CST);
	delete_rows(i, plan->dead, plan->dead_n);
}

void overlay_plan_free(struct overlay_plan *p)
{
	free(p->dead);
	*p = (struct overlay_plan){0};
}

// Taking back

// The row as it was before it was staged; false when it was not there before.
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

static int tidy_row(const struct instance *i, enum overlay_table t, struct overlay_raw *raw)
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

int overlay_tidy(const struct instance *i, struct err *err)
{
	int code = 0;

	if (i->knobs->staging == i->knobs->epoch)
		return 0;
	for (enum overlay_table t = 0; !code && t < TABLES; t++) {
		struct overlay_raws raws = {0};

		if ((code = table_read(i, t, &raws, err)))
			return code;
		vec_each (&raws, raw)
			code = code ? code : tidy_row(i, t, raw);
		vec_free(&raws);
	}
	if (code)
		return err_system(err, -code,
				  "cannot take back what an interrupted command staged");
	__atomic_store_n(&i->knobs->staging, i->knobs->epoch, __ATOMIC_SEQ_CST);
	return 0;
}
