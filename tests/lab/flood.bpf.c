// SPDX-License-Identifier: GPL-2.0-only
// Passes the TCP packet FRAME, over IPv4, with a random unused source and port to the program of
// the interface, as if the driver had received it. Run with live frames, this is a flood.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define NETWORK 0x0b000000 // 11.0.0.0/8
#define TOS     0x28       // FRAME has it, also after fullnat has translated its source

struct packet {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} attached SEC(".maps");

static const unsigned char frame[sizeof(struct packet)] = {FRAME}; // its source and port are 0

static __always_inline __u16 add(__u16 check, __u32 sum)
{
	sum += (__u16)~check;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

// The page may have been sent before and changed since.
SEC("xdp") int flood(struct xdp_md *ctx)
{
	struct packet *p = (void *)(long)ctx->data;
	__u32 source = bpf_htonl(NETWORK | bpf_get_prandom_u32() >> 8);
	__u32 sum = (source & 0xffff) + (source >> 16);
	__u16 port = (__u16)bpf_get_prandom_u32();

	if ((void *)(p + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__builtin_memcpy(p, frame, sizeof(*p));
	p->ip.saddr = source;
	p->ip.check = add(p->ip.check, sum);
	p->tcp.source = port;
	p->tcp.check = add(p->tcp.check, sum + port);
	bpf_tail_call(ctx, &attached, 0);
	return XDP_ABORTED;
}

// On the path from the balancer: drops the flood, so that only the balancer handles it.
SEC("xdp.frags") int shield(struct xdp_md *ctx)
{
	struct packet *p = (void *)(long)ctx->data;

	if ((void *)(p + 1) > (void *)(long)ctx->data_end || p->eth.h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	return p->ip.tos == TOS ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
