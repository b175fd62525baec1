// SPDX-License-Identifier: GPL-2.0-only
// The words of the language that stand for numbers.
#include "names.h"

#include <stdio.h>
#include <string.h>

#include "addr.h"

/* IANA's names in lower case. */
static const struct icmp_name icmp_names[] = {
	{"echo-request", 8, 128},
	{"echo-reply", 0, 129},
	{"destination-unreachable", 3, 1},
	{"unreachable", 3, 1},
	{"packet-too-big", -1, 2},
	{"time-exceeded", 11, 3},
	{"parameter-problem", 12, 4},
	{"redirect", 5, 137},
	{"source-quench", 4, -1},
	{"router-solicitation", 10, 133},
	{"router-advertisement", 9, 134},
	{"neighbor-solicitation", -1, 135},
	{"neighbour-solicitation", -1, 135},
	{"neighbor-advertisement", -1, 136},
	{"neighbour-advertisement", -1, 136},
	{"timestamp-request", 13, -1},
	{"timestamp-reply", 14, -1},
};

struct named {
	const char *name;
	int number;
};

static const struct named protos[] = {
	{"tcp", 6},   {"udp", 17},   {"icmp", 1},      {"icmp6", 58}, {"sctp", 132}, {"gre", 47},
	{"esp", 50},  {"ah", 51},    {"igmp", 2},      {"ipip", 4},   {"ip6", 41},   {"ospf", 89},
	{"pim", 103}, {"vrrp", 112}, {"udplite", 136}, {"dccp", 33},
};

static const struct named flag_names[] = {
	{"fin", 0x01}, {"syn", 0x02}, {"rst", 0x04}, {"psh", 0x08},
	{"ack", 0x10}, {"urg", 0x20}, {"ece", 0x40}, {"cwr", 0x80},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const struct icmp_name *name_icmp(const char *name)
{
	for (unsigned int i = 0; i < COUNT(icmp_names); i++) {
		if (!strcmp(icmp_names[i].name, name))
			return &icmp_names[i];
	}
	return NULL;
}

int name_proto(const char *name)
{
	uint64_t number;

	for (unsigned int i = 0; i < COUNT(protos); i++) {
		if (!strcmp(protos[i].name, name))
			return protos[i].number;
	}
	return number_parse(name, strlen(name), 255, &number) ? (int)number : -1;
}

int name_flag(const char *name, unsigned int len)
{
	for (unsigned int i = 0; i < COUNT(flag_names); i++) {
		if (strlen(flag_names[i].name) == len && !memcmp(flag_names[i].name, name, len))
			return flag_names[i].number;
	}
	return -1;
}

int name_dscp(const char *name)
{
	size_t len = strlen(name);
	uint64_t number;

	if (!strcmp(name, "ef"))
		return 46;
	if (len == 3 && !memcmp(name, "cs", 2) && name[2] >= '0' && name[2] <= '7')
		return 8 * (name[2] - '0');
	if (len == 4 && !memcmp(name, "af", 2) && name[2] >= '1' && name[2] <= '4' &&
	    name[3] >= '1' && name[3] <= '3')
		return 8 * (name[2] - '0') + 2 * (name[3] - '0');
	return number_parse(name, len, 63, &number) ? (int)number : -1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int hex_ethertype(const char *name)
{
	size_t len = strlen(name);
	int number = 0;

	if (len < 3 || len > 6 || memcmp(name, "0x", 2) != 0)
		return -1;
	for (size_t i = 2; i < len; i++) {
		if (hex_digit(name[i]) < 0)
			return -1;
		number = number * 16 + hex_digit(name[i]);
	}
	return number;
}

int name_ethertype(const char *name, uint16_t ret_types[2])
{
	static const struct {
		const char *name;
		uint16_t types[2];
	} table[] = {
		{"arp", {0x0806, 0}},  {"lldp", {0x88cc, 0}},      {"eapol", {0x888e, 0}},
		{"ipv4", {0x0800, 0}}, {"mpls", {0x8847, 0x8848}}, {"pppoe", {0x8863, 0x8864}},
		{"ipv6", {0x86dd, 0}},
	};
	int number = hex_ethertype(name);

	for (unsigned int i = 0; i < COUNT(table); i++) {
		if (strcmp(table[i].name, name) != 0)
			continue;
		ret_types[0] = table[i].types[0];
		ret_types[1] = table[i].types[1];
		return ret_types[1] ? 2 : 1;
	}
	if (number < 0)
		return 0;
	ret_types[0] = (uint16_t)number;
	return 1;
}

/* Is the name the first word of the line, or an alias after the port? */
static int service_line(char *line, const char *name, const char *proto)
{
	char *save = NULL;
	char *word, *port, *slash;
	bool found;
	uint64_t number;

	line[strcspn(line, "#\n")] = '\0';
	word = strtok_r(line, " \t", &save);
	port = word ? strtok_r(NULL, " \t", &save) : NULL;
	if (!port)
		return -1;
	slash = strchr(port, '/');
	if (!slash || strcmp(slash + 1, proto) != 0)
		return -1;
	if (!number_parse(port, (size_t)(slash - port), 65535, &number))
		return -1;
	found = !strcmp(word, name);
	while (!found && (word = strtok_r(NULL, " \t", &save)))
		found = !strcmp(word, name);
	return found ? (int)number : -1;
}

int name_service(const char *name, const char *proto)
{
	FILE *file = fopen("/etc/services", "re");
	char line[1024];
	int port = -1;

	if (!file)
		return -1;
	while (port < 0 && fgets(line, sizeof(line), file))
		port = service_line(line, name, proto);
	fclose(file);
	return port;
}
