// SPDX-License-Identifier: GPL-2.0-only
// Counts the open connections of each source, for `over N connections` (common/connections.h).
//
// A connection that this host has accepted counts from the end of its handshake until it is closed,
// or the process closes it, whichever is first. The programs are attached to the root of cgroup 2:
// `weir_accepted` runs when a connection opens or closes, `weir_released` when a process closes a
// socket. Sockets that exist before are found by `weir_found`, which holds the lock of each socket:
// nothing counts one at the same time, but a process may close it. A mark at the socket says where
// it is counted. One exchange writes it when all rules have counted, and one takes it away, so
// nothing is counted or removed twice. A process closes a socket without its lock, so it leaves a
// flag in the mark, which a count that is at the socket reads last.
//
// Packets only read the table, and only the first packet of a connection matches such a rule.
#include <linux/bpf.h>
#include <linux/in.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "common/connections.h"

#define AF_INET  2
#define AF_INET6 10

#define SOCK_DEAD 0 /* the bit of skc_flags: no process has it any more */

#define SOL_TCP   6
#define CALLBACKS 1008 /* TCP_BPF_SOCK_OPS_CB_FLAGS, since Linux 6.12 */

/* As often as other CPUs may be faster with a word. */
#define TRIES 32

/* Changes of a word. */
#define UP   1  /* of the source */
#define DOWN -1 /* of the source */
#define FREE 0  /* a free one becomes the source's */

/* The kernel's, as far as they are read; libbpf finds the places. */
struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
} __attribute__((preserve_access_index));

struct sock_common {
	__be32 skc_daddr;
	__u16 skc_num; /* the port of this host, host order */
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	unsigned long skc_flags;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

struct inet_sock {
	struct sock sk;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	struct inet_sock icsk_inet;
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
} __attribute__((preserve_access_index));

struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct connections_line);
} connections SEC(".maps");

/* The remote end of a connection, and where it is counted: for each half the round, and a bit for
 * each rule. */
struct mark {
	__u64 counted[2];
	__u64 bits;      /* of the rules that have counted it, before all have */
	__u64 gone;      /* the process has closed it */
	__u64 high, low; /* the address, as connection_hash() takes it */
	__u32 family;
	__u32 port; /* of this host */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mark);
} marks SEC(".maps");

/* User space fills them before the load. */
struct connection_rule rules[CONNECTION_RULES];
__u32 rules_of_port[65536]; /* bits of the rules */
__u64 home;                 /* cookie of the network namespace of the instance */

/* Ports that have had a listener when connections were counted; listeners come first. */
__u64 listening[65536 / 64];

static __always_inline struct connections_head *head_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&connections, &zero);
}

/* ---- words ---------------------------------------------------------------------------------- */

static __always_inline struct connections_line *line_get(__u64 hash, __u32 part, __u32 second)
{
	struct connections_head *head = head_get();
	__u32 element;

	if (!head)
		return NULL;
	element = 1 + (part & 1) * (__u32)head->lines +
		  (__u32)connection_line(hash, head->lines, second);
	return bpf_map_lookup_elem(&connections, &element);
}

/* Changes the first word of the line that has the tag, or that is free, by one. Global, as the
 * functions that call it in loops: the verifier takes each once. 1: done, 0: the line has no such
 * word, -1: another CPU was faster. */
__noinline int word_change(__u64 hash, __u32 part, __u32 second, int by)
{
	__u64 tag = connection_tag(hash), max = (1 << CONNECTION_COUNT) - 1;
	struct connections_line *line = line_get(hash, part, second & 1);

	if (!line)
		return 0;
	for (int i = 0; i < CONNECTION_WORDS; i++) {
		__u64 *word = &line->word[i], old = *(volatile __u64 *)word, n = old & max;

		if (by == FREE ? old != 0 : !n || connection_tag(old) != tag)
			continue;
		if (by == UP && n == max)
			continue;
		n = by == DOWN ? n - 1 : n + 1;
		return __sync_val_compare_and_swap(word, old, n ? tag | n : 0) == old ? 1 : -1;
	}
	return 0;
}

/* In one of the two lines. */
static __always_inline int source_change(__u64 hash, __u32 part, int by)
{
	int done = word_change(hash, part, 0, by);

	return done ? done : word_change(hash, part, 1, by);
}

/* 1: counted; 0: the table has no room; -1: other CPUs were faster each time. */
__noinline int source_add(__u64 hash, __u32 part)
{
	for (int i = 0; i < TRIES; i++) {
		int done = source_change(hash, part, UP);

		if (!done)
			done = source_change(hash, part, FREE);
		if (done >= 0)
			return done;
	}
	return -1;
}

/* 1: removed; 0: it was not counted; -1: as above. */
__noinline int source_remove(__u64 hash, __u32 part)
{
	for (int i = 0; i < TRIES; i++) {
		int done = source_change(hash, part, DOWN);

		if (done >= 0)
			return done;
	}
	return -1;
}

/* ---- connections ---------------------------------------------------------------------------- */

static __always_inline __u64 hash_of(const struct mark *m, __u32 number)
{
	const struct connections_head *head = head_get();
	const struct connection_rule *rule = &rules[number & (CONNECTION_RULES - 1)];

	if (!head)
		return 0;
	return connection_hash(head->seed, *rule, number, m->family, m->high, m->low,
			       rule->ports ? m->port : 0);
}

/* For one rule. */
__noinline int rule_add(const struct mark *m, __u32 number, __u32 part)
{
	return m ? source_add(hash_of(m, number), part) : 0;
}

__noinline int rule_remove(const struct mark *m, __u32 number, __u32 part)
{
	return m ? source_remove(hash_of(m, number), part) : 0;
}

static __always_inline void remove_from(struct connections_head *head, struct mark *m, __u32 part)
{
	__u64 counted;

	part &= 1;
	counted = __sync_lock_test_and_set(&m->counted[part], 0);
	if (counted >> 32 != head->round[part])
		return;
	for (__u32 n = 0; n < CONNECTION_RULES; n++)
		if (counted >> n & 1 && rule_remove(m, n, part) < 0)
			__sync_fetch_and_add(&head->missed[part], 1);
}

/* The bits are collected in memory: kernel 6.1 would follow each of their combinations in a
 * register. */
static __always_inline void count_in(struct connections_head *head, struct mark *m, __u32 part)
{
	__u32 wanted = rules_of_port[m->port & 0xffff], round;

	part &= 1;
	round = head->round[part];
	if (m->counted[part] >> 32 == round)
		return;
	m->bits = (__u64)round << 32;
	for (__u32 n = 0; n < CONNECTION_RULES; n++) {
		int done;

		if (!(wanted >> n & 1))
			continue;
		done = rule_add(m, n, part);
		if (done > 0)
			m->bits |= 1ull << n;
		else
			__sync_fetch_and_add(done ? &head->missed[part] : &head->full[part], 1);
	}
	__sync_lock_test_and_set(&m->counted[part], m->bits);
	/* weir_released() has exchanged an empty word, or does not see this one yet. */
	if (*(volatile __u64 *)&m->gone)
		remove_from(head, m, part);
}

static __always_inline void forget(struct mark *m)
{
	struct connections_head *head = m ? head_get() : NULL;

	if (!head)
		return;
	remove_from(head, m, 0);
	remove_from(head, m, 1);
}

static __always_inline void address_of(struct mark *m, __u32 family, __u32 v4_be,
				       const __u32 v6_be[4])
{
	m->family = 4;
	m->low = 0;
	/* A socket of IPv6 has connections of IPv4 by ::ffff:a.b.c.d. */
	if (family == AF_INET6 && !v6_be[0] && !v6_be[1] && v6_be[2] == bpf_htonl(0xffff))
		v4_be = v6_be[3];
	else if (family == AF_INET6)
		m->family = 6;
	if (m->family == 4) {
		m->high = (__u64)bpf_ntohl(v4_be) << 32;
		return;
	}
	m->high = (__u64)bpf_ntohl(v6_be[0]) << 32 | bpf_ntohl(v6_be[1]);
	m->low = (__u64)bpf_ntohl(v6_be[2]) << 32 | bpf_ntohl(v6_be[3]);
}

/* In each of these halves. */
static __always_inline void missed_in(struct connections_head *head, __u64 parts)
{
	for (__u32 part = 0; part < 2; part++)
		if (parts >> part & 1)
			__sync_fetch_and_add(&head->missed[part], 1);
}

/* ---- new connections ------------------------------------------------------------------------ */

static __always_inline void opened(struct bpf_sock_ops *ctx)
{
	__u32 port = ctx->local_port & 0xffff;
	__u32 v6[4] = {ctx->remote_ip6[0], ctx->remote_ip6[1], ctx->remote_ip6[2],
		       ctx->remote_ip6[3]};
	struct connections_head *head = head_get();
	struct bpf_sock *sk = ctx->sk;
	struct mark *m;

	if (!head || !sk || !rules_of_port[port] || bpf_get_netns_cookie(ctx) != home)
		return;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	m = bpf_sk_storage_get(&marks, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!m) { /* no memory */
		missed_in(head, head->counting);
		return;
	}
	address_of(m, ctx->family, ctx->remote_ip4, v6);
	m->port = port;
	for (__u32 part = 0; part < 2; part++)
		if (head->counting >> part & 1)
			count_in(head, m, part);
}

SEC("sockops")
int weir_accepted(struct bpf_sock_ops *ctx)
{
	if (ctx->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		opened(ctx);
	else if (ctx->op == BPF_SOCK_OPS_STATE_CB && ctx->args[1] == BPF_TCP_CLOSE && ctx->sk)
		forget(bpf_sk_storage_get(&marks, ctx->sk, NULL, 0));
	return 1;
}

/* Is the half that packets do not read being filled? */
static __always_inline bool is_counting(const struct connections_head *head)
{
	return head->counting >> (~head->active & 1) & 1;
}

/* Without the lock of the socket: weir_found() may be at it. A socket without a mark gets one while
 * sockets are listed, so that it is not counted after this. */
SEC("cgroup/sock_release")
int weir_released(struct bpf_sock *ctx)
{
	struct connections_head *head = head_get();
	bool listed = head && is_counting(head) && ctx->protocol == IPPROTO_TCP;
	struct mark *m =
		bpf_sk_storage_get(&marks, ctx, NULL, listed ? BPF_SK_STORAGE_GET_F_CREATE : 0);

	if (!m)
		return 1;
	__sync_lock_test_and_set(&m->gone, 1);
	forget(m);
	return 1;
}

/* ---- connections that exist ----------------------------------------------------------------- */

static __always_inline bool is_open(const struct sock_common *sk)
{
	__u8 state = sk->skc_state;

	if (sk->skc_flags & 1ul << SOCK_DEAD)
		return false;
	return state == BPF_TCP_ESTABLISHED || state == BPF_TCP_FIN_WAIT1 ||
	       state == BPF_TCP_FIN_WAIT2 || state == BPF_TCP_CLOSE_WAIT ||
	       state == BPF_TCP_LAST_ACK || state == BPF_TCP_CLOSING;
}

/* Before Linux 6.12 the kernel reports only that a process closes the socket, not that a socket
 * closes that no process has accepted, or has no longer: the next count leaves these out. */
static __always_inline void report_close(struct tcp_sock *tp)
{
	int flags = 0;

	if (bpf_getsockopt(tp, SOL_TCP, CALLBACKS, &flags, sizeof(flags)))
		return;
	flags |= BPF_SOCK_OPS_STATE_CB_FLAG;
	bpf_setsockopt(tp, SOL_TCP, CALLBACKS, &flags, sizeof(flags));
}

/* A connection is this host's own if nothing listens on its port. */
SEC("iter/tcp")
int weir_found(struct bpf_iter__tcp *ctx)
{
	struct sock_common *any = ctx->sk_common;
	struct connections_head *head = head_get();
	struct tcp_sock *tp;
	struct sock_common *sk;
	struct mark *m;
	__u32 port, v6[4];

	if (!any || !head)
		return 0;
	tp = bpf_skc_to_tcp_sock(any); /* neither a request nor TIME_WAIT */
	if (!tp)
		return 0;
	sk = &tp->inet_conn.icsk_inet.sk.__sk_common;
	port = sk->skc_num;
	if (sk->skc_state == BPF_TCP_LISTEN) {
		listening[port / 64 & 1023] |= 1ull << (port & 63);
		return 0;
	}
	if (!is_open(sk) || !rules_of_port[port & 0xffff] ||
	    !(listening[port / 64 & 1023] >> (port & 63) & 1))
		return 0;
	m = bpf_sk_storage_get(&marks, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!m) {
		missed_in(head, 1 << (~head->active & 1));
		return 0;
	}
	v6[0] = sk->skc_v6_daddr.in6_u.u6_addr32[0];
	v6[1] = sk->skc_v6_daddr.in6_u.u6_addr32[1];
	v6[2] = sk->skc_v6_daddr.in6_u.u6_addr32[2];
	v6[3] = sk->skc_v6_daddr.in6_u.u6_addr32[3];
	address_of(m, sk->skc_family, sk->skc_daddr, v6);
	m->port = port;
	report_close(tp);
	count_in(head, m, !head->active);
	return 0;
}

char _license[] SEC("license") = "GPL";
