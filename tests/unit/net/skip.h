// SPDX-License-Identifier: GPL-2.0-only
// How these tests skip: with the reason, which tests/run prints too.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

// The missing feature, in a few words.
static inline void skip_because(const char *why)
{
	print_message("skipped: %s\n", why);
	skip();
}

#undef skip
#pragma GCC poison skip

static inline void skip_without_ipv6(void)
{
	if (access("/proc/net/if_inet6", F_OK))
		skip_because("this kernel has no IPv6");
}
