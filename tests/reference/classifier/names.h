// SPDX-License-Identifier: GPL-2.0-only
// The words of the language that stand for numbers.
#ifndef REF_NAMES_H
#define REF_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define PROTO_ICMP  1
#define PROTO_TCP   6
#define PROTO_UDP   17
#define PROTO_ICMP6 58
#define PROTO_SCTP  132

#define FLAG_FIN 0x01
#define FLAG_SYN 0x02
#define FLAG_RST 0x04
#define FLAG_PSH 0x08
#define FLAG_ACK 0x10
#define FLAG_URG 0x20

#define ETHERTYPE_IP4         0x0800
#define ETHERTYPE_ARP_REQUEST 0x0806
#define ETHERTYPE_IP6         0x86dd

/* An ICMP name and its number in each family, -1 where the family does not know it. */
struct icmp_name {
	const char *name;
	int v4;
	int v6;
};

/* By name; NULL: there is no such type. */
const struct icmp_name *name_icmp(const char *name);

/* The number, or -1. */
int name_proto(const char *name);
int name_flag(const char *name, unsigned int len);
int name_dscp(const char *name);

/* One or two ethertypes; the count, 0 for an unknown name. */
int name_ethertype(const char *name, uint16_t ret_types[2]);

/* The port of a service in /etc/services for "tcp", "udp" or "sctp", or -1. */
int name_service(const char *name, const char *proto);

#endif
