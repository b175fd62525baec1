// SPDX-License-Identifier: GPL-2.0-only
// A running balancer in the pins of its generation, read, and written under traffic.
#include "ctl/datapath/lb_maps.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"

struct lb_maps {
	struct generation *g;
	char *folder;
	struct lb_state *state;
	struct lb_service *services_read; // as the kernel has them
	struct lb_member *members_read;
	struct mapping services, backends;
	size_t n_slots, n_services, n_backends; // elements of the tables
	struct mapping *rings;                  // by service: the slots of those that are used
};

static int cannot_read(struct err *err)
{
	return err_system(err, errno, "cannot read the state of the balancer");
}

// Values of an array; *ret_read: their copy.
static int read_all(int fd, void *values, void *read, size_t size, uint32_t n, struct err *err)
{
	if (percpu_read(fd, 0, n, values))
		return cannot_read(err);
	memcpy(read, values, n * size);
	return 0;
}

static int damaged(struct err *err)
{
	return err_stated(err, EBADMSG, "the state of the balancer is damaged");
}

static int read_state(struct lb_maps *l, struct err *err)
{
	const int *fd = l->g->fd;
	struct lb_state *b = l->state;
	uint32_t members;
	const struct lb_service *last;
	int code = mapping_entries(fd[PART_KEPT_MEMBERS], &members, err);

	if (code)
		return code;
	b->n_services = l->n_services;
	b->n_slots = l->n_slots;
	b->services = mem_zalloc(b->n_services, sizeof(*b->services));
	b->members = mem_zalloc(members, sizeof(*b->members));
	b->slots = mem_zalloc(b->n_slots, sizeof(*b->slots));
	l->services_read = mem_zalloc(b->n_services, sizeof(*b->services));
	l->members_read = mem_zalloc(members, sizeof(*b->members));
	l->rings = mem_zalloc(b->n_services, sizeof(*l->rings));
	if ((code = read_all(fd[PART_KEPT_SERVICES], b->services, l->services_read,
			     sizeof(*b->services), (uint32_t)b->n_services, err)) ||
	    (code = read_all(fd[PART_KEPT_MEMBERS], b->members, l->members_read,
			     sizeof(*b->members), members, err)))
		return code;
	last = &b->services[b->n_services - 1];
	b->n_members = last->first_member + last->n_members;
	return b->n_members > members ? damaged(err) : 0;
}

// A map of one value, which is a table of elements of `size` bytes.
static int map_whole(struct mapping *m, int fd, size_t size, size_t *ret_n, struct err *err)
{
	size_t bytes;
	int code = mapping_bytes(fd, &bytes, err);

	if (code)
		return code;
	*ret_n = bytes / size;
	return mapping_open(m, fd, bytes, err);
}

static int map_tables(struct lb_maps *l, struct err *err)
{
	const int *fd = l->g->fd;
	int code = mapping_bytes(fd[PART_RINGS], &l->n_slots, err);

	l->n_slots /= sizeof(uint64_t);
	if (code || (code = map_whole(&l->services, fd[PART_SERVICES], sizeof(struct service),
				      &l->n_services, err)))
		return code;
	return map_whole(&l->backends, fd[PART_BACKENDS], sizeof(struct backend), &l->n_backends,
			 err);
}

// Nothing can be planned around a balancer without one of its parts. It is not the same as no
// balancer: flows would move.
static int incomplete(const struct instance *i, struct err *err)
{
	err_hint(err, "weir -n %s detach --force removes the instance; then attach again", i->name);
	return -EBADMSG;
}

// -ENOENT without err set: the generation has no services.
static int open_parts(struct lb_maps *l, const struct instance *i, uint32_t generation,
		      struct err *err)
{
	static const enum part own[] = {PART_LB_PROGRAM, PART_KEPT_SERVICES, PART_KEPT_MEMBERS};
	int code = generation_open(i, generation, &l->g, err);
	enum part missing = PARTS;
	size_t n = 0;

	if (code)
		return code == -ENOENT ? incomplete(i, err) : code;
	for (size_t p = 0; p < ARRAY_SIZE(own); p++) {
		if (l->g->fd[own[p]] < 0)
			missing = own[p];
		else
			n++;
	}
	if (!n)
		return -ENOENT;
	if (missing == PARTS)
		return 0;
	err_stated(err, ENOENT, "'%s' of generation %u is not in bpffs", part_name(missing),
		   generation);
	return incomplete(i, err);
}

static int use_all(struct lb_maps *l, struct err *err)
{
	for (size_t n = 0; n < l->n_services; n++) {
		int code = lb_maps_use(l, n, err);

		if (code)
			return code;
	}
	return 0;
}

int lb_maps_open(const struct instance *i, uint32_t generation, enum lb_slots slots,
		 struct lb_maps **ret, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = mem_new(struct lb_maps);
	int code = generation ? open_parts(l, i, generation, err) : -ENOENT;

	*ret = NULL;
	if (code)
		return code == -ENOENT ? 0 : code;
	l->folder = generation_folder(i->folder, generation);
	l->state = mem_new(struct lb_state);
	if ((code = map_tables(l, err)) || (code = read_state(l, err)))
		return code;
	if (slots == LB_SLOTS_ALL && (code = use_all(l, err)))
		return code;
	*ret = TAKE_PTR(l);
	return 0;
}

bool lb_maps_uses(const struct lb_maps *l, size_t service)
{
	return l->rings[service].at;
}

int lb_maps_use(struct lb_maps *l, size_t service, struct err *err)
{
	const struct lb_service *s = &l->state->services[service];
	size_t from = s->first_slot * sizeof(uint64_t), bytes = s->size * sizeof(uint64_t);
	int code;

	if (lb_maps_uses(l, service))
		return 0;
	if ((uint64_t)s->first_slot + s->size > l->n_slots)
		return damaged(err);
	code = mapping_open_part(&l->rings[service], l->g->fd[PART_RINGS], from, bytes, err);
	if (code)
		return code;
	memcpy(l->state->slots + s->first_slot, l->rings[service].at, bytes);
	return 0;
}

void lb_maps_close(struct lb_maps *l)
{
	if (!l)
		return;
	for (size_t n = 0; l->rings && n < l->n_services; n++)
		mapping_close(&l->rings[n]);
	free(l->rings);
	free(l->services_read);
	free(l->members_read);
	mapping_close(&l->services);
	mapping_close(&l->backends);
	lb_state_free(l->state);
	generation_free(l->g);
	free(l->folder);
	free(l);
}

void lb_maps_cleanup(struct lb_maps **l)
{
	lb_maps_close(*l);
}

struct lb_state *lb_maps_state(struct lb_maps *l)
{
	return l->state;
}

static const uint64_t *slots_of(const struct lb_maps *l, size_t service)
{
	return l->state->slots + l->state->services[service].first_slot;
}

static struct backend *backend_of(const struct lb_maps *l, uint32_t id)
{
	return id < l->n_backends ? (struct backend *)l->backends.at + id : NULL;
}

static void write_slots(const struct lb_maps *l, size_t service)
{
	const uint64_t *wanted = slots_of(l, service);
	uint64_t *slots = l->rings[service].at;

	for (uint32_t n = 0; n < l->state->services[service].size; n++)
		if (slots[n] != wanted[n])
			__atomic_store_n(&slots[n], wanted[n], __ATOMIC_RELAXED);
}

static void write_hold(const struct lb_maps *l, size_t service, uint32_t hz)
{
	struct service *to = (struct service *)l->services.at + service;
	struct service wanted;

	lb_service_value(&l->state->services[service], hz, &wanted);
	__atomic_store_n(&to->hold_ticks, wanted.hold_ticks, __ATOMIC_RELAXED);
}

// states: of the members, NULL: not to be written.
static bool ring_differs(const struct lb_maps *l, size_t service, const uint8_t *states)
{
	const struct lb_service *s = &l->state->services[service];

	for (uint32_t m = 0; states && m < s->n_members; m++) {
		const struct backend *has =
			backend_of(l, l->state->members[s->first_member + m].id);

		if (has && has->state != states[m])
			return true;
	}
	return memcmp(l->rings[service].at, slots_of(l, service), s->size * sizeof(uint64_t)) != 0;
}

static int cannot_write(struct err *err)
{
	return err_system(err, errno, "cannot write the state of the balancer");
}

static int write_torn(struct lb_maps *l, uint32_t service, struct err *err)
{
	struct lb_service *value = &l->services_read[service];

	value->torn = 1;
	return bpf_map_update_elem(l->g->fd[PART_KEPT_SERVICES], &service, value, BPF_ANY)
		       ? cannot_write(err)
		       : 0;
}

static int write_ring(struct lb_maps *l, uint32_t service, bool with_states, uint32_t hz,
		      struct err *err)
{
	const struct lb_state *b = l->state;
	const struct lb_service *s = &b->services[service];
	CLEANUP_FREE uint8_t *states = with_states ? mem_zalloc(s->n_members, 1) : NULL;
	int code;

	if (states)
		lb_member_states(b, s, states);
	if (ring_differs(l, service, states) && (code = write_torn(l, service, err)))
		return code;
	for (uint32_t m = 0; states && m < s->n_members; m++)
		lb_maps_set_state(l, b->members[s->first_member + m].id,
				  (enum backend_state)states[m]);
	write_slots(l, service);
	write_hold(l, service, hz);
	return 0;
}

// Values of an array that differ from those that were read.
static int write_kept(int fd, const void *values, void *read, size_t size, size_t n,
		      struct err *err)
{
	for (uint32_t v = 0; v < n; v++) {
		const uint8_t *value = (const uint8_t *)values + v * size;

		if (!memcmp(value, (uint8_t *)read + v * size, size))
			continue;
		if (bpf_map_update_elem(fd, &v, value, BPF_ANY))
			return cannot_write(err);
		memcpy((uint8_t *)read + v * size, value, size);
	}
	return 0;
}

static int write_all(struct lb_maps *l, bool with_states, uint32_t hz, struct err *err)
{
	const struct lb_state *b = l->state;
	const int *fd = l->g->fd;
	int code;

	for (uint32_t n = 0; n < b->n_services; n++)
		if (lb_maps_uses(l, n) && (code = write_ring(l, n, with_states, hz, err)))
			return code;
	if ((code = write_kept(fd[PART_KEPT_MEMBERS], b->members, l->members_read,
			       sizeof(*b->members), b->n_members, err)))
		return code;
	return write_kept(fd[PART_KEPT_SERVICES], b->services, l->services_read,
			  sizeof(*b->services), b->n_services, err);
}

int lb_maps_write(struct lb_maps *l, uint32_t hz, struct err *err)
{
	return write_all(l, true, hz, err);
}

int lb_maps_write_before(struct lb_maps *l, uint32_t hz, struct err *err)
{
	return write_all(l, false, hz, err);
}

uint32_t lb_maps_backends(const struct lb_maps *l)
{
	return (uint32_t)l->n_backends;
}

bool lb_maps_set_backend(struct lb_maps *l, uint32_t id, const struct backend *backend)
{
	struct backend *to = backend_of(l, id);

	if (!to)
		return false;
	if (to->family != backend->family || memcmp(to->addr, backend->addr, sizeof(to->addr)) != 0)
		__atomic_store_n(&to->path, 0, __ATOMIC_RELAXED); // of another address
	memcpy(to, backend, offsetof(struct backend, path));
	return true;
}

const struct backend *lb_maps_backend(const struct lb_maps *l, uint32_t id)
{
	return backend_of(l, id);
}

void lb_maps_set_state(struct lb_maps *l, uint32_t id, enum backend_state state)
{
	struct backend *to = backend_of(l, id);

	if (to)
		__atomic_store_n(&to->state, (uint8_t)state, __ATOMIC_RELAXED);
}

int lb_maps_add_device(struct lb_maps *l, uint32_t ifindex, struct err *err)
{
	return parts_add_device(l->g, ifindex, err);
}

static int map_pins(const struct lb_maps *l, const struct lb_service *s, struct mapping *m,
		    struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/" LB_PINS_FOLDER, l->folder);
	CLEANUP_FD int fd = -1;
	int code = bpffs_get(folder, s->name, &fd, err);

	if (code == -ENOENT) {
		err_stated(err, ENOENT, "the pins of '%s' are not in bpffs", s->name);
		return err_hint(err, "weir detach --force removes the instance; then attach again");
	}
	return code ? code
		    : mapping_open(m, fd, (size_t)s->buckets * sizeof(struct pin_bucket), err);
}

int lb_maps_pins(const struct lb_maps *l, size_t service, struct mapping *ret, size_t *ret_n,
		 struct err *err)
{
	const struct lb_service *s = &l->state->services[service];
	int code = map_pins(l, s, ret, err);

	*ret_n = (size_t)s->buckets * SERVICE_PIN_WORDS;
	return code;
}

int lb_maps_counter(const struct lb_maps *l, uint32_t id, struct service_counter *ret,
		    struct err *err)
{
	CLEANUP_FREE struct service_counter *all = NULL;
	size_t cpus;
	int code = percpu_values(1, sizeof(*all), &all, &cpus, err);

	if (code)
		return code;
	if (bpf_map_lookup_elem(l->g->fd[PART_BACKEND_COUNTERS], &id, all))
		return err_system(err, errno, "cannot read the counters of backend %u", id);
	*ret = (struct service_counter){0};
	for (size_t c = 0; c < cpus; c++) {
		ret->packets += all[c].packets;
		ret->bytes += all[c].bytes;
		ret->back_packets += all[c].back_packets;
		ret->back_bytes += all[c].back_bytes;
		for (int d = 0; d < SERVICE_DROPS; d++)
			ret->dropped[d] += all[c].dropped[d];
		for (int e = 0; e < SERVICE_EVENT_COUNT; e++)
			ret->event[e] += all[c].event[e];
	}
	return 0;
}
