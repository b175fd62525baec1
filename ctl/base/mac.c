// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes MAC addresses digit by digit.
#include "ctl/base/mac.h"

#include <errno.h>
#include <stdio.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int mac_parse(const char *text, size_t len, uint64_t *ret)
{
	uint64_t mac = 0;

	if (len != sizeof(mac_text) - 1)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (i % 3 == 2 ? text[i] != ':' : digit(text[i]) < 0)
			return -EINVAL;
		if (i % 3 != 2)
			mac = mac << 4 | (uint64_t)digit(text[i]);
	}
	*ret = mac;
	return 0;
}

uint64_t mac_of_bytes(const uint8_t bytes[6])
{
	uint64_t mac = 0;

	for (int i = 0; i < 6; i++)
		mac = mac << 8 | bytes[i];
	return mac;
}

const char *mac_format(uint64_t mac, mac_text buf)
{
	snprintf(buf, sizeof(mac_text), "%02x:%02x:%02x:%02x:%02x:%02x",
		 (unsigned)(mac >> 40 & 255), (unsigned)(mac >> 32 & 255),
		 (unsigned)(mac >> 24 & 255), (unsigned)(mac >> 16 & 255),
		 (unsigned)(mac >> 8 & 255), (unsigned)(mac & 255));
	return buf;
}

bool mac_is_shared(uint64_t mac)
{
	static const uint64_t ranges[][2] = {
		{0x00005e000100, 0x00005e0002ff}, // VRRP of IPv4 and IPv6: RFC 9568, 7.3; CARP
		{0x00000c07ac00, 0x00000c07acff}, // HSRP
		{0x00000c9ff000, 0x00000c9fffff}, // HSRP, version 2
		{0x000573a00000, 0x000573a00fff}, // HSRP of IPv6
		{0x0007b4000000, 0x0007b40fffff}, // GLBP
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (mac >= ranges[i][0] && mac <= ranges[i][1])
			return true;
	return false;
}
