// SPDX-License-Identifier: GPL-2.0-only
// Packets, each with another source address (draw.bpf.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/addr.h"
#include "tests/bench/draw.bpf.h"

struct draw;

struct draw_options {
	uint8_t family;
	bool vlan;      // one tag, 7
	bool flood;     // every packet from a new IPv4 address; no list of sources
	uint8_t spread; // for a flood: number of random bits in the address, 0: all
	bool ack;       // TCP ACK instead of SYN
	bool sent;      // the target sends the frame back; it is restored before the next run; IPv4
	uint8_t grow;   // bytes by which the target moves the head
	const struct addr *sources;    // BENCH_SOURCES elements
	uint32_t ifindex;              // output device; 0: jump into the target
	const struct bench_head *head; // other headers than below, IPv4; NULL: none
};

// TCP to 198.18.0.1 or 2001:db8::1, port 40000 to 80. Ends the bench on failure.
struct draw *draw_new(const struct draw_options *o);
void draw_free(struct draw *d);
// The options, for the baseline: it drops, or moves the head by the same amount and sends the frame
// back.
const struct draw_options *draw_what(const struct draw *d);
// From now on, BENCH_IDLE instructions that do nothing lie between two packets, or none.
void draw_space(struct draw *d, bool spaced);
// The program that the packets jump into.
void draw_target(struct draw *d, int program);
// The n-th packet as the target gets it. Returns its length; *ret_frame is valid until the next
// call.
size_t draw_packet(struct draw *d, size_t n, const uint8_t **ret_frame);
// Runs n packets. Stores the verdict of the last one in *ret_verdict (may be NULL). Returns the
// total CPU time.
uint64_t draw_run(const struct draw *d, uint32_t n, uint32_t *ret_verdict);
// Runs one packet. *ret: its headers as the target leaves them.
void draw_result(const struct draw *d, struct bench_head *ret);
// Sends n packets as live frames. Returns the total wall clock time.
uint64_t draw_send(const struct draw *d, uint32_t n);
