// SPDX-License-Identifier: GPL-2.0-only
// Reads a running balancer from the pins of its generation, and writes it back under traffic.
#include "ctl/datapath/lb_maps.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/mapping.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/percpu.h"

struct lb_maps {
	struct generation *g;
	char *folder;
	struct lb_state *state;
	struct mapping rings, services, backends;
	size_t n_slots, n_services, n_backends; // elements of them
	struct mapping *pins;                   // by service
};

static int cannot_read(struct err *err)
{
	return err_system(err, errno, "cannot read the state of the balancer");
}

static int read_all(int fd, void *values, size_t size, size_t n, struct err *err)
{
	for (uint32_t v = 0; v < n; v++)
		if (bpf_map_lookup_elem(fd, &v, (uint8_t *)values + v * size))
			return cannot_read(err);
	return 0;
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
	if ((code = read_all(fd[PART_KEPT_SERVICES], b->services, sizeof(*b->services),
			     b->n_services, err)) ||
	    (code = read_all(fd[PART_KEPT_MEMBERS], b->members, sizeof(*b->members), members, err)))
		return code;
	last = &b->services[b->n_services - 1];
	b->n_members = last->first_member + last->n_members;
	if (b->n_members > members)
		return err_system(err, EBADMSG, "the state of the balancer is damaged");
	memcpy(b->slots, l->rings.at, b->n_slots * sizeof(*b->slots));
	return 0;
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
	int code = map_whole(&l->rings, fd[PART_RINGS], sizeof(uint64_t), &l->n_slots, err);

	if (code || (code = map_whole(&l->services, fd[PART_SERVICES], sizeof(struct service),
				      &l->n_services, err)))
		return code;
	return map_whole(&l->backends, fd[PART_BACKENDS], sizeof(struct backend), &l->n_backends,
			 err);
}

// Nothing can be planned around a balancer without one of its parts. It is not the same as no balancer: flows would
// move.
static int incomplete(const struct instance *i, struct err *err)
{
	err_hint(err, "weir -n %s detach --force removes the instance; then attach again", i->name);
	return -EBADMSG;
}

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
	err_system(err, ENOENT, "'%s' of generation %u is not in bpffs", part_name(missing),
		   generation);
	return incomplete(i, err);
}

int lb_maps_open(const struct instance *i, uint32_t generation, struct lb_maps **ret,
		 struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = mem_new(struct lb_maps);
	int code = open_parts(l, i, generation, err);

	if (code)
		return code;
	l->folder = generation_folder(i->folder, generation);
	l->state = mem_new(struct lb_state);
	if ((code = map_tables(l, err)) || (code = read_state(l, err)))
		return code;
	l->pins = mem_zalloc(l->state->n_services, sizeof(*l->pins));
	*ret = TAKE_PTR(l);
	return 0;
}

void lb_maps_close(struct lb_maps *l)
{
	if (!l)
		return;
	for (size_t s = 0; l->pins && s < l->state->n_services; s++)
		mapping_close(&l->pins[s]);
	free(l->pins);
	mapping_close(&l->rings);
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

static void write_slots(struct lb_maps *l)
{
	uint64_t *slots = l->rings.at;

	for (size_t n = 0; n < l->state->n_slots; n++)
		if (slots[n] != l->state->slots[n])
			__atomic_store_n(&slots[n], l->state->slots[n], __ATOMIC_RELAXED);
}

static void write_services(struct lb_maps *l, uint32_t hz)
{
	struct service *services = l->services.at;

	for (size_t s = 0; s < l->state->n_services; s++) {
		struct service wanted;

		lb_service_value(&l->state->services[s], hz, &wanted);
		__atomic_store_n(&services[s].hold_ticks, wanted.hold_ticks, __ATOMIC_RELAXED);
	}
}

static void write_states(struct lb_maps *l)
{
	const struct lb_state *b = l->state;
	CLEANUP_FREE uint8_t *states = mem_zalloc(b->n_members, sizeof(*states));

	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];

		lb_member_states(b, s, states);
		for (uint32_t m = 0; m < s->n_members; m++)
			lb_maps_set_state(l, b->members[s->first_member + m].id,
					  (enum backend_state)states[m]);
	}
}

int lb_maps_write(struct lb_maps *l, uint32_t hz, struct err *err)
{
	write_states(l);
	return lb_maps_write_before(l, hz, err);
}

int lb_maps_write_before(struct lb_maps *l, uint32_t hz, struct err *err)
{
	const struct lb_state *b = l->state;

	write_slots(l);
	write_services(l, hz);
	for (uint32_t m = 0; m < b->n_members; m++)
		if (bpf_map_update_elem(l->g->fd[PART_KEPT_MEMBERS], &m, &b->members[m], BPF_ANY))
			return err_system(err, errno, "cannot write the state of the balancer");
	for (uint32_t s = 0; s < b->n_services; s++)
		if (bpf_map_update_elem(l->g->fd[PART_KEPT_SERVICES], &s, &b->services[s], BPF_ANY))
			return err_system(err, errno, "cannot write the state of the balancer");
	return 0;
}

uint32_t lb_maps_backends(const struct lb_maps *l)
{
	return (uint32_t)l->n_backends;
}

bool lb_maps_set_backend(struct lb_maps *l, uint32_t id, const struct backend *backend)
{
	struct backend *to;

	if (id >= l->n_backends)
		return false;
	to = (struct backend *)l->backends.at + id;
	if (to->family != backend->family || memcmp(to->addr, backend->addr, sizeof(to->addr)) != 0)
		__atomic_store_n(&to->path, 0, __ATOMIC_RELAXED); // of another address
	memcpy(to, backend, offsetof(struct backend, path));
	return true;
}

const struct backend *lb_maps_backend(const struct lb_maps *l, uint32_t id)
{
	return id < l->n_backends ? (const struct backend *)l->backends.at + id : NULL;
}

void lb_maps_set_state(struct lb_maps *l, uint32_t id, enum backend_state state)
{
	if (id < l->n_backends)
		__atomic_store_n(&((struct backend *)l->backends.at)[id].state, (uint8_t)state,
				 __ATOMIC_RELAXED);
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
		err_system(err, ENOENT, "the pins of '%s' are not in bpffs", s->name);
		return err_hint(err, "weir detach --force removes the instance; then attach again");
	}
	return code ? code
		    : mapping_open(m, fd, (size_t)s->buckets * sizeof(struct pin_bucket), err);
}

int lb_maps_pins(struct lb_maps *l, size_t service, uint64_t **ret_words, size_t *ret_n,
		 struct err *err)
{
	const struct lb_service *s = &l->state->services[service];
	struct mapping *m = &l->pins[service];
	int code = m->at ? 0 : map_pins(l, s, m, err);

	if (code)
		return code;
	*ret_words = m->at;
	*ret_n = (size_t)s->buckets * SERVICE_PIN_WORDS;
	return 0;
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
		for (int d = 0; d < SERVICE_DROPS; d++)
			ret->dropped[d] += all[c].dropped[d];
		for (int e = 0; e < SERVICE_EVENT_COUNT; e++)
			ret->event[e] += all[c].event[e];
	}
	return 0;
}
