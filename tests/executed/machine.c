// SPDX-License-Identifier: GPL-2.0-only
// Memory and programs of an emulated run.
#include "tests/executed/machine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"

// Above the addresses of a process and below the kernel's.
#define HANDLE_MAP     (0x5a01ull << 48)
#define HANDLE_ELEMENT (0x5a02ull << 48)
#define HANDLE_KIND    (0xffffull << 48)
#define KERNEL         (1ull << 63)

void machine_fail(struct machine *m, const char *fmt, ...)
{
	va_list ap;

	if (m->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, ap);
	va_end(ap);
}

// ---- memory -------------------------------------------------------------------------------------

static bool within(uint64_t address, size_t bytes, const void *from, size_t n)
{
	uint64_t first = (uint64_t)(uintptr_t)from;

	return from && address >= first && address - first <= n && n - (address - first) >= bytes;
}

static bool in_table(const struct copied_map *t, uint64_t address, size_t bytes)
{
	if (within(address, bytes, t->values, t->stride * t->entries) ||
	    within(address, bytes, t->per_cpu, sizeof(*t->per_cpu) * t->entries))
		return true;
	for (size_t i = 0; i < t->n_elements; i++)
		if (within(address, bytes, t->elements[i].value, t->value_bytes))
			return true;
	return false;
}

// Lines begin where the values do, as the kernel aligns them to pages.
static void touch(struct machine *m, const struct copied_map *t, uint64_t address)
{
	uint64_t values = (uint64_t)(uintptr_t)t->values;
	const uint8_t *line = t->values + (address - values) / LINE_BYTES * LINE_BYTES;

	for (size_t n = 0; n < m->n_lines; n++)
		if (m->lines[n] == line)
			return;
	if (m->n_lines == LINES_MAX)
		return;
	m->lines[m->n_lines++] = line;
	m->n_large += t->stride * t->entries > LARGE_BYTES;
}

static void touch_maps(struct machine *m, uint64_t address, size_t bytes)
{
	for (size_t i = 0; i < m->n_maps; i++)
		if (within(address, bytes, m->maps[i].values,
			   m->maps[i].stride * m->maps[i].entries))
			touch(m, &m->maps[i], address);
}

static bool in_frame(const struct machine *m, uint64_t address, size_t bytes)
{
	return address >= m->buff.data && address + bytes <= m->buff.data_end;
}

static bool in_machine(const struct machine *m, uint64_t address, size_t bytes)
{
	if (in_frame(m, address, bytes) || within(address, bytes, m->stack, sizeof(m->stack)) ||
	    within(address, bytes, &m->buff, sizeof(m->buff)) ||
	    within(address, bytes, m->rxq, sizeof(m->rxq)) ||
	    within(address, bytes, m->device, sizeof(m->device)) ||
	    within(address, bytes, &m->cpu, sizeof(m->cpu)))
		return true;
	for (size_t i = 0; i < m->n_maps; i++)
		if (in_table(&m->maps[i], address, bytes))
			return true;
	return false;
}

bool machine_is_memory(const struct machine *m, uint64_t address)
{
	return in_machine(m, address, 1);
}

uint8_t *machine_memory(struct machine *m, uint64_t address, size_t bytes)
{
	if (in_machine(m, address, bytes)) {
		touch_maps(m, address, bytes);
		return (uint8_t *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
	}
	machine_fail(m, "access of %zu bytes at 0x%llx, which is no memory", bytes,
		     (unsigned long long)address);
	return NULL;
}

uint64_t machine_load(struct machine *m, uint64_t address, size_t bytes)
{
	uint64_t value = 0;
	const uint8_t *at;

	// The only variable of the kernel itself that a program reads is its clock.
	if (address & KERNEL && bytes == sizeof(value))
		return m->jiffies;
	// Bits for the replacement in an LRU map.
	if (machine_is_handle(address))
		return 1;
	if ((at = machine_memory(m, address, bytes)))
		memcpy(&value, at, bytes);
	return value;
}

void machine_store(struct machine *m, uint64_t address, size_t bytes, uint64_t value)
{
	uint8_t *at;

	if (machine_is_handle(address))
		return;
	if ((at = machine_memory(m, address, bytes)))
		memcpy(at, &value, bytes);
}

// ---- maps ---------------------------------------------------------------------------------------

bool machine_is_handle(uint64_t address)
{
	return (address & HANDLE_KIND) == HANDLE_MAP || (address & HANDLE_KIND) == HANDLE_ELEMENT;
}

uint64_t machine_map(uint32_t id)
{
	return HANDLE_MAP | id;
}

static void put_handles(const struct copied_map *outer)
{
	for (uint32_t i = 0; i < outer->entries; i++) {
		uint32_t id = copy_inner(outer, i);
		uint64_t handle = id ? machine_map(id) : 0;

		memcpy(outer->values + i * sizeof(handle), &handle, sizeof(handle));
	}
}

static struct copied_map *add_copy(struct machine *m, uint32_t id)
{
	struct copied_map *copy = &m->maps[m->n_maps];
	int code;

	if (m->n_maps == MAPS_MAX) {
		machine_fail(m, "more than %d maps", MAPS_MAX);
		return NULL;
	}
	code = copy_read(id, copy);
	if (code) {
		machine_fail(m, "cannot read map %u: %s", id, strerror(-code));
		return NULL;
	}
	m->n_maps++;
	if (copy->type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		put_handles(copy);
	return copy;
}

struct copied_map *machine_copy(struct machine *m, uint64_t handle)
{
	uint32_t id = (uint32_t)handle;

	if ((handle & HANDLE_KIND) != HANDLE_MAP) {
		machine_fail(m, "0x%llx is no map", (unsigned long long)handle);
		return NULL;
	}
	for (size_t i = 0; i < m->n_maps; i++)
		if (m->maps[i].id == id)
			return &m->maps[i];
	return add_copy(m, id);
}

uint64_t machine_element(const uint8_t *value)
{
	return value ? HANDLE_ELEMENT | (uint64_t)(uintptr_t)value : 0;
}

uint64_t machine_values(struct machine *m, uint64_t handle)
{
	const struct copied_map *t;

	if ((handle & HANDLE_KIND) == HANDLE_ELEMENT)
		return handle & ~HANDLE_KIND;
	t = machine_copy(m, handle);
	if (!t)
		return 0;
	return (uint64_t)(uintptr_t)(t->per_cpu ? (void *)t->per_cpu : t->values);
}

// ---- programs -----------------------------------------------------------------------------------

static uint32_t program_id(int program)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(program, &info, &size) ? 0 : info.id;
}

int machine_enter(struct machine *m, int program)
{
	uint32_t id = program_id(program);
	size_t i = 0;
	int code;

	while (i < m->n_codes && m->codes[i].id != id)
		i++;
	if (i == CODES_MAX)
		return -E2BIG;
	if (i == m->n_codes) {
		code = code_read(program, &m->codes[i]);
		if (code)
			return code;
		m->n_codes++;
	}
	m->code = &m->codes[i];
	m->at = 0;
	m->n_links = 0;
	m->r[1] = (uint64_t)(uintptr_t)&m->buff;
	m->r[10] = (uint64_t)(uintptr_t)(m->stack + sizeof(m->stack));
	return 0;
}

void machine_count(struct machine *m, const char *helper)
{
	size_t i = 0;

	while (i < m->n_helpers && strcmp(m->helpers[i].name, helper))
		i++;
	if (i == HELPERS_MAX) {
		machine_fail(m, "more than %d functions are called", HELPERS_MAX);
		return;
	}
	if (i == m->n_helpers)
		m->helpers[m->n_helpers++].name = helper;
	m->helpers[i].calls++;
}
