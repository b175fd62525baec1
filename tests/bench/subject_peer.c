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
#include "tests/bench/peer.h"
#include "tests/bench/peer_linear.skel.h"
#include "tests/bench/peer_map.skel.h"
#include "tests/bench/subject.h"

#define BATCH 65536

// ---- programs of a few instructions -------------------------------------------------------------

struct few {
	int programs[SUBJECT_LOADS];
};

static void release_few(void *own)
{
	struct few *few = own;

	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		close(few->programs[i]);
	free(few);
}

static void load_few(const char *name, const struct bpf_insn *insns, size_t n, struct subject *ret)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_XDP_HAS_FRAGS);
	struct few *few = mem_new(struct few);

	*ret = (struct subject){
		.name = name, .loads = SUBJECT_LOADS, .own = few, .release = release_few};
	for (size_t i = 0; i < SUBJECT_LOADS; i++) {
		few->programs[i] = bpf_prog_load(BPF_PROG_TYPE_XDP, name, "GPL", insns, n, &opts);
		if (few->programs[i] < 0)
			bench_fail(-few->programs[i],
				   "cannot load a program of a few instructions");
		ret->programs[i] = few->programs[i];
	}
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

// ---- kernel maps --------------------------------------------------------------------------------

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

static size_t addr_bytes(uint8_t family)
{
	return family == 4 ? 4 : 16;
}

static struct peer_form map_form(const char *name, const char *program, const char *map)
{
	struct peer_form f = {.name = name, .program = program, .map = map};

	f.elf = peer_map_bpf__elf_bytes(&f.elf_bytes);
	return f;
}

void subject_hash(const struct set *s, struct subject *ret)
{
	struct peer_form f =
		map_form("kernel-hash", s->family == 4 ? "bench_hash4" : "bench_hash6", "hash");
	size_t bytes = addr_bytes(s->family);
	CLEANUP_FREE uint8_t *keys = mem_zalloc(s->n, bytes);
	CLEANUP_FREE uint64_t *values = mem_zalloc(s->n, sizeof(*values));

	f.entries = s->n;
	f.key_bytes = bytes;
	peer_need(&f, ret);
	for (size_t i = 0; i < s->n; i++)
		memcpy(keys + i * bytes, s->at[i].addr.bytes, bytes);
	fill(peer_map(ret, "hash"), keys, bytes, values, sizeof(*values), s->n);
}

void subject_lpm(const struct set *s, struct subject *ret)
{
	struct peer_form f =
		map_form("kernel-lpm", s->family == 4 ? "bench_lpm4" : "bench_lpm6", "lpm");
	size_t bytes = 4 + addr_bytes(s->family);
	CLEANUP_FREE uint8_t *keys = mem_zalloc(s->n, bytes);
	CLEANUP_FREE uint64_t *values = mem_zalloc(s->n, sizeof(*values));

	f.entries = s->n;
	f.key_bytes = bytes;
	peer_need(&f, ret);
	for (size_t i = 0; i < s->n; i++) {
		uint32_t len = s->at[i].len;

		memcpy(keys + i * bytes, &len, 4);
		memcpy(keys + i * bytes + 4, s->at[i].addr.bytes, bytes - 4);
	}
	fill(peer_map(ret, "lpm"), keys, bytes, values, sizeof(*values), s->n);
}

void subject_lru(uint32_t entries, struct subject *ret)
{
	struct peer_form f = map_form("kernel-lru", "bench_lru4", "lru");

	f.entries = entries;
	peer_need(&f, ret);
}

// ---- linear scan --------------------------------------------------------------------------------

void subject_linear(const struct bench_rule *rules, size_t n, struct subject *ret)
{
	struct peer_form f = {.name = "linear", .map = "scan", .entries = n};

	f.elf = peer_linear_bpf__elf_bytes(&f.elf_bytes);
	peer_need(&f, ret);
	for (uint32_t i = 0; i < n; i++)
		if (bpf_map_update_elem(peer_map(ret, "scan"), &i, &rules[i], BPF_ANY))
			bench_fail(errno, "cannot fill the linear scan");
}

// ---- xdp-filter ---------------------------------------------------------------------------------

#define XDP_FILTER_SRC 1 // in a map value: matches as source; the counter starts at bit 5

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

static void fill_filter(const struct subject *s, const struct set *const *sets, size_t n)
{
	uint8_t family = sets[0]->family;
	int cpus = libbpf_num_possible_cpus();
	int map = peer_map(s, family == 4 ? "filter_ipv4" : "filter_ipv6");
	size_t bytes = addr_bytes(family), row = (size_t)(cpus < 1 ? 1 : cpus);

	for (size_t k = 0; k < n; k++) {
		CLEANUP_FREE uint8_t *keys = mem_zalloc(sets[k]->n, bytes);
		CLEANUP_FREE uint64_t *values = mem_zalloc(sets[k]->n * row, sizeof(*values));

		for (size_t i = 0; i < sets[k]->n; i++)
			memcpy(keys + i * bytes, sets[k]->at[i].addr.bytes, bytes);
		for (size_t i = 0; i < sets[k]->n * row; i++)
			values[i] = XDP_FILTER_SRC;
		fill(map, keys, bytes, values, row * sizeof(*values), sets[k]->n);
	}
}

void subject_xdp_filter(const char *what, const struct set *const *sets, size_t n,
			struct subject *ret)
{
	CLEANUP_FREE char *path = find_object(what);
	struct peer_form f = {.name = strcmp(what, "all") ? "xdp-filter-ip" : "xdp-filter",
			      .path = path,
			      .map = "filter_ipv"};
	int code;

	if (!path) {
		*ret = (struct subject){.name = f.name};
		ret->skipped = mem_printf("xdpfilt_alw_%s.o not found (package xdp-tools)", what);
		return;
	}
	for (size_t s = 0; s < n; s++)
		f.entries += sets[s]->n;
	if ((code = peer_load(&f, ret))) {
		ret->skipped = mem_printf("cannot load xdp-filter: %s", err_name(code));
		return;
	}
	fill_filter(ret, sets, n);
}
