// SPDX-License-Identifier: GPL-2.0-only
// libpcap, loaded by the first command that needs it: only commands for captures do. Include this
// instead of pcap/pcap.h.
#pragma once

#include <pcap/pcap.h>

#include "ctl/base/err.h"

// Each function of libpcap that is called anywhere.
#define PCAP_CALLS(X)     \
	X(close)          \
	X(compile)        \
	X(datalink)       \
	X(fopen_offline)  \
	X(freecode)       \
	X(geterr)         \
	X(next_ex)        \
	X(offline_filter) \
	X(open_dead)

struct pcap_calls {
#define X(name) __typeof__(pcap_##name) *name;
	PCAP_CALLS(X)
#undef X
};

// The functions, or NULL with err set: libpcap is not installed.
const struct pcap_calls *pcap_calls_load(struct err *err);
