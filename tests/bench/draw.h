// SPDX-License-Identifier: GPL-2.0-only
// Packets whose source address is another one each time (draw.bpf.c).
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
	bool flood;     // every packet from an IPv4 address not seen before; no sources
	uint8_t spread; // of a flood: bits of the address that differ, 0: all
	bool ack;       // TCP that goes on, in place of a SYN
	bool sent; // the target sends the frame back, which is restored before the next one; IPv4
	uint8_t grow;               // the target moves the head by so many bytes
	const struct addr *sources; // BENCH_SOURCES of them
	uint32_t ifindex;           // send out of this device; 0: jump into the target
};

// TCP to 198.18.0.1 or 2001:db8::1, port 40000 to 80. Ends the bench when the kernel refuses.
struct draw *draw_new(const struct draw_options *o);
void draw_free(struct draw *d);
// What the target is compared with: drops, or moves the head as much and sends the frame back.
const struct draw_options *draw_what(const struct draw *d);
// The program that the packets jump into.
void draw_target(struct draw *d, int program);
// Runs n packets; verdict of the last one in *ret_verdict (may be NULL). CPU time of it all.
uint64_t draw_run(const struct draw *d, uint32_t n, uint32_t *ret_verdict);
// Sends n packets as live frames. Wall clock time of it all.
uint64_t draw_send(const struct draw *d, uint32_t n);
