// SPDX-License-Identifier: GPL-2.0-only
// Reads programs, maps and the names of functions from the kernel.
#include "tests/executed/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"

#define BATCH 1024

// ---- programs -----------------------------------------------------------------------------------

int code_read(int program, struct code *ret)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info), bytes;
	struct bpf_insn *insns;

	if (bpf_obj_get_info_by_fd(program, &info, &size))
		return -errno;
	bytes = info.xlated_prog_len;
	insns = mem_zalloc(bytes, 1);
	info = (struct bpf_prog_info){.xlated_prog_insns = (uint64_t)(uintptr_t)insns,
				      .xlated_prog_len = bytes};
	size = sizeof(info);
	if (bpf_obj_get_info_by_fd(program, &info, &size) || !info.xlated_prog_insns) {
		free(insns);
		return errno ? -errno : -EPERM;
	}
	*ret = (struct code){.id = info.id, .insns = insns, .n = bytes / sizeof(*insns)};
	return 0;
}

void code_free(struct code *c)
{
	free(c->insns);
	*c = (struct code){0};
}

// ---- maps ---------------------------------------------------------------------------------------

static bool is_array(const struct copied_map *t)
{
	return t->type == BPF_MAP_TYPE_ARRAY || t->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int copy_mapped(struct copied_map *t)
{
	size_t bytes = round_up(t->stride * t->entries, (size_t)sysconf(_SC_PAGESIZE));
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, t->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	memcpy(t->values, map, t->stride * t->entries);
	munmap(map, bytes);
	return 0;
}

// The first `value_bytes` of each element: the value of CPU 0.
static int copy_batches(struct copied_map *t, size_t element_bytes)
{
	CLEANUP_FREE uint8_t *values = mem_zalloc(BATCH, element_bytes);
	uint32_t keys[BATCH], position = 0, done = 0;

	while (done < t->entries) {
		uint32_t n = BATCH;
		int code = bpf_map_lookup_batch(t->fd, done ? &position : NULL, &position, keys,
						values, &n, NULL);

		if (code && errno != ENOENT)
			return -errno;
		for (uint32_t i = 0; i < n; i++)
			memcpy(t->values + keys[i] * t->stride, values + i * element_bytes,
			       t->value_bytes);
		done += n;
		if (code)
			break;
	}
	return 0;
}

static void make_array(struct copied_map *t, size_t stride)
{
	t->stride = stride;
	t->values = mem_zalloc(t->entries, stride);
}

static int copy_array(struct copied_map *t, bool mapped)
{
	size_t cpus = (size_t)libbpf_num_possible_cpus();

	make_array(t, round_up(t->value_bytes, 8));
	if (mapped)
		return copy_mapped(t);
	if (t->type == BPF_MAP_TYPE_ARRAY)
		return copy_batches(t, t->value_bytes);
	t->per_cpu = mem_zalloc(t->entries, sizeof(*t->per_cpu));
	for (uint32_t i = 0; i < t->entries; i++)
		t->per_cpu[i] = (uint64_t)(uintptr_t)(t->values + i * t->stride);
	return copy_batches(t, t->stride * cpus);
}

int copy_read(uint32_t id, struct copied_map *ret)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	struct copied_map t = {.id = id, .fd = bpf_map_get_fd_by_id(id)};
	int code = 0;

	if (t.fd < 0)
		return t.fd;
	if (bpf_obj_get_info_by_fd(t.fd, &info, &size))
		code = -errno;
	t.type = info.type;
	t.key_bytes = info.key_size;
	t.value_bytes = info.value_size;
	t.entries = info.max_entries;
	if (t.type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		make_array(&t, sizeof(uint64_t));
	if (!code && is_array(&t))
		code = copy_array(&t, info.map_flags & BPF_F_MMAPABLE);
	if (code) {
		copy_free(&t);
		return code;
	}
	*ret = t;
	return 0;
}

static struct element *known(struct copied_map *t, const void *key)
{
	for (size_t i = 0; i < t->n_elements; i++)
		if (!memcmp(t->elements[i].key, key, t->key_bytes))
			return &t->elements[i];
	return NULL;
}

static uint8_t *copy_of(const void *bytes, size_t n)
{
	return memcpy(mem_zalloc(n, 1), bytes, n);
}

void copy_put(struct copied_map *t, const void *key, const void *value)
{
	struct element *e = known(t, key);

	if (e) {
		memcpy(e->value, value, t->value_bytes);
		return;
	}
	t->elements = mem_realloc(t->elements, t->n_elements + 1, sizeof(*t->elements));
	t->elements[t->n_elements++] = (struct element){.key = copy_of(key, t->key_bytes),
							.value = copy_of(value, t->value_bytes)};
}

uint8_t *copy_find(struct copied_map *t, const void *key)
{
	CLEANUP_FREE uint8_t *value = mem_zalloc(round_up(t->value_bytes, 8), 1);
	const struct element *e = known(t, key);

	if (e)
		return e->value;
	if (bpf_map_lookup_elem(t->fd, key, value))
		return NULL;
	copy_put(t, key, value);
	return known(t, key)->value;
}

uint32_t copy_inner(const struct copied_map *t, uint32_t index)
{
	uint32_t id;

	return bpf_map_lookup_elem(t->fd, &index, &id) ? 0 : id;
}

int copy_program(const struct copied_map *t, uint32_t index)
{
	uint32_t id;

	return bpf_map_lookup_elem(t->fd, &index, &id) ? -errno : bpf_prog_get_fd_by_id(id);
}

void copy_free(struct copied_map *t)
{
	for (size_t i = 0; i < t->n_elements; i++) {
		free(t->elements[i].key);
		free(t->elements[i].value);
	}
	free(t->elements);
	free(t->per_cpu);
	free(t->values);
	t->fd = fd_close(t->fd);
}

// ---- functions ----------------------------------------------------------------------------------

// The target of a call is stored as distance from this function (include/linux/filter.h).
#define CALL_BASE "__bpf_call_base"

struct symbol {
	uint64_t at;
	char *name;
};

static struct symbol *symbols;
static size_t n_symbols;

static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t hexadecimal(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t n = 0;

	for (const char *digit; *text && (digit = strchr(digits, *text)); text++)
		n = n << 4 | (uint64_t)(digit - digits);
	return n;
}

// "ffffffff814ca650 T __bpf_call_base", and for modules "\t[name]" after it.
static void read_symbols(void)
{
	CLEANUP_FILE FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		char *type = strchr(line, ' ');

		if (!type || strlen(type) < 4 || !strchr("tT", type[1]))
			continue;
		type[3 + strcspn(type + 3, "\t\n")] = '\0';
		if (!(n_symbols & (n_symbols - 1)))
			symbols = mem_realloc(symbols, n_symbols ? 2 * n_symbols : 1,
					      sizeof(*symbols));
		symbols[n_symbols++] =
			(struct symbol){.at = hexadecimal(line), .name = mem_strdup(type + 3)};
	}
	qsort(symbols, n_symbols, sizeof(*symbols), by_address);
}

static uint64_t call_base(void)
{
	static uint64_t base;

	if (!symbols)
		read_symbols();
	for (size_t i = 0; !base && i < n_symbols; i++)
		if (!strcmp(symbols[i].name, CALL_BASE))
			base = symbols[i].at;
	return base;
}

const char *kernel_function(int32_t call)
{
	uint64_t base = call_base();
	struct symbol wanted = {.at = base + (uint64_t)(int64_t)call};
	const struct symbol *found =
		base ? bsearch(&wanted, symbols, n_symbols, sizeof(*symbols), by_address) : NULL;

	return found ? found->name : NULL;
}
