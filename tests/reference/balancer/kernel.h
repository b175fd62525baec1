// SPDX-License-Identifier: GPL-2.0-only
// One service in the kernel, loaded as by any policy; its packets run by BPF_PROG_TEST_RUN. The
// programs are compiled with TEST_CLOCK; nothing else differs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"
#include "ctl/table/lb_state.h"

struct kernel;

// The mapped state that the programs read and write.
struct kernel_tables {
	uint64_t *slots;
	uint64_t *pins;           // buckets × SERVICE_PIN_WORDS
	struct backend *backends; // by number; written by kernel_backend, but for `state`
	struct service *service;
	uint64_t *now; // jiffies
};

// All packets are the service's, in mode ipip. general_only: without the short program. Exits with
// status 2 if it cannot be loaded.
struct kernel *kernel_new(const struct lb_service *s, uint32_t hz, bool general_only);
void kernel_free(struct kernel *k);
struct kernel_tables kernel_tables(struct kernel *k);

// A backend of its own address, or this host (family 0; one at most).
void kernel_backend(struct kernel *k, uint32_t id, uint8_t family, enum backend_state state);

struct kernel_answer {
	uint32_t backend; // that the packet left to; BACKEND_NONE: it was dropped
	// The events that the service counted since the last packet.
	uint64_t event[SERVICE_EVENT_COUNT];
};
// Exits if the kernel does not run it.
void kernel_send(struct kernel *k, const uint8_t *frame, size_t len, struct kernel_answer *ret);
// The events since the beginning.
uint64_t kernel_counted(const struct kernel *k, enum service_event event);
// Packets that took the general way.
uint64_t kernel_general(const struct kernel *k);
