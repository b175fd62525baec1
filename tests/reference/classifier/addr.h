// SPDX-License-Identifier: GPL-2.0-only
// Addresses, prefixes and ranges of both families, from text and to text.
#ifndef REF_ADDR_H
#define REF_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;

/* IPv4 is in the top 32 bits, so that a mask is the same for both families. */
struct addr {
	u128 value;
	unsigned int family; /* 4 or 6 */
};

struct prefix {
	struct addr addr;
	unsigned int len;
};

/* At most 2 * 128 - 2 prefixes make up a range. */
#define PREFIXES_MAX 256

unsigned int addr_bits(unsigned int family);
u128 addr_mask(unsigned int len);
struct addr addr_from_bytes(unsigned int family, const uint8_t *bytes);
void addr_to_bytes(struct addr addr, uint8_t bytes[16]);
bool addr_parse(const char *text, struct addr *ret_addr);
void addr_format(struct addr addr, char *buf, size_t size);
bool prefix_holds(const struct prefix *prefix, struct addr addr);

/* Reads ADDR, ADDR/LEN or ADDR-ADDR; the count of prefixes, or -1 for anything else. */
int prefixes_parse(const char *word, struct prefix ret_prefixes[PREFIXES_MAX]);

/* Cuts lo..hi of one family into the fewest prefixes. */
int prefixes_of_range(struct addr lo, struct addr hi, struct prefix ret_prefixes[PREFIXES_MAX]);

/* The whole word as a decimal number without sign, at most max. */
bool number_parse(const char *text, size_t len, uint64_t max, uint64_t *ret_number);

#endif
