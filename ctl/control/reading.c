// SPDX-License-Identifier: GPL-2.0-only
// The counters of weir stats, in the order of the rows that they belong to.
#include "ctl/control/reading.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/best.h"
#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/control/active.h"
#include "ctl/control/devices.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/entries/sums.h"
#include "ctl/control/pool.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/identities.h"
#include "ctl/datapath/kinds.h"
#include "ctl/datapath/rule_counts.h"
#include "ctl/policy/words.h"

#define NAMES_MS     10000 // between two readings of the names of devices
#define ENTRIES_MS   10000 // between two readings of entries, at least
#define ENTRIES_PART 5     // and as many times as long as one takes
#define DROPPED_MAX  3     // walks in a row: commands can change entries all the time

enum total { PASSED, SENT, DROPPED, TOTALS };

// Which changes of entries have begun and ended. A change can move the counters of other entries.
struct entries_phase {
	uint64_t epoch, staging, settled;
	uint32_t shards[2], moving;
};

// The last walk through the entries. Another one would see the same as long as no packet meets an
// entry and no entry changes.
struct entries_seen {
	bool known; // and all entries are of packets: no reason counts the calls of `block --out`
	struct entries_phase phase;
	struct journal_stamp journal; // owners may change without a change of the kernel's entries
	struct counter met;           // packets that entries have decided
};

struct reading_state {
	char *name;
	struct instance *instance;
	dev_t device;
	ino_t inode;                   // meta in bpffs: another inode is another instance
	uint32_t numbers[WEIR_IFACES]; // interfaces, in the order of their rows
	size_t n_numbers;
	struct iface stored[WEIR_IFACES];
	uint64_t names_ms; // monotonic, when the names of devices were read; 0: not
	struct counters *counters;
	uint32_t generation; // whose rules and services are read; 0: none so far
	uint32_t program;    // its ID: numbers of generations are used again
	uint64_t rules_ms;   // monotonic, when the rules were read
	VEC(uint32_t) rules; // counters, in the order of the rows
	struct pool pool;    // without services live is NULL
	struct rates_entries entries;
	uint64_t entries_due_ms;
	unsigned entries_dropped; // walks in a row
	struct entries_seen entries_seen;
};

static uint64_t now_ns(void)
{
	return time_ns(CLOCK_MONOTONIC);
}

// ---- interfaces ---------------------------------------------------------------------------------

static void add_iface(struct reading_state *s, struct rates_list *to, uint32_t number,
		      const char *name)
{
	s->numbers[s->n_numbers++] = number;
	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
		rates_add(to, name, reason_name(r), reason_outcome(r), number);
}

static void list_ifaces(struct rates_reader *r, const struct devices *devices)
{
	struct rates_list fresh = {0}, *old = &r->lists[RATES_INTERFACES];
	struct reading_state *s = r->state;

	s->n_numbers = 0;
	add_iface(s, &fresh, 0, "(other)");
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (devices->at[n].state != DEVICE_FREE)
			add_iface(s, &fresh, n, devices->at[n].iface.name);
	rates_inherit(&fresh, old, RATES_INTERFACES);
	rates_free(old);
	*old = fresh;
}

// The table of interfaces has changed, or devices may have other names.
static int renew_ifaces(struct rates_reader *r, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	CLEANUP_FREE struct iface *stored = mem_zalloc(WEIR_IFACES, sizeof(*stored));
	struct reading_state *s = r->state;
	uint64_t now_ms = time_ms(CLOCK_MONOTONIC);
	int code = instance_ifaces_stored(s->instance, stored, err);

	if (code)
		return code;
	if (s->names_ms && now_ms - s->names_ms < NAMES_MS &&
	    !memcmp(stored, s->stored, sizeof(s->stored)))
		return 0;
	if ((code = devices_read(s->instance, &devices, err)))
		return code;
	memcpy(s->stored, stored, sizeof(s->stored));
	s->names_ms = now_ms;
	list_ifaces(r, &devices);
	return 0;
}

static enum total total_of(enum weir_reason reason)
{
	if (reason == REASON_PASS_SERVICE)
		return SENT;
	return reason_drops(reason) ? DROPPED : PASSED;
}

static void add_totals(struct rates_reader *r)
{
	static const char *const names[TOTALS] = {"passed", "sent", "dropped"};
	const struct rates_list *parts = &r->lists[RATES_INTERFACES];
	struct rates_list *totals = &r->lists[RATES_TOTALS];

	while (totals->n < TOTALS)
		rates_add(totals, names[totals->n], NULL, NULL, 0);
	rates_clear(totals);
	for (size_t n = 0; n < parts->n; n++)
		rates_sum(&totals->at[total_of(n % WEIR_REASON_COUNT)], &parts->at[n]);
	totals->now_ns = parts->now_ns;
	totals->span_ns = parts->span_ns;
}

static int take_ifaces(struct rates_reader *r, struct err *err)
{
	struct rates_list *list = &r->lists[RATES_INTERFACES];
	struct reading_state *s = r->state;
	uint64_t numbers = 0, began_ns;
	int code = renew_ifaces(r, err);

	if (code)
		return code;
	for (size_t n = 0; n < s->n_numbers; n++)
		numbers |= 1ull << s->numbers[n];
	began_ns = now_ns();
	if ((code = counters_read_of(s->instance, numbers, s->counters, err)))
		return code;
	rates_at(list, began_ns + (now_ns() - began_ns) / 2);
	for (size_t n = 0; n < list->n; n++)
		rates_count(
			&list->at[n],
			&s->counters->at[s->numbers[n / WEIR_REASON_COUNT]][n % WEIR_REASON_COUNT]);
	add_totals(r);
	return 0;
}

// ---- rules --------------------------------------------------------------------------------------

static void add_rule(struct reading_state *s, struct rates_list *to, const struct candidate *c,
		     size_t rule)
{
	const struct image_rule *about = &c->image->about[rule];
	uint32_t index;

	if (identities_index(s->instance, about->identity, &index))
		index = UINT32_MAX;
	vec_push(&s->rules, index);
	rates_add(to, about->identity, about->place,
		  choice_word(&choice_actions, c->resolved->rules[rule].action), index);
}

// The place of a rule may be another one, although it is the same rule. Its counter, which stays
// the same, distinguishes rules whose labels are cut.
static void list_rules(struct rates_reader *r)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	struct rates_list fresh = {0}, *old = &r->lists[RATES_RULES];
	struct reading_state *s = r->state;

	s->rules.n = 0;
	r->rules_unknown = (struct err){0};
	if (!active_rules(s->instance, false, &c, &r->rules_unknown))
		for (size_t rule = 0; rule < c->image->n_rules; rule++)
			add_rule(s, &fresh, c, rule);
	rates_inherit(&fresh, old, RATES_RULES);
	rates_free(old);
	*old = fresh;
}

static int take_rules(struct rates_reader *r, struct err *err)
{
	struct rates_list *list = &r->lists[RATES_RULES];
	struct reading_state *s = r->state;
	CLEANUP_FREE struct counter *counts = mem_zalloc(list->n + 1, sizeof(*counts));
	uint64_t began_ns = now_ns();
	int code = rule_counts_at(s->instance, s->rules.at, list->n, counts, err);

	if (code)
		return code;
	rates_at(list, began_ns + (now_ns() - began_ns) / 2);
	for (size_t n = 0; n < list->n; n++)
		rates_count(&list->at[n], &counts[n]);
	return 0;
}

// ---- services -----------------------------------------------------------------------------------

static void list_services(struct rates_reader *r)
{
	struct rates_list fresh = {0}, *old = &r->lists[RATES_BACKENDS];
	const struct lb_state *state = r->state->pool.state;

	rates_free(&r->lists[RATES_SERVICES]);
	for (size_t n = 0; state && n < state->n_services; n++) {
		const struct lb_service *s = &state->services[n];

		rates_add(&r->lists[RATES_SERVICES], s->name, NULL, NULL, 0);
		for (uint32_t m = 0; m < s->n_members; m++) {
			const struct lb_member *member = &state->members[s->first_member + m];
			addr_text name;

			rates_add(&fresh, s->name, pool_name(member, name), NULL, member->id);
		}
	}
	rates_inherit(&fresh, old, RATES_BACKENDS);
	rates_free(old);
	*old = fresh;
}

static int open_services(struct rates_reader *r, struct err *err)
{
	struct reading_state *s = r->state;
	struct err why = {0};
	int code;

	pool_close(&s->pool);
	code = pool_open_few(s->name, NULL, &s->pool, &why);
	if (code && why.kind != ERR_INPUT) { // else the policy has no services
		*err = why;
		return code;
	}
	list_services(r);
	return 0;
}

static int count_backends(struct rates_reader *r, struct err *err)
{
	struct rates_list *backends = &r->lists[RATES_BACKENDS];

	vec_each (backends, row) {
		struct service_counter c;
		int code = lb_maps_counter(r->state->pool.live, (uint32_t)row->id, &c, err);

		if (code)
			return code;
		rates_count(row, &(struct counter){.packets = c.packets, .bytes = c.bytes});
	}
	return 0;
}

static void add_services(struct rates_reader *r)
{
	struct rates_list *services = &r->lists[RATES_SERVICES],
			  *backends = &r->lists[RATES_BACKENDS];
	struct rates_row *service = services->at;

	rates_clear(services);
	vec_each (backends, row) {
		while (strcmp(service->labels[0], row->labels[0]) != 0)
			service++;
		rates_sum(service, row);
	}
	services->now_ns = backends->now_ns;
	services->span_ns = backends->span_ns;
}

static int take_services(struct rates_reader *r, struct err *err)
{
	uint64_t began_ns = now_ns();
	int code = count_backends(r, err);

	if (code)
		return code;
	rates_at(&r->lists[RATES_BACKENDS], began_ns + (now_ns() - began_ns) / 2);
	add_services(r);
	return 0;
}

// ---- entries ------------------------------------------------------------------------------------

struct busy_entry {
	struct overlay_entry kernel;
	struct counter moved;
};

static struct counter count_of(const struct overlay_entry *entry)
{
	return (struct counter){.packets = entry->hits.packets, .bytes = entry->hits.bytes};
}

static struct entries_phase phase_of(const struct instance *i)
{
	const volatile struct knobs *knobs = i->knobs;

	return (struct entries_phase){knobs->epoch,
				      knobs->staging,
				      knobs->settled,
				      {knobs->shards[0], knobs->shards[1]},
				      knobs->moving};
}

// And nothing is being moved.
static bool is_same_phase(const struct entries_phase *a, const struct entries_phase *b)
{
	return !a->moving && !b->moving && a->shards[0] == b->shards[0] &&
	       a->shards[1] == b->shards[1] && a->epoch == b->epoch && a->staging == b->staging &&
	       a->settled == b->settled;
}

struct entry_walk {
	struct rates_reader *reading;
	struct entries_phase began; // when it began
	struct owner_sums origins, lists;
	VEC(struct busy_entry) busy;
	struct best best;
	size_t number; // entries so far
	bool out;      // there are some for outgoing calls
};

static void walk_free(struct entry_walk *w)
{
	owner_sums_free(&w->origins);
	owner_sums_free(&w->lists);
	vec_free(&w->busy);
	best_free(&w->best);
}

static void see_entry(struct entry_walk *w, const struct entry *entry)
{
	struct busy_entry busy = {.kernel = entry->kernel};
	const struct counter now = count_of(&busy.kernel);

	busy.moved = rates_entries_next(&w->reading->state->entries, &busy.kernel.prefix,
					busy.kernel.kind, &now);
	w->out |= busy.kernel.kind >= OVERLAY_PACKET_KINDS;
	owner_sums_add(&w->origins, &w->lists, entry, ++w->number, &busy.moved);
	if (!busy.moved.packets)
		return;
	best_offer(&w->best, UINT64_MAX - busy.moved.packets, w->busy.n);
	vec_push(&w->busy, busy);
}

// Counters were being moved, or may have been. An entry without a packet in the previous walk could
// then show all that it has ever counted as its rate.
static bool is_unsteady(struct entry_walk *w)
{
	struct reading_state *s = w->reading->state;
	const struct entries_phase now = phase_of(s->instance), *then = &w->began;

	if (is_same_phase(&now, then))
		return false;
	if (now.moving || then->moving || now.shards[0] != then->shards[0] ||
	    now.shards[1] != then->shards[1])
		return true;
	return ++s->entries_dropped <= DROPPED_MAX;
}

static int walk_entries(struct entry_walk *w, struct err *err)
{
	struct reading_state *s = w->reading->state;
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_ENTRIES struct entries entries = {0};
	const struct entry *entry;
	int code = store_read(s->name, &store, err);

	if (code)
		return code;
	entries = entries_of(store);
	rates_entries_begin(&s->entries);
	w->began = phase_of(s->instance);
	while ((entry = entries_next(&entries))) {
		if ((code = entries_count(&entries, err)))
			return code;
		see_entry(w, entry);
	}
	if (is_unsteady(w))
		return -EAGAIN;
	s->entries_dropped = 0;
	rates_entries_end(&s->entries);
	return 0;
}

static void set_row(struct rates_row *row, const struct counter *now, const struct counter *moved)
{
	row->now = *now;
	row->moved = *moved;
	row->known = true;
}

static void list_owners(struct rates_list *to, const struct owner_sums *sums, uint64_t began_ns)
{
	uint64_t before_ns = to->now_ns;

	rates_free(to);
	to->now_ns = before_ns;
	rates_at(to, began_ns);
	vec_each (sums, sum)
		set_row(sum->list[0] ? rates_add(to, sum->list, sum->origin, sum->verb, 0)
				     : rates_add(to, sum->origin, sum->verb, NULL, 0),
			&sum->total, &sum->moved);
}

static void list_entries(struct rates_list *to, struct entry_walk *w, uint64_t began_ns)
{
	uint64_t before_ns = to->now_ns;

	rates_free(to);
	to->now_ns = before_ns;
	rates_at(to, began_ns);
	best_sort(&w->best);
	vec_each (&w->best.kept, item) {
		const struct busy_entry *busy = &w->busy.at[item->at];
		const struct counter now = count_of(&busy->kernel);
		addr_text address;

		set_row(rates_add(to, prefix_format(&busy->kernel.prefix, address),
				  kind_key(busy->kernel.kind), NULL, 0),
			&now, &busy->moved);
	}
}

// Packets that entries have decided, on all interfaces.
static struct counter entries_met(const struct rates_reader *r)
{
	const struct rates_list *list = &r->lists[RATES_INTERFACES];
	struct counter met = {0};

	for (size_t n = 0; n < list->n; n++)
		if (reason_group(n % WEIR_REASON_COUNT) == GROUP_OVERLAY) {
			met.packets += list->at[n].now.packets;
			met.bytes += list->at[n].now.bytes;
		}
	return met;
}

// No entry has counted anything since the last walk, and the owners are the same.
static void list_standstill(struct rates_reader *r, uint64_t began_ns)
{
	list_entries(&r->lists[RATES_ENTRIES], &(struct entry_walk){0}, began_ns);
	for (enum rates_part p = RATES_ORIGINS; p <= RATES_LISTS; p++) {
		struct rates_list *list = &r->lists[p];

		rates_at(list, began_ns);
		vec_each (list, row)
			row->moved = (struct counter){0};
	}
}

static int read_entries(struct rates_reader *r, uint64_t began_ns, struct err *err)
{
	CLEANUP(walk_free) struct entry_walk w = {.reading = r, .best = {.max = READING_ENTRIES}};
	struct reading_state *s = r->state;
	struct entries_seen seen = {.met = entries_met(r)};
	uint64_t took_ms;
	int code;

	seen.known = !store_stamp(s->name, &seen.journal);
	s->entries_seen.known = false;
	code = walk_entries(&w, err);
	if (code && code != -EAGAIN)
		return code;
	if (code && !w.number)
		return 0; // another command has the lock
	took_ms = (now_ns() - began_ns) / 1000000 * ENTRIES_PART;
	s->entries_due_ms = began_ns / 1000000 + (took_ms > ENTRIES_MS ? took_ms : ENTRIES_MS);
	if (code)
		return 0; // a change may have moved counters
	list_owners(&r->lists[RATES_ORIGINS], &w.origins, began_ns);
	list_owners(&r->lists[RATES_LISTS], &w.lists, began_ns);
	list_entries(&r->lists[RATES_ENTRIES], &w, began_ns);
	seen.known &= !w.out;
	seen.phase = w.began;
	s->entries_seen = seen;
	return 0;
}

static bool is_standstill(const struct rates_reader *r)
{
	const struct entries_seen *seen = &r->state->entries_seen;
	const struct entries_phase phase = phase_of(r->state->instance);
	const struct counter met = entries_met(r);
	struct journal_stamp journal;

	return seen->known && is_same_phase(&phase, &seen->phase) &&
	       met.packets == seen->met.packets && met.bytes == seen->met.bytes &&
	       !store_stamp(r->state->name, &journal) &&
	       !memcmp(&journal, &seen->journal, sizeof(journal));
}

static int take_entries(struct rates_reader *r, struct err *err)
{
	struct reading_state *s = r->state;
	uint64_t began_ns = now_ns();

	if (began_ns / 1000000 < s->entries_due_ms || phase_of(s->instance).moving)
		return 0;
	if (!is_standstill(r))
		return read_entries(r, began_ns, err);
	s->entries_due_ms = began_ns / 1000000 + ENTRIES_MS;
	list_standstill(r, began_ns);
	return 0;
}

// ---- all ----------------------------------------------------------------------------------------

static int find_inode(const struct reading_state *s, struct stat *ret)
{
	CLEANUP_FREE char *path = mem_printf("%s/meta", s->instance->folder);

	return stat(path, ret);
}

static bool is_replaced(const struct reading_state *s)
{
	struct stat at;

	return !s->instance || find_inode(s, &at) || at.st_ino != s->inode ||
	       at.st_dev != s->device;
}

static int open_instance(struct reading_state *s, struct err *err)
{
	struct stat at;
	int code;

	pool_close(&s->pool);
	instance_free(TAKE_PTR(s->instance));
	s->generation = 0;
	s->names_ms = 0;
	s->entries_seen.known = false;
	if ((code = instance_open(s->name, &s->instance, err)))
		return code;
	if (find_inode(s, &at))
		return err_system(err, errno, "cannot read '%s'", s->instance->folder);
	s->inode = at.st_ino;
	s->device = at.st_dev;
	return 0;
}

// Rules and services belong to the generation that packets meet. A record that could not be read is
// tried again.
static int renew_generation(struct rates_reader *r, struct err *err)
{
	struct reading_state *s = r->state;
	struct commit_state state;
	int code = commit_read(s->instance, &state, err);

	if (code)
		return code;
	if (s->generation == state.in_force && s->program == state.program && s->generation &&
	    (!r->rules_unknown.kind || time_ms(CLOCK_MONOTONIC) - s->rules_ms < NAMES_MS))
		return 0;
	s->rules_ms = time_ms(CLOCK_MONOTONIC);
	list_rules(r);
	if ((code = open_services(r, err)))
		return code;
	s->generation = state.in_force;
	s->program = state.program;
	return 0;
}

int reading_open(const char *instance, struct rates_reader *ret, struct err *err)
{
	CLEANUP_READING struct rates_reader r = {0};
	int code;

	r.state = mem_new(struct reading_state);
	r.state->name = mem_strdup(instance);
	r.state->counters = mem_new(struct counters);
	r.state->pool.lock = -1;
	if ((code = open_instance(r.state, err)))
		return code;
	*ret = r;
	r = (struct rates_reader){0};
	return 0;
}

int reading_take(struct rates_reader *r, struct err *err)
{
	int code = is_replaced(r->state) ? open_instance(r->state, err) : 0;

	if (code)
		return code;
	if ((code = renew_generation(r, err)))
		return code;
	if ((code = take_ifaces(r, err)))
		return code;
	if ((code = take_rules(r, err)))
		return code;
	if ((code = take_services(r, err)))
		return code;
	return take_entries(r, err);
}

void reading_close(struct rates_reader *r)
{
	struct reading_state *s = TAKE_PTR(r->state);

	for (enum rates_part p = 0; p < RATES_PARTS; p++)
		rates_free(&r->lists[p]);
	if (!s)
		return;
	pool_close(&s->pool);
	instance_free(s->instance);
	rates_entries_free(&s->entries);
	vec_free(&s->rules);
	free(s->counters);
	free(s->name);
	free(s);
}
