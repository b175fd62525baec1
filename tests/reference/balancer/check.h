// SPDX-License-Identifier: GPL-2.0-only
// Checks the decisions of the model: active flows must keep their backend, slots must become
// stable.
#ifndef REF_CHECK_H
#define REF_CHECK_H

#include "model.h"

/*
 * It has records of its own about flows, in jiffies and by the whole tuple; from the model it takes
 * decisions only. A flow must not move if it sent a packet within each idle of its protocol, the
 * packet does not open, and its backend was not down since the flow got it. Moves of flows whose
 * pin was pushed out, was not stored or was taken by a flow of the same place and 32 bits are
 * counted separately; UDP with `udp move` is ignored. A slot that last changed longer ago than the
 * hold must be stable after tidying, unless a pin written within the idle names another backend.
 *
 * A flow that has closed continues for 60 s. A packet that opens where there was no flow, or one
 * that closed, or one that is silent for longer than 60 s at a backend that gets no new flows, must
 * go to the owner of its slot.
 */
struct check;

struct check *check_new(const struct model *model);
void check_free(struct check *check);

/* Before the model changes. */
void check_state(struct check *check, uint16_t id, enum backend_state state);
/* After a ring; all: every slot counts as changed. */
void check_ring(struct check *check, bool all);
void check_tidied(struct check *check, unsigned long line);
void check_packet(struct check *check, const struct flow *flow, enum event event,
		  const struct decision *decision, unsigned long line);

/* Prints the counters; false: a check failed. */
bool check_report(const struct check *check);

#endif
