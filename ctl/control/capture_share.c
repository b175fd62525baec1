// SPDX-License-Identifier: GPL-2.0-only
// Falls at once, and rises slowly: a full ring loses packets, a low share only leaves some out.
#include "ctl/control/capture_share.h"

#include <stdio.h>

#define ALL_PACKETS 4294967296.0
#define CROWDED     0.5  // part of the ring
#define SPARE       0.25 // below it the share rises
#define RISE        1.25
#define AVERAGE_NS  1e9

static double clamp(double share)
{
	return share >= CAPTURE_ALL ? CAPTURE_ALL : share < 1 ? 1 : share;
}

// By what the ring has had room for.
static double by_room(double share, const struct capture_seen *seen)
{
	if (seen->lost)
		return share / 2;
	if (seen->full > CROWDED)
		return share * CROWDED / seen->full;
	return seen->full < SPARE ? share * RISE : share;
}

void capture_share_begin(struct capture_share *s, double packets_per_s)
{
	double share = CAPTURE_ALL;

	s->arriving = packets_per_s;
	if (s->rate && packets_per_s > (double)s->rate)
		share *= (double)s->rate / packets_per_s;
	s->share = (uint32_t)clamp(share);
}

// The packets that a capture of all would have, over about a second: at a low share most looks see
// none.
static void note_arriving(struct capture_share *s, const struct capture_seen *seen)
{
	double weight = (double)seen->span_ns / AVERAGE_NS, now;

	if (!seen->span_ns)
		return;
	now = (double)(seen->packets + seen->lost) * (ALL_PACKETS / s->share) * 1e9 /
	      (double)seen->span_ns;
	weight = weight < 1 ? weight : 1;
	s->arriving += (now - s->arriving) * weight;
}

static double by_rate(const struct capture_share *s)
{
	if (!s->rate || s->arriving <= (double)s->rate)
		return CAPTURE_ALL;
	return ALL_PACKETS * (double)s->rate / s->arriving;
}

void capture_share_next(struct capture_share *s, const struct capture_seen *seen)
{
	double room = by_room(s->share, seen), rate;

	note_arriving(s, seen);
	rate = by_rate(s);
	s->share = (uint32_t)clamp(room < rate ? room : rate);
}

const char *capture_share_format(uint32_t share, capture_share_text buf)
{
	if (share == CAPTURE_ALL)
		snprintf(buf, sizeof(capture_share_text), "1 of 1");
	else
		snprintf(buf, sizeof(capture_share_text), "1 of %.*f",
			 share > ALL_PACKETS / 10    ? 3
			 : share > ALL_PACKETS / 100 ? 1
						     : 0,
			 ALL_PACKETS / (share ? share : 1));
	return buf;
}
