// SPDX-License-Identifier: GPL-2.0-only
// Loads the balancer of a generation and takes over what outlives the previous one.
#include "ctl/datapath/lb_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/mapping.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/percpu.h"

// Rows of backends are made in powers of two, twice as many as are needed: they are handed on, and a new
// map is made only when they do not suffice.
#define ROWS_MIN   256
#define DEVICES    64 // egress devices
#define PINS_FLAGS (BPF_F_MMAPABLE | BPF_F_INNER_MAP)

// ---- rows that are handed on --------------------------------------------------------------------

static uint32_t highest_number(const struct lb_state *b)
{
	uint32_t highest = 0;

	for (size_t s = 0; s < b->n_services; s++)
		highest = b->services[s].row > highest ? b->services[s].row : highest;
	for (size_t m = 0; m < b->n_members; m++)
		highest = b->members[m].id > highest ? b->members[m].id : highest;
	return highest;
}

static uint32_t rows_for(uint32_t highest)
{
	uint32_t rows = ROWS_MIN;

	while (rows <= highest)
		rows *= 2;
	return rows == ROWS_MIN || rows == SERVICE_BACKENDS ? rows : rows * 2;
}

// Uses the map of the previous generation if it has an element `highest`, else a new one.
static int hand_on(struct bpf_map *map, const char *previous, enum part part, uint32_t highest,
		   struct err *err)
{
	CLEANUP_FD int fd = -1;
	uint32_t has = 0;
	int code = previous ? bpffs_get(previous, part_name(part), &fd, err) : -ENOENT;

	if (!code)
		code = mapping_entries(fd, &has, err);
	if (code && code != -ENOENT)
		return code;
	code = has > highest ? bpf_map__reuse_fd(map, fd)
			     : bpf_map__set_max_entries(map, rows_for(highest));
	return code ? err_system(err, -code, "cannot size the balancer's '%s'", part_name(part))
		    : 0;
}

static int size_own(struct policy_bpf *skel, const struct lb_state *b)
{
	int code = bpf_map__set_max_entries(skel->maps.services, (uint32_t)b->n_services);

	if (!code)
		code = bpf_map__set_max_entries(skel->maps.rings, (uint32_t)b->n_slots);
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.pins, (uint32_t)b->n_services);
	// And the beginnings of their chains.
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.tunnels, 2 * (uint32_t)b->n_members + 1);
	return code ? code : bpf_map__set_max_entries(skel->maps.egress, DEVICES);
}

int lb_load_prepare(struct policy_bpf *skel, const struct lb_load *b, const char *previous,
		    struct err *err)
{
	uint32_t highest;
	int code;

	bpf_program__set_autoload(skel->progs.weir_balance, b != NULL);
	if (!b)
		return 0;
	highest = highest_number(b->lb);
	if ((code = size_own(skel, b->lb)))
		return err_system(err, -code, "cannot size the balancer's maps");
	if ((code = hand_on(skel->maps.backends, previous, PART_BACKENDS, highest, err)))
		return code;
	return hand_on(skel->maps.balanced, previous, PART_BALANCED, highest, err);
}

// ---- filling ------------------------------------------------------------------------------------

// Copies the elements of the previous generation's map into a new one. What packets count in the old one
// meanwhile is not copied.
static int copy_rows(int to, const char *previous, enum part part, size_t size, struct err *err)
{
	CLEANUP_FREE uint8_t *row = mem_zalloc(1, size);
	struct bpf_map_info old = {0}, now = {0};
	uint32_t length = sizeof(old);
	CLEANUP_FD int fd = -1;
	int code = previous ? bpffs_get(previous, part_name(part), &fd, err) : -ENOENT;

	if (code)
		return code == -ENOENT ? 0 : code;
	if (bpf_obj_get_info_by_fd(fd, &old, &length) || bpf_obj_get_info_by_fd(to, &now, &length))
		return err_system(err, errno, "cannot look at the balancer's '%s'",
				  part_name(part));
	for (uint32_t r = 0; old.id != now.id && r < old.max_entries; r++)
		if (bpf_map_lookup_elem(fd, &r, row) || bpf_map_update_elem(to, &r, row, BPF_ANY))
			return err_system(err, errno, "cannot copy the balancer's '%s'",
					  part_name(part));
	return 0;
}

// Writes the backends with new numbers: no packet meets them yet.
static int fill_rows(const struct generation *g, const struct lb_load *b, const char *previous,
		     struct err *err)
{
	CLEANUP_FREE struct service_counter *zero = NULL;
	size_t cpus;
	int code = percpu_values(1, sizeof(*zero), &zero, &cpus, err);

	if (!code)
		code = copy_rows(g->fd[PART_BACKENDS], previous, PART_BACKENDS,
				 sizeof(struct backend), err);
	if (!code)
		code = copy_rows(g->fd[PART_BALANCED], previous, PART_BALANCED,
				 cpus * sizeof(*zero), err);
	for (uint32_t id = 1; !code && id < SERVICE_BACKENDS; id++) {
		if (!lb_ids_has(&b->fresh, id))
			continue;
		if (bpf_map_update_elem(g->fd[PART_BACKENDS], &id, &b->rows[id], BPF_ANY) ||
		    bpf_map_update_elem(g->fd[PART_BALANCED], &id, zero, BPF_ANY))
			code = err_system(err, errno, "cannot write backend %u", id);
	}
	return code;
}

static int fill_services(const struct generation *g, const struct lb_load *b, struct err *err)
{
	for (uint32_t s = 0; s < b->lb->n_services; s++) {
		struct service row;

		lb_service_value(&b->lb->services[s], b->hz, &row);
		if (bpf_map_update_elem(g->fd[PART_SERVICES], &s, &row, BPF_ANY))
			return err_system(err, errno, "cannot write the service '%s'",
					  b->lb->services[s].name);
	}
	return 0;
}

static int fill_rings(const struct generation *g, const struct lb_state *b, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = mapping_open(&m, g->fd[PART_RINGS], b->n_slots * sizeof(*b->slots), err);

	if (!code)
		memcpy(m.at, b->slots, b->n_slots * sizeof(*b->slots));
	return code;
}

static int new_pins(const struct lb_service *s, int *ret_fd, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = PINS_FLAGS);

	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_pins", sizeof(uint32_t),
				 sizeof(struct pin_bucket), s->buckets, &opts);
	return *ret_fd < 0 ? err_system(err, -*ret_fd, "cannot make %u buckets of pins for '%s'",
					s->buckets, s->name)
			   : 0;
}

// The pins of the same service in the previous generation if there are as many; else new ones, for a service
// that is new or whose ring is stable without a living pin.
static int take_pins(const struct lb_service *s, const char *previous, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *folder = previous ? mem_printf("%s/" LB_PINS_FOLDER, previous) : NULL;
	CLEANUP_FD int fd = -1;
	uint32_t has = 0;
	int code = folder ? bpffs_get(folder, s->name, &fd, err) : -ENOENT;

	if (!code)
		code = mapping_entries(fd, &has, err);
	if (code && code != -ENOENT)
		return code;
	if (has != s->buckets)
		return new_pins(s, ret_fd, err);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void forget(uint64_t *words, size_t n, const struct lb_ids *fresh)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t pin = __atomic_load_n(&words[i], __ATOMIC_RELAXED);

		if (pin && lb_ids_has(fresh, pin_backend(pin)))
			__atomic_compare_exchange_n(&words[i], &pin, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_RELAXED);
	}
}

static int fill_pins(struct generation *g, const struct lb_load *b, const char *previous,
		     struct err *err)
{
	for (uint32_t n = 0; n < b->lb->n_services; n++) {
		const struct lb_service *s = &b->lb->services[n];
		size_t bytes = (size_t)s->buckets * sizeof(struct pin_bucket);
		CLEANUP_MAPPING struct mapping m = {0};
		bool begins = lb_ids_has(&b->fresh, s->row);
		int fd, code = take_pins(s, begins ? NULL : previous, &fd, err);

		if (code)
			return code;
		parts_keep(&g->pins, s->name, fd);
		if ((code = mapping_open(&m, fd, bytes, err)))
			return code;
		forget(m.at, bytes / sizeof(uint64_t), &b->fresh);
		if (bpf_map_update_elem(g->fd[PART_PINS], &n, &fd, BPF_ANY))
			return err_system(err, errno, "cannot use the pins of '%s'", s->name);
	}
	return 0;
}

static int keep_rows(int *ret_fd, const char *name, const void *rows, size_t size, size_t n,
		     struct err *err)
{
	*ret_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)size,
				 n ? (uint32_t)n : 1, NULL);
	if (*ret_fd < 0)
		return err_system(err, -*ret_fd, "cannot make the map '%s'", name);
	for (uint32_t r = 0; r < n; r++)
		if (bpf_map_update_elem(*ret_fd, &r, (const uint8_t *)rows + r * size, BPF_ANY))
			return err_system(err, errno, "cannot write the map '%s'", name);
	return 0;
}

// Backends stay as they are until the switch, and those that only pins name longer: their devices must be
// allowed. Old backends may no longer be named by anything, so no room for their devices is not an error.
static void keep_egress(const struct generation *g, const struct lb_maps *running)
{
	const struct backend *row;
	uint32_t last = 0;

	for (uint32_t id = 1; running && (row = lb_maps_backend(running, id)); id++) {
		if (row->ifindex && row->ifindex != last)
			parts_add_device(g, row->ifindex, NULL);
		last = row->ifindex;
	}
}

static int fill_egress(const struct generation *g, const struct lb_load *b, struct err *err)
{
	int code = 0;

	for (size_t m = 0; !code && m < b->lb->n_members; m++) {
		uint32_t ifindex = b->rows[b->lb->members[m].id].ifindex;

		if (ifindex)
			code = parts_add_device(g, ifindex, err);
	}
	if (!code)
		keep_egress(g, b->running);
	return code;
}

static bool is_tunnel(const struct lb_service *s)
{
	return s->mode == SERVICE_IPIP || s->mode == SERVICE_GUE;
}

// Puts the backend in front of the chain of its address.
static int add_tunnel(const struct generation *g, uint32_t service, const struct lb_member *m,
		      struct err *err)
{
	struct tunnel_end first = {.next = TUNNEL_FIRST}, own = {.backend = m->id};
	struct tunnel_key key = {.family = m->family, .service = TUNNEL_FIRST};
	int fd = g->fd[PART_TUNNELS];

	memcpy(key.addr, m->addr, sizeof(key.addr));
	if (bpf_map_lookup_elem(fd, &key, &first) && errno != ENOENT)
		return err_system(err, errno, "cannot read the ways to backends");
	own.next = first.next;
	first.next = service;
	key.service = service;
	if (!bpf_map_update_elem(fd, &key, &own, BPF_ANY)) {
		key.service = TUNNEL_FIRST;
		if (!bpf_map_update_elem(fd, &key, &first, BPF_ANY))
			return 0;
	}
	return err_system(err, errno, "cannot write the ways to backends");
}

// In these modes a service has an address once: backends have no port there.
static int fill_tunnels(const struct generation *g, const struct lb_state *b, struct err *err)
{
	int code = 0;

	for (uint32_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];
		const struct lb_member *m = &b->members[s->first_member];

		for (uint32_t i = 0; !code && is_tunnel(s) && i < s->n_members; i++)
			if (m[i].family)
				code = add_tunnel(g, n, &m[i], err);
	}
	return code;
}

int lb_load_fill(struct generation *g, const struct lb_load *b, const char *previous,
		 struct err *err)
{
	const struct lb_state *state = b->lb;
	uint32_t stage = 0;
	int code = fill_rows(g, b, previous, err);

	if (!code)
		code = fill_services(g, b, err);
	if (!code)
		code = fill_rings(g, state, err);
	if (!code)
		code = fill_pins(g, b, previous, err);
	if (!code)
		code = fill_egress(g, b, err);
	if (!code)
		code = fill_tunnels(g, state, err);
	if (!code)
		code = keep_rows(&g->fd[PART_KEPT_SERVICES], "weir_services", state->services,
				 sizeof(*state->services), state->n_services, err);
	if (!code)
		code = keep_rows(&g->fd[PART_KEPT_MEMBERS], "weir_members", state->members,
				 sizeof(*state->members), state->n_members, err);
	if (!code && bpf_map_update_elem(g->fd[PART_STAGES], &stage, &g->fd[PART_BALANCE], BPF_ANY))
		code = err_system(err, errno, "cannot link the balancer to the policy");
	return code;
}
