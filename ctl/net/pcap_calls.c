// SPDX-License-Identifier: GPL-2.0-only
// The functions of libpcap, found when it is loaded.
#include "ctl/net/pcap_calls.h"

#include <stddef.h>

#include "ctl/base/library.h"
#include "ctl/base/mem.h"

static const struct library_call calls[] = {
#define X(call) {"pcap_" #call, offsetof(struct pcap_calls, call)},
	PCAP_CALLS(X)
#undef X
};

// One library: Debian kept the first name when its authors changed it.
static const char *const names[] = {"libpcap.so.1", "libpcap.so.0.8"};

static struct pcap_calls found;

const struct pcap_calls *pcap_calls_load(struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(names) && !found.close; i++) {
		err_clear(err);
		library_load(names[i], calls, ARRAY_SIZE(calls), &found, sizeof(found), err);
	}
	if (found.close)
		return &found;
	err_hint(err, "Debian: apt install libpcap0.8");
	return NULL;
}
