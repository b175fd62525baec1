// SPDX-License-Identifier: GPL-2.0-only
// Peers: small programs around kernel maps, a linear scan, and the objects of xdp-filter.
#include <errno.h>
#include <glob.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/bench/peer_linear.skel.h"
#include "tests/bench/peer_map.skel.h"
#include "tests/bench/subject.h"

#define BATCH 65536

void subject_free(struct subject *s)
{
	if (s->release)
		s->release(s->own);
	free(s->skipped);
	*s = (struct subject){.program = -1};
}

// Programs in a program array must have the same support for fragments and the same expected attach type.
static void prepare(struct bpf_program *p)
{
	bpf_program__set_expected_attach_type(p, 0);
	bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
}

// Empty

static void release_fd(void *own)
{
	close((int)(intptr_t)own);
}

static void load_few(const char *name, const struct bpf_insn *insns, size_t n, struct subject *ret)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, name, "GPL", insns, n, &opts);

	if (fd < 0)
		bench_fail(-fd, "cannot load a program of a few instructions");
	*ret = (struct subject){
		.name = name, .program = fd, .own = (void *)(intptr_t)fd, .release = release_fd};
}

#define RETURN(verdict)                                                                \
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = (verdict)}, \
	{                                                                              \
		.code = BPF_JMP | BPF_EXIT                                             \
	}

void subject_empty(struct subject *ret)
{
	const struct bpf_insn insns[] = {RETURN(XDP_DROP)};

	load_few("empty", insns, ARRAY_SIZE(insns), ret);
}

void subject_sender(uint8_t grow, struct subject *ret)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = -grow},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_xdp_adjust_head},
		RETURN(XDP_TX),
	};
	size_t skip = grow ? 0 : 2;

	load_few("sender", insns + skip, ARRAY_SIZE(insns) - skip, ret);
}

// Kernel maps

static void fill(int map, const void *keys, size_t key_bytes, const void *values,
		 size_t value_bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		uint32_t count = (uint32_t)(n - done < BATCH ? n - done : BATCH);

		if (bpf_map_update_batch(map, (const char *)keys + done * key_bytes,
					 (const char *)values + done * value_bytes, &count, NULL))
			bench_fail(errno, "cannot fill a map of %zu entries", n);
		done += count;
	}
}

static void release_map(void *own)
{
	peer_map_bpf__destroy(own);
}

static struct peer_map_bpf *open_map(void)
{
	struct peer_map_bpf *skel = peer_map_bpf__open();
	struct bpf_program *p;

	if (!skel)
		bench_fail(errno, "cannot open the peers");
	bpf_object__for_each_program(p, skel->obj)
	{
		prepare(p);
		bpf_program__set_autoload(p, false);
	}
	return skel;
}

static void load_map(struct peer_map_bpf *skel, struct bpf_program *p, const char *name,
		     struct subject *ret)
{
	int code;

	bpf_program__set_autoload(p, true);
	if ((code = peer_map_bpf__load(skel)))
		bench_fail(-code, "cannot load the peer '%s'", name);
	*ret = (struct subject){
		.name = name, .program = bpf_program__fd(p), .own = skel, .release = release_map};
}

static size_t addr_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

void subject_hash(const struct set *s, struct subject *ret)
{
	struct peer_map_bpf *skel = open_map();
	size_t bytes = addr_bytes(s->family);
	CLEANUP_FREE uint8_t *keys = mem_zalloc(s->n, bytes);
	CLEANUP_FREE uint64_t *values = mem_zalloc(s->n, sizeof(*values));

	bpf_map__set_max_entries(skel->maps.hash, (uint32_t)s->n);
	bpf_map__set_key_size(skel->maps.hash, (uint32_t)bytes);
	load_map(skel, s->family == 4 ? skel->progs.bench_hash4 : skel->progs.bench_hash6,
		 "kernel-hash", ret);
	for (size_t i = 0; i < s->n; i++)
		memcpy(keys + i * bytes, s->at[i].addr.bytes, bytes);
	fill(bpf_map__fd(skel->maps.hash), keys, bytes, values, sizeof(*values), s->n);
}

void subject_lpm(const struct set *s, struct subject *ret)
{
	struct peer_map_bpf *skel = open_map();
	size_t bytes = 4 + addr_bytes(s->family);
	CLEANUP_FREE uint8_t *keys = mem_zalloc(s->n, bytes);
	CLEANUP_FREE uint64_t *values = mem_zalloc(s->n, sizeof(*values));

	bpf_map__set_max_entries(skel->maps.lpm, (uint32_t)s->n);
	bpf_map__set_key_size(skel->maps.lpm, (uint32_t)bytes);
	load_map(skel, s->family == 4 ? skel->progs.bench_lpm4 : skel->progs.bench_lpm6,
		 "kernel-lpm", ret);
	for (size_t i = 0; i < s->n; i++) {
		uint32_t len = s->at[i].len;

		memcpy(keys + i * bytes, &len, 4);
		memcpy(keys + i * bytes + 4, s->at[i].addr.bytes, bytes - 4);
	}
	fill(bpf_map__fd(skel->maps.lpm), keys, bytes, values, sizeof(*values), s->n);
}

void subject_lru(uint32_t entries, struct subject *ret)
{
	struct peer_map_bpf *skel = open_map();

	bpf_map__set_max_entries(skel->maps.lru, entries);
	load_map(skel, skel->progs.bench_lru4, "kernel-lru", ret);
}

// Linear scan

static void release_linear(void *own)
{
	peer_linear_bpf__destroy(own);
}

void subject_linear(const struct bench_rule *rules, size_t n, struct subject *ret)
{
	struct peer_linear_bpf *skel = peer_linear_bpf__open();
	int code;

	if (!skel)
		bench_fail(errno, "cannot open the linear scan");
	prepare(skel->progs.bench_linear);
	*(uint32_t *)&skel->rodata->rules_n = (uint32_t)n;
	if ((code = peer_linear_bpf__load(skel)))
		bench_fail(-code, "cannot load the linear scan");
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(bpf_map__fd(skel->maps.scan), &i, &rules[i], BPF_ANY))
			bench_fail(errno, "cannot fill the linear scan");
	*ret = (struct subject){.name = "linear",
				.program = bpf_program__fd(skel->progs.bench_linear),
				.own = skel,
				.release = release_linear};
}

// xdp-filter

#define XDP_FILTER_SRC 1 // in a map value: matches as source; the counter starts at bit 5

static void release_object(void *own)
{
	bpf_object__close(own);
}

static char *find_object(const char *what)
{
	CLEANUP_FREE char *pattern = mem_printf("/usr/lib/*/bpf/xdpfilt_alw_%s.o", what);
	glob_t found;
	char *path = NULL;

	if (!glob(pattern, 0, NULL, &found)) {
		path = mem_strdup(found.gl_pathv[0]);
		globfree(&found);
	}
	return path;
}

static void fill_filter(const struct bpf_object *o, const struct set *const *sets, size_t n)
{
	uint8_t family = sets[0]->family;
	int cpus = libbpf_num_possible_cpus();
	int map = bpf_object__find_map_fd_by_name(o, family == 4 ? "filter_ipv4" : "filter_ipv6");
	size_t bytes = addr_bytes(family), row = (size_t)(cpus < 1 ? 1 : cpus);

	for (size_t s = 0; s < n; s++) {
		CLEANUP_FREE uint8_t *keys = mem_zalloc(sets[s]->n, bytes);
		CLEANUP_FREE uint64_t *values = mem_zalloc(sets[s]->n * row, sizeof(*values));

		for (size_t i = 0; i < sets[s]->n; i++)
			memcpy(keys + i * bytes, sets[s]->at[i].addr.bytes, bytes);
		for (size_t i = 0; i < sets[s]->n * row; i++)
			values[i] = XDP_FILTER_SRC;
		fill(map, keys, bytes, values, row * sizeof(*values), sets[s]->n);
	}
}

// xdp-tools pins the maps by name; here they are private and sized for the set.
static int load_filter(struct bpf_object *o, size_t entries)
{
	struct bpf_program *p;
	struct bpf_map *m;
	int code = 0;

	bpf_object__for_each_map(m, o)
	{
		if (!code)
			code = bpf_map__set_pin_path(m, NULL);
		if (!code && !strncmp(bpf_map__name(m), "filter_ipv", 10))
			code = bpf_map__set_max_entries(m, (uint32_t)entries);
	}
	bpf_object__for_each_program(p, o)
	{
		prepare(p);
	}
	return code ? code : bpf_object__load(o);
}

void subject_xdp_filter(const char *what, const struct set *const *sets, size_t n,
			struct subject *ret)
{
	CLEANUP_FREE char *path = find_object(what);
	struct bpf_object *o = path ? bpf_object__open_file(path, NULL) : NULL;
	size_t entries = 0;
	int code;

	*ret = (struct subject){.name = strcmp(what, "all") ? "xdp-filter-ip" : "xdp-filter",
				.program = -1};
	for (size_t s = 0; s < n; s++)
		entries += sets[s]->n;
	if (!o) {
		ret->skipped = mem_printf("xdpfilt_alw_%s.o not found (package xdp-tools)", what);
		return;
	}
	ret->own = o;
	ret->release = release_object;
	if ((code = load_filter(o, entries))) {
		ret->skipped = mem_printf("cannot load xdp-filter: %s", err_name(code));
		return;
	}
	fill_filter(o, sets, n);
	ret->program = bpf_program__fd(bpf_object__next_program(o, NULL));
}
