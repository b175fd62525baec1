/* SPDX-License-Identifier: GPL-2.0-only */
/* Bounds of the balancer's state, each with its reason; limits-policy.h has those of the text. */
#pragma once

/* 14 bits in slots and pins; 0 is no backend. One number for a backend of one service, never given
 * again while a slot or a living pin names it. */
#define SERVICE_BACKEND_BITS 14
#define SERVICE_BACKENDS     16384

#define SERVICE_PIN_WORDS 8 /* a bucket is one line of the cache */

/* Slots count time in ticks of 16 jiffies: 36 bits of them are 34 years at 1000 Hz. */
#define SERVICE_SLOT_SHIFT 4
/* Ticks of 1 to 2 s, whatever HZ is, last 18 hours in the 16 bits of a pin. Half of it is left, so that
 * an old time cannot be mistaken for a new one soon. */
#define SERVICE_IDLE_MAX_MS (8u * 3600 * 1000)
/* How long a flow is remembered that its client has closed, and how long one has to be silent until its backend,
 * if that gets no new flows, loses it to the next SYN: as long as the other end may wait (TIME-WAIT of Linux). */
#define SERVICE_LINGER_S 60
/* A pin of the future: another CPU's clock may be a tick ahead of what this one has just read. */
#define SERVICE_PIN_AHEAD 16

#define SERVICE_HOLD_MAX 16 /* how far an ACK flood can stretch a transition */
/* `check` warns of a worse share: parts of a million. */
#define SERVICE_SHARE_WARN 20000
