// SPDX-License-Identifier: GPL-2.0-only
// Valid output of the datapath: an unchanged packet, or a valid answer.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Judges verdict (XDP_*) and output packet (len_out bytes) for an input frame (len bytes) whose
// decision, in the reference's words, begins with "pass", "drop", "reject" or "redirect". A
// rejected frame is answered if that is allowed, by a TCP reset or an ICMP error with valid
// addresses, lengths and checksums. NULL: valid; else the error.
const char *output_problem(const char *decision, uint32_t verdict, const uint8_t *in, size_t len,
			   const uint8_t *out, size_t len_out);
