// SPDX-License-Identifier: GPL-2.0-only
// What may leave the datapath: a packet that is not answered as it came, an answer that is right.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Judges verdict (XDP_*) and packet out (len_out bytes) of a frame in (len bytes) whose decision, in the
// reference's words, begins with "pass", "drop", "reject" or "redirect". A rejected frame that may be
// answered has to be, by a TCP reset or an ICMP error with right addresses, lengths and checksums.
// NULL, or a sentence about what is wrong.
const char *output_problem(const char *decision, uint32_t verdict, const uint8_t *in, size_t len,
			   const uint8_t *out, size_t len_out);
