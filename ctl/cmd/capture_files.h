// SPDX-License-Identifier: GPL-2.0-only
// The pcapng files that weir capture writes, one after another.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/net/pcapng.h"

struct capture_iface {
	uint32_t ifindex;
	uint64_t packets; // in this file
};

struct capture_files {
	const char *path; // "-": standard output
	bool force;       // existing files are replaced
	uint64_t most;    // bytes after which another file begins; 0: never
	uint64_t ring;    // number of files, of which the oldest is replaced; 0: any number
	uint32_t snap;
	int fd;
	uint64_t number;                  // the present file's, from 0
	uint64_t bytes;                   // the present file's
	uint64_t begin_ns;                // start of the capture, since 1970
	VEC(struct capture_iface) ifaces; // by number of their blocks in this file
	uint64_t packets;                 // in this file
	struct text pending;              // what is not written yet
	bool ended;                       // the reader of the pipe has closed it
};

// Refuses existing files without `force`, and a terminal. 0 or -errno with err set.
int capture_files_open(struct capture_files *f, struct err *err);
// Adds a packet that arrived on the device of this index. Its `interface` is set here.
int capture_files_add(struct capture_files *f, uint32_t ifindex, struct pcapng_packet *packet,
		      struct err *err);
int capture_files_flush(struct capture_files *f, struct err *err);
// Ends the last file, with statistics. 0 or -errno with err set.
int capture_files_end(struct capture_files *f, uint64_t lost, struct err *err);
void capture_files_free(struct capture_files *f);
