// SPDX-License-Identifier: GPL-2.0-only
// Watches what the model decides: flows that speak must stay, slots must become stable.
#ifndef REF_CHECK_H
#define REF_CHECK_H

#include "model.h"

/*
 * Its own books of flows, in jiffies and by the whole tuple; of the model it believes decisions
 * only. A flow that has spoken within each idle of its protocol, whose packet does not open and
 * whose backend was not down since it came there must not move. Moves of flows whose pin was pushed
 * out, was not stored or was taken by a flow of the same place and 32 bits are counted apart, and
 * UDP with `udp move` is left out. A slot that last changed longer ago than the hold must be stable
 * after tidying, unless a pin written within the idle names another backend.
 *
 * A flow that has closed goes on for 60 s. A packet that opens where there was no flow, or one that closed, or
 * one that is silent for longer than 60 s at a backend that gets no new flows, must go to the owner of its slot.
 */
struct check;

struct check *check_new(const struct model *model);
void check_free(struct check *check);

/* Before the model is told. */
void check_state(struct check *check, uint16_t id, enum backend_state state);
/* After a ring; all: take every slot as changed. */
void check_ring(struct check *check, bool all);
void check_tidied(struct check *check, unsigned long line);
void check_packet(struct check *check, const struct flow *flow, enum event event,
		  const struct decision *decision, unsigned long line);

/* Prints what was counted; whether all is as it must be. */
bool check_report(const struct check *check);

#endif
