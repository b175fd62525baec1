// SPDX-License-Identifier: GPL-2.0-only
// Requests over netlink: complete answers; errors of the kernel and of the visitor are returned.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "ctl/net/netlink.h"

static struct nlmsghdr *link_request(char *buf, uint16_t flags, int index)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = flags;
	info->ifi_index = index;
	return nlh;
}

static int count(const struct nlmsghdr *nlh, void *ctx)
{
	if (nlh->nlmsg_type == RTM_NEWLINK)
		++*(int *)ctx;
	return MNL_CB_OK;
}

static int refuse(const struct nlmsghdr *nlh, void *ctx)
{
	++*(int *)ctx;
	errno = EBADMSG;
	return MNL_CB_ERROR;
}

static void dump_visits_every_link(void **state)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	struct if_nameindex *names = if_nameindex();
	int expected = 0, n = 0;

	assert_non_null(names);
	while (names[expected].if_index)
		expected++;
	if_freenameindex(names);
	assert_int_equal(
		netlink_request(NETLINK_ROUTE, link_request(buf, NLM_F_DUMP, 0), count, &n), 0);
	assert_int_equal(n, expected);
}

static void single_answer_ends(void **state)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	int n = 0;

	assert_int_equal(netlink_request(NETLINK_ROUTE, link_request(buf, 0, 1), count, &n), 0);
	assert_int_equal(n, 1);
}

static void kernel_error_is_returned(void **state)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	int n = 0;

	assert_int_equal(
		netlink_request(NETLINK_ROUTE, link_request(buf, 0, 0x7ffffff0), count, &n),
		-ENODEV);
	assert_int_equal(n, 0);
}

static void visitor_error_is_returned(void **state)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	int n = 0;

	assert_int_equal(netlink_request(NETLINK_ROUTE, link_request(buf, 0, 1), refuse, &n),
			 -EBADMSG);
	assert_int_equal(n, 1);
}

static void unknown_bus_is_an_error(void **state)
{
	char buf[256] __attribute__((aligned(4))) = {0};
	int n = 0;

	assert_true(netlink_request(31, link_request(buf, 0, 1), count, &n) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump_visits_every_link),
		cmocka_unit_test(single_answer_ends),
		cmocka_unit_test(kernel_error_is_returned),
		cmocka_unit_test(visitor_error_is_returned),
		cmocka_unit_test(unknown_bus_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
