// SPDX-License-Identifier: GPL-2.0-only
// Numbers, times and rates: parsed strictly, and formatted for people.
//
// Strict: decimal, the whole word, in range, no sign, no blanks, no leading zeros except "0"
// itself.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Each parses text[0..len) whole; 0, -EINVAL (not a number of this form) or -ERANGE (a number, but
// outside min..max or of 64 bits). *ret is untouched on failure.
int num_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret);
int num_parse_u32(const char *text, size_t len, uint32_t min, uint32_t max, uint32_t *ret);
int num_parse_u16(const char *text, size_t len, uint16_t min, uint16_t max, uint16_t *ret);
// "N" or "N-M", each 0..max; a single number is first and last. M may be less than N.
int num_parse_span(const char *text, uint32_t max, uint32_t *ret_first, uint32_t *ret_last);
// "0x" and 1..8 hexadecimal digits.
int num_parse_hex32(const char *text, size_t len, uint32_t *ret);
// COUNT = digits [ "k" | "M" ]: thousands, millions.
int num_parse_count(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret);
// TIME = digits ( "ms"|"s"|"m"|"h"|"d"|"w" ), or several of these from the largest unit to the
// smallest ("1h30m"), in milliseconds; a bare "0" is not a time.
int num_parse_time_ms(const char *text, size_t len, uint64_t min, uint64_t max, uint64_t *ret);

bool num_is_prime(uint32_t n); // by trial division

// Texts for people; each writes a NUL-terminated string into buf and returns buf.
#define NUM_TEXT 32
typedef char num_text[NUM_TEXT];
const char *num_format(uint64_t n, num_text buf);         // 18204
const char *num_format_grouped(uint64_t n, num_text buf); // 18,204
const char *num_format_short(double n, num_text buf);     // 999, 1.2 k, 3.4 M, 5.6 G
const char *num_format_bytes(uint64_t n, num_text buf);   // 999 B, 1.2 kB, 3.4 MB (1000s)
// The two largest units that are not zero: "1h", "1h 5m", "55m", "2s", "250ms", "0s".
const char *num_format_duration_ms(uint64_t ms, num_text buf);
// Seconds since 1970 in the form of RFC 3339: "2026-11-24T02:15:03+01:00". NULL: there is no such
// time.
typedef char num_time_text[40];
const char *num_format_time(uint64_t wall_s, num_time_text buf);
const char *num_format_time_ms(uint64_t wall_ms, num_time_text buf); // with milliseconds
// The word for n of a thing: "1 rule", "2 rules".
static inline const char *num_plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}
