// SPDX-License-Identifier: GPL-2.0-only
// Attaches the decapsulating program of backends, reads it and detaches it.
//
// It belongs to no instance: its maps belong to the program that the interface holds, and are freed with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/decap.h"
#include "ctl/base/addr.h"
#include "ctl/datapath/attach.h"

// As the kernel shows it.
#define DECAP_PROGRAM "weir_decap"

// Whose tunnels end here, and what they may bring.
struct decap_end {
	uint16_t port; // of GUE, host order
	bool forward;  // inner packets may be for others than this host
	const struct prefix
		*here; // what this host is: addresses, and prefixes that are local as a whole
	const struct prefix *from; // outer sources that tunnels are taken from
	size_t n_here, n_from;
};

struct decap_link {
	const char *name, *driver; // driver: "" when unknown
	uint32_t ifindex;
};

struct decap_result {
	enum iface_mode mode;
	bool shared;       // behind libxdp's dispatcher
	bool changed;      // false: it was there, and has been told `end`
	char notice[1024]; // why not native, why not shared; "" when there is nothing to say
};

// The device gets the program, or the one that is there is told `end`: no packet is lost in between.
// AUTO takes native mode, else generic. An interface that carries another program is refused, unless
// libxdp can share it. 0, or -errno with err set and nothing of ours left there that was not before.
int decap_attach(const struct decap_link *link, const struct decap_end *end, enum attach_mode mode,
		 struct decap_result *ret, struct err *err);

// Takes away our program, and only ours. *ret_was_there: it was there.
int decap_detach(uint32_t ifindex, bool *ret_was_there, struct err *err);

struct decap_state {
	bool there;
	bool readable; // of this version of Weir: what follows is filled in
	enum iface_mode mode;
	bool shared;
	uint32_t prog_id;
	uint16_t port;
	bool forward;
	struct prefix *here, *from; // in order
	size_t n_here, n_from;
	struct decap_counter rows[DECAP_ROW_COUNT]; // sums over all CPUs
};
void decap_state_cleanup(struct decap_state *state);
#define CLEANUP_DECAP_STATE CLEANUP(decap_state_cleanup)

// 0 (also when it is not there) or -errno with err set. The lists are the caller's, for decap_state_cleanup.
int decap_query(uint32_t ifindex, struct decap_state *ret, struct err *err);

// What of this host's addresses and prefixes came and went after the program was told; own is in order.
struct decap_change {
	struct prefix *added, *gone;
	size_t n_added, n_gone;
};
struct decap_change decap_changed(const struct decap_state *state, const struct prefix *own,
				  size_t n);
void decap_change_cleanup(struct decap_change *change);
#define CLEANUP_DECAP_CHANGE CLEANUP(decap_change_cleanup)

const char *decap_row_name(enum decap_row row);
const char *decap_row_text(enum decap_row row);
const char *decap_row_effect(enum decap_row row); // "strip", "pass", "drop"

// The program alone, attached nowhere; for tests.
struct decap;
int decap_load(const struct decap_end *end, struct decap **ret, struct err *err);
int decap_program(const struct decap *d); // owned by d
int decap_counts(const struct decap *d, struct decap_counter ret[DECAP_ROW_COUNT], struct err *err);
void decap_free(struct decap *d);
void decap_cleanup(struct decap **d);
#define CLEANUP_DECAP CLEANUP(decap_cleanup)
