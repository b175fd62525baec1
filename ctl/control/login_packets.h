// SPDX-License-Identifier: GPL-2.0-only
// The packets of a login with which test programs are asked, and the MAC addresses that they may
// have.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/control/mac_classes.h"
#include "ctl/control/peer_mac.h"
#include "ctl/net/session.h"
#include "ctl/policy/resolved.h"

#define LOGIN_PACKETS 9

// A packet of an established connection; ports are of TCP and UDP.
struct resolved_packet packet_of_answer(const struct addr *from, uint16_t sport,
					const struct addr *to, uint16_t dport, uint8_t proto);
// One of the packets of a login that is known: of several lengths, from near and far.
struct resolved_packet login_packet(const struct session *s, size_t number);
void packet_set_mac(struct resolved_packet *p, uint64_t mac);

// The MAC addresses with which packets of a host may arrive, as far as the rules distinguish them.
// r NULL: the rules are not known. *ret is empty before.
void packet_macs(const struct peer_mac *from, const struct resolved *r, struct mac_classes *ret);

// The answers about a packet with each MAC address that it may have.
struct mac_answers {
	bool pass, drop;
};
// The answers before any: more classes than are asked may give either, but packets from a tunnel
// have no MAC address.
struct mac_answers packet_no_answers(const struct mac_classes *macs, const struct peer_mac *from);
// Does its MAC address decide? Of packets from a tunnel it does not.
bool packet_mac_decides(const struct mac_answers *a, const struct peer_mac *from);

// The refusals set err and return -EPERM. device: of an attach; NULL: a candidate is asked.
int login_refuse_mac(const struct session *s, const struct peer_mac *from, const char *device,
		     bool quick, struct err *err);
int login_refuse_unknown(const struct session *s, const char *device, struct err *err);
