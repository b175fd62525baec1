/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of a packet by which rules are looked up in the bit matrix: a line for each, from
 * which every list of fields follows. A field without an accessor for either way of a packet does
 * not compile. */
#pragma once

/* Addresses, X(field): SIDE_field of common/tables.h has their tables. */
#define MATRIX_SIDES(X) X(SOURCE) X(DESTINATION)

/* All others, X(field, room, row, cell, apart), have a table of cells: M_field of common/tables.h.
 *
 * room:  the cells that an index can reach; a power of two where xdp/ masks the index.
 * row:   the accessor of the general way, row(pkt, matrix) in xdp/classify.bpf.h: the number of the
 *        row of any packet.
 * cell:  the accessor of the short way, cell(v, family, p) in xdp/short-match.bpf.h: the index of
 *        the cell of a common packet.
 * apart: the common packets that have a cell, enum matrix_apart. For the others, M_BASE has the
 *        field: `.base` in ctl/table/fields.c.
 *
 * Ports are in network order; one more cell is for packets without a port. */
#define MATRIX_PORTS(X)                                       \
	X(SPORT, 65536 + 1, sport_row, sport_cell, APART_ALL) \
	X(DPORT, 65536 + 1, dport_row, dport_cell, APART_ALL)

/* PROTO: fragment * 256 + proto; fragment: 0 none, 1 first, 2 later: only these satisfy the field
 * `fragment`. L4: POLICY_L4_*, TCP flags or ICMP type and code. VLAN: VID of the outermost tag; 0:
 * untagged or VID 0. IFACE: number of the interface in the policy + 1; 0: the policy does not name
 * it. ETHERTYPE: after all tags. */
#define MATRIX_OTHERS(X)                                      \
	X(PROTO, 1024, proto_row, in_base, APART_NONE)        \
	X(L4, POLICY_L4_COUNT, l4_row, icmp_cell, APART_ICMP) \
	X(VLAN, 4096, vlan_row, vlan_cell, APART_ALL)         \
	X(IFACE, 128, iface_row, iface_cell, APART_ALL)       \
	X(ETHERTYPE, 65536, ethertype_row, in_base, APART_NONE)

/* X(field, …), in the order of their numbers. */
#define MATRIX_CELLS(X)  MATRIX_PORTS(X) MATRIX_OTHERS(X)
#define MATRIX_FIELDS(X) MATRIX_SIDES(X) MATRIX_CELLS(X)

/* Which common packets have a cell? */
enum matrix_apart { APART_NONE, APART_ICMP, APART_ALL };

#define FIELD_NUMBER(field, ...)     FIELD_##field,
#define FIELD_ROOM(field, room, ...) ROOM_##field = (room),

enum policy_field { MATRIX_FIELDS(FIELD_NUMBER) POLICY_FIELDS };

#define POLICY_NO_PORT 65536
#define POLICY_PROTOS  (3 * 256)
#define POLICY_IFACES  65

/* FIELD_L4 is used when some rule has flags or type; where it is not used, neighbour discovery
 * matches no rule. FIELD_ETHERTYPE is used when some rule has it; where not, a frame that is not IP
 * matches no rule. Rules without ethertype have no bit in the rows of ethertypes that are not IP;
 * rules with ethertype have their bit in every row of every other field, except the rows of
 * neighbour discovery.
 *
 * Index into FIELD_L4: TCP flags as in the header; nothing (another protocol, or a later fragment);
 * ICMP and ICMPv6 by type and code; and neighbour discovery (types 133-136, hop limit 255,
 * unfragmented), which satisfies only rules that have `type`. */
#define POLICY_L4_FLAGS     0
#define POLICY_L4_NONE      256
#define POLICY_L4_ICMP      257
#define POLICY_L4_ICMP6     (POLICY_L4_ICMP + 65536)
#define POLICY_L4_NEIGHBOUR (POLICY_L4_ICMP6 + 65536) /* + (type - 133) * 256 + code */
#define POLICY_L4_COUNT     (POLICY_L4_NEIGHBOUR + 4 * 256)

enum matrix_room { MATRIX_CELLS(FIELD_ROOM) };
