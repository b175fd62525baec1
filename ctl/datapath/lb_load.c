// SPDX-License-Identifier: GPL-2.0-only
// Loads the balancer of a generation and takes over what outlives the previous one.
#include "ctl/datapath/lb_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/markers.h"
#include "ctl/datapath/parts.h"

// The maps of backends have a power of two of elements, twice as many as are needed: the next
// generation takes them over, and a new map is made only when they do not suffice.
#define BACKENDS_MIN 256
#define DEVICES      64 // egress devices
#define PINS_FLAGS   (BPF_F_MMAPABLE | BPF_F_INNER_MAP)

// ---- maps that are taken over -------------------------------------------------------------------

static uint32_t highest_number(const struct lb_state *b)
{
	uint32_t highest = 0;

	for (size_t s = 0; s < b->n_services; s++)
		highest = b->services[s].id > highest ? b->services[s].id : highest;
	for (size_t m = 0; m < b->n_members; m++)
		highest = b->members[m].id > highest ? b->members[m].id : highest;
	return highest;
}

static uint32_t size_for(uint32_t highest)
{
	uint32_t size = BACKENDS_MIN;

	while (size <= highest)
		size *= 2;
	return size == BACKENDS_MIN || size == SERVICE_BACKENDS ? size : size * 2;
}

// A part of generation folder `previous` (NULL: none) and its number of elements. *ret_fd stays -1
// if it does not exist.
static int open_previous(const char *previous, const char *name, int *ret_fd, uint32_t *ret_n,
			 struct err *err)
{
	int code = previous ? bpffs_get(previous, name, ret_fd, err) : -ENOENT;

	*ret_n = 0;
	if (code)
		return code == -ENOENT ? 0 : code;
	return mapping_entries(*ret_fd, ret_n, err);
}

static int cannot_size(enum part part, int code, struct err *err)
{
	return err_system(err, -code, "cannot size the balancer's '%s'", part_name(part));
}

// The counters of the previous generation if there is one for the number `highest`; else new ones.
static int take_counters(struct bpf_map *map, const char *previous, uint32_t highest,
			 struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t has;
	int code = open_previous(previous, part_name(PART_BACKEND_COUNTERS), &fd, &has, err);

	if (code)
		return code;
	code = has > highest ? bpf_map__reuse_fd(map, fd)
			     : bpf_map__set_max_entries(map, size_for(highest));
	return code ? cannot_size(PART_BACKEND_COUNTERS, code, err) : 0;
}

// The same for backends, which are one value.
static int take_backends(struct bpf_map *map, const char *previous, uint32_t highest,
			 uint64_t *ret_n, struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t one;
	size_t bytes = 0;
	int code = open_previous(previous, part_name(PART_BACKENDS), &fd, &one, err);

	if (code || (fd >= 0 && (code = mapping_bytes(fd, &bytes, err))))
		return code;
	*ret_n = bytes / sizeof(struct backend);
	if (*ret_n > highest) {
		code = bpf_map__reuse_fd(map, fd);
		return code ? cannot_size(PART_BACKENDS, code, err) : 0;
	}
	*ret_n = size_for(highest);
	code = bpf_map__set_value_size(map, (uint32_t)(*ret_n * sizeof(struct backend)));
	return code ? cannot_size(PART_BACKENDS, code, err) : 0;
}

struct part_size {
	enum part part;
	size_t n;
	size_t size; // size of an element in a map of one value; 0: n elements of the map
};

static int size_parts(struct policy_bpf *skel, const struct part_size *sizes, size_t n_sizes,
		      struct err *err)
{
	for (size_t m = 0; m < n_sizes; m++) {
		size_t n = sizes[m].n, size = sizes[m].size;
		struct bpf_map *map = part_map(skel, sizes[m].part);
		int code = n * size > MARKER_VALUE_MAX ? -E2BIG
			   : size ? bpf_map__set_value_size(map, (uint32_t)(n * size))
				  : bpf_map__set_max_entries(map, (uint32_t)n);

		if (code)
			return cannot_size(sizes[m].part, code, err);
	}
	return 0;
}

// Also without services.
static int size_answers(struct policy_bpf *skel, struct err *err)
{
	const struct part_size sizes[] = {
		{PART_EGRESS, DEVICES, 0},
		{PART_NAT_USES, NAT_ENDS, sizeof(struct nat_use)},
	};

	return size_parts(skel, sizes, ARRAY_SIZE(sizes), err);
}

static int size_own(struct policy_bpf *skel, const struct lb_state *b, struct err *err)
{
	const struct part_size sizes[] = {
		{PART_SERVICES, b->n_services, sizeof(struct service)},
		{PART_RINGS, b->n_slots, sizeof(*b->slots)},
		{PART_PINS, b->n_services, 0},
		{PART_TUNNELS, 2 * b->n_members + 1, 0}, // with the beginnings of the chains
	};

	return size_parts(skel, sizes, ARRAY_SIZE(sizes), err);
}

static void mark_table(struct markers *m, enum marker_number table, enum part part, uint64_t n)
{
	markers_address(m, table, part_name(part), 0);
	markers_number(m, table + 1, n); // the next marker
}

// A policy without services has the maps, and none of their elements.
static void mark_none(struct markers *m)
{
	mark_table(m, MARK_SERVICES, PART_SERVICES, 0);
	mark_table(m, MARK_SLOTS, PART_RINGS, 0);
	mark_table(m, MARK_BACKENDS, PART_BACKENDS, 0);
}

// The value of MARK_NATS.
static uint64_t nats_of(const struct nat_use *uses)
{
	for (uint32_t end = 0; uses && end < NAT_ENDS; end++)
		if (uses[end].mode == NAT_USE_FORMER)
			return 2;
	return uses != NULL;
}

int lb_load_prepare(struct policy_bpf *skel, const struct lb_load *b, const char *previous,
		    struct markers *markers, struct err *err)
{
	uint32_t highest;
	uint64_t backends;
	int code;

	mark_none(markers);
	if (!b)
		return 0;
	highest = b->lb ? highest_number(b->lb) : 0;
	if ((b->lb && (code = size_own(skel, b->lb, err))) || (code = size_answers(skel, err)) ||
	    (code = take_backends(skel->maps.backends, previous, highest, &backends, err)) ||
	    (code = take_counters(skel->maps.balanced, previous, highest, err)))
		return code;
	if (b->lb) {
		mark_table(markers, MARK_SERVICES, PART_SERVICES, b->lb->n_services);
		mark_table(markers, MARK_SLOTS, PART_RINGS, b->lb->n_slots);
	}
	mark_table(markers, MARK_BACKENDS, PART_BACKENDS, backends);
	markers_number(markers, MARK_NATS, nats_of(b->uses));
	return 0;
}

// ---- filling ------------------------------------------------------------------------------------

// A map of the previous generation that is not taken over unchanged; *ret_fd stays -1: it is, or it
// does not exist. Later writes of packets to the old map stay there.
static int open_replaced(int to, const char *previous, enum part part, int *ret_fd, uint32_t *ret_n,
			 struct err *err)
{
	struct bpf_map_info old = {0}, now = {0};
	uint32_t length = sizeof(old);
	CLEANUP_FD int fd = -1;
	int code = open_previous(previous, part_name(part), &fd, ret_n, err);

	if (code || fd < 0)
		return code;
	if (bpf_obj_get_info_by_fd(fd, &old, &length) || bpf_obj_get_info_by_fd(to, &now, &length))
		return err_system(err, errno, "cannot read the balancer's '%s'", part_name(part));
	if (old.id != now.id)
		*ret_fd = TAKE_FD(fd);
	return 0;
}

static int copy_counters(int to, const char *previous, size_t size, struct err *err)
{
	CLEANUP_FREE uint8_t *value = mem_zalloc(1, size);
	CLEANUP_FD int fd = -1;
	uint32_t n = 0;
	int code = open_replaced(to, previous, PART_BACKEND_COUNTERS, &fd, &n, err);

	for (uint32_t e = 0; fd >= 0 && e < n; e++)
		if (bpf_map_lookup_elem(fd, &e, value) ||
		    bpf_map_update_elem(to, &e, value, BPF_ANY))
			return err_system(err, errno, "cannot copy the balancer's '%s'",
					  part_name(PART_BACKEND_COUNTERS));
	return code;
}

// To a larger table.
static int copy_backends(int to, void *table, const char *previous, struct err *err)
{
	CLEANUP_MAPPING struct mapping old = {0};
	CLEANUP_FD int fd = -1;
	size_t bytes;
	uint32_t one;
	int code = open_replaced(to, previous, PART_BACKENDS, &fd, &one, err);

	if (code || fd < 0)
		return code;
	if ((code = mapping_bytes(fd, &bytes, err)) || (code = mapping_open(&old, fd, bytes, err)))
		return code;
	memcpy(table, old.at, bytes);
	return 0;
}

#define ZEROED 256 // counters at once: with many CPUs they are large

static int zero_counters(const struct generation *g, const uint32_t *ids, uint32_t n,
			 const struct service_counter *zeros, struct err *err)
{
	return n && bpf_map_update_batch(g->fd[PART_BACKEND_COUNTERS], ids, zeros, &n, NULL)
		       ? err_system(err, errno, "cannot write the counters of backends")
		       : 0;
}

// zeros: ZEROED counters.
static int fill_fresh(const struct generation *g, const struct lb_load *b, struct backend *table,
		      const struct service_counter *zeros, struct err *err)
{
	uint32_t ids[ZEROED], n = 0;
	int code;

	for (uint32_t id = 1; id < SERVICE_BACKENDS; id++) {
		if (!lb_ids_has(&b->fresh, id))
			continue;
		table[id] = b->backends[id];
		ids[n++] = id;
		if (n < ZEROED)
			continue;
		if ((code = zero_counters(g, ids, n, zeros, err)))
			return code;
		n = 0;
	}
	return zero_counters(g, ids, n, zeros, err);
}

// Backends with new numbers are written: no packet meets them yet.
static int fill_backends(const struct generation *g, const struct lb_load *b, const char *previous,
			 struct err *err)
{
	CLEANUP_FREE struct service_counter *zeros = NULL;
	CLEANUP_MAPPING struct mapping table = {0};
	size_t cpus, bytes;
	int code = percpu_values(ZEROED, sizeof(*zeros), &zeros, &cpus, err);

	if (code || (code = mapping_bytes(g->fd[PART_BACKENDS], &bytes, err)) ||
	    (code = mapping_open(&table, g->fd[PART_BACKENDS], bytes, err)) ||
	    (code = copy_backends(g->fd[PART_BACKENDS], table.at, previous, err)) ||
	    (code = copy_counters(g->fd[PART_BACKEND_COUNTERS], previous, cpus * sizeof(*zeros),
				  err)))
		return code;
	return fill_fresh(g, b, table.at, zeros, err);
}

static int fill_services(const struct generation *g, const struct lb_load *b, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	size_t n = b->lb->n_services;
	int code = mapping_open(&m, g->fd[PART_SERVICES], n * sizeof(struct service), err);

	if (code)
		return code;
	for (size_t s = 0; s < n; s++)
		lb_service_value(&b->lb->services[s], b->hz, (struct service *)m.at + s);
	return 0;
}

static int fill_uses(const struct generation *g, const struct lb_load *b, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	size_t bytes = NAT_ENDS * sizeof(*b->uses);
	int code = b->uses ? mapping_open(&m, g->fd[PART_NAT_USES], bytes, err) : 0;

	if (code || !b->uses)
		return code;
	memcpy(m.at, b->uses, bytes);
	return 0;
}

static int fill_rings(const struct generation *g, const struct lb_state *b, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = mapping_open(&m, g->fd[PART_RINGS], b->n_slots * sizeof(*b->slots), err);

	if (code)
		return code;
	memcpy(m.at, b->slots, b->n_slots * sizeof(*b->slots));
	return 0;
}

static int new_pins(const struct lb_service *s, int *ret_fd, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = PINS_FLAGS);

	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_pins", sizeof(uint32_t),
				 sizeof(struct pin_bucket), s->buckets, &opts);
	return *ret_fd < 0 ? err_system(err, -*ret_fd, "cannot create %u %s of pins for '%s'",
					s->buckets, num_plural(s->buckets, "bucket", "buckets"),
					s->name)
			   : 0;
}

// The pins of the service in the previous generation if their number is the same; else new ones
// (*ret_new), for a service that is new, or whose ring is stable without a living pin.
static int take_pins(const struct lb_service *s, const char *previous, int *ret_fd, bool *ret_new,
		     struct err *err)
{
	CLEANUP_FREE char *folder = previous ? mem_printf("%s/" LB_PINS_FOLDER, previous) : NULL;
	CLEANUP_FD int fd = -1;
	uint32_t has;
	int code = open_previous(folder, s->name, &fd, &has, err);

	if (code)
		return code;
	*ret_new = has != s->buckets;
	if (*ret_new)
		return new_pins(s, ret_fd, err);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

// Pins that name a backend whose number gets another one.
static int forget(const struct lb_service *s, int fd, const struct lb_ids *fresh, struct err *err)
{
	size_t n = (size_t)s->buckets * SERVICE_PIN_WORDS;
	CLEANUP_MAPPING struct mapping m = {0};
	int code = mapping_open(&m, fd, n * sizeof(uint64_t), err);

	if (code)
		return code;
	for (size_t i = 0; i < n; i++) {
		uint64_t *word = (uint64_t *)m.at + i;
		uint64_t pin = __atomic_load_n(word, __ATOMIC_RELAXED);

		if (pin && lb_ids_has(fresh, pin_backend(pin)))
			__atomic_compare_exchange_n(word, &pin, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_RELAXED);
	}
	return 0;
}

// In one call at the end: the kernel waits for a grace period at each.
static int fill_pins(struct generation *g, const struct lb_load *b, const char *previous,
		     struct err *err)
{
	CLEANUP_FREE int *fds = mem_zalloc(b->lb->n_services + 1, sizeof(*fds));
	int code;

	for (uint32_t n = 0; n < b->lb->n_services; n++) {
		const struct lb_service *s = &b->lb->services[n];
		bool is_new = lb_ids_has(&b->fresh, s->id);
		int fd;

		code = take_pins(s, is_new ? NULL : previous, &fd, &is_new, err);
		if (code)
			return code;
		parts_keep(&g->pins, s->name, fd);
		if (!is_new && (code = forget(s, fd, &b->fresh, err)))
			return code;
		fds[n] = fd;
	}
	code = b->lb->n_services ? percpu_write(g->fd[PART_PINS], (uint32_t)b->lb->n_services, fds)
				 : 0;
	return code ? err_system(err, -code, "cannot use the pins of the services") : 0;
}

// An array that only commands read: n values of `size` bytes.
static int keep(int *ret_fd, const char *name, const void *values, size_t size, size_t n,
		struct err *err)
{
	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)size,
				 n ? (uint32_t)n : 1, NULL);
	if (*ret_fd < 0)
		return err_system(err, -*ret_fd, "cannot create the map '%s'", name);
	return n && percpu_write(*ret_fd, (uint32_t)n, values)
		       ? err_system(err, errno, "cannot write the map '%s'", name)
		       : 0;
}

// The backends of the running balancer stay until the switch, and those that pins name even longer:
// the devices to them must stay usable. Old backends may be among them that nothing names any more:
// it is not an error if their devices find no room.
static void keep_egress(const struct generation *g, const struct lb_maps *running)
{
	const struct backend *backend;
	uint32_t last = 0;

	for (uint32_t id = 1; running && (backend = lb_maps_backend(running, id)); id++) {
		if (backend->ifindex && backend->ifindex != last)
			parts_add_device(g, backend->ifindex, NULL);
		last = backend->ifindex;
	}
}

static int fill_egress(const struct generation *g, const struct lb_load *b, struct err *err)
{
	uint32_t last = 0;

	for (size_t m = 0; m < b->lb->n_members; m++) {
		uint32_t ifindex = b->backends[b->lb->members[m].id].ifindex;
		int code = ifindex && ifindex != last ? parts_add_device(g, ifindex, err) : 0;

		if (code)
			return code;
		last = ifindex;
	}
	keep_egress(g, b->running);
	return 0;
}

static bool is_tunnel(const struct lb_service *s)
{
	return service_mode_does(s->mode) & MODE_TUNNEL;
}

// A backend of a service by its address.
struct tunnel {
	struct tunnel_key key;
	uint32_t backend;
};

static int compare_tunnels(const void *a, const void *b)
{
	const struct tunnel_key *x = &((const struct tunnel *)a)->key;
	const struct tunnel_key *y = &((const struct tunnel *)b)->key;
	int order = memcmp(x->addr, y->addr, sizeof(x->addr));

	if (order || x->family != y->family)
		return order ? order : x->family < y->family ? -1 : 1;
	return x->service < y->service ? -1 : x->service > y->service;
}

// By address, then by service. In these modes backends have no port, so an address is at most one
// backend of a service.
static size_t sort_tunnels(const struct lb_state *b, struct tunnel *ret)
{
	size_t count = 0;

	for (uint32_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		const struct lb_member *m = &b->members[s->first_member];

		for (uint32_t i = 0; is_tunnel(s) && i < s->n_members; i++) {
			struct tunnel t = {{.family = m[i].family, .service = n}, m[i].id};

			memcpy(t.key.addr, m[i].addr, sizeof(t.key.addr));
			if (m[i].family)
				ret[count++] = t;
		}
	}
	qsort(ret, count, sizeof(*ret), compare_tunnels);
	return count;
}

static bool same_address(const struct tunnel *a, const struct tunnel *b)
{
	return a->key.family == b->key.family &&
	       !memcmp(a->key.addr, b->key.addr, sizeof(a->key.addr));
}

// The services of an address are a chain, whose head is a separate element. Returns how many
// elements there are.
static uint32_t chain_tunnels(const struct tunnel *at, size_t n, struct tunnel_key *keys,
			      struct tunnel_end *ends)
{
	uint32_t next = TUNNEL_FIRST, count = 0;

	for (size_t t = 0; t < n; t++) {
		keys[count] = at[t].key;
		ends[count++] = (struct tunnel_end){.backend = at[t].backend, .next = next};
		next = at[t].key.service;
		if (t + 1 < n && same_address(&at[t], &at[t + 1]))
			continue;
		keys[count] = at[t].key;
		keys[count].service = TUNNEL_FIRST;
		ends[count++] = (struct tunnel_end){.next = next};
		next = TUNNEL_FIRST;
	}
	return count;
}

static int fill_tunnels(const struct generation *g, const struct lb_state *b, struct err *err)
{
	CLEANUP_FREE struct tunnel *tunnels = mem_zalloc(b->n_members, sizeof(*tunnels));
	CLEANUP_FREE struct tunnel_key *keys = mem_zalloc(2 * b->n_members, sizeof(*keys));
	CLEANUP_FREE struct tunnel_end *ends = mem_zalloc(2 * b->n_members, sizeof(*ends));
	uint32_t n = chain_tunnels(tunnels, sort_tunnels(b, tunnels), keys, ends);

	return n && bpf_map_update_batch(g->fd[PART_TUNNELS], keys, ends, &n, NULL)
		       ? err_system(err, errno, "cannot write the tunnels of backends")
		       : 0;
}

static int keep_wish(struct generation *g, const struct lb_load *load, struct err *err)
{
	return load->wish ? keep(&g->fd[PART_KEPT_NAT], "weir_nat_wish", load->wish,
				 sizeof(*load->wish), 1, err)
			  : 0;
}

static int keep_state(struct generation *g, const struct lb_state *b, struct err *err)
{
	int code = keep(&g->fd[PART_KEPT_SERVICES], "weir_services", b->services,
			sizeof(*b->services), b->n_services, err);

	if (code)
		return code;
	return keep(&g->fd[PART_KEPT_MEMBERS], "weir_members", b->members, sizeof(*b->members),
		    b->n_members, err);
}

int lb_load_fill(struct generation *g, const struct lb_load *b, const char *previous,
		 struct err *err)
{
	int code = fill_uses(g, b, err);

	if (code || (code = keep_wish(g, b, err)) || !b->lb)
		return code;
	if ((code = fill_backends(g, b, previous, err)) || (code = fill_services(g, b, err)) ||
	    (code = fill_rings(g, b->lb, err)) || (code = fill_pins(g, b, previous, err)) ||
	    (code = fill_egress(g, b, err)) || (code = fill_tunnels(g, b->lb, err)))
		return code;
	return keep_state(g, b->lb, err);
}
