// SPDX-License-Identifier: GPL-2.0-only
// Loads a policy: sizes and switches, shared maps, then the tables through mmap.
#include "ctl/datapath/generation_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/datapath/connections.h"
#include "ctl/datapath/lb_load.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/markers.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/program_load.h"
#include "ctl/datapath/rates.h"
#include "ctl/datapath/sets.h"

// Intel SDM volume 3, 9.2.2, and AMD64 volume 2, 7.2: no read is reordered with another one.
#ifdef __x86_64__
#define MACHINE_REORDERS false
#else
#define MACHINE_REORDERS true
#endif

// ---- before the load: sizes and switches --------------------------------------------------------

static uint32_t at_least_one(size_t n)
{
	return n ? (uint32_t)n : 1;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int size_tables(struct bpf_map *map, const struct image *image)
{
	return bpf_map__set_value_size(
		map, (uint32_t)round_up(at_least_one(image->tables.n), TABLE_ALIGN) + TABLE_ALIGN);
}

static int size_maps(struct policy_bpf *skel, const struct image *image)
{
	const struct {
		struct bpf_map *map;
		size_t n;
	} sizes[] = {
		{skel->maps.rules, image->n_rules},
		{skel->maps.buckets, image->n_tables},
		{skel->maps.connections, connections_elements(image)},
	};
	int code = size_tables(skel->maps.tables, image);

	if (code)
		return code;
	for (size_t m = 0; m < ARRAY_SIZE(sizes); m++)
		if ((code = bpf_map__set_max_entries(sizes[m].map, at_least_one(sizes[m].n))))
			return code;
	return 0;
}

// Rules before the overlay come before all that the short program does.
static bool has_short(const struct image *image, const struct generation_options *options)
{
	return !options->general_only && !image->config.always;
}

// Code for unset features is dead.
static void mark_tables(struct markers *m, const struct tables *t)
{
	for (int c = 0; c < TABLE_CONSTANTS; c++) {
		enum marker_number number = (enum marker_number)(MARK_TABLES + c);

		if (t->constant[c].address)
			markers_address(m, number, "tables", t->constant[c].value);
		else
			markers_number(m, number, t->constant[c].value);
	}
}

static bool has_counts(const struct policy_config *config)
{
	for (size_t s = 0; s < POLICY_SETS_MAX; s++)
		if (config->set_counts[s])
			return true;
	return false;
}

static void mark(struct markers *m, const struct image *image,
		 const struct generation_options *options)
{
	markers_number(m, MARK_TEST, 0);
	markers_number(m, MARK_HANDED_ON, has_short(image, options));
	markers_number(m, MARK_REORDERS, MACHINE_REORDERS || options->reorders);
	markers_number(m, MARK_NAMED, image->config.named);
	markers_number(m, MARK_BALANCES, image->config.services != 0);
	markers_number(m, MARK_DEFAULT_DROP, image->config.default_drop);
	markers_number(m, MARK_MALFORMED_PASS, options->malformed_pass);
	markers_number(m, MARK_MODES, image->config.modes);
	markers_number(m, MARK_ANSWERS, image->config.answers);
	markers_number(m, MARK_ESTABLISHED, !!(image->config.flags & RULE_TRACKING));
	markers_number(m, MARK_MACS, !!(image->config.flags & RULE_MAC));
	markers_number(m, MARK_PAIRS, !!(image->config.flags & RULE_PAIRS));
	markers_number(m, MARK_UNROUTABLE, !!(image->config.flags & RULE_UNROUTABLE));
	markers_number(m, MARK_UNTRACKED, !!(image->config.flags & RULE_UNTRACKED));
	markers_number(m, MARK_PORT_LIMITS, image->port_limits);
	markers_number(m, MARK_SET_COUNTS, has_counts(&image->config));
	markers_number(m, MARK_CONNECTIONS, image->n_connection_rules != 0);
	// The maps of the balancer stay so without services.
	for (enum marker_number n = MARK_SERVICES; n <= MARK_NATS; n++)
		markers_number(m, n, 0);
	markers_address(m, MARK_NAT, "nat_table", 0);
	markers_address(m, MARK_NAT_USES, part_name(PART_NAT_USES), 0);
	markers_address(m, MARK_IFCLASS, "ifclass", 0);
	mark_tables(m, &image->tables);
}

// The last byte at which the counters of a line can begin, and one. A policy without an instance
// has the shards of the object, which are for one CPU.
static void mark_shards(struct markers *m, const struct instance *i)
{
	const size_t line4 = 64, line6 = 32; // counters of a line
	uint32_t regions = OVERLAY_CPUS + (i ? i->meta.cpus : 1);
	uint64_t end4 = OVERLAY_ELEMENT + overlay_region4(regions) * 8ull;
	uint64_t end6 = OVERLAY_ELEMENT + overlay_region6(regions) * 8ull;

	markers_number(m, MARK_SHARD4_END, end4 - line4 + 1);
	markers_number(m, MARK_SHARD6_END, end6 - line6 + 1);
}

static void prepare(struct policy_bpf *skel, const struct instance *i, const struct image *image,
		    const struct generation_options *options)
{
	parts_fit(skel, i);
	parts_choose(skel, (struct parts_wanted){
				   .has_short = has_short(image, options),
				   .balances = options->load && options->load->lb,
				   .translates = options->load && options->load->uses,
			   });
	*(struct policy_config *)&skel->rodata->policy = image->config;
	*(__u64 *)&skel->rodata->reply_second = (uint64_t)clock_hz() << RATE_SHIFT;
}

// ---- after the load: contents -------------------------------------------------------------------

// Once it is unmapped.
static int freeze(int fd, struct err *err)
{
	return bpf_map_freeze(fd) ? err_system(err, errno, "cannot freeze a policy table") : 0;
}

static int fill_tables(const struct generation *g, const struct image *image, struct err *err)
{
	CLEANUP_MAPPING struct mapping m = {0};
	int code = image->tables.n ? mapping_open(&m, g->fd[PART_TABLES], image->tables.n, err) : 0;

	if (code)
		return code;
	if (image->tables.n)
		image_write_tables(image, m.at);
	mapping_close(&m);
	return freeze(g->fd[PART_TABLES], err);
}

static int fill_rules(const struct instance *i, uint32_t previous, const struct image *image,
		      struct generation *g, struct err *err)
{
	size_t bytes = image->n_rules * sizeof(*image->rules);
	CLEANUP_MAPPING struct mapping m = {0};
	int code = bytes ? mapping_open(&m, g->fd[PART_RULES], bytes, err) : 0;

	if (code)
		return code;
	if (bytes) {
		memcpy(m.at, image->rules, bytes);
		if ((code = rates_provide(i, previous, image, m.at, g, err)))
			return code;
	}
	mapping_close(&m);
	return freeze(g->fd[PART_RULES], err);
}

static int keep_fd(int fd, enum part part, struct generation *g, struct err *err)
{
	g->fd[part] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return g->fd[part] < 0
		       ? err_system(err, errno, "cannot pin the policy's '%s'", part_name(part))
		       : 0;
}

static int keep_programs(const struct policy_bpf *skel, struct generation *g, struct err *err)
{
	const struct {
		int program;
		enum part part;
	} others[] = {
		{bpf_program__fd(skel->progs.weir_policy), PART_GENERAL},
		{bpf_program__fd(skel->progs.weir_balance), PART_LB_PROGRAM},
		{bpf_program__fd(skel->progs.weir_nat_answer), PART_NAT_ANSWER},
		{bpf_program__fd(skel->progs.weir_nat), PART_NAT},
		{bpf_program__fd(skel->progs.weir_nat_any), PART_NAT_ANY},
		{bpf_program__fd(skel->progs.weir_nat_answer_any), PART_NAT_ANSWER_ANY},
	};
	int first = parts_first_program(skel), code = keep_fd(first, PART_PROGRAM, g, err);

	if (code)
		return code;
	for (size_t p = 0; p < ARRAY_SIZE(others); p++)
		if (others[p].program >= 0 && others[p].program != first &&
		    (code = keep_fd(others[p].program, others[p].part, g, err)))
			return code;
	return 0;
}

// Programs, linked, and maps.
static int keep(const struct policy_bpf *skel, const struct markers *markers, struct generation *g,
		struct err *err)
{
	int code = parts_link(skel);

	if (code)
		return err_system(err, -code, "cannot link the programs of the policy");
	for (enum part p = 0; p < PART_PROGRAM; p++)
		if ((code = keep_fd(bpf_map__fd(part_map(skel, p)), p, g, err)))
			return code;
	if ((code = keep_programs(skel, g, err)))
		return code;
	return markers_keep(markers, &g->fd[PART_MARKERS], err);
}

// A policy without an instance has a table of its own, which its test program shares.
static int keep_nat(const struct policy_bpf *skel, struct generation *g, struct err *err)
{
	const int maps[NAT_MAPS] = {
		[NAT_TABLE] = bpf_map__fd(skel->maps.nat_table),
		[NAT_BLOCKS4] = bpf_map__fd(skel->maps.nat4),
		[NAT_BLOCKS6] = bpf_map__fd(skel->maps.nat6),
	};

	for (int m = 0; m < NAT_MAPS; m++) {
		g->nat[m] = fcntl(maps[m], F_DUPFD_CLOEXEC, 0);
		if (g->nat[m] < 0)
			return err_system(err, errno, "cannot keep the table of connections");
	}
	return 0;
}

// In one call at the end: the kernel waits for a grace period at each.
static int fill_sets(struct generation *g, const struct generation_options *options,
		     const char *previous, struct err *err)
{
	CLEANUP_FREE int *fds = mem_zalloc(options->n_sets + 1, sizeof(*fds));
	int code;

	for (uint32_t n = 0; n < options->n_sets; n++) {
		const struct generation_set *set = &options->sets[n];
		int fd;

		code = sets_provide(previous, set->name, set->max, &fd, err);
		if (code)
			return code;
		parts_keep(&g->sets, set->name, fd);
		fds[n] = fd;
	}
	code = options->n_sets ? percpu_write(g->fd[PART_SETS], (uint32_t)options->n_sets, fds) : 0;
	return code ? err_system(err, -code, "cannot use the dynamic sets") : 0;
}

static int fill_devices(const struct generation *g, const struct generation_options *options,
			struct err *err)
{
	for (uint32_t n = 0; n < options->n_redirects; n++)
		if (options->redirects[n] &&
		    bpf_map_update_elem(g->fd[PART_DEVICES], &n, &options->redirects[n], BPF_ANY))
			return err_system(err, errno, "cannot redirect to interface %u",
					  options->redirects[n]);
	return 0;
}

static struct program_cost cost_of(const struct policy_bpf *skel, const struct generation *g,
				   enum generation_program program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = generation_program_of(g, program);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return (struct program_cost){0};
	return (struct program_cost){
		.object = (uint32_t)bpf_program__insn_cnt(program_of(skel, program)),
		.instructions = info.xlated_prog_len / 8,
		.verified = info.verified_insns,
		.jited_bytes = info.jited_prog_len,
	};
}

static void read_cost(const struct policy_bpf *skel, const struct generation *g,
		      const struct image *image, struct generation_cost *ret)
{
	ret->map_bytes = image_bytes(image);
	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++)
		ret->program[p] = cost_of(skel, g, p);
}

static int fill_all(const struct instance *i, struct generation *g, const struct image *image,
		    const struct generation_options *options, const char *previous, struct err *err)
{
	int code = fill_tables(g, image, err);

	if (code || (code = fill_rules(i, options->previous, image, g, err)) ||
	    (code = fill_sets(g, options, previous, err)))
		return code;
	if (options->load && (code = lb_load_fill(g, options->load, previous, err)))
		return code;
	if (i && image->n_connection_rules && (code = connections_begin(i, g, image, err)))
		return code;
	return fill_devices(g, options, err);
}

static void destroy(struct policy_bpf **skel)
{
	policy_bpf__destroy(*skel);
}

// The loaded programs of a policy: the state that a second load without the short program replaces.
struct attempt {
	struct policy_bpf *skel;
	struct markers markers;
	bool short_refused; // by the kernel
};

static void attempt_end(struct attempt *a)
{
	policy_bpf__destroy(a->skel);
}

static int attempt(struct attempt *a, const struct instance *i, const struct image *image,
		   const struct generation_options *options, const char *previous, struct err *err)
{
	int code;

	attempt_end(a);
	*a = (struct attempt){.skel = markers_open()};
	if (!a->skel)
		return err_system(err, errno, "cannot open the policy program");
	prepare(a->skel, i, image, options);
	mark(&a->markers, image, options);
	mark_shards(&a->markers, i);
	if ((code = size_maps(a->skel, image)) ||
	    (i && (code = instance_share_maps(i, a->skel->obj))))
		return err_system(err, -code, "cannot size the policy's maps");
	if ((code = lb_load_prepare(a->skel, options->load, previous, &a->markers, err)))
		return code;
	return program_load(a->skel, &a->markers, &a->short_refused, err);
}

// A kernel that refuses the short program, which is the larger one to verify, may accept the
// general one.
static int attempt_either(struct attempt *a, const struct instance *i, const struct image *image,
			  const struct generation_options *options, const char *previous,
			  struct generation_cost *cost, struct err *err)
{
	struct generation_options general = *options;
	struct err refusal = {0};
	int code = attempt(a, i, image, options, previous, &refusal);

	if (!code)
		return 0;
	if (!a->short_refused) {
		*err = refusal;
		return code;
	}
	general.general_only = true;
	if ((code = attempt(a, i, image, &general, previous, err)))
		return code;
	program_refusal(&refusal, cost->refused);
	return 0;
}

int generation_load(const struct instance *i, const struct image *image,
		    const struct generation_options *options, struct generation **ret,
		    struct generation_cost *ret_cost, struct err *err)
{
	CLEANUP(attempt_end) struct attempt a = {0};
	CLEANUP_GENERATION struct generation *g = generation_new();
	CLEANUP_FREE char *previous =
		i && options->previous ? generation_folder(i->folder, options->previous) : NULL;
	struct generation_cost cost = {0};
	uint64_t begin_us = time_us(CLOCK_MONOTONIC);
	int code = attempt_either(&a, i, image, options, previous, &cost, err);

	if (code)
		return code;
	if ((code = keep(a.skel, &a.markers, g, err)) ||
	    (code = fill_all(i, g, image, options, previous, err)))
		return code;
	if (!i && options->load && options->load->uses && (code = keep_nat(a.skel, g, err)))
		return code;
	read_cost(a.skel, g, image, &cost);
	cost.load_us = time_us(CLOCK_MONOTONIC) - begin_us;
	if (ret_cost)
		*ret_cost = cost;
	*ret = TAKE_PTR(g);
	return 0;
}

int generation_load_first(struct instance *i, struct generation **ret, struct err *err)
{
	CLEANUP(destroy) struct policy_bpf *skel = markers_open();
	CLEANUP_GENERATION struct generation *g = generation_new();
	static const struct image nothing;
	static const struct generation_options defaults;
	struct markers markers = {0};
	bool short_refused;
	int code;

	if (!skel)
		return err_system(err, errno, "cannot open the policy program");
	prepare(skel, i, &nothing, &defaults);
	mark(&markers, &nothing, &defaults);
	mark_shards(&markers, i);
	if ((code = size_maps(skel, &nothing)))
		return err_system(err, -code, "cannot size the policy's maps");
	if ((code = instance_size_maps(i, skel->obj, err)))
		return code;
	if ((code = program_load(skel, &markers, &short_refused, err))) {
		err_prefix(err, "with room for %u %s", i->meta.max_entries,
			   num_plural(i->meta.max_entries, "entry", "entries"));
		return code;
	}
	if ((code = instance_take_maps(i, skel->obj, err)) ||
	    (code = keep(skel, &markers, g, err)) || (code = fill_tables(g, &nothing, err)) ||
	    (code = fill_rules(i, 0, &nothing, g, err)))
		return code;
	*ret = TAKE_PTR(g);
	return 0;
}
