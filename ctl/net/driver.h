// SPDX-License-Identifier: GPL-2.0-only
// Properties of drivers in native mode that they do not report: one row for each.
//
// `weir doctor --drivers` prints the table, and docs/kernels.md has it too
// (tests/lab/test_doctor.py compares them). The rows of tested drivers were found by sending frames
// (tests/vm/drivers, tests/lab), the others in the sources of Linux up to 6.18.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum driver_excess {
	DRIVER_REFUSES, // a program, above the largest MTU
	DRIVER_LOSES,   // the longest packets there, without an error
};

enum driver_channels {
	CHANNELS_ANY,
	CHANNELS_HALF,     // at most half may be in use: XDP needs as many again
	CHANNELS_COMBINED, // receiving and sending must share channels
	CHANNELS_RESERVED, // it reserves one for each CPU that may exist, as far as there are any
};

enum driver_tags {
	TAGS_KEPT,
	TAGS_REMOVED, // while rxvlan is on, the default
	TAGS_OF_PEER, // removed while txvlan of the peer is on, the default
};

// Which redirected frames it sends.
enum driver_redirect {
	REDIRECT_ALWAYS,
	REDIRECT_PEER,    // if its peer has GRO or a program
	REDIRECT_PROGRAM, // while it has a program in native mode
	REDIRECT_CPUS,    // the same, and from CPUs with a number below its channels only
};

// Settings with which a driver refuses a program.
enum driver_clash {
	CLASH_LRO = 1 << 0,
	CLASH_HW_GRO = 1 << 1,
	CLASH_HDS = 1 << 2,   // header-data split (tcp-data-split)
	CLASH_SRIOV = 1 << 3, // virtual functions
	CLASH_ALL = 15,
};

enum driver_runs {
	RUNS_ALWAYS,
	RUNS_UNTIL_DOWN, // not after the device was down, or got another MTU or ring size
	RUNS_HEADROOM,   // only if the backend of the virtual machine has room in front of a frame
};

struct driver {
	const char *name;     // as ethtool -i prints it
	const char *known_as; // the name of its sources; "": the same
	const char *since;    // Linux that has native mode
	bool tested;
	uint32_t mtu; // the largest in one buffer, with one VLAN tag; 0: any
	const char *
		buffers; // Linux from which it takes several, so that any MTU works; "": no version
	enum driver_excess excess;
	enum driver_channels channels;
	unsigned clashes; // enum driver_clash
	enum driver_tags tags;
	enum driver_redirect redirect;
	enum driver_runs runs;
	// the link or the queues at attach and detach: frames are lost for up to some seconds
	bool resets;
};

// All rows, in the order in which they are printed.
const struct driver *driver_list(size_t *ret_n);
// NULL: a driver without a row.
const struct driver *driver_find(const char *name);
