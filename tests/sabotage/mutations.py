# SPDX-License-Identifier: GPL-2.0-only
"""Defects to put into the datapath and its tables: (what, file, old text, new text, test). Each old text is in its file
once. The test, which must fail, is `tables KIND…`, `packets POLICY`, or `reference FIRST COUNT`, seeds of random policies."""

SHORT = "xdp/short.bpf.h"
CLASSIFY = "xdp/classify.bpf.h"
TABLE4, TABLE6, MATRIX = "common/table4.h", "common/table6.h", "common/matrix.h"

MUTATIONS = [
    # The short way: what it reads.
    ("options are common", SHORT, "ip[0] != 0x45 ||", "ip[0] >> 4 != 4 ||", "packets common"),
    ("a first fragment is common", SHORT, "bpf_htons(IP4_MORE | IP4_OFFSET)", "bpf_htons(IP4_OFFSET)", "packets common"),
    ("a later fragment is common", SHORT, "bpf_htons(IP4_MORE | IP4_OFFSET)", "bpf_htons(IP4_MORE)", "packets common"),
    ("TCP's offset below 5", SHORT, "header < (__s32)sizeof(struct tcphdr) || header > size", "header > size", "packets common"),
    ("TCP's offset past the packet", SHORT, "header < (__s32)sizeof(struct tcphdr) || header > size",
     "header < (__s32)sizeof(struct tcphdr)", "packets common"),
    ("UDP's length past the packet", SHORT, "length >= (__s32)sizeof(struct udphdr) && length <= size",
     "length >= (__s32)sizeof(struct udphdr)", "packets common"),
    ("UDP's length below 8", SHORT, "length >= (__s32)sizeof(struct udphdr) && length <= size", "length <= size", "packets common"),
    ("neighbour discovery is common", SHORT, "(family == 6 && l4[0] >= 133 && l4[0] <= 136)", "(family == 6 && l4[0] > 255)",
     "reference 2 4"),
    ("the last type of neighbour discovery", SHORT, "l4[0] <= 136)", "l4[0] <= 135)", "reference 2 8"),
    ("ICMP's code forgotten", SHORT, "return read16(v.ip + header_of(family));", "return read16(v.ip + header_of(family)) & 0xff00;", "reference 2 8"),
    ("ports exchanged", SHORT, "return port_of(v, family, 0);", "return port_of(v, family, 2);", "tables words-1"),
    ("source and destination exchanged", SHORT, "(side == SIDE_SOURCE ? 0", "(side != SIDE_SOURCE ? 0",
     "tables one"),
    ("half of an IPv6 source", SHORT, "read64(at), read64(at + 8), small)", "read64(at), 0, small)", "tables hosts6"),
    ("the tag forgotten", SHORT, "vlan = read16(ip) & tagged;\n\t\tip +=", "vlan = 0 & tagged;\n\t\tip +=", "tables words-1"),
    ("the priority of the tag is its number", SHORT, "vlan = read16(ip) & tagged;\n\t\tip +=", "vlan = (read16(ip) ^ 1) & tagged;\n\t\tip +=", "tables words-1"),
    # The short way: what it decides.
    ("the default of other interfaces", SHORT, "SHIFT_RIGHT(MARKER(MARK_DEFAULT_DROP), class) & 1", "SHIFT_RIGHT(MARKER(MARK_DEFAULT_DROP), 0) & 1", "packets common"),
    ("rules hold on any interface", SHORT, "(!marker_is(MARK_NAMED, 0) && !p.class))", "(!marker_is(MARK_NAMED, 0) && p.class > 99))", "reference 2 4"),
    ("ICMP is never essential", SHORT, "if (is_icmp_view(v))\n\t\treturn true;", "if (is_icmp_view(v))\n\t\treturn false;",
     "packets words"),
    ("DHCP's ports exchanged", SHORT, "ports == (bpf_htons(67) | bpf_htons(68) << 16)",
     "ports == (bpf_htons(68) | bpf_htons(67) << 16)", "reference 2 12"),
    ("the default counts as a rule", SHORT, "{.reason = reason, .counter = EVENT_NO_RULE}", "{.reason = reason, .counter = 0}",
     "tables words-1"),
    ("a rule is not counted", SHORT, "counter_add(bpf_map_lookup_elem(&rulecounters, &index), f.length)", "index++",
     "tables one"),
    ("a packet is counted twice", SHORT, "count_at(number, f.reason, f.length);",
     "count_at(number, f.reason, f.length);\n\tcount_at(number, f.reason, f.length);", "tables one"),
    ("the bytes are one too many", SHORT, "count_at(number, f.reason, f.length);", "count_at(number, f.reason, f.length + 1);",
     "tables one"),
    ("the test program names another rule", SHORT, "test_rule(number * 64 + lowest_bit(word))", "test_rule(lowest_bit(word))",
     "tables words-2"),
    ("actions of the first word alone", SHORT, "place + number * 64", "place + number * 0", "tables words-2"),
    ("one bit of the summary leads to the next word", SHORT, "word_at(m, *ret_number + 1) : 0", "word_at(m, *ret_number) : 0",
     "tables words-2"),
    ("the summary's other bits ignored", SHORT, "if (!(some & (some - 1))) {", "if (some) {", "tables words-64"),
    ("the next row's summary", SHORT, "return word && *ret_number < RULES(M_WORDS) ? word : 0;", "return word;", "tables words-3"),
    ("what passes and asks", "ctl/table/image.c", ": MATRIX_ASK;", ": REASON_PASS_RULE;", "tables asks"),
    # The general way.
    ("general: another first match", CLASSIFY, "(int)(w * 64 + lowest_bit(word))", "(int)(w * 64 + 63)", "tables one"),
    ("general: bits of the first word", CLASSIFY, "match_word(ctx, pkt, matrix_word(m, w + 1)", "match_word(ctx, pkt, matrix_word(m, 1)",
     "tables words-2"),
    ("general: sources on both sides", CLASSIFY, "side == SIDE_SOURCE ? pkt->src : pkt->dst", "pkt->src", "tables ranges"),
    ("general: counted twice", "xdp/act.bpf.h", "counter_add(bpf_map_lookup_elem(&rulecounters, &index), bytes);",
     "counter_add(bpf_map_lookup_elem(&rulecounters, &index), bytes);\n"
     "\tcounter_add(bpf_map_lookup_elem(&rulecounters, &index), bytes);", "tables one"),
    # Tables of both ways.
    ("a range without its last address", TABLE4, "<= (__u32)T4_NUMBER(T4_SPAN)", "< (__u32)T4_NUMBER(T4_SPAN)", "tables one"),
    ("a host's overflow ignored", TABLE4, "if (!T4_IS(H4_NONE, 0) && !overflow)", "if (!T4_IS(H4_NONE, 0))", "tables hosts-overflow"),
    ("the table behind hosts ignored", TABLE4, "if (!T4_IS(H4_NONE, 0) && !overflow)", "if (!overflow)", "tables hosts-mixed"),
    ("a bit of the wrong /24", TABLE4, "__u64 bit = addr >> 8 & 63", "__u64 bit = addr >> 9 & 63", "tables bits"),
    ("leaves counted with the own one", TABLE4, "n->mixed & ~(~0ull << bit)", "n->mixed & ~(~0ull << bit << 1)", "tables bits"),
    ("the last byte of a cell's address", TABLE4, "table4_cell(v, side, e, addr, leaf)", "table4_cell(v, side, e, addr >> 1, leaf)",
     "tables cells"),
    ("the second line ignored", TABLE6, "if (row || !table6_is_elsewhere(line->elsewhere, hash))", "if (row || hash)", "tables hosts6"),
    ("half of an IPv6 host", TABLE6, "line->key[place][0] != hi || line->key[place][1] != lo", "line->key[place][0] != hi",
     "tables hosts6"),
    ("an IPv6 node's first key alone", TABLE6, "if (SHIFT_RIGHT(x, TABLE6_FIELD(shift))) {", "if (x) {", "tables nodes6"),
    ("an IPv6 node stays in the high word", TABLE6, "key = x = BOUND_FREE(lo);", "key = x = BOUND_FREE(hi);", "tables nodes6"),
    ("cells of two bytes read as one", MATRIX, "if (TABLE_IS(v, MATRIX_CONSTANT(matrix, M_CELL), 1))", "if (!TABLE_IS(v, MATRIX_CONSTANT(matrix, M_CELL), 4))", "tables words-9"),
    ("bits of hosts end early", "ctl/table/table4_bits.c", "w == (last >> 6 & 3) ? last & 63 : 63);", "last & 63);", "tables bits"),
    ("ports in host order", "ctl/table/matrix.c", "is_port(field) && index < MATRIX_PORTS ?", "is_port(field) && index < 1 ?",
     "tables words-1"),
    ("no summary", "ctl/table/matrix.c", "(uint64_t) !!word << w", "(uint64_t) !!word << 0", "tables words-2"),
]
