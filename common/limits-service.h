/* SPDX-License-Identifier: GPL-2.0-only */
/* Bounds of the balancer's state, each with its reason.
 *
 * The bounds of the text of a policy are in limits-policy.h. */
#pragma once

/* 14 bits in slots and pins; 0 is no backend. One number for a backend of one service, never given
 * again while a slot or a living pin names it. */
#define SERVICE_BACKEND_BITS 14
#define SERVICE_BACKENDS     16384

#define SERVICE_PIN_WORDS 8 /* a bucket is one cache line */

/* Slots count time in ticks of 16 jiffies: 36 bits last 34 years at 1000 Hz. */
#define SERVICE_SLOT_SHIFT 4
/* Ticks of 1 to 2 s, independent of HZ, last 18 hours in the 16 bits of a pin. At most half is
 * used, so that an old time is not soon mistaken for a new one. */
#define SERVICE_IDLE_MAX_MS (8u * 3600 * 1000)
/* How long a closed flow is remembered, and how long a flow must be silent before the next SYN
 * takes it from a backend that gets no new flows: as long as the other end may wait (TIME-WAIT of
 * Linux). */
#define SERVICE_LINGER_S 60
/* A pin of the future: another CPU's clock may be a tick ahead of what this one has just read. */
#define SERVICE_PIN_AHEAD 16

/* How long a router's report of a path MTU is valid: RFC 8201 section 4 has ten minutes, and so has
 * the kernel. */
#define SERVICE_PATH_S 600
/* A single notice is ignored if it leaves less than this inside a tunnel: IPv6 has no smaller
 * packets to make (RFC 8200 section 5), and QUIC needs 1,200 bytes in UDP (RFC 9000 section 14). */
#define SERVICE_INNER_MIN 1280
/* Less is ignored, however many routers report it: every host takes 576 bytes (RFC 791 section
 * 3.1), every link of IPv6 1280 (RFC 8200 section 5). */
#define SERVICE_PATH_MIN4 576
#define SERVICE_PATH_MIN6 1280
/* A client is never told a smaller MTU, however long the headers before its packet are: Linux does
 * not send shorter packets (its min_pmtu, and RFC 8201 section 4). */
#define SERVICE_CLIENT_MIN4 552
#define SERVICE_CLIENT_MIN6 1280
/* A quote too short to tell the service speaks of a backend in so many services at most. */
#define SERVICE_SAME_MAX 64

#define SERVICE_HOLD_MAX 16 /* how far an ACK flood can stretch a transition */
/* `check` warns of a worse share: parts of a million. */
#define SERVICE_SHARE_WARN 20000
