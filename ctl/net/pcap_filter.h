// SPDX-License-Identifier: GPL-2.0-only
// A filter in the language of tcpdump, compiled and executed by libpcap, on Ethernet frames.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/mem.h"

struct pcap_filter;

// -EINVAL with err set, with the message of libpcap, if it refuses the filter; -ENOENT without
// libpcap.
int pcap_filter_new(const char *words, struct pcap_filter **ret, struct err *err);
// length: of the frame, at least `captured`.
bool pcap_filter_matches(const struct pcap_filter *f, const uint8_t *frame, uint32_t captured,
			 uint32_t length);
void pcap_filter_free(struct pcap_filter *f);
