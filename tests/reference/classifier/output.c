// SPDX-License-Identifier: GPL-2.0-only
// Judges output packets only by their bytes. Shares no code with xdp/reply.bpf.h, nor with
// ctl/control/frame.
#include "tests/reference/classifier/output.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <string.h>

#include "tests/reference/layout.h"

enum { TCP = 6, ICMP = 1, ICMP6 = 58, FIN = 1, SYN = 2, RST = 4, ACK = 16 };

// The fields of a well-formed IP packet on which an answer depends; only such packets are rejected.
struct view {
	const uint8_t *frame, *ip, *l4;
	size_t link; // bytes before the IP header
	size_t ip_len, address_len;
	unsigned family;
	uint8_t proto;
	bool fragment; // also the first one
	const uint8_t *from, *to;
};

static unsigned be16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
	return be16(at) << 16 | be16(at + 2);
}

static void view4(struct view *v)
{
	v->family = 4;
	v->address_len = 4;
	v->ip_len = be16(v->ip + IP4_LENGTH);
	v->from = v->ip + IP4_FROM;
	v->to = v->ip + IP4_TO;
	v->proto = v->ip[IP4_PROTO];
	v->fragment = be16(v->ip + IP4_FRAGMENT) & 0x3fff;
	v->l4 = v->ip + (v->ip[IP4_VERSION] & 15u) * 4;
}

static void view6(struct view *v)
{
	v->family = 6;
	v->address_len = 16;
	v->ip_len = IP6_BYTES + be16(v->ip + IP6_LENGTH);
	v->from = v->ip + IP6_FROM;
	v->to = v->ip + IP6_TO;
	v->proto = v->ip[IP6_NEXT];
	v->l4 = v->ip + IP6_BYTES;
	while (!v->fragment &&
	       (v->proto == 0 || v->proto == 43 || v->proto == 44 || v->proto == 60)) {
		bool atomic = v->proto == 44;

		v->fragment = atomic && be16(v->l4 + FRAGMENT_OFFSET) & 0xfff9;
		v->proto = v->l4[EXT_NEXT];
		v->l4 += atomic ? FRAGMENT_BYTES : (v->l4[EXT_LENGTH] + 1u) * 8;
	}
}

static bool view(struct view *v, const uint8_t *frame)
{
	size_t at = ETHER_TYPE;

	while (be16(frame + at) == 0x8100 || be16(frame + at) == 0x88a8)
		at += TAG_BYTES;
	*v = (struct view){.frame = frame, .link = at + 2, .ip = frame + at + 2};
	if (be16(frame + at) == 0x0800)
		view4(v);
	else if (be16(frame + at) == 0x86dd)
		view6(v);
	return v->family;
}

// ---- which packets are answered (RFC 1122 section 3.2.2, RFC 4443 section 2.4, RFC 9293 section
// 3.10.7.1) ------

static bool is_nobody(const struct view *v)
{
	static const uint8_t zero[16];

	if (v->family == 4)
		return v->from[0] == 127 || v->from[0] >= 224 || !memcmp(v->from, zero, 4);
	return v->from[0] == 0xff || (!memcmp(v->from, zero, 15) && v->from[15] < 2);
}

static bool is_to_many(const struct view *v)
{
	if (v->frame[ETHER_TO] & 1 ||
	    v->frame[ETHER_FROM] & 1) // a link-layer broadcast, which is no sender
		return true;
	if (v->family == 6)
		return v->to[0] == 0xff;
	return v->to[0] >> 4 == 14 || be32(v->to) == UINT32_MAX;
}

static bool is_error(const struct view *v)
{
	static const bool errors4[256] = {
		[3] = true, [4] = true, [5] = true, [11] = true, [12] = true};

	if (v->proto == ICMP && v->family == 4)
		return errors4[v->l4[ICMP_TYPE]];
	return v->proto == ICMP6 && v->family == 6 &&
	       (v->l4[ICMP_TYPE] < 128 || v->l4[ICMP_TYPE] == 137);
}

static bool is_answered(const struct view *v)
{
	return !v->fragment && !is_nobody(v) && !is_to_many(v) && !is_error(v) &&
	       !(v->proto == TCP && v->l4[TCP_FLAGS] & RST);
}

// ---- the answer ---------------------------------------------------------------------------------

static uint32_t sum_words(uint32_t sum, const uint8_t *at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
	return sum;
}

static bool sums_up(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static bool transport_sums_up(const struct view *v)
{
	size_t len = v->ip_len - (size_t)(v->l4 - v->ip);
	uint32_t sum = 0;

	if (v->proto != ICMP)
		sum = sum_words((uint32_t)len + v->proto, v->from, 2 * v->address_len);
	return sums_up(sum_words(sum, v->l4, len));
}

static const char *link_problem(const struct view *in, const struct view *out)
{
	if (out->link != in->link ||
	    memcmp(out->frame + ETHER_TYPE, in->frame + ETHER_TYPE, in->link - ETHER_TYPE) != 0)
		return "the answer has other tags or another ethertype than the packet";
	if (memcmp(out->frame + ETHER_TO, in->frame + ETHER_FROM, 6) != 0 ||
	    memcmp(out->frame + ETHER_FROM, in->frame + ETHER_TO, 6) != 0)
		return "the answer is not sent to the sender's MAC address";
	return NULL;
}

static const char *ip_problem(const struct view *in, const struct view *out, size_t len)
{
	if (out->ip[0] != (out->family == 4 ? 0x45 : 0x60) ||
	    out->l4 - out->ip != (out->family == 4 ? IP4_BYTES : IP6_BYTES))
		return "the answer's IP header is not a plain one";
	if (out->ip_len != len - out->link)
		return "the answer's IP length is not that of the frame";
	if (memcmp(out->from, in->to, in->address_len) != 0 ||
	    memcmp(out->to, in->from, in->address_len) != 0)
		return "the answer's addresses are not those of the packet, swapped";
	if (out->fragment || !out->ip[out->family == 4 ? IP4_TTL : IP6_HOPS])
		return "the answer is a fragment or has a TTL of 0";
	if (out->family == 4 && !sums_up(sum_words(0, out->ip, IP4_BYTES)))
		return "the answer's IP checksum is wrong";
	return NULL;
}

static const char *reset_problem(const struct view *in, const struct view *out)
{
	uint32_t payload =
		(uint32_t)(in->ip + in->ip_len - in->l4) - (in->l4[TCP_OFFSET] >> 4) * 4u;
	uint32_t covers = payload + !!(in->l4[TCP_FLAGS] & SYN) + !!(in->l4[TCP_FLAGS] & FIN);
	bool ack = in->l4[TCP_FLAGS] & ACK;

	if (out->proto != TCP || out->ip_len != (size_t)(out->l4 - out->ip) + TCP_BYTES ||
	    out->l4[TCP_OFFSET] != 0x50)
		return "the answer to TCP is not a plain TCP header";
	if (be16(out->l4 + TCP_SPORT) != be16(in->l4 + TCP_DPORT) ||
	    be16(out->l4 + TCP_DPORT) != be16(in->l4 + TCP_SPORT))
		return "the reset's ports are not those of the packet, swapped";
	if (out->l4[TCP_FLAGS] != (ack ? RST : RST | ACK))
		return "the reset's flags are wrong";
	if (be32(out->l4 + TCP_SEQ) != (ack ? be32(in->l4 + TCP_ACK) : 0))
		return "the reset's sequence number is not the one acknowledged";
	if (be32(out->l4 + TCP_ACK) != (ack ? 0 : be32(in->l4 + TCP_SEQ) + covers))
		return "the reset does not acknowledge the packet";
	return NULL;
}

// An ICMP error quotes the packet from its IP header on, with at least 8 bytes after the header
// (RFC 792).
static const char *error_problem(const struct view *in, const struct view *out)
{
	bool v4 = in->family == 4;
	size_t quoted = out->ip_len - (size_t)(out->l4 - out->ip) - ICMP_BYTES;
	size_t least = v4 ? (size_t)(in->l4 - in->ip) + 8 : 48;

	if (out->ip_len < (size_t)(out->l4 - out->ip) + ICMP_BYTES ||
	    out->proto != (v4 ? ICMP : ICMP6))
		return "the answer is not an ICMP error";
	if (out->l4[ICMP_TYPE] != (v4 ? 3 : 1) || out->l4[ICMP_CODE] != (v4 ? 13 : 1) ||
	    be32(out->l4 + ICMP_REST))
		return "the error is not 'administratively prohibited'";
	if (quoted < (least < in->ip_len ? least : in->ip_len) || quoted > in->ip_len)
		return "the error quotes too little or too much";
	return memcmp(out->l4 + ICMP_BYTES, in->ip, quoted) != 0
		       ? "the error does not quote the packet"
		       : NULL;
}

static const char *answer_problem(const struct view *in, const uint8_t *bytes, size_t len)
{
	struct view out;
	const char *problem;

	if (len < in->link + (in->family == 4 ? (size_t)IP4_BYTES : IP6_BYTES) ||
	    !view(&out, bytes) || out.family != in->family)
		return "the answer is not an IP packet";
	problem = link_problem(in, &out);
	if (!problem)
		problem = ip_problem(in, &out, len);
	if (!problem)
		problem = in->proto == TCP ? reset_problem(in, &out) : error_problem(in, &out);
	if (!problem && !transport_sums_up(&out))
		problem = "the answer's transport checksum is wrong";
	return problem;
}

static const char *reject_problem(uint32_t verdict, const uint8_t *in, const uint8_t *out,
				  size_t len_out)
{
	struct view v;

	if (!view(&v, in))
		return "a frame that is not IP was rejected";
	if (verdict != (is_answered(&v) ? XDP_TX : XDP_DROP))
		return is_answered(&v) ? "a rejected packet got no answer"
				       : "a rejected packet got an answer that is not allowed";
	return verdict == XDP_TX ? answer_problem(&v, out, len_out) : NULL;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

const char *output_problem(const char *decision, uint32_t verdict, const uint8_t *in, size_t len,
			   const uint8_t *out, size_t len_out)
{
	const char *problem = NULL;

	if (begins(decision, "reject"))
		problem = reject_problem(verdict, in, out, len_out);
	else if (begins(decision, "redirect")) // dropped where the device is not there
		problem = verdict == XDP_REDIRECT || verdict == XDP_DROP ? NULL : "not redirected";
	else if (verdict != (begins(decision, "pass") ? XDP_PASS : XDP_DROP))
		problem = "the verdict differs from the decision";
	if (problem || verdict == XDP_TX)
		return problem;
	return len_out == len && !memcmp(in, out, len) ? NULL : "the packet was changed";
}
