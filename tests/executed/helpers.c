// SPDX-License-Identifier: GPL-2.0-only
// Functions of the kernel that programs call, as far as the programs of the bench do.
#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/executed/machine.h"

#define POISON 0x6b6b6b6b6b6b6b6bull // in the registers that a call does not keep

static void find_in_map(struct machine *m, const char *name)
{
	struct copied_map *t = machine_copy(m, m->r[1]);
	const uint8_t *key = t ? machine_memory(m, m->r[2], t->key_bytes) : NULL;
	uint8_t *value = NULL;
	uint32_t index;

	if (!key)
		return;
	if (t->values) {
		memcpy(&index, key, sizeof(index));
		value = index < t->entries ? t->values + index * t->stride : NULL;
	} else {
		value = copy_find(t, key);
	}
	// Inlined look-ups call the inner function and add the offset of the value themselves.
	m->r[0] = name[0] == '_' ? machine_element(value) : (uint64_t)(uintptr_t)value;
}

static void put_into_map(struct machine *m)
{
	struct copied_map *t = machine_copy(m, m->r[1]);
	const uint8_t *key = t ? machine_memory(m, m->r[2], t->key_bytes) : NULL;
	const uint8_t *value = t ? machine_memory(m, m->r[3], t->value_bytes) : NULL;

	if (key && value)
		copy_put(t, key, value);
	m->r[0] = 0;
}

static uint64_t frame_bytes(const struct machine *m)
{
	return m->buff.data_end - m->buff.data;
}

static void move_head(struct machine *m)
{
	uint64_t data = m->buff.data + (uint64_t)(int64_t)(int32_t)m->r[2];
	bool fits = data >= m->buff.data_hard_start && data + 14 <= m->buff.data_end;

	if (fits)
		m->buff.data = m->buff.data_meta = data;
	m->r[0] = fits ? 0 : (uint64_t)-EINVAL;
}

static void move_tail(struct machine *m)
{
	uint64_t end = m->buff.data_end + (uint64_t)(int64_t)(int32_t)m->r[2];
	bool fits = end >= m->buff.data + 14 &&
		    end <= (uint64_t)(uintptr_t)(m->frame + sizeof(m->frame));

	if (fits)
		m->buff.data_end = end;
	m->r[0] = fits ? 0 : (uint64_t)-EINVAL;
}

static void copy_bytes(struct machine *m, bool to_frame)
{
	uint64_t offset = m->r[2], n = m->r[4];
	uint8_t *buffer = machine_memory(m, m->r[3], n), *frame;

	m->r[0] = (uint64_t)-EINVAL;
	if (!buffer || offset > frame_bytes(m) || n > frame_bytes(m) - offset)
		return;
	frame = machine_memory(m, m->buff.data + offset, n);
	memcpy(to_frame ? frame : buffer, to_frame ? buffer : frame, n);
	m->r[0] = 0;
}

static bool one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

#define ONE_OF(name, ...)                                  \
	one_of((name), (const char *const[]){__VA_ARGS__}, \
	       ARRAY_SIZE(((const char *const[]){__VA_ARGS__})))

static void call(struct machine *m, const char *name)
{
	if (ONE_OF(name, "__htab_map_lookup_elem", "htab_map_lookup_elem",
		   "htab_lru_map_lookup_elem", "trie_lookup_elem", "array_map_lookup_elem",
		   "bpf_map_lookup_elem"))
		find_in_map(m, name);
	else if (ONE_OF(name, "htab_map_update_elem", "htab_lru_map_update_elem",
			"bpf_map_update_elem"))
		put_into_map(m);
	else if (ONE_OF(name, "bpf_xdp_adjust_head"))
		move_head(m);
	else if (ONE_OF(name, "bpf_xdp_adjust_tail"))
		move_tail(m);
	else if (ONE_OF(name, "bpf_xdp_get_buff_len"))
		m->r[0] = frame_bytes(m);
	else if (ONE_OF(name, "bpf_xdp_load_bytes"))
		copy_bytes(m, false);
	else if (ONE_OF(name, "bpf_xdp_store_bytes"))
		copy_bytes(m, true);
	else if (ONE_OF(name, "bpf_jiffies64"))
		m->r[0] = m->jiffies;
	else if (ONE_OF(name, "bpf_ktime_get_ns"))
		m->r[0] = bench_now_ns();
	else if (ONE_OF(name, "bpf_user_rnd_u32"))
		m->r[0] = 4; // the programs of the rows only need some number
	else
		machine_fail(m, "call of '%s', which tests/executed/helpers.c lacks", name);
}

void machine_call(struct machine *m, int32_t function)
{
	const char *name = kernel_function(function);

	if (!name) {
		machine_fail(m, "call of an unknown function; /proc/kallsyms may be hidden");
		return;
	}
	machine_count(m, name);
	call(m, name);
	for (size_t i = 1; i <= 5; i++)
		m->r[i] = POISON;
}
