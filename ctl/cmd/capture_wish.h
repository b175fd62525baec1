// SPDX-License-Identifier: GPL-2.0-only
// Which packets weir capture takes: what the datapath decides, and what is decided afterwards.
#pragma once

#include <stdbool.h>

#include "ctl/cmd/args.h"
#include "ctl/control/sampled_packet.h"
#include "ctl/datapath/captures.h"
#include "ctl/net/pcap_filter.h"

struct candidate;
struct resolved_service;

struct capture_wish {
	struct captures_wish kernel;
	struct candidate *policy;               // has `service`
	const struct resolved_service *service; // NULL: any packet
	struct pcap_filter *filter;             // NULL: any packet
};

// Refuses unknown names, and options that exclude each other. 0 or -errno with err set.
int capture_wish_read(struct capture_wish *w, const struct args *args, const struct instance *i,
		      struct err *err);
// Does the service and the filter have a packet that the datapath has copied?
bool capture_wish_has(const struct capture_wish *w, const struct captured *packet,
		      const uint8_t *frame);
// The packet as it arrived, without headers that Weir has put before it.
void capture_read(const struct captured *packet, const uint8_t *frame, struct sampled_packet *ret);
void capture_wish_free(struct capture_wish *w);
