// SPDX-License-Identifier: GPL-2.0-only
// Devices and addresses of this host, for the translation of rules.
#pragma once

#include "ctl/base/vec.h"
#include "ctl/import/import.h"
#include "ctl/net/link.h"

struct import_host {
	struct link *links;
	size_t n_links;
	VEC(struct import_device) devices;
	VEC(const char *) own, broadcasts;
};

// Reads both for the interfaces of the options, and sets the members of *options that have them. It
// refuses devices that bypass the hook forward. 0 or -errno with err set; the caller frees *ret
// in either case.
int import_host_read(struct import_host *ret, struct import_options *options, struct err *err);
// The part that needs no kernel: h->links are known, h->devices are set.
int import_host_devices(struct import_host *h, const struct import_options *options,
			struct err *err);
void import_host_free(struct import_host *host);
#define CLEANUP_IMPORT_HOST CLEANUP(import_host_free)
