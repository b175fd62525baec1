// SPDX-License-Identifier: GPL-2.0-only
/*
 * The XDP program of the far hosts of a lab: passes all packets. On veth, packets that one side
 * sends by XDP_TX arrive only if the other side has a
 * program. */

/* <linux/bpf.h> would need the include path of the architecture, for one constant. */
enum { XDP_PASS = 2 };

char _license[] __attribute__((section("license"), used)) = "GPL";

/* "frags" allows attaching at MTU 9000. */
__attribute__((section("xdp.frags"), used)) int lab_pass(void *ctx)
{
	(void)ctx;
	return XDP_PASS;
}
