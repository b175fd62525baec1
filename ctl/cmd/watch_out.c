// SPDX-License-Identifier: GPL-2.0-only
// Describes a refused call: the process, the address, and the error that it got.
#include "ctl/cmd/watch_out.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/addr.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"

static const char *proto_name(uint8_t proto, char *buf, size_t size)
{
	switch (proto) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case IPPROTO_ICMPV6:
		return "icmpv6";
	default:
		snprintf(buf, size, "proto %u", proto);
		return buf;
	}
}

static const char *result_of(uint32_t kind)
{
	switch (kind) {
	case OVERLAY_BLOCK_OUT_REFUSED:
	case OVERLAY_BLOCK_OUT_ALL_REFUSED:
		return "refused";
	case OVERLAY_BLOCK_OUT_UNREACHABLE:
	case OVERLAY_BLOCK_OUT_ALL_UNREACHABLE:
		return "unreachable";
	default:
		return "denied";
	}
}

static struct addr addr_of(const struct event_out *event)
{
	struct addr a = {.family = event->family};

	memcpy(a.bytes, event->addr, event->family == 4 ? 4 : 16);
	return a;
}

void watch_out_show(struct out *o, const struct instance *i, const struct event_out *event)
{
	uint64_t ago_ms = time_ms(CLOCK_MONOTONIC) - event->time_ns / 1000000u;
	uint64_t wall_ms = time_ms(CLOCK_REALTIME) - ago_ms;
	time_t seconds = (time_t)(wall_ms / 1000);
	bool elsewhere = event->netns_cookie != i->meta.netns_cookie;
	char when[16], command[sizeof(event->command) + 1] = "", shown[64], number[16];
	const char *proto = proto_name(event->proto, number, sizeof(number));
	struct addr a = addr_of(event);
	addr_text address;
	struct tm tm;

	memcpy(command, event->command, sizeof(event->command));
	text_put_shown(shown, sizeof(shown), command);
	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&seconds, &tm));
	addr_format(&a, address);
	out_set_moment(o, wall_ms);
	out_set_u64(o, "pid", event->pid);
	out_set_string(o, "command", shown);
	out_set_u64(o, "uid", event->uid);
	out_set_string(o, "to", address);
	out_set_u64(o, "to_port", event->port);
	out_set_string(o, "proto", proto);
	out_set_string(o, "result", result_of(event->kind));
	out_set_bool(o, "other_namespace", elsewhere);
	out_line(o, "%s %s[%u] uid %u %s%s%s: %s to %s%s%s port %u%s", when, shown, event->pid,
		 event->uid, out_red(o), result_of(event->kind), out_plain(o), proto,
		 event->family == 6 ? "[" : "", address, event->family == 6 ? "]" : "", event->port,
		 elsewhere ? ", in another network namespace" : "");
	out_next_document(o);
}
