// SPDX-License-Identifier: GPL-2.0-only
// Builds a small world of nat and fullnat, its frames, and routes to its clients.
#include "tests/datapath/nat_world.h"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/table/ring.h"

static const char policy[] = "default pass\n"
			     "drop from 10.0.0.66\n"
			     "\"noisy\" pass from 10.0.0.77 log 1/s\n"
			     "service near4 { vip 10.0.0.1; proto tcp, udp; port 80, 53\n"
			     "mode nat; connections 1024; backend 10.0.0.3 port 8080 }\n"
			     "service far4 { vip 10.0.0.2; proto tcp, udp; port 80, 53\n"
			     "mode fullnat; source 10.0.0.4; backend 10.0.0.3 port 8080 }\n"
			     "service near6 { vip fd00::1; proto tcp, udp; port 80, 53\n"
			     "mode nat; connections 1024; backend fd00::3 port 8080 }\n"
			     "service far6 { vip fd00::2; proto tcp, udp; port 80, 53\n"
			     "mode fullnat; source fd00::4; backend fd00::3 port 8080 }\n"
			     "service sctp4 { vip 10.0.0.1; proto sctp; port 9\n"
			     "mode nat; connections 1024; backend 10.0.0.3 }\n"
			     "service sctp6 { vip fd00::1; proto sctp; port 9\n"
			     "mode nat; connections 1024; backend fd00::3 }\n";

// ---- the rig ------------------------------------------------------------------------------------

static const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

struct nat_rig *nat_world_new(bool former)
{
	struct nat_rig *r = nat_rig_new(policy, former);

	r->nat->key = ring_flow_key(&key);
	return r;
}

// ---- frames -------------------------------------------------------------------------------------

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

size_t nat_world_frame(const struct nat_names_of_frame *n, uint8_t flags, uint8_t *out)
{
	size_t ip = n->family == 4 ? 20 : 40, width = n->family == 4 ? 4 : 16;
	uint8_t *at = out + 14, *src = at + (n->family == 4 ? 12 : 8);

	memset(out, 0, 14 + 40 + 20);
	memcpy(out, (uint8_t[]){2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2}, 12);
	put16(out + 12, n->family == 4 ? 0x0800 : 0x86dd);
	at[0] = n->family == 4 ? 0x45 : 0x60;
	put16(at + (n->family == 4 ? 2 : 4), n->family == 4 ? 40 : 20);
	at[n->family == 4 ? 8 : 7] = 64;
	at[n->family == 4 ? 9 : 6] = IPPROTO_TCP;
	memcpy(src, n->src, width);
	memcpy(src + width, n->dst, width);
	put16(at + ip, n->sport);
	put16(at + ip + 2, n->dport);
	at[ip + 12] = 0x50;
	at[ip + 13] = flags;
	put16(at + ip + 16, 0x1234);
	return 14 + ip + 20;
}

struct nat_names_of_frame nat_world_read(const uint8_t *frame)
{
	struct nat_names_of_frame n = {.family = frame[14] >> 4};
	size_t ip = n.family == 4 ? 20 : 40, width = n.family == 4 ? 4 : 16;
	const uint8_t *at = frame + 14, *src = at + (n.family == 4 ? 12 : 8);

	memcpy(n.src, src, width);
	memcpy(n.dst, src + width, width);
	n.sport = get16(at + ip);
	n.dport = get16(at + ip + 2);
	return n;
}

struct nat_names_of_frame nat_world_names(uint8_t family, uint8_t src, uint8_t dst)
{
	struct nat_names_of_frame n = {.family = family, .sport = 40000, .dport = 80};

	n.src[0] = n.dst[0] = family == 4 ? 10 : 0xfd;
	n.src[family == 4 ? 3 : 15] = src;
	n.dst[family == 4 ? 3 : 15] = dst;
	return n;
}

struct nat_names_of_frame nat_world_turned(const struct nat_names_of_frame *n)
{
	struct nat_names_of_frame t = {.family = n->family, .sport = n->dport, .dport = n->sport};

	memcpy(t.src, n->dst, sizeof(t.src));
	memcpy(t.dst, n->src, sizeof(t.dst));
	return t;
}

// ---- routes -------------------------------------------------------------------------------------

#define DEVICE "natany0"

static bool forward(const char *family)
{
	char path[64];
	CLEANUP_FD int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/all/forwarding", family);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "1", 1) == 1;
}

uint32_t nat_world_route(void)
{
	if (system("{ ip link add " DEVICE " type veth peer name natany1 && "
		   "ip addr add 10.0.0.77/24 dev " DEVICE " && "
		   "ip addr add fd00::77/64 dev " DEVICE " nodad && "
		   "ip link set " DEVICE " up && ip link set natany1 up && "
		   "ip neigh add 10.0.0.5 lladdr 02:00:00:00:00:55 dev " DEVICE " && "
		   "ip neigh add fd00::5 lladdr 02:00:00:00:00:55 dev " DEVICE "; "
		   "} >/dev/null 2>&1") ||
	    !forward("ipv4") || !forward("ipv6"))
		return 0;
	return if_nametoindex(DEVICE);
}

static void shell(const char *command)
{
	if (system(command))
		exit(2);
}

void nat_world_unroute(void)
{
	shell("ip link del " DEVICE " >/dev/null 2>&1");
}

void nat_world_set_mtu(uint32_t mtu)
{
	char command[64];

	snprintf(command, sizeof(command), "ip link set " DEVICE " mtu %u", mtu);
	shell(command);
}

void nat_world_set_route_mtu(uint32_t mtu)
{
	char command[192];

	snprintf(command, sizeof(command),
		 "ip route add 10.0.0.5/32 dev " DEVICE " mtu lock %u && "
		 "ip route add fd00::5/128 dev " DEVICE " mtu lock %u",
		 mtu, mtu);
	shell(command);
}
