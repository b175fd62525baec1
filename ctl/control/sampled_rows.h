// SPDX-License-Identifier: GPL-2.0-only
// Rates and shares of sources, ports and the like, from the samples of the last seconds. Pure.
//
// A sample that was chosen with the share 1/n stands for n packets. The error is half of an
// interval that contains the true share in 95 of 100 cases.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/sample.h"
#include "ctl/base/addr.h"
#include "ctl/base/geo.h"
#include "ctl/base/vec.h"

// X(SYMBOL, "word of --by", "array of the document", "COLUMN")
#define SAMPLED_KEYS(X)                                              \
	X(SOURCE, "source", "sources", "SOURCE")                     \
	X(DESTINATION, "destination", "destinations", "DESTINATION") \
	X(PORT, "port", "ports", "PORT")                             \
	X(LENGTH, "length", "lengths", "LENGTH")                     \
	X(TTL, "ttl", "ttls", "TTL")                                 \
	X(FLAGS, "flags", "flags", "FLAGS")                          \
	X(COUNTRY, "country", "countries", "COUNTRY")                \
	X(ASN, "asn", "asns", "ASN")

enum sampled_by {
#define X(symbol, word, array, column) SAMPLED_BY_##symbol,
	SAMPLED_KEYS(X)
#undef X
		SAMPLED_BY_COUNT
};

struct sampled_about {
	const char *word, *array, *column;
};
extern const struct sampled_about sampled_about[SAMPLED_BY_COUNT];

#define SAMPLED_WINDOW_NS 10000000000ull
#define SAMPLED_LEAST     10   // samples of a row that is shown
#define SAMPLED_RATE      2000 // samples per second that are wanted

// The fields that are kept of a sample.
struct sampled_fact {
	uint64_t time_ns;
	uint32_t share, bytes;
	struct addr from, to;
	uint16_t port;       // of the destination
	bool ip, ports, tcp; // which fields are known
	uint8_t proto, flags, ttl;
};

// The country or the autonomous system of an address. False: it is not known.
typedef bool sampled_place(void *ctx, enum geo_kind kind, const struct addr *a, struct geo *ret);

struct sampled_window {
	VEC(struct sampled_fact) facts; // by time
	size_t first;                   // those before it are too old
	bool exact;                     // rows without an error are shown if they have few samples
	sampled_place *place;           // for the keys country and asn, by source; NULL: unknown
	void *place_ctx;
};
void sampled_free(struct sampled_window *w);
void sampled_add(struct sampled_window *w, const struct sampled *sample);
// Forgets what is older than SAMPLED_WINDOW_NS.
void sampled_forget(struct sampled_window *w, uint64_t now_ns);
size_t sampled_n(const struct sampled_window *w);

struct sampled_row {
	char text[64];
	uint64_t samples;
	double packets, bytes; // estimated, or exact if the error is 0
	double share, error;   // 0 … 1
};
struct sampled_list {
	VEC(struct sampled_row) rows; // most packets first
};

// The database that the key needs; GEO_NONE: no database.
enum geo_kind sampled_geo(enum sampled_by by);
// The rows with at least SAMPLED_LEAST samples. Addresses are summed by /32, /24 and /16, in IPv6
// by /64 and /48; a prefix with only one narrower prefix is left out.
void sampled_rows(const struct sampled_window *w, enum sampled_by by, struct sampled_list *ret);
void sampled_list_free(struct sampled_list *l);

// The share of 2^32 with which SAMPLED_RATE packets are chosen, if so many arrive per second.
uint32_t sampled_share(double packets_per_s);
