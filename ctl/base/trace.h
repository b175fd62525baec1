// SPDX-License-Identifier: GPL-2.0-only
// Places in the program that tracers can attach to while it runs (USDT), such as bpftrace and perf;
// docs/tracing.md lists them. One that is not traced is an instruction that does nothing.
//
// sys/sdt.h (package systemtap-sdt-dev) writes them into notes of the program. Where it is missing,
// as with musl, the program has no such place.
#pragma once

static inline void trace_nothing_(int unused, ...)
{
}

// trace(name, arguments): up to twelve integers and pointers to strings, which are computed whether
// it is traced or not.
#if __has_include(<sys/sdt.h>)
#define SDT_USE_VARIADIC
#include <sys/sdt.h>
#define trace(name, ...) STAP_PROBEV(weir, name, ##__VA_ARGS__)
#else
#define trace(name, ...) trace_nothing_(0, ##__VA_ARGS__)
#endif
