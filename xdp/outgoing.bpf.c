// SPDX-License-Identifier: GPL-2.0-only
// Makes connect() and sendmsg() to the addresses of `weir block --out` fail.
//
// The programs are attached to the root of cgroup 2 and run for the TCP and UDP sockets of all
// processes and of the kernel (NFS), in the process that calls. XDP sees no packets that leave, and
// a program at the egress could only drop them, so that the caller would wait for its timeout.
//
// Entries are in tries: calls are a few thousand a second at most. The kind of an entry, with its
// error and namespaces, is part of the key. They follow the epoch of all entries, so one commit
// also covers the answers.
#include <linux/bpf.h>
#include <linux/errno.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/abi.h"
#include "common/config.h"
#include "common/event.h"
#include "common/overlay.h"
#include "xdp/lpm.bpf.h"

#define REFUSE 0 /* with EPERM, unless the program sets another error */
#define PERMIT 1

/* The maps keep their content when they are reused. */
struct knobs knobs SEC(".data.knobs");

struct {
	LPM_MAP(struct overlay_net4_key, struct overlay_net);
	__uint(max_entries, WEIR_OVERLAY_MAX);
} out4 SEC(".maps");

struct {
	LPM_MAP(struct overlay_net6_key, struct overlay_net);
	__uint(max_entries, WEIR_OVERLAY_MAX);
} out6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WEIR_EVENTS_BYTES);
} events SEC(".maps");

const volatile __u64 home; /* cookie of the network namespace of the instance */

/* The address of the call, in network order; IPv4 in the first word. */
struct target {
	__u32 addr[4];
	__u8 family;
};

/* The entry that decides, and its kind. */
struct found {
	struct overlay_net *net;
	__u32 kind;
};

static __always_inline struct overlay_net *around(const struct target *t, __u32 kind)
{
	struct overlay_net4_key key4 = {.prefixlen = OVERLAY_NET_KIND_BITS + 32, .kind = kind};
	struct overlay_net6_key key6 = {.prefixlen = OVERLAY_NET_KIND_BITS + 128, .kind = kind};

	if (t->family == 4) {
		__builtin_memcpy(key4.addr, t->addr, sizeof(key4.addr));
		return bpf_map_lookup_elem(&out4, &key4);
	}
	__builtin_memcpy(key6.addr, t->addr, sizeof(key6.addr));
	return bpf_map_lookup_elem(&out6, &key6);
}

/* Is an entry of this kind active for the address? */
static __always_inline bool decides(const struct target *t, __u32 want, __u32 kind, __u64 epoch,
				    struct found *ret)
{
	struct overlay_net *net = want & OVERLAY_OUT(kind) ? around(t, kind) : NULL;

	if (!net || bpf_jiffies64() >= overlay_net_until(net, epoch))
		return false;
	*ret = (struct found){.net = net, .kind = kind};
	return true;
}

#define HERE_ONLY                                                                  \
	(OVERLAY_OUT(OVERLAY_BLOCK_OUT) | OVERLAY_OUT(OVERLAY_BLOCK_OUT_REFUSED) | \
	 OVERLAY_OUT(OVERLAY_BLOCK_OUT_UNREACHABLE))
#define BLOCKS                                            \
	(HERE_ONLY | OVERLAY_OUT(OVERLAY_BLOCK_OUT_ALL) | \
	 OVERLAY_OUT(OVERLAY_BLOCK_OUT_ALL_REFUSED) |     \
	 OVERLAY_OUT(OVERLAY_BLOCK_OUT_ALL_UNREACHABLE))

/* Any allow entry beats any block entry. Most calls meet neither: a block is looked up first. */
static __always_inline bool decide(const struct target *t, __u32 want, __u64 epoch,
				   struct found *ret)
{
	struct found allow = {};

	if (!decides(t, want, OVERLAY_BLOCK_OUT, epoch, ret) &&
	    !decides(t, want, OVERLAY_BLOCK_OUT_REFUSED, epoch, ret) &&
	    !decides(t, want, OVERLAY_BLOCK_OUT_UNREACHABLE, epoch, ret) &&
	    !decides(t, want, OVERLAY_BLOCK_OUT_ALL, epoch, ret) &&
	    !decides(t, want, OVERLAY_BLOCK_OUT_ALL_REFUSED, epoch, ret) &&
	    !decides(t, want, OVERLAY_BLOCK_OUT_ALL_UNREACHABLE, epoch, ret))
		return false;
	if (decides(t, want, OVERLAY_ALLOW_OUT, epoch, &allow))
		*ret = allow;
	return true;
}

/* Earlier reads precede later ones: a value-returning atomic operation is a full barrier, and a
 * call is rare enough for one. */
static __always_inline void barrier_reads(void)
{
	volatile __u64 word = 0;

	__sync_lock_test_and_set(&word, 1);
}

static __always_inline void tell(const struct bpf_sock_addr *ctx, const struct target *t,
				 __u32 kind)
{
	struct event_out *event;

	if (!knobs.watch_out || bpf_jiffies64() >= knobs.watch_out)
		return;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return;
	event->time_ns = bpf_ktime_get_ns();
	event->netns_cookie = bpf_get_netns_cookie((void *)ctx);
	event->pid = bpf_get_current_pid_tgid() >> 32;
	event->uid = (__u32)bpf_get_current_uid_gid();
	__builtin_memcpy(event->addr, t->addr, sizeof(event->addr));
	event->port = bpf_ntohs((__u16)ctx->user_port);
	event->family = t->family;
	event->proto = (__u8)ctx->protocol;
	event->kind = kind;
	bpf_get_current_comm(event->command, sizeof(event->command));
	bpf_ringbuf_submit(event, 0);
}

static __always_inline int refuse(__u32 kind)
{
	if (kind == OVERLAY_BLOCK_OUT_REFUSED || kind == OVERLAY_BLOCK_OUT_ALL_REFUSED)
		bpf_set_retval(-ECONNREFUSED);
	if (kind == OVERLAY_BLOCK_OUT_UNREACHABLE || kind == OVERLAY_BLOCK_OUT_ALL_UNREACHABLE)
		bpf_set_retval(-EHOSTUNREACH);
	return REFUSE;
}

/* The kinds are read after the epoch: a commit sets the bit of a new kind before it. */
static __always_inline bool look(struct bpf_sock_addr *ctx, const struct target *t, __u64 epoch,
				 struct found *ret)
{
	__u32 want = *(volatile __u32 *)&knobs.overlay;

	if (!(want & BLOCKS))
		return false;
	if (bpf_get_netns_cookie(ctx) != home)
		want &= ~HERE_ONLY;
	return decide(t, want, epoch, ret);
}

/* As in the overlay: one reading of the epoch decides the whole call. */
static __always_inline int judge(struct bpf_sock_addr *ctx, const struct target *t)
{
	__u64 epoch = *(volatile __u64 *)&knobs.epoch, again;
	struct found found = {};
	bool hit;

	barrier_reads();
	hit = look(ctx, t, epoch, &found);
	barrier_reads();
	again = *(volatile __u64 *)&knobs.epoch;
	if (again != epoch) {
		barrier_reads();
		hit = look(ctx, t, again, &found);
	}
	if (!hit || !found.net)
		return PERMIT;
	__sync_fetch_and_add(&found.net->hits.packets, 1);
	found.net->seen = bpf_jiffies64();
	if (found.kind == OVERLAY_ALLOW_OUT)
		return PERMIT;
	tell(ctx, t, found.kind);
	return refuse(found.kind);
}

static __always_inline int judge4(struct bpf_sock_addr *ctx)
{
	struct target t = {.addr = {ctx->user_ip4}, .family = 4};

	return judge(ctx, &t);
}

/* A socket of IPv6 reaches IPv4 by ::ffff:a.b.c.d. */
static __always_inline int judge6(struct bpf_sock_addr *ctx)
{
	struct target t = {
		.addr = {ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]},
		.family = 6,
	};

	if (!t.addr[0] && !t.addr[1] && t.addr[2] == bpf_htonl(0xffff))
		t = (struct target){.addr = {t.addr[3]}, .family = 4};
	return judge(ctx, &t);
}

SEC("cgroup/connect4")
int weir_connect4(struct bpf_sock_addr *ctx)
{
	return judge4(ctx);
}

SEC("cgroup/connect6")
int weir_connect6(struct bpf_sock_addr *ctx)
{
	return judge6(ctx);
}

SEC("cgroup/sendmsg4")
int weir_sendmsg4(struct bpf_sock_addr *ctx)
{
	return judge4(ctx);
}

SEC("cgroup/sendmsg6")
int weir_sendmsg6(struct bpf_sock_addr *ctx)
{
	return judge6(ctx);
}

char _license[] SEC("license") = "GPL";
