// SPDX-License-Identifier: GPL-2.0-only
// Why a packet is treated as it is.
//
// A test program of the active policy, or of a file, is asked, and the record of the policy
// supplies the texts for its answer. No counter changes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/counters.h"
#include "ctl/base/err.h"
#include "ctl/control/candidate.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/packet.h"
#include "ctl/datapath/reach.h"
#include "ctl/datapath/test_program.h"

struct explain_request {
	const char *instance;
	const char *file;       // policy that replaces the active one; NULL: none
	struct dns_options dns; // for the names in it
	const char *packet;     // in the language's words; NULL: none
	bool test;              // packets will be asked about
};

struct explain {
	struct candidate *c; // texts and rules; of the empty policy if `recorded` is false
	bool recorded;
	// For the interfaces of c: the number in the policy, from 1; 0: not named there, or the
	// policy names none.
	uint8_t classes[WEIR_IFACES];
	bool named;                            // the policy names interfaces
	struct reach reach;                    // reach of the active policy; not set for a file
	bool bad_file;                         // the file has errors: in c->diag
	char revision[16];                     // "" for a file and for the empty policy
	struct store *store;                   // overlay and instance; NULL for a file
	struct generation *generation;         // active; NULL for a file
	struct test_program *test;             // its test program; NULL for a file: then c has one
	struct lb_maps *live;                  // its balancer; NULL: none, or a file
	const struct lb_state *lb;             // state of either policy; NULL: it has no services
	const struct resolved_packet *packets; // that the request's words describe
	size_t n_packets;
};

// 0, or -errno with err set. The caller frees e in either case.
int explain_open(struct explain *e, const struct explain_request *request, struct err *err);
void explain_free(struct explain *e);
#define CLEANUP_EXPLAIN CLEANUP(explain_free)

struct explain_question {
	const uint8_t *frame;
	size_t length;
	uint32_t iface; // index among the interfaces of c
	// Assumed, with empty overlay and dynamic sets; without either, the present state applies.
	bool over, established, unroutable;
};

struct explain_answer {
	struct test_result result;
	struct packet_fields packet;
	const struct reference
		*overlay; // that decided, until the next question; NULL: none, or unknown
	bool supposed;    // not asked about the live state
};

int explain_ask(struct explain *e, const struct explain_question *q, struct explain_answer *ret,
		struct err *err);

// Does the policy hold on the interface with this index in c?
bool explain_holds_on(const struct explain *e, uint32_t iface);

// The interface of c that stands for this name; NULL: the policy's first. 0 or -EINVAL with err
// set.
int explain_iface(const struct explain *e, const char *name, uint32_t *ret, struct err *err);

// The overlay record that decides among all of one kind that cover p: the longest. NULL: none. The
// caller has loaded them (store_load_covering).
const struct reference *explain_overlay(const struct explain *e, const struct prefix *p,
					uint8_t kind);
