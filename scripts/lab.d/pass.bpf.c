// SPDX-License-Identifier: GPL-2.0-only
/*
 * The XDP program of a lab's far hosts: passes everything. Without a program on the peer, what the
 * near side sends by XDP_TX never arrives over veth.
 */

/* No <linux/bpf.h>: it needs the include path of the machine's architecture, for one constant. */
enum { XDP_PASS = 2 };

char _license[] __attribute__((section("license"), used)) = "GPL";

/* "frags" so that it can be attached at MTU 9000 as well. */
__attribute__((section("xdp.frags"), used)) int lab_pass(void *ctx)
{
	(void)ctx;
	return XDP_PASS;
}
