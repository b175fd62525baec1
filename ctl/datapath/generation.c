// SPDX-License-Identifier: GPL-2.0-only
// Loads a policy: sizes and switches, shared maps, then the tables through mmap.
#include "ctl/datapath/generation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lb_maps.h"
#include "ctl/datapath/mapping.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/sets.h"
#include "ctl/datapath/sharing.h"

#define LOG_BYTES (16 << 20)
#define VALUE_MAX (256u << 20) // the verifier follows offsets of up to 512 MB

int generation_program(const struct generation *g)
{
	return g->fd[PART_PROGRAM];
}

static uint32_t at_least_one(size_t n)
{
	return n ? (uint32_t)n : 1;
}

// Do this kernel's verifiers follow a row's offset in a table that is one value? That of 6.1 gives its bounds
// up in the multiplication, that of 6.12 does not; nothing cheaper than a load tells them apart.
static bool follows_offsets(void)
{
	struct utsname name;
	uint32_t major = 0, minor = 0;
	char *rest = name.release, *word;

	if (uname(&name))
		return false;
	word = strsep(&rest, ".");
	num_parse_u32(word, strlen(word), 0, UINT16_MAX, &major);
	word = rest ? strsep(&rest, ".-+") : NULL;
	if (word)
		num_parse_u32(word, strlen(word), 0, UINT16_MAX, &minor);
	return major > 6 || (major == 6 && minor >= 12);
}

// A table as one value, or as one entry for each `unit` bytes. *ret_flat: its entries, if it is one value.
static int size_table(struct bpf_map *map, size_t n, size_t size, size_t unit, uint32_t *ret_flat)
{
	size_t bytes = (n * size + 63) / 64 * 64;
	bool flat = n && bytes <= VALUE_MAX && follows_offsets();
	int code = bpf_map__set_value_size(map, (uint32_t)(flat ? bytes : unit));

	*ret_flat = flat ? (uint32_t)n : 0;
	return code ? code
		    : bpf_map__set_max_entries(
			      map, flat ? 1 : at_least_one((n * size + unit - 1) / unit));
}

static int size_maps(struct policy_bpf *skel, const struct image *image)
{
	struct policy_flat *flat = (struct policy_flat *)&skel->rodata->policy.flat;
	size_t row = 8 * POLICY_ROW_WORDS(image->config.words ? image->config.words : 1);
	const struct {
		struct bpf_map *map;
		size_t n;
	} sizes[] = {
		{skel->maps.rules, image->n_rules},
		{skel->maps.meters, image->n_meters},
		{skel->maps.buckets, image->n_bucket_lines},
		{skel->maps.logpace, image->n_logs},
	};
	int code = size_table(skel->maps.fields, image->n_fields, sizeof(uint32_t),
			      sizeof(struct policy_cells), &flat->fields);

	if (!code)
		code = size_table(skel->maps.nodes, image->n_nodes, sizeof(*image->nodes),
				  sizeof(*image->nodes), &flat->nodes);
	if (!code)
		code = size_table(skel->maps.lines, image->n_lines, sizeof(*image->lines),
				  sizeof(*image->lines), &flat->lines);
	if (!code)
		code = size_table(skel->maps.rows, image->n_rows, row, row, &flat->rows);
	for (size_t m = 0; !code && m < ARRAY_SIZE(sizes); m++)
		code = bpf_map__set_max_entries(sizes[m].map, at_least_one(sizes[m].n));
	return code;
}

static void prepare(struct policy_bpf *skel, const struct instance *i, const struct image *image,
		    const struct generation_options *options)
{
	struct config *config = (struct config *)&skel->rodata->config;

	parts_fit(skel, i);
	*(struct policy_config *)&skel->rodata->policy = image->config;
	config->malformed_pass = options->malformed_pass;
	*(bool *)&skel->rodata->use_conntrack = options->conntrack;
	*(uint32_t *)&skel->rodata->reply_interval = at_least_one(clock_hz() / WEIR_REPLIES_S);
}

// The verifier's last line that is not a figure.
static void add_log(char *log, struct err *err)
{
	char *end;

	while ((end = strrchr(log, '\n'))) {
		*end = '\0';
		if (end[1] && strncmp(end + 1, "processed ", 10) &&
		    strncmp(end + 1, "verification", 12) && strncmp(end + 1, "stack ", 6)) {
			err_hint(err, "%.300s", end + 1);
			return;
		}
	}
}

static int load(struct policy_bpf *skel, struct err *err)
{
	CLEANUP_FREE char *log = mem_zalloc(1, LOG_BYTES);
	int code;

	bpf_program__set_log_buf(skel->progs.weir_policy, log, LOG_BYTES);
	code = policy_bpf__load(skel);
	log[LOG_BYTES - 1] = '\0';
	if (code) {
		err_system(err, -code, "the kernel refuses the policy program");
		add_log(log, err);
	}
	// The skeleton must not write into memory that is about to go.
	bpf_program__set_log_buf(skel->progs.weir_policy, NULL, 0);
	return code;
}

// Maps an array, copies the table, unmaps, freezes.
static int fill(int fd, const void *table, size_t bytes, size_t map_bytes, struct err *err)
{
	struct mapping m;
	int code = bytes ? mapping_open(&m, fd, map_bytes, err) : 0;

	if (code)
		return code;
	if (bytes) {
		memcpy(m.at, table, bytes);
		mapping_close(&m);
	}
	return bpf_map_freeze(fd) ? err_system(err, errno, "cannot freeze a policy table") : 0;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int fill_tables(const struct generation *g, const struct image *i, struct err *err)
{
	size_t words = i->config.words ? i->config.words : 1;
	size_t rows = i->n_rows * 8 * POLICY_ROW_WORDS(words);
	const struct {
		enum part part;
		const void *table;
		size_t bytes;
	} tables[] = {
		{PART_FIELDS, i->fields, i->n_fields * sizeof(*i->fields)},
		{PART_NODES, i->nodes, i->n_nodes * sizeof(*i->nodes)},
		{PART_LINES, i->lines, i->n_lines * sizeof(*i->lines)},
		{PART_ROWS, i->rows, rows},
		{PART_RULES, i->rules, i->n_rules * sizeof(*i->rules)},
	};
	int code = 0;

	for (size_t t = 0; !code && t < ARRAY_SIZE(tables); t++)
		code = fill(g->fd[tables[t].part], tables[t].table, tables[t].bytes,
			    round_up(tables[t].bytes, 64), err);
	return code;
}

static int keep(const struct policy_bpf *skel, struct generation *g, struct err *err)
{
	for (int p = 0; p <= PART_BALANCE; p++) {
		int fd = p == PART_PROGRAM   ? bpf_program__fd(skel->progs.weir_policy)
			 : p == PART_BALANCE ? bpf_program__fd(skel->progs.weir_balance)
					     : bpf_map__fd(part_map(skel, (enum part)p));

		if (p == PART_BALANCE && fd < 0)
			break; // a policy without services
		g->fd[p] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (g->fd[p] < 0)
			return err_system(err, errno, "cannot keep the policy's '%s'",
					  part_name((enum part)p));
	}
	return 0;
}

static int fill_sets(struct generation *g, const struct generation_options *options,
		     const char *previous, struct err *err)
{
	for (uint32_t n = 0; n < options->n_sets; n++) {
		const struct generation_set *set = &options->sets[n];
		int fd, code = sets_provide(previous, set->name, set->max, &fd, err);

		if (code)
			return code;
		parts_keep(&g->sets, set->name, fd);
		if (bpf_map_update_elem(g->fd[PART_SETS], &n, &fd, BPF_ANY))
			return err_system(err, errno, "cannot use the set '@%s'", set->name);
	}
	return 0;
}

static int fill_ports(const struct generation *g, const struct generation_options *options,
		      struct err *err)
{
	for (uint32_t n = 0; n < options->n_redirects; n++)
		if (options->redirects[n] &&
		    bpf_map_update_elem(g->fd[PART_DEVICES], &n, &options->redirects[n], BPF_ANY))
			return err_system(err, errno, "cannot redirect to interface %u",
					  options->redirects[n]);
	return 0;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void read_cost(const struct policy_bpf *skel, const struct generation *g,
		      const struct image *image, uint64_t begin_us, struct generation_cost *ret)
{
	struct bpf_prog_info info = {0}, balance = {0};
	uint32_t size = sizeof(info);

	if (!ret || bpf_obj_get_info_by_fd(g->fd[PART_PROGRAM], &info, &size))
		return;
	if (g->fd[PART_BALANCE] >= 0)
		bpf_obj_get_info_by_fd(g->fd[PART_BALANCE], &balance, &size);
	*ret = (struct generation_cost){
		.object = (uint32_t)bpf_program__insn_cnt(skel->progs.weir_policy),
		.instructions = info.xlated_prog_len / 8,
		.verified = info.verified_insns,
		.jited_bytes = info.jited_prog_len,
		.balance_verified = balance.verified_insns,
		.map_bytes = image_bytes(image),
		.load_us = now_us() - begin_us,
	};
}

static int size_overlay(struct policy_bpf *skel, uint32_t max_entries)
{
	int code = bpf_map__set_max_entries(skel->maps.hosts4, max_entries);

	if (!code)
		code = bpf_map__set_max_entries(skel->maps.hosts6, max_entries);
	// One more than is ever used: kernels before 6.13 refuse to replace an entry in a full trie.
	if (!code)
		code = bpf_map__set_max_entries(skel->maps.nets4, max_entries + 1);
	return code ? code : bpf_map__set_max_entries(skel->maps.nets6, max_entries + 1);
}

static int keep_shared(const struct policy_bpf *skel, struct instance *i, struct err *err)
{
	const struct {
		const struct bpf_map *map;
		int *fd;
	} shared[] = {
		{skel->maps.data_knobs, &i->knobs_fd},
		{skel->maps.progs, &i->progs},
		{skel->maps.counters, &i->counters},
		{skel->maps.events, &i->events},
		{skel->maps.hosts4, &i->hosts4},
		{skel->maps.hosts6, &i->hosts6},
		{skel->maps.nets4, &i->nets4},
		{skel->maps.nets6, &i->nets6},
		{skel->maps.rulecounters, &i->rulecounters},
		{skel->maps.stations, &i->stations},
	};

	for (size_t m = 0; m < ARRAY_SIZE(shared); m++) {
		*shared[m].fd = fcntl(bpf_map__fd(shared[m].map), F_DUPFD_CLOEXEC, 0);
		if (*shared[m].fd < 0)
			return err_system(err, errno, "cannot keep the maps of instance '%s'",
					  i->name);
	}
	return 0;
}

static void destroy(struct policy_bpf **skel)
{
	policy_bpf__destroy(*skel);
}

int generation_load(const struct instance *i, const struct image *image,
		    const struct generation_options *options, struct generation **ret,
		    struct generation_cost *cost, struct err *err)
{
	CLEANUP(destroy) struct policy_bpf *skel = policy_bpf__open();
	CLEANUP_GENERATION struct generation *g = generation_new();
	CLEANUP_FREE char *previous =
		i && options->previous ? generation_folder(i->folder, options->previous) : NULL;
	uint64_t begin_us = now_us();
	int code;

	if (!skel)
		return err_system(err, errno, "cannot open the policy program");
	prepare(skel, i, image, options);
	code = size_maps(skel, image);
	if (!code && i)
		code = parts_share(skel, i);
	if (code)
		return err_system(err, -code, "cannot size the policy's maps");
	if ((code = lb_load_prepare(skel, options->load, previous, err)))
		return code;
	if (!(code = load(skel, err)))
		code = keep(skel, g, err);
	if (!code)
		code = fill_tables(g, image, err);
	if (!code)
		code = fill_sets(g, options, previous, err);
	if (!code && options->load)
		code = lb_load_fill(g, options->load, previous, err);
	if (!code)
		code = fill_ports(g, options, err);
	if (code)
		return code;
	read_cost(skel, g, image, begin_us, cost);
	*ret = TAKE_PTR(g);
	return 0;
}

int generation_load_first(struct instance *i, struct generation **ret, struct err *err)
{
	CLEANUP(destroy) struct policy_bpf *skel = policy_bpf__open();
	CLEANUP_GENERATION struct generation *g = generation_new();
	static const struct image nothing;
	static const struct generation_options defaults;
	int code;

	if (!skel)
		return err_system(err, errno, "cannot open the policy program");
	prepare(skel, i, &nothing, &defaults);
	bpf_program__set_autoload(skel->progs.weir_balance, false);
	code = size_maps(skel, &nothing);
	if (!code)
		code = size_overlay(skel, i->meta.max_entries);
	if (code)
		return err_system(err, -code, "cannot size the instance's maps");
	if ((code = load(skel, err))) {
		err_prefix(err, "with room for %u entries", i->meta.max_entries);
		return code;
	}
	if (!(code = keep_shared(skel, i, err)))
		code = keep(skel, g, err);
	if (!code)
		code = fill_tables(g, &nothing, err);
	if (!code)
		*ret = TAKE_PTR(g);
	return code;
}

static int pin_about(const char *folder, const struct generation_about *about, struct err *err)
{
	CLEANUP_FD int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_about", 4, sizeof(*about), 1, NULL);
	uint32_t zero = 0;

	if (fd < 0 || bpf_map_update_elem(fd, &zero, about, BPF_ANY))
		return err_system(err, errno, "cannot write who made the policy");
	return bpffs_put(folder, "about", fd, err);
}

int generation_read_about(const struct instance *i, uint32_t number, struct generation_about *ret,
			  struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(i->folder, number);
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = bpffs_get(folder, "about", &fd, err);

	if (code)
		return code == -ENOENT
			       ? err_system(err, ENOENT, "generation %u has lost its pins", number)
			       : code;
	if (bpf_map_lookup_elem(fd, &zero, ret))
		return err_system(err, errno, "cannot read who made the policy");
	for (uint32_t n = 0; n < ret->n_sets && n < POLICY_SETS_MAX; n++)
		ret->sets[n].generation = number;
	return 0;
}

int generation_finish(const struct instance *i, uint32_t number, const char *made_of,
		      struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE char *folder = generation_folder(i->folder, number);
	CLEANUP_FD int fd = -1;
	uint32_t zero = 0;
	int code = bpffs_get(folder, "about", &fd, err);

	if (code)
		return code;
	if (bpf_map_lookup_elem(fd, &zero, about))
		return err_system(err, errno, "cannot read who made the policy");
	snprintf(about->made_of, sizeof(about->made_of), "%s", made_of);
	if (bpf_map_update_elem(fd, &zero, about, BPF_ANY))
		return err_system(err, errno, "cannot write who made the policy");
	return 0;
}

const void *generation_object(size_t *ret_size)
{
	return policy_bpf__elf_bytes(ret_size);
}

static int mark_rows(int rules, uint8_t used[WEIR_RULE_COUNTERS])
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	struct policy_rule rule;
	int code = bpf_obj_get_info_by_fd(rules, &info, &size);

	for (uint32_t r = 0; !code && r < info.max_entries; r++) {
		code = bpf_map_lookup_elem(rules, &r, &rule);
		if (!code && rule.counter < WEIR_RULE_COUNTERS)
			used[rule.counter] = 1;
	}
	return code;
}

int generation_counters(const struct instance *i, uint8_t ret_used[WEIR_RULE_COUNTERS], struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/gen", i->folder);
	DIR *dir = opendir(path);
	struct dirent *file;
	int code = 0;

	if (!dir)
		return err_system(err, errno, "cannot read '%s'", path);
	while (!code && (file = readdir(dir))) {
		CLEANUP_FREE char *folder = mem_printf("%s/%s", path, file->d_name);
		CLEANUP_FD int rules = -1;

		if (file->d_name[0] == '.')
			continue;
		code = bpffs_get(folder, part_name(PART_RULES), &rules, err);
		if (!code && (code = mark_rows(rules, ret_used)))
			err_system(err, -code, "cannot read the rules in '%s'", folder);
		if (code == -ENOENT) // half pinned by a killed command: in no program array
			code = 0;
	}
	closedir(dir);
	return code;
}

int generation_pin(const char *instance_folder, struct generation *g, uint32_t number,
		   const struct generation_about *about, struct err *err)
{
	CLEANUP_FREE char *folder = generation_folder(instance_folder, number);
	int code = file_remove_tree(folder, err);

	if (!code)
		code = file_mkdirs(folder, 0700, err);
	for (int p = 0; !code && p < PARTS; p++)
		if (g->fd[p] >= 0)
			code = bpffs_put(folder, part_name((enum part)p), g->fd[p], err);
	if (!code)
		code = parts_pin(folder, SETS_FOLDER, &g->sets, err);
	if (!code)
		code = parts_pin(folder, LB_PINS_FOLDER, &g->pins, err);
	if (!code)
		code = pin_about(folder, about, err);
	if (code)
		file_remove_tree(folder, NULL);
	return code;
}

void generation_unpin(const char *instance_folder, uint32_t number)
{
	CLEANUP_FREE char *folder = generation_folder(instance_folder, number);

	file_remove_tree(folder, NULL);
}

int generation_open(const struct instance *i, uint32_t number, struct generation **ret,
		    struct err *err)
{
	CLEANUP_GENERATION struct generation *g = generation_new();
	CLEANUP_FREE char *folder = generation_folder(i->folder, number);

	for (int p = 0; p < PARTS; p++) {
		int code = bpffs_get(folder, part_name((enum part)p), &g->fd[p], err);

		if (code == -ENOENT && p >= PARTS_NEEDED)
			continue;
		if (code == -ENOENT)
			return err_system(err, ENOENT, "generation %u has lost its pin '%s'",
					  number, part_name((enum part)p));
		if (code)
			return code;
	}
	*ret = TAKE_PTR(g);
	return 0;
}

int generation_set_iface(const struct generation *g, uint32_t number, uint8_t class,
			 struct err *err)
{
	struct policy_ifclass classes;
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(g->fd[PART_IFCLASS], &zero, &classes))
		return err_system(err, errno, "cannot read the policy's interfaces");
	classes.class[number & (WEIR_IFACES - 1)] = class;
	if (bpf_map_update_elem(g->fd[PART_IFCLASS], &zero, &classes, BPF_ANY))
		return err_system(err, errno, "cannot write the policy's interfaces");
	return 0;
}

uint8_t generation_class(const struct generation_about *about, const char *device)
{
	size_t best = 0, best_len = 0;

	for (size_t i = 0; i < about->n_ifaces && i < WEIR_IFACES; i++) {
		const char *name = about->ifaces[i];
		bool pattern = strchr(name, '*');
		size_t len = strlen(name) + (pattern ? 0 : sizeof(about->ifaces[0]));

		if (len > best_len &&
		    (pattern ? !fnmatch(name, device, 0) : !strcmp(name, device))) {
			best = i + 1;
			best_len = len;
		}
	}
	return (uint8_t)best;
}

int generation_introduce(const struct instance *i, uint32_t number, const char *device,
			 struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/gen", i->folder);
	DIR *dir = opendir(path);
	struct dirent *file;
	int code = 0;

	if (!dir)
		return err_system(err, errno, "cannot read '%s'", path);
	while (!code && (file = readdir(dir))) {
		CLEANUP_GENERATION struct generation *g = NULL;
		struct generation_about about;
		uint32_t n;

		if (num_parse_u32(file->d_name, strlen(file->d_name), 1, UINT32_MAX, &n))
			continue;
		code = generation_read_about(i, n, &about, err);
		if (!code)
			code = generation_open(i, n, &g, err);
		if (!code)
			code = generation_set_iface(g, number, generation_class(&about, device),
						    err);
	}
	closedir(dir);
	return code;
}
