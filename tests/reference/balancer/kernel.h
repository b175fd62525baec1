// SPDX-License-Identifier: GPL-2.0-only
// One service in the kernel, loaded as any policy's, its packets run by BPF_PROG_TEST_RUN. The programs are
// compiled with TEST_CLOCK, and nothing else is different.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/table/lb_state.h"

struct kernel;

// What the programs read and write, mapped.
struct kernel_tables {
	uint64_t *slots;
	uint64_t *pins;           // buckets × SERVICE_PIN_WORDS
	struct backend *backends; // by number; written by kernel_backend, but for `state`
	struct service *service;
	uint64_t *now; // jiffies
};

// All that arrives here is the service's, in IP in IP. Ends the process with status 2 when it cannot be
// loaded.
struct kernel *kernel_new(const struct lb_service *s, uint32_t hz);
void kernel_free(struct kernel *k);
struct kernel_tables kernel_tables(struct kernel *k);

// A backend of its own address, or this host (family 0; one at most).
void kernel_backend(struct kernel *k, uint32_t id, uint8_t family, enum backend_state state);

struct kernel_answer {
	uint32_t backend; // that the packet left to; BACKEND_NONE: it was dropped
	// What the service counted, beside packets, since the last one.
	uint64_t event[SERVICE_EVENT_COUNT];
};
// Ends the process when the kernel does not run it.
void kernel_send(struct kernel *k, const uint8_t *frame, size_t len, struct kernel_answer *ret);
// All that the service ever counted.
uint64_t kernel_counted(const struct kernel *k, enum service_event event);
