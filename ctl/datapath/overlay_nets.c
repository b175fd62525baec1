// SPDX-License-Identifier: GPL-2.0-only
// The elements of a change of prefixes, planned and written.
#include "ctl/datapath/overlay_nets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "common/overlay.h"
#include "ctl/base/mem.h"

#define BITS (64 * OVERLAY_NEAR_WORDS)
// A wider prefix of IPv6 has so many values of its first 32 bits inside that most bits would be set
// one by one.
#define WIDE6 20

// Maps it; near_of() is it. 0 or -errno with err set.
static int near_open(const struct instance *i, struct mapping *ret, struct err *err)
{
	return mapping_open(ret, i->near, sizeof(struct overlay_near), err);
}

static struct overlay_near *near_of(const struct mapping *m)
{
	return m->at;
}

// Not of outgoing calls, which look up whatever exists.
static __u64 *bits_of(struct overlay_near *near, uint8_t family, uint8_t kind)
{
	bool from = 1u << kind & OVERLAY_KINDS_FROM;

	if (family == 4)
		return from ? near->from4 : near->to4;
	return from ? near->from6 : near->to6;
}

static uint32_t first_bits(const struct prefix *p)
{
	const uint8_t *b = p->addr.bytes;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void set_bit(__u64 *bits, uint32_t n)
{
	__atomic_or_fetch(&bits[n / 64], 1ull << n % 64, __ATOMIC_RELEASE);
}

static bool bit_is_set(const __u64 *bits, uint32_t n)
{
	return bits[n / 64] >> n % 64 & 1;
}

// How many values of the first 16 or 32 bits are inside.
static uint64_t values_inside(const struct prefix *p, unsigned bits)
{
	return p->len >= bits ? 1 : 1ull << (bits - p->len);
}

// Makes packets look up a prefix. It is written before the entry.
static void near_set(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	__u64 *bits = bits_of(near, p->addr.family, kind);
	uint32_t first = first_bits(p);

	if (overlay_is_out(kind))
		return;
	if (p->addr.family == 4)
		for (uint64_t n = 0; n < values_inside(p, 16); n++)
			set_bit(bits, (first >> 16) + (uint32_t)n);
	else if (p->len < WIDE6)
		memset(bits, 0xff, BITS / 8);
	else
		for (uint64_t n = 0; n < values_inside(p, 32); n++)
			set_bit(bits, overlay_near6(first + (uint32_t)n));
}

static __u32 *lengths_of(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	return near->lengths[p->addr.family == 6][kind];
}

// An entry more or less.
static void near_add(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	near_set(near, p, kind);
	lengths_of(near, p, kind)[p->len]++;
}

static void near_remove(struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	if (lengths_of(near, p, kind)[p->len])
		lengths_of(near, p, kind)[p->len]--;
}

// Can there be an entry of the kind inside of p?
static bool near_inside(const struct overlay_near *near, const struct prefix *p, uint8_t kind)
{
	const __u32 *lengths = near->lengths[p->addr.family == 6][kind];
	const __u64 *bits = bits_of((struct overlay_near *)near, p->addr.family, kind);
	bool four = p->addr.family == 4, longer = false;
	uint32_t first = first_bits(p);

	for (unsigned len = p->len + 1u; len < 129; len++)
		longer |= lengths[len] != 0;
	if (!longer || overlay_is_out(kind))
		return longer;
	// All that is inside of a narrow prefix has its bit.
	if (p->len < (four ? 16 : 32))
		return true;
	return bit_is_set(bits, four ? first >> 16 : overlay_near6(first));
}

static bool is_of(enum overlay_table t, uint8_t kind)
{
	return table_is_out(t) == overlay_is_out(kind);
}

// Takes over the rebuilt bitmap, without clearing a bit that stays.
static void near_replace(struct overlay_near *near, const struct overlay_near *fresh,
			 enum overlay_table t)
{
	bool six = table_family(t) == 6;

	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
		if (is_of(t, kind))
			memcpy(near->lengths[six][kind], fresh->lengths[six][kind],
			       sizeof(near->lengths[six][kind]));
	if (table_is_out(t))
		return;
	for (size_t w = 0; w < OVERLAY_NEAR_WORDS; w++) {
		__atomic_store_n(six ? &near->from6[w] : &near->from4[w],
				 six ? fresh->from6[w] : fresh->from4[w], __ATOMIC_RELAXED);
		__atomic_store_n(six ? &near->to6[w] : &near->to4[w],
				 six ? fresh->to6[w] : fresh->to4[w], __ATOMIC_RELAXED);
	}
}

static bool committed(const struct instance *i, uint64_t epoch)
{
	return epoch && epoch <= i->knobs->epoch;
}

uint64_t net_own(const struct instance *i, const struct overlay_net *n)
{
	return committed(i, n->epoch) ? n->own_next : n->own_now;
}

static uint64_t net_state(const struct instance *i, const struct overlay_net *n)
{
	return committed(i, n->epoch) ? n->next : n->now;
}

// ---- planning -----------------------------------------------------------------------------------

// Expiries are converted from wall-clock seconds at each command: a difference of less than two
// seconds is caused by the clocks, not by the user.
static bool same_state(const struct clock *now, uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return a == b || (a && b && a != OVERLAY_FOREVER && b != OVERLAY_FOREVER &&
			  apart < 2 * (uint64_t)now->hz);
}

bool overlay_tally(struct overlay_tally *t, uint8_t kind, const struct clock *now, uint64_t have,
		   uint64_t want, uint64_t *ret_until)
{
	bool same = same_state(now, have, want);

	*ret_until = same ? have : want;
	if (same)
		return false;
	if (!have) {
		t->added++;
		t->more[kind]++;
	} else if (!want) {
		t->removed++;
		t->fewer[kind]++;
		t->expired += have <= now->jiffies;
	} else {
		t->changed++;
	}
	return true;
}

struct net_planner {
	const struct instance *instance;
	const struct clock *now;
	struct net_elements *plan;
	struct overlay_tally *tally;
};

// The future element: its own expiry and the latest of all that contain it, after the commit and,
// for a new element, before: one that is not yet active must not hide a wider active one.
struct net_next {
	struct overlay_entry want;
	const struct overlay_net *old; // NULL: it is new
	uint64_t state, until_then;
};

static void plan_net(struct net_planner *s, const struct net_next *n)
{
	uint64_t have_own = n->old ? net_own(s->instance, n->old) : 0;
	uint64_t have = n->old ? net_state(s->instance, n->old) : 0, own;
	const struct overlay_entry *want = &n->want;
	bool changes = overlay_tally(s->tally, want->kind, s->now, have_own, want->until, &own);
	bool same = same_state(s->now, have, n->state);

	if ((!want->until && !n->old) || (want->until && !changes && same))
		return;
	vec_push(s->plan, ((struct net_element){
				  .prefix = want->prefix,
				  .kind = want->kind,
				  .old = n->old,
				  .added = !have_own && want->until,
				  .dead = !want->until && have > s->now->jiffies,
				  .expired = !want->until && have <= s->now->jiffies,
				  .value = {.own_next = own,
					    .next = same ? have : n->state,
					    .now = n->until_then,
					    .len = want->prefix.len},
			  }));
}

// ---- a change with nothing inside ---------------------------------------------------------------

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_apart(const struct overlay_near *near, const struct overlay_entry *change, size_t n)
{
	struct prefix around[OVERLAY_KINDS];
	bool has[OVERLAY_KINDS] = {0};

	for (size_t c = 0; c < n; c++) {
		uint8_t kind = change[c].kind;

		// They are sorted: what contains this one and is not the last of its kind contains
		// that one too.
		if ((has[kind] && prefix_contains(&around[kind], &change[c].prefix)) ||
		    near_inside(near, &change[c].prefix, kind))
			return false;
		around[kind] = change[c].prefix;
		has[kind] = true;
	}
	return true;
}

static int plan_apart(struct net_planner *s, const struct overlay_entry *change, struct err *err)
{
	struct overlay_net old, wider;
	struct net_next next = {.want = *change};
	int code = net_lookup(s->instance, &change->prefix, change->kind, &old, err);

	if (code && code != -ENOENT)
		return code;
	next.old = code ? NULL : &old;
	code = net_lookup_wider(s->instance, &change->prefix, change->kind, &wider, err);
	if (code && code != -ENOENT)
		return code;
	next.until_then = code ? 0 : net_state(s->instance, &wider);
	next.state = later(next.until_then, change->until);
	plan_net(s, &next);
	return 0;
}

// ---- a walk through all -------------------------------------------------------------------------

// The wider prefixes that contain the present one, widest first, each with the latest expiry so
// far.
struct overlay_around {
	struct {
		struct prefix prefix;
		uint64_t state;
	} at[129];
	size_t n;
};

// The latest expiry of the prefixes that contain p. Prefixes are sorted: a wider one precedes what
// it contains.
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

// The wider prefixes during a walk through a map, by kind: present, and wanted.
struct overlay_walk {
	struct overlay_around have[OVERLAY_KINDS], want[OVERLAY_KINDS];
};

// raw: the element; want: its change. One may be NULL.
static void plan_pair(struct net_planner *s, struct overlay_walk *walk,
		      const struct net_element *raw, const struct overlay_entry *want)
{
	const struct prefix *p = want ? &want->prefix : &raw->prefix;
	uint8_t kind = want ? want->kind : raw->kind;
	uint64_t have_own = raw ? net_own(s->instance, &raw->value) : 0;
	struct net_next next = {
		.want = {.prefix = *p, .kind = kind, .until = want ? want->until : have_own},
		.old = raw ? &raw->value : NULL,
		.until_then = cover(&walk->have[kind], p),
	};

	next.state = next.want.until ? inherit(&walk->want[kind], p, next.want.until)
				     : cover(&walk->want[kind], p);
	if (raw)
		inherit(&walk->have[kind], p, have_own);
	plan_net(s, &next);
}

static int compare(const struct net_element *raw, const struct overlay_entry *want)
{
	int order = prefix_compare(&raw->prefix, &want->prefix);

	return order ? order : (int)raw->kind - (int)want->kind;
}

static int plan_walk(struct net_planner *s, enum overlay_table t,
		     const struct overlay_entry *change, size_t n, struct err *err)
{
	CLEANUP_FREE struct overlay_walk *walk = mem_new(struct overlay_walk);
	CLEANUP_NET_ELEMENTS struct net_elements raws = {0};
	size_t c = 0, r = 0;
	int code = nets_read(s->instance, t, &raws, err);

	if (code)
		return code;
	while (c < n || r < raws.n) {
		const struct net_element *raw = r < raws.n ? &raws.at[r] : NULL;
		const struct overlay_entry *want = c < n ? &change[c] : NULL;
		int order = !raw ? 1 : !want ? -1 : compare(raw, want);

		r += order <= 0;
		c += order >= 0;
		plan_pair(s, walk, order <= 0 ? raw : NULL, order >= 0 ? want : NULL);
	}
	return 0;
}

int nets_plan(const struct instance *i, enum overlay_table t, const struct clock *now,
	      const struct overlay_entry *change, size_t n, struct net_elements *ret,
	      struct overlay_tally *tally, struct err *err)
{
	struct net_planner s = {.instance = i, .now = now, .plan = ret, .tally = tally};
	CLEANUP_MAPPING struct mapping near = {0};
	int code;

	if (!n)
		return 0;
	if ((code = near_open(i, &near, err)))
		return code;
	if (!is_apart(near_of(&near), change, n))
		return plan_walk(&s, t, change, n, err);
	for (size_t c = 0; c < n; c++)
		if ((code = plan_apart(&s, &change[c], err)))
			return code;
	return 0;
}

// ---- writing ------------------------------------------------------------------------------------

static void delete (const struct instance *i, enum overlay_table t, const struct net_element *e)
{
	union net_key key;

	net_key(&e->prefix, e->kind, &key);
	bpf_map_delete_elem(net_fd(i, t), &key);
}

static int write_new(const struct instance *i, enum overlay_table t,
		     const struct net_elements *plan, uint64_t epoch)
{
	size_t key_size = net_key_size(t);
	CLEANUP_FREE char *keys = mem_zalloc(plan->n, key_size);
	CLEANUP_FREE struct overlay_net *values = mem_zalloc(plan->n, sizeof(*values));
	uint32_t n = 0;

	vec_each (plan, change) {
		union net_key key;

		if (change->old)
			continue;
		net_key(&change->prefix, change->kind, &key);
		memcpy(keys + n * key_size, &key, key_size);
		values[n] = change->value;
		values[n++].epoch = epoch;
	}
	return n ? bpf_map_update_batch(net_fd(i, t), keys, values, &n, NULL) : 0;
}

// Read just before: the count of a packet between the read and the write is lost.
static int write_old(const struct instance *i, enum overlay_table t,
		     const struct net_element *change, uint64_t epoch)
{
	struct overlay_net value;
	union net_key key;

	net_key(&change->prefix, change->kind, &key);
	if (bpf_map_lookup_elem(net_fd(i, t), &key, &value))
		return -errno;
	value.now = net_state(i, &value);
	value.own_now = net_own(i, &value);
	value.next = change->value.next;
	value.own_next = change->value.own_next;
	value.epoch = epoch;
	return bpf_map_update_elem(net_fd(i, t), &key, &value, BPF_EXIST) ? -errno : 0;
}

static int write_changes(const struct instance *i, enum overlay_table t,
			 const struct net_elements *plan, uint64_t epoch)
{
	int code = write_new(i, t, plan, epoch);

	if (code)
		return code;
	vec_each (plan, change)
		if (change->old && !change->expired && (code = write_old(i, t, change, epoch)))
			return code;
	return 0;
}

int nets_stage(const struct instance *i, enum overlay_table t, const struct net_elements *plan,
	       uint64_t epoch, struct err *err)
{
	CLEANUP_MAPPING struct mapping near = {0};
	int code;

	if (!plan->n)
		return 0;
	if ((code = near_open(i, &near, err)))
		return code;
	vec_each (plan, change)
		if (change->expired)
			delete (i, t, change);
		else
			near_set(near_of(&near), &change->prefix, change->kind);
	code = write_changes(i, t, plan, epoch);
	return code ? err_system(err, -code, "cannot write the overlay") : 0;
}

// ---- settling -----------------------------------------------------------------------------------

struct net_rebuild {
	const struct instance *instance;
	struct overlay_near *near;
};

static int add_near(void *ctx, const struct net_element *raw)
{
	const struct net_rebuild *r = ctx;

	near_set(r->near, &raw->prefix, raw->kind);
	if (net_own(r->instance, &raw->value))
		near_add(r->near, &raw->prefix, raw->kind);
	return 0;
}

// Rebuilds it from the elements. On failure more bits than necessary are set, which does no harm.
static int rebuild_near(const struct instance *i, struct overlay_near *near, enum overlay_table t,
			struct err *err)
{
	CLEANUP_FREE struct overlay_near *fresh = mem_new(struct overlay_near);
	struct net_rebuild r = {.instance = i, .near = fresh};
	int code = nets_each(i, t, add_near, &r, err);

	if (code)
		return code;
	near_replace(near, fresh, t);
	return 0;
}

static uint32_t entries_of(const struct instance *i, enum overlay_table t)
{
	uint32_t n = 0;

	for (int kind = 0; kind < OVERLAY_KINDS; kind++)
		n += i->knobs->entries[t][kind];
	return n;
}

void nets_settle(const struct instance *i, enum overlay_table t, const struct net_elements *plan)
{
	CLEANUP_MAPPING struct mapping near = {0};
	uint32_t gone = 0, stale;

	vec_each (plan, change)
		if (change->dead)
			delete (i, t, change);
	if (!plan->n || near_open(i, &near, NULL))
		return;
	vec_each (plan, change) {
		if (change->added)
			near_add(near_of(&near), &change->prefix, change->kind);
		if (!change->dead && !change->expired)
			continue;
		near_remove(near_of(&near), &change->prefix, change->kind);
		gone++;
	}
	if (!gone || table_is_out(t))
		return;
	// Occasionally, so that a removal costs at most twice as much.
	stale = i->knobs->near_stale + gone;
	if (stale > entries_of(i, t) && !rebuild_near(i, near_of(&near), t, NULL))
		stale = 0;
	__atomic_store_n(&i->knobs->near_stale, stale, __ATOMIC_RELAXED);
}

// ---- recovery -----------------------------------------------------------------------------------

// The element before it was staged, and without a committed end; false: remove it.
static bool restore(const struct instance *i, struct overlay_net *n)
{
	if (committed(i, n->epoch))
		return n->own_next != 0;
	n->epoch = 0;
	return n->own_now != 0;
}

static int recover_net(const struct instance *i, enum overlay_table t, struct net_element *raw)
{
	bool staged = raw->value.epoch > i->knobs->epoch, lives = restore(i, &raw->value);
	union net_key key;

	net_key(&raw->prefix, raw->kind, &key);
	if (!lives)
		return bpf_map_delete_elem(net_fd(i, t), &key) ? -errno : 0;
	if (!staged)
		return 0;
	return bpf_map_update_elem(net_fd(i, t), &key, &raw->value, BPF_EXIST) ? -errno : 0;
}

int nets_recover(const struct instance *i, enum overlay_table t, uint32_t ret_n[OVERLAY_KINDS],
		 struct err *err)
{
	CLEANUP_MAPPING struct mapping near = {0};
	CLEANUP_NET_ELEMENTS struct net_elements raws = {0};
	int code = nets_read(i, t, &raws, err);

	memset(ret_n, 0, OVERLAY_KINDS * sizeof(*ret_n));
	if (code || (code = near_open(i, &near, err)))
		return code;
	vec_each (&raws, raw) {
		if ((code = recover_net(i, t, raw)))
			return err_system(err, -code,
					  "cannot remove the leftovers of an interrupted command");
		ret_n[raw->kind] += net_own(i, &raw->value) != 0;
	}
	return rebuild_near(i, near_of(&near), t, err);
}
