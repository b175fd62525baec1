// SPDX-License-Identifier: GPL-2.0-only
// Reads the overlay, and stages, commits and recovers changes of hosts and prefixes together.
#include "ctl/datapath/overlay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/overlay_hosts.h"
#include "ctl/datapath/overlay_nets.h"

_Static_assert(TABLES == OVERLAY_TABLES, "one number of maps");

// ---- reading ------------------------------------------------------------------------------------

struct overlay_visit {
	const struct instance *instance;
	int (*visit)(void *ctx, const struct overlay_entry *entry);
	void *ctx;
};

static struct overlay_entry entry_of_host(const struct overlay_lines *l,
					  const struct lines_entry *host)
{
	return (struct overlay_entry){
		.prefix = lines_prefix(l, &host->key),
		.kind = host->key.kind,
		.until = host->until,
		.hits = host->hits,
		.seen = host->seen,
	};
}

static struct overlay_entry entry_of_net(const struct net_element *raw, uint64_t own)
{
	return (struct overlay_entry){
		.prefix = raw->prefix,
		.kind = raw->kind,
		.until = own,
		.hits = raw->value.hits,
		.seen = raw->value.seen,
	};
}

static int visit_host(void *ctx, const struct overlay_lines *l, const struct lines_entry *host)
{
	const struct overlay_visit *v = ctx;
	struct overlay_entry entry = entry_of_host(l, host);

	return v->visit(v->ctx, &entry);
}

static int visit_net(void *ctx, const struct net_element *raw)
{
	const struct overlay_visit *v = ctx;
	uint64_t own = net_own(v->instance, &raw->value);
	struct overlay_entry entry = entry_of_net(raw, own);

	return own ? v->visit(v->ctx, &entry) : 0;
}

int overlay_each(const struct instance *i,
		 int (*visit)(void *ctx, const struct overlay_entry *entry), void *ctx,
		 struct err *err)
{
	struct overlay_visit v = {.instance = i, .visit = visit, .ctx = ctx};
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code)
		return code;
	for (enum overlay_table t = 0; t < TABLES; t++) {
		CLEANUP_LINES struct overlay_lines *l = NULL;

		if (table_is_hosts(t)) {
			l = lines_open(i, table_family(t));
			code = lines_each(l, now.jiffies, visit_host, &v, err);
		} else {
			code = nets_each(i, t, visit_net, &v, err);
		}
		if (code)
			return code;
	}
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return overlay_compare(a, b);
}

static void entries_free(struct overlay_entries *entries)
{
	vec_free(entries);
}
#define CLEANUP_ENTRIES CLEANUP(entries_free)

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

static int read_host(struct overlay_lines *l, const struct prefix *p, uint8_t kind, uint64_t now,
		     struct overlay_entry *ret, struct err *err)
{
	struct lines_key key = lines_key(p, kind);
	struct lines_entry host;
	int code = lines_read(l, &key, now, &host, err);

	if (code)
		return code;
	*ret = entry_of_host(l, &host);
	return 0;
}

static int read_net(const struct instance *i, const struct prefix *p, uint8_t kind,
		    struct overlay_entry *ret, struct err *err)
{
	struct net_element raw = {.prefix = *p, .kind = kind};
	uint64_t own;
	int code = net_lookup(i, p, kind, &raw.value, err);

	if (code)
		return code;
	if (!(own = net_own(i, &raw.value)))
		return -ENOENT;
	*ret = entry_of_net(&raw, own);
	return 0;
}

int overlay_read_one(const struct instance *i, const struct prefix *p,
		     struct overlay_entry ret[OVERLAY_KINDS], size_t *ret_n, struct err *err)
{
	CLEANUP_LINES struct overlay_lines *l = lines_open(i, p->addr.family);
	struct clock now;
	size_t n = 0;
	int code = instance_clock(i, &now, err);

	if (code)
		return code;
	for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
		bool host = table_is_hosts(table_of(p, kind));

		code = host ? read_host(l, p, kind, now.jiffies, &ret[n], err)
			    : read_net(i, p, kind, &ret[n], err);
		if (code && code != -ENOENT)
			return code;
		n += !code;
	}
	*ret_n = n;
	return 0;
}

// An entry that is to be read, and the shard of its host.
struct host_read {
	uint32_t shard, entry;
};

#define NOT_HERE UINT32_MAX

static uint32_t shard_of(const struct overlay_lines *l, uint8_t family,
			 const struct overlay_entry *entry)
{
	struct lines_key key;

	if (entry->prefix.addr.family != family ||
	    !table_is_hosts(table_of(&entry->prefix, entry->kind)))
		return NOT_HERE;
	key = lines_key(&entry->prefix, entry->kind);
	return lines_shard(l, &key);
}

static int compare_places(const void *a, const void *b)
{
	const struct host_read *x = a, *y = b;

	return x->shard != y->shard ? (x->shard < y->shard ? -1 : 1)
				    : (x->entry < y->entry ? -1 : x->entry > y->entry);
}

// 0 also if there is no such entry.
static int read_into(struct overlay_lines *l, struct overlay_entry *entry, uint64_t now,
		     struct err *err)
{
	int code = read_host(l, &entry->prefix, entry->kind, now, entry, err);

	return code == -ENOENT ? 0 : code;
}

static int read_hosts(const struct instance *i, uint8_t family, struct overlay_entry *entries,
		      size_t n, uint64_t now, struct err *err)
{
	CLEANUP_LINES struct overlay_lines *l = lines_open(i, family);
	CLEANUP_VEC VEC(struct host_read) places = {0};
	int code;

	for (size_t e = 0; e < n; e++) {
		uint32_t shard = shard_of(l, family, &entries[e]);

		if (shard != NOT_HERE)
			vec_push(&places, ((struct host_read){shard, (uint32_t)e}));
	}
	if (places.n)
		qsort(places.at, places.n, sizeof(*places.at), compare_places);
	for (size_t p = 0; p < places.n; p++) {
		if (p && places.at[p - 1].shard != places.at[p].shard)
			lines_unmap(l, places.at[p - 1].shard);
		code = read_into(l, &entries[places.at[p].entry], now, err);
		if (code)
			return code;
	}
	return 0;
}

static int read_nets(const struct instance *i, struct overlay_entry *entries, size_t n,
		     struct err *err)
{
	for (size_t e = 0; e < n; e++) {
		int code;

		if (table_is_hosts(table_of(&entries[e].prefix, entries[e].kind)))
			continue;
		code = read_net(i, &entries[e].prefix, entries[e].kind, &entries[e], err);
		if (code && code != -ENOENT)
			return code;
	}
	return 0;
}

int overlay_read_many(const struct instance *i, struct overlay_entry *entries, size_t n,
		      struct err *err)
{
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code)
		return code;
	for (size_t e = 0; e < n; e++)
		entries[e].until = 0;
	if ((code = read_hosts(i, 4, entries, n, now.jiffies, err)))
		return code;
	if ((code = read_hosts(i, 6, entries, n, now.jiffies, err)))
		return code;
	return read_nets(i, entries, n, err);
}

static uint32_t entries_of(const struct instance *i, enum overlay_table t)
{
	uint32_t n = 0;

	for (int kind = 0; kind < OVERLAY_KINDS; kind++)
		n += i->knobs->entries[t][kind];
	return n;
}

int overlay_fill(const struct instance *i, size_t ret_n[OVERLAY_TABLES], struct err *err)
{
	for (enum overlay_table t = 0; t < TABLES; t++)
		ret_n[t] = entries_of(i, t);
	return 0;
}

// ---- staging ------------------------------------------------------------------------------------

struct lines_changes {
	struct lines_change *at;
	size_t n, cap;
};

// State of a plan until its commit.
struct overlay_finish {
	struct overlay_lines *lines[2]; // IPv4, IPv6
	struct lines_changes hosts[2];
	struct net_elements nets[TABLES]; // none of hosts
	struct overlay_tally tally[TABLES];
};

static void finish_free(struct overlay_finish *f)
{
	if (!f)
		return;
	for (size_t six = 0; six < 2; six++) {
		lines_free(f->lines[six]);
		vec_free(&f->hosts[six]);
	}
	for (enum overlay_table t = 0; t < TABLES; t++)
		net_elements_free(&f->nets[t]);
	free(f);
}

static void finish_cleanup(struct overlay_finish **f)
{
	finish_free(*f);
}

static struct overlay_finish *finish_new(const struct instance *i)
{
	struct overlay_finish *f = mem_new(struct overlay_finish);

	f->lines[0] = lines_open(i, 4);
	f->lines[1] = lines_open(i, 6);
	return f;
}

void overlay_plan_free(struct overlay_plan *p)
{
	finish_free(p->finish);
	*p = (struct overlay_plan){0};
}

static int plan_host(struct overlay_finish *f, const struct overlay_entry *want,
		     const struct clock *now, struct err *err)
{
	size_t six = want->prefix.addr.family == 6;
	struct lines_change change = {.key = lines_key(&want->prefix, want->kind)};
	uint64_t have;
	int code = lines_until(f->lines[six], &change.key, &have, err);

	if (code)
		return code;
	if (overlay_tally(&f->tally[table_of(&want->prefix, want->kind)], want->kind, now, have,
			  want->until, &change.until))
		vec_push(&f->hosts[six], change);
	return 0;
}

static int plan_nets(const struct instance *i, struct overlay_finish *f, enum overlay_table t,
		     const struct overlay_entry *change, size_t n, const struct clock *now,
		     struct err *err)
{
	CLEANUP_VEC VEC(struct overlay_entry) own = {0};

	for (size_t c = 0; c < n; c++)
		if (table_of(&change[c].prefix, change[c].kind) == t)
			vec_push(&own, change[c]);
	return nets_plan(i, t, now, own.at, own.n, &f->nets[t], &f->tally[t], err);
}

static int plan_all(const struct instance *i, struct overlay_finish *f,
		    const struct overlay_entry *change, size_t n, const struct clock *now,
		    struct err *err)
{
	int code;

	for (size_t c = 0; c < n; c++)
		if (table_is_hosts(table_of(&change[c].prefix, change[c].kind)) &&
		    (code = plan_host(f, &change[c], now, err)))
			return code;
	for (enum overlay_table t = 0; t < TABLES; t++)
		if (!table_is_hosts(t) && (code = plan_nets(i, f, t, change, n, now, err)))
			return code;
	return 0;
}

// Entries while the change is staged: what it removes is still there.
static size_t used_by(const struct instance *i, const struct overlay_finish *f,
		      enum overlay_table t)
{
	return entries_of(i, t) + f->tally[t].added - f->tally[t].expired;
}

static bool has_space(const struct instance *i, const struct overlay_finish *f)
{
	for (enum overlay_table t = 0; t < TABLES; t++)
		if (f->tally[t].added && used_by(i, f, t) > i->meta.max_entries)
			return false;
	return true;
}

static int check_space(const struct instance *i, const struct overlay_finish *f, struct err *err)
{
	for (enum overlay_table t = 0; t < TABLES; t++) {
		if (!f->tally[t].added || used_by(i, f, t) <= i->meta.max_entries)
			continue;
		err_refused(err, "%zu IPv%d %s entries would be more than the limit of %u",
			    used_by(i, f, t), table_family(t),
			    table_is_hosts(t) ? "host"
			    : table_is_out(t) ? "outgoing"
					      : "prefix",
			    i->meta.max_entries);
		if (i->meta.max_entries < WEIR_OVERLAY_MAX)
			err_hint(err, "weir detach, then weir attach --max-entries N; what is "
				      "blocked is kept");
		else
			err_hint(err, "no instance holds more; a prefix counts as one entry");
		return -ENOSPC;
	}
	return 0;
}

// The bits of the look-ups that can find something: after the commit, or now (f NULL).
static uint32_t bits_of(const struct instance *i, const struct overlay_finish *f)
{
	uint32_t bits = 0;

	for (enum overlay_table t = 0; t < TABLES; t++)
		for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++) {
			uint32_t n = i->knobs->entries[t][kind];
			bool from = 1u << kind & OVERLAY_KINDS_FROM;

			if (f)
				n += f->tally[t].more[kind] - f->tally[t].fewer[kind];
			if (!n)
				continue;
			if (table_is_out(t))
				bits |= OVERLAY_OUT(kind);
			else if (t == TABLE_HOSTS4)
				bits |= from ? OVERLAY_HOSTS4_FROM : OVERLAY_HOSTS4_TO;
			else if (t == TABLE_HOSTS6)
				bits |= from ? OVERLAY_HOSTS6_FROM : OVERLAY_HOSTS6_TO;
			else
				bits |= (t == TABLE_NETS4 ? OVERLAY_NETS4 : OVERLAY_NETS6) << kind;
		}
	return bits;
}

static int write_tables(const struct instance *i, struct overlay_finish *f, uint64_t epoch,
			struct err *err)
{
	for (size_t six = 0; six < 2; six++) {
		int code =
			lines_stage(f->lines[six], f->hosts[six].at, f->hosts[six].n, epoch, err);

		if (code)
			return code;
	}
	for (enum overlay_table t = 0; t < TABLES; t++) {
		int code = nets_stage(i, t, &f->nets[t], epoch, err);

		if (code)
			return code;
	}
	return 0;
}

static int reserve(const struct instance *i, struct overlay_finish *f, struct err *err)
{
	for (size_t six = 0; six < 2; six++) {
		enum overlay_table t = six ? TABLE_HOSTS6 : TABLE_HOSTS4;
		int code = lines_reserve(f->lines[six], entries_of(i, t), f->tally[t].added, err);

		if (code)
			return code;
	}
	return 0;
}

static int write_stage(const struct instance *i, struct overlay_finish *f,
		       struct overlay_plan *plan, struct err *err)
{
	struct knobs *knobs = i->knobs;
	int code = reserve(i, f, err);

	if (code)
		return code;
	plan->epoch = knobs->epoch + 1;
	plan->bits = bits_of(i, f);
	__atomic_store_n(&knobs->staging, plan->epoch, __ATOMIC_SEQ_CST);
	// A look-up that finds nothing yet does no harm; one that is missing at the commit would.
	__atomic_or_fetch(&knobs->overlay, plan->bits, __ATOMIC_SEQ_CST);
	if ((code = write_tables(i, f, plan->epoch, err)))
		overlay_tidy(i, NULL);
	return code;
}

static void sum_tallies(const struct overlay_finish *f, struct overlay_plan *plan)
{
	for (enum overlay_table t = 0; t < TABLES; t++) {
		plan->added += f->tally[t].added;
		plan->changed += f->tally[t].changed;
		plan->removed += f->tally[t].removed;
	}
}

// The change, and the end of all that has expired and is not named: it would fill the room.
static int add_expired(const struct instance *i, const struct overlay_entry *change, size_t n,
		       const struct clock *now, struct overlay_entries *ret, struct err *err)
{
	CLEANUP_ENTRIES struct overlay_entries have = {0};
	size_t c = 0;
	int code = overlay_read(i, &have, err);

	if (code)
		return code;
	vec_each (&have, entry) {
		struct overlay_entry ends = {.prefix = entry->prefix, .kind = entry->kind};

		for (; c < n && overlay_compare(&change[c], &ends) < 0; c++)
			vec_push(ret, change[c]);
		if (entry->until <= now->jiffies && (c == n || overlay_compare(&change[c], &ends)))
			vec_push(ret, ends);
	}
	for (; c < n; c++)
		vec_push(ret, change[c]);
	return 0;
}

// The plan of a change, or of that change and the end of what has expired. NULL with *ret_code set:
// refused or failed.
static int plan_change(const struct instance *i, const struct overlay_entry *change, size_t n,
		       struct overlay_finish **ret, struct err *err)
{
	CLEANUP(finish_cleanup) struct overlay_finish *f = finish_new(i);
	CLEANUP_ENTRIES struct overlay_entries more = {0};
	struct clock now;
	int code = instance_clock(i, &now, err);

	if (code || (code = plan_all(i, f, change, n, &now, err)))
		return code;
	if (!has_space(i, f)) {
		if ((code = add_expired(i, change, n, &now, &more, err)))
			return code;
		finish_free(f);
		f = finish_new(i);
		if ((code = plan_all(i, f, more.at, more.n, &now, err)) ||
		    (code = check_space(i, f, err)))
			return code;
	}
	*ret = TAKE_PTR(f);
	return 0;
}

int overlay_stage(const struct instance *i, const struct overlay_entry *change, size_t n,
		  struct overlay_plan *ret, struct err *err)
{
	CLEANUP(finish_cleanup) struct overlay_finish *f = NULL;
	struct overlay_plan plan = {0};
	int code = overlay_tidy(i, err);

	if (code || (code = plan_change(i, change, n, &f, err)) ||
	    (code = write_stage(i, f, &plan, err)))
		return code;
	sum_tallies(f, &plan);
	*ret = plan;
	ret->finish = TAKE_PTR(f);
	return 0;
}

int overlay_stage_whole(const struct instance *i, const struct overlay_entry *want, size_t n,
			struct overlay_plan *ret, struct err *err)
{
	CLEANUP_ENTRIES struct overlay_entries have = {0};
	CLEANUP_ENTRIES struct overlay_entries change = {0};
	size_t w = 0;
	int code = overlay_tidy(i, err);

	if (code || (code = overlay_read(i, &have, err)))
		return code;
	vec_each (&have, entry) {
		struct overlay_entry ends = {.prefix = entry->prefix, .kind = entry->kind};

		for (; w < n && overlay_compare(&want[w], &ends) < 0; w++)
			vec_push(&change, want[w]);
		if (w == n || overlay_compare(&want[w], &ends))
			vec_push(&change, ends);
	}
	for (; w < n; w++)
		vec_push(&change, want[w]);
	return overlay_stage(i, change.at, change.n, ret, err);
}

// ---- commit -------------------------------------------------------------------------------------

static void count_entries(const struct instance *i, const struct overlay_finish *f)
{
	for (enum overlay_table t = 0; t < TABLES; t++)
		for (uint8_t kind = 0; kind < OVERLAY_KINDS; kind++)
			i->knobs->entries[t][kind] +=
				f->tally[t].more[kind] - f->tally[t].fewer[kind];
}

void overlay_commit(const struct instance *i, const struct overlay_plan *plan)
{
	const struct overlay_finish *f = plan->finish;

	__atomic_store_n(&i->knobs->staging, plan->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&i->knobs->epoch, plan->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&i->knobs->overlay, plan->bits, __ATOMIC_SEQ_CST);
	for (size_t six = 0; six < 2; six++)
		lines_settle(f->lines[six], f->hosts[six].at, f->hosts[six].n);
	for (enum overlay_table t = 0; t < TABLES; t++)
		nets_settle(i, t, &f->nets[t]);
	count_entries(i, f);
	__atomic_store_n(&i->knobs->settled, plan->epoch, __ATOMIC_SEQ_CST);
}

// ---- recovery -----------------------------------------------------------------------------------

static int recover_table(const struct instance *i, enum overlay_table t, struct err *err)
{
	uint32_t n[OVERLAY_KINDS];
	CLEANUP_LINES struct overlay_lines *l = NULL;
	int code;

	if (table_is_hosts(t)) {
		l = lines_open(i, table_family(t));
		code = lines_recover(l, n, err);
	} else {
		code = nets_recover(i, t, n, err);
	}
	if (code)
		return code;
	memcpy(i->knobs->entries[t], n, sizeof(n));
	return 0;
}

int overlay_tidy(const struct instance *i, struct err *err)
{
	struct knobs *knobs = i->knobs;

	if (knobs->staging == knobs->epoch && knobs->settled == knobs->epoch && !knobs->moving)
		return 0;
	for (enum overlay_table t = 0; t < TABLES; t++) {
		int code = recover_table(i, t, err);

		if (code)
			return code;
	}
	__atomic_store_n(&knobs->overlay, bits_of(i, NULL), __ATOMIC_SEQ_CST);
	__atomic_store_n(&knobs->staging, knobs->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&knobs->settled, knobs->epoch, __ATOMIC_SEQ_CST);
	__atomic_store_n(&knobs->moving, 0, __ATOMIC_SEQ_CST);
	return 0;
}
