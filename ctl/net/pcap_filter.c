// SPDX-License-Identifier: GPL-2.0-only
// A filter of libpcap, compiled without a device.
#include "ctl/net/pcap_filter.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/net/pcap_calls.h"

#define SNAP 262144

struct pcap_filter {
	const struct pcap_calls *pcap;
	pcap_t *dead;
	struct bpf_program program;
};

static int compile(struct pcap_filter *f, const char *words, struct err *err)
{
	f->dead = f->pcap->open_dead(DLT_EN10MB, SNAP);
	if (!f->dead)
		return err_system(err, ENOMEM, "cannot compile a filter");
	if (f->pcap->compile(f->dead, &f->program, words, 1, PCAP_NETMASK_UNKNOWN)) {
		err_input(err, "the filter '%s' is refused: %s", words, f->pcap->geterr(f->dead));
		return err_hint(err, "pcap-filter(7) describes the language");
	}
	return 0;
}

int pcap_filter_new(const char *words, struct pcap_filter **ret, struct err *err)
{
	struct pcap_filter *f = mem_new(struct pcap_filter);
	int code;

	f->pcap = pcap_calls_load(err);
	code = f->pcap ? compile(f, words, err) : -ENOENT;
	if (code) {
		pcap_filter_free(f);
		return code;
	}
	*ret = f;
	return 0;
}

bool pcap_filter_matches(const struct pcap_filter *f, const uint8_t *frame, uint32_t captured,
			 uint32_t length)
{
	const struct pcap_pkthdr head = {.caplen = captured, .len = length};

	return f->pcap->offline_filter(&f->program, &head, frame);
}

void pcap_filter_free(struct pcap_filter *f)
{
	if (!f)
		return;
	if (f->program.bf_insns)
		f->pcap->freecode(&f->program);
	if (f->dead)
		f->pcap->close(f->dead);
	free(f);
}
