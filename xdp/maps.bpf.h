/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps that all programs of an instance share.
 *
 * User space makes and pins them once and passes them to each object that it loads. The sizes here
 * are the sizes of a new instance. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "common/abi.h"
#include "common/config.h"
#include "common/counters.h"
#include "common/event.h"
#include "common/overlay.h"

/* The map keeps its content when it is reused, so that a new program finds the running settings. */
struct knobs knobs SEC(".data.knobs");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PROGS);
	__type(key, __u32);
	__type(value, __u32);
} progs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_COUNTERS);
	__type(key, __u32);
	__type(value, struct counter);
} counters SEC(".maps");
