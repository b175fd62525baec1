// SPDX-License-Identifier: GPL-2.0-only
// Reads a test case's packet, written in words, and builds its bytes.
#ifndef REF_PACKET_TEXT_H
#define REF_PACKET_TEXT_H

#include "build.h"
#include "ref.h"

/*
 * PACKET, words in any order:
 *   tcp | udp | sctp | icmp | icmp6 | proto N     from ADDR [PORT]    to ADDR [PORT]
 *   flags NAMES | flags 0xHEX    type N    code N    ttl N    dscp N    length N    on IF
 *   vlan N (again for each tag, outermost first; N@0xTYPE for another tag type)
 *   first | later | atomic    at N (fragment header behind N extension headers)
 *   ext N[+WORDS]    options N    tcpoptions N    ethertype 0xHEX    over    established
 * and then, on the bytes:
 *   pad N    cut N (from the end)    ip OFFSET 0xHEX..    l4 OFFSET 0xHEX..    raw HEX
 * Without these: tcp, ttl 64, flags syn, no payload.
 */
bool packet_text_build(const char *text, struct build_frame *ret_frame,
		       struct ref_packet *ret_packet, char iface[16]);

#endif
