/* SPDX-License-Identifier: GPL-2.0-only */
/* Where the fields of headers lie, written down once for both models: C includes this, layout.py
 * reads it. */
#ifndef REFERENCE_LAYOUT_H
#define REFERENCE_LAYOUT_H

/*
 * FIELD(header, name, first byte, bytes), without a gap from the first to the last of the fixed
 * part. The names say what the documents say: RFC 791, 8200, 9293, 768, 9260, 792, 4443, IEEE
 * 802.1Q.
 */
#define LAYOUT(FIELD)                                                                        \
	FIELD(ETHER, TO, 0, 6)                                                               \
	FIELD(ETHER, FROM, 6, 6)                                                             \
	FIELD(ETHER, TYPE, 12, 2)                                                            \
	FIELD(TAG, TCI, 0, 2)                                                                \
	FIELD(TAG, TYPE, 2, 2)                                                               \
	FIELD(IP4, VERSION, 0, 1) /* and the header's length in words of 4 bytes */          \
	FIELD(IP4, TOS, 1, 1)                                                                \
	FIELD(IP4, LENGTH, 2, 2)                                                             \
	FIELD(IP4, ID, 4, 2)                                                                 \
	FIELD(IP4, FRAGMENT, 6, 2)                                                           \
	FIELD(IP4, TTL, 8, 1)                                                                \
	FIELD(IP4, PROTO, 9, 1)                                                              \
	FIELD(IP4, SUM, 10, 2)                                                               \
	FIELD(IP4, FROM, 12, 4)                                                              \
	FIELD(IP4, TO, 16, 4)                                                                \
	FIELD(IP6, VERSION, 0, 2) /* and the traffic class */                                \
	FIELD(IP6, FLOW, 2, 2)                                                               \
	FIELD(IP6, LENGTH, 4, 2)                                                             \
	FIELD(IP6, NEXT, 6, 1)                                                               \
	FIELD(IP6, HOPS, 7, 1)                                                               \
	FIELD(IP6, FROM, 8, 16)                                                              \
	FIELD(IP6, TO, 24, 16)                                                               \
	FIELD(EXT, NEXT, 0, 1)                                                               \
	FIELD(EXT, LENGTH, 1, 1) /* in units of 8 bytes, without the first */                \
	FIELD(EXT, OPTION, 2, 1) /* the first option's type; of a routing header the type */ \
	FIELD(EXT, OPTION_LENGTH, 3, 1) /* in a routing header, the segments left */         \
	FIELD(EXT, REST, 4, 4)                                                               \
	FIELD(FRAGMENT, NEXT, 0, 1)                                                          \
	FIELD(FRAGMENT, RESERVED, 1, 1)                                                      \
	FIELD(FRAGMENT, OFFSET, 2, 2)                                                        \
	FIELD(FRAGMENT, ID, 4, 4)                                                            \
	FIELD(TCP, SPORT, 0, 2)                                                              \
	FIELD(TCP, DPORT, 2, 2)                                                              \
	FIELD(TCP, SEQ, 4, 4)                                                                \
	FIELD(TCP, ACK, 8, 4)                                                                \
	FIELD(TCP, OFFSET, 12, 1) /* in the upper four bits, in words of 4 bytes */          \
	FIELD(TCP, FLAGS, 13, 1)                                                             \
	FIELD(TCP, WINDOW, 14, 2)                                                            \
	FIELD(TCP, SUM, 16, 2)                                                               \
	FIELD(TCP, URGENT, 18, 2)                                                            \
	FIELD(UDP, SPORT, 0, 2)                                                              \
	FIELD(UDP, DPORT, 2, 2)                                                              \
	FIELD(UDP, LENGTH, 4, 2)                                                             \
	FIELD(UDP, SUM, 6, 2)                                                                \
	FIELD(SCTP, SPORT, 0, 2)                                                             \
	FIELD(SCTP, DPORT, 2, 2)                                                             \
	FIELD(SCTP, TAG, 4, 4)                                                               \
	FIELD(SCTP, SUM, 8, 4)                                                               \
	FIELD(CHUNK, TYPE, 0, 1) /* the first after an SCTP header */                        \
	FIELD(CHUNK, FLAGS, 1, 1)                                                            \
	FIELD(CHUNK, LENGTH, 2, 2)                                                           \
	FIELD(ICMP, TYPE, 0, 1)                                                              \
	FIELD(ICMP, CODE, 1, 1)                                                              \
	FIELD(ICMP, SUM, 2, 2)                                                               \
	FIELD(ICMP, REST, 4, 4)

enum {
#define FIELD(header, name, at, bytes) header##_##name = at,
	LAYOUT(FIELD)
#undef FIELD
};

/* The bytes of each header's fixed part: its fields end there. */
#define FIELD(header, name, at, bytes) header##_##name##_END = (at) + (bytes),
enum { LAYOUT(FIELD) };
#undef FIELD

enum {
	ETHER_BYTES = ETHER_TYPE_END,
	TAG_BYTES = TAG_TYPE_END,
	IP4_BYTES = IP4_TO_END,
	IP6_BYTES = IP6_TO_END,
	EXT_BYTES = EXT_REST_END,
	FRAGMENT_BYTES = FRAGMENT_ID_END,
	TCP_BYTES = TCP_URGENT_END,
	UDP_BYTES = UDP_SUM_END,
	SCTP_BYTES = SCTP_SUM_END,
	CHUNK_BYTES = CHUNK_LENGTH_END,
	ICMP_BYTES = ICMP_REST_END,
};

#endif
