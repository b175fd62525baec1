// SPDX-License-Identifier: GPL-2.0-only
// The values of markers (common/markers.h), and the load of a policy's programs with them.
//
// libbpf shows the instructions of a program right before BPF_PROG_LOAD to the handler of its
// section, with all of its functions linked in and all maps created. There each marker is replaced:
// by a number, or by the address of a byte in a map of one value. A jump is replaced by one that is
// always taken, or by none, and unreachable code is removed. A marker without a value fails the
// load, and so does a program in which none is found.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/markers.h"
#include "ctl/base/err.h"

struct bpf_object_skeleton;
struct policy_bpf;

enum marker_kind {
	MARKER_UNSET,
	MARKER_NUMBER,
	MARKER_ADDRESS,
};

// The verifier follows offsets in a value up to here.
#define MARKER_VALUE_MAX (512u << 20)

struct marker {
	uint64_t value; // the number, or the offset in the map
	uint32_t kind;  // enum marker_kind
	char map[20];   // its name in xdp/
};

struct markers {
	struct marker at[MARKERS];
};

void markers_number(struct markers *m, enum marker_number number, uint64_t value);
// The address of the byte at `offset` in the value of a map, whichever descriptor the object has
// for the map when it is loaded.
void markers_address(struct markers *m, enum marker_number number, const char *map,
		     uint64_t offset);

// The object, ready to be prepared; NULL with errno set. policy_bpf__destroy() frees it.
struct policy_bpf *markers_open(void);
// The programs of every policy, as compiled: 2 MB, which each file that asks the skeleton would
// contain once more.
const void *markers_object(size_t *ret_size);
// Loads it. 0 or -errno with err set; -EBADMSG: a value is missing. *ret_short: the kernel has
// refused the short program; without it the others may load, from a new object.
int markers_load(struct policy_bpf *skel, const struct markers *m, bool *ret_short,
		 struct err *err);

// Replaces the markers of all objects that are opened afterwards. 0 or -errno. markers_open() calls
// it.
int markers_register(void);

// A frozen map with the values, for test programs of other processes.
int markers_keep(const struct markers *m, int *ret_fd, struct err *err);
// -ENOTSUP with err set: another build has other markers.
int markers_read(int fd, struct markers *ret, struct err *err);
