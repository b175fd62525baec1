// SPDX-License-Identifier: GPL-2.0-only
// The messages and hints for words that are nearly an address: a list of tests, in order.
#include "ctl/base/addr_explain.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/addr_range.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define WORD_MAX  159 // longer words are not misspelt addresses; they are truncated in messages
#define SHOWN_MAX 60

#define DIGITS "0123456789"
#define HEX    DIGITS "abcdefABCDEF"

struct spelled_word {
	char text[WORD_MAX + 1];
	char host[WORD_MAX + 1]; // the part before the first '/'
	const char *suffix;      // the part after it, or NULL
};

// Each gives sentence and hint and returns true when it knows what the word was meant to be.
typedef bool explain_fn(const struct spelled_word *w, struct err *err);

__attribute__((format(printf, 4, 5))) static bool say(struct err *err, const char *word,
						      const char *what, const char *hint, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, hint);
	vsnprintf(text, sizeof(text), hint, ap);
	va_end(ap);
	err_input(err, "'%s' %s", word, what);
	err_hint(err, "%s", text);
	return true;
}

static bool parses(const char *text, struct addr *ret)
{
	return addr_parse(text, strlen(text), ret, NULL) == 0;
}

static bool consists_of(const char *text, const char *set)
{
	return text[0] && !text[strspn(text, set)];
}

// "/SUFFIX" again, for hints that repeat it.
static const char *slash_of(const struct spelled_word *w)
{
	return w->suffix ? "/" : "";
}

static const char *suffix_of(const struct spelled_word *w)
{
	return w->suffix ? w->suffix : "";
}

static bool explain_empty(const struct spelled_word *w, struct err *err)
{
	return !w->text[0] && say(err, w->text, "is not an address", "an address is missing here");
}

static bool explain_any(const struct spelled_word *w, struct err *err)
{
	if (strcmp(w->text, "0/0") != 0 && strcmp(w->text, "*") != 0)
		return false;
	return say(err, w->text, "is not an address", "write any");
}

static bool explain_zone(const struct spelled_word *w, struct err *err)
{
	char host[sizeof(w->host)];
	struct addr a;
	char *zone;

	memcpy(host, w->host, sizeof(host));
	zone = strchr(host, '%');
	if (!zone)
		return false;
	*zone++ = '\0';
	if (!parses(host, &a))
		return false;
	return say(err, w->text, "names an interface", "write %s%s%s and use on %s", host,
		   slash_of(w), suffix_of(w), zone);
}

static bool explain_brackets(const struct spelled_word *w, struct err *err)
{
	char host[sizeof(w->text)];
	struct addr a;
	char *end;

	if (w->text[0] != '[')
		return false;
	memcpy(host, w->text, sizeof(host));
	end = strchr(host, ']');
	if (!end)
		return false;
	*end = '\0';
	if (!parses(host + 1, &a))
		return false;
	if (end[1] == ':' && end[2])
		return say(err, w->text, "is an address with a port", "write %s port %s", host + 1,
			   end + 2);
	return say(err, w->text, "has brackets", "write %s", host + 1);
}

// Removes the zeros from numbers after '.', '/', '-' or at the start, where decimal is expected.
static void without_zeros(const char *text, char *ret)
{
	for (const char *at = text; *at; at++) {
		bool starts = at == text || strchr("./-", at[-1]);

		while (starts && *at == '0' && at[1] >= '0' && at[1] <= '9')
			at++;
		*ret++ = *at;
	}
	*ret = '\0';
}

static bool explain_leading_zero(const struct spelled_word *w, struct err *err)
{
	char text[sizeof(w->text)];
	struct prefix p;

	without_zeros(w->text, text);
	if (!strcmp(text, w->text) || prefix_parse_quiet(text, strlen(text), &p, NULL) < 0)
		return false;
	return say(err, w->text, "has a leading zero", "write %s: elsewhere it means octal", text);
}

static int mask_bits(uint32_t mask)
{
	uint32_t host = ~mask;

	return host & (host + 1) ? -1 : __builtin_popcount(mask);
}

// The prefix length that a netmask, or a wildcard mask as routers have it, stands for; -1: none.
static int netmask_bits(const struct addr *mask)
{
	uint32_t bits = (uint32_t)mask->bytes[0] << 24 | (uint32_t)mask->bytes[1] << 16 |
			(uint32_t)mask->bytes[2] << 8 | mask->bytes[3];
	int n = mask_bits(bits);

	return n < 0 ? mask_bits(~bits) : n;
}

static bool explain_netmask(const struct spelled_word *w, struct err *err)
{
	struct addr a, mask;
	struct prefix p;
	addr_text text;
	int bits;

	if (!w->suffix || !parses(w->host, &a) || a.family != 4 || !parses(w->suffix, &mask) ||
	    mask.family != 4)
		return false;
	bits = netmask_bits(&mask);
	if (bits < 0)
		return say(err, w->text, "has a netmask with holes",
			   "only a prefix length is allowed after '/'");
	p = prefix_of(&a, (uint8_t)bits);
	return say(err, w->text, "has a netmask", "write %s", prefix_format(&p, text));
}

static bool explain_host_bits(const struct spelled_word *w, const struct addr *a, uint8_t len,
			      struct err *err)
{
	struct prefix p = prefix_of(a, len);
	addr_text network, host;

	return say(err, w->text, "has host bits set", "write %s for the network or %s for the host",
		   prefix_format(&p, network), addr_format(a, host));
}

// The length of a mapped address counts the 96 bits of the mapping.
static bool explain_mapped_length(const struct spelled_word *w, const struct addr *a, uint32_t len,
				  struct err *err)
{
	struct prefix p = prefix_of(a, (uint8_t)len);
	addr_text text;

	if (len >= 96)
		return explain_host_bits(w, a, (uint8_t)(len - 96), err);
	if (len <= 32)
		return say(err, w->text, "has a prefix length for IPv4", "write %s",
			   prefix_format(&p, text));
	return say(err, w->text, "has no sensible prefix length", "write %s/N, N from 0 to 32",
		   addr_format(a, text));
}

static bool explain_length(const struct spelled_word *w, struct err *err)
{
	struct addr a;
	bool mapped;
	uint32_t len, max;
	int code;

	if (!w->suffix || addr_parse(w->host, strlen(w->host), &a, &mapped) < 0)
		return false;
	max = mapped ? 128 : addr_bits(&a);
	code = num_parse_u32(w->suffix, strlen(w->suffix), 0, max, &len);
	if (code == -ERANGE)
		return say(err, w->text,
			   max == 32 ? "has a prefix length over 32"
				     : "has a prefix length over 128",
			   "%s prefix length is 0 to %u", max == 32 ? "an IPv4" : "an IPv6", max);
	if (code < 0)
		return say(err, w->text, "has no prefix length", "write %s/N, N from 0 to %u",
			   w->host, max);
	return mapped ? explain_mapped_length(w, &a, len, err)
		      : explain_host_bits(w, &a, (uint8_t)len, err);
}

// The form that inet_aton(3) accepts: one to four parts, decimal or hexadecimal; the last one fills
// the remaining bytes.
static bool classic_v4(const char *text, uint32_t *ret)
{
	uint32_t address = 0, part, room = UINT32_MAX;
	size_t len;

	for (unsigned i = 0; i < 4; i++, text += len + 1, room >>= 8) {
		len = strcspn(text, ".");
		if (num_parse_hex32(text, len, &part) < 0 &&
		    num_parse_u32(text, len, 0, UINT32_MAX, &part) < 0)
			return false;
		if (part > (text[len] ? 255 : room))
			return false;
		if (!text[len]) {
			*ret = address | part;
			return true;
		}
		address |= part << (24 - 8 * i);
	}
	return false;
}

static bool explain_hex(const struct spelled_word *w, struct err *err)
{
	uint32_t address;
	struct addr a;
	addr_text text;

	if (!strpbrk(w->host, "x") || !classic_v4(w->host, &address))
		return false;
	a = addr_from_v4(htobe32(address));
	return say(err, w->text, "is in hexadecimal", "write %s%s%s", addr_format(&a, text),
		   slash_of(w), suffix_of(w));
}

// "10/8", "10.1/16": zeros are missing.
static bool explain_short(const struct spelled_word *w, struct err *err)
{
	char text[sizeof(w->host) + 8];
	size_t dots = 0;
	uint32_t len;
	struct addr a;
	struct prefix p;
	addr_text full;

	for (const char *at = w->host; *at; at++)
		dots += *at == '.';
	if (!w->suffix || dots > 2 || num_parse_u32(w->suffix, strlen(w->suffix), 0, 32, &len) < 0)
		return false;
	snprintf(text, sizeof(text), "%s%s", w->host, &".0.0.0"[dots * 2]);
	if (!parses(text, &a))
		return false;
	p = prefix_of(&a, (uint8_t)len);
	return say(err, w->text, "is not an address", "write %s", prefix_format(&p, full));
}

// "10.1.*"
static bool explain_star(const struct spelled_word *w, struct err *err)
{
	const char *star = strchr(w->text, '*');
	char text[sizeof(w->text) + 8];
	unsigned parts = 0;
	struct addr a;
	addr_text full;

	if (!star || !consists_of(star, "*."))
		return false;
	for (const char *at = w->text; at < star; at++)
		parts += *at == '.';
	if (parts < 1 || parts > 3)
		return false;
	snprintf(text, sizeof(text), "%.*s%s", (int)(star - w->text), w->text,
		 &"0.0.0.0"[parts * 2]);
	if (!parses(text, &a))
		return false;
	return say(err, w->text, "is not an address", "write %s/%u", addr_format(&a, full),
		   parts * 8);
}

static bool explain_port(const struct spelled_word *w, struct err *err)
{
	char host[sizeof(w->text)];
	struct addr a;
	char *port;

	memcpy(host, w->text, sizeof(host));
	port = strrchr(host, ':');
	if (!port || !consists_of(port + 1, DIGITS))
		return false;
	*port++ = '\0';
	if (!parses(host, &a) || a.family != 4)
		return false;
	return say(err, w->text, "is an address with a port", "write %s port %s", host, port);
}

static bool explain_range_here(const struct spelled_word *w, struct err *err)
{
	struct prefix prefixes[254];
	size_t n;

	if (range_parse_quiet(w->text, strlen(w->text), prefixes, &n) < 0)
		return false;
	return say(err, w->text, "is a range", "one address or prefix is expected here");
}

static bool explain_name(const struct spelled_word *w, struct err *err)
{
	if (!w->suffix || strchr(w->host, ':') || consists_of(w->host, DIGITS ".") ||
	    !consists_of(w->host, HEX "ghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ._-"))
		return false;
	return say(err, w->text, "is a host name with a prefix length",
		   "a name has no prefix length; a network is written with its address");
}

static bool has_leading_zero(const char *text)
{
	for (const char *at = text; *at; at++)
		if (*at == '0' && at[1] >= '0' && at[1] <= '9' && (at == text || at[-1] == '.'))
			return true;
	return false;
}

static bool explain_v4(const struct spelled_word *w, struct err *err)
{
	unsigned dots = 0;

	if (!consists_of(w->host, DIGITS "."))
		return false;
	for (const char *at = w->host; *at; at++)
		dots += *at == '.';
	if (dots != 3 || strstr(w->host, "..") || w->host[0] == '.' ||
	    w->host[strlen(w->host) - 1] == '.')
		return say(err, w->text, "is not an address",
			   "an IPv4 address has four parts, as 192.0.2.1 has");
	if (has_leading_zero(w->host))
		return say(err, w->text, "has a leading zero",
			   "the parts of an address are decimal: elsewhere a zero means octal");
	return say(err, w->text, "is not an address", "each part of an IPv4 address is 0 to 255");
}

static bool explain_v6(const struct spelled_word *w, struct err *err)
{
	const char *gap = strstr(w->host, "::");
	unsigned colons = 0;

	if (!strchr(w->host, ':') || !consists_of(w->host, HEX ":."))
		return false;
	for (const char *at = w->host; *at; at++)
		colons += *at == ':';
	if (gap && strstr(gap + 1, "::"))
		return say(err, w->text, "is not an address", "'::' is allowed only once");
	if (!gap && colons < 7 && !strchr(w->host, '.'))
		return say(err, w->text, "is not an address",
			   "an IPv6 address has eight groups, or '::' for those that are zero");
	if (colons > 7)
		return say(err, w->text, "is not an address",
			   "an IPv6 address has at most eight groups");
	return say(err, w->text, "is not an address",
		   "an IPv6 group is one to four hexadecimal digits, as in 2001:db8::1");
}

// Fills w; false if the word is too long.
static bool word_of(struct spelled_word *w, const char *text, size_t len)
{
	size_t shown = len <= WORD_MAX ? len : SHOWN_MAX;
	char *slash;

	for (size_t i = 0; i < shown; i++)
		w->text[i] = text[i] ? text[i] : '?';
	w->text[shown] = '\0';
	memcpy(w->host, w->text, sizeof(w->host));
	slash = strchr(w->host, '/');
	w->suffix = slash ? w->text + (slash - w->host) + 1 : NULL;
	if (slash)
		*slash = '\0';
	return len <= WORD_MAX;
}

static int ask(explain_fn *const *questions, size_t n, const char *text, size_t len,
	       const char *what, const char *hint, struct err *err)
{
	struct spelled_word w = {0};

	if (!err)
		return -EINVAL; // a list read with `lax` may have a million bad lines
	if (!word_of(&w, text, len)) {
		memcpy(w.text + SHOWN_MAX, "...", 4);
		n = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (questions[i](&w, err))
			return -EINVAL;
	say(err, w.text, what, "%s", hint);
	return -EINVAL;
}

static int explain_prefix(const char *text, size_t len, struct err *err)
{
	static explain_fn *const questions[] = {
		explain_empty,        explain_any,     explain_zone,   explain_brackets,
		explain_leading_zero, explain_netmask, explain_length, explain_hex,
		explain_short,        explain_star,    explain_port,   explain_range_here,
		explain_name,         explain_v4,      explain_v6,
	};

	return ask(questions, ARRAY_SIZE(questions), text, len, "is not an address",
		   "an address looks like 192.0.2.1 or 2001:db8::1", err);
}

int prefix_parse(const char *text, size_t len, struct prefix *ret, bool *ret_mapped,
		 struct err *err)
{
	return prefix_parse_quiet(text, len, ret, ret_mapped) ? explain_prefix(text, len, err) : 0;
}

// The two sides of a range that has a '-'.
struct sides {
	char first[WORD_MAX + 1], last[WORD_MAX + 1];
};

static bool split(const struct spelled_word *w, struct sides *ret)
{
	const char *dash = strchr(w->text, '-');

	if (!dash)
		return false;
	snprintf(ret->first, sizeof(ret->first), "%.*s", (int)(dash - w->text), w->text);
	snprintf(ret->last, sizeof(ret->last), "%s", dash + 1);
	return true;
}

static bool explain_not_range(const struct spelled_word *w, struct err *err)
{
	struct sides s;

	if (split(w, &s) && s.first[0] && s.last[0])
		return false;
	return say(err, w->text, "is not a range", "write FIRST-LAST, as in 192.0.2.1-192.0.2.9");
}

static bool explain_blanks(const struct spelled_word *w, struct err *err)
{
	struct prefix prefixes[254];
	char text[sizeof(w->text)];
	size_t len = 0, n;

	if (!strpbrk(w->text, " \t"))
		return false;
	for (const char *at = w->text; *at; at++)
		if (*at != ' ' && *at != '\t')
			text[len++] = *at;
	text[len] = '\0';
	if (range_parse_quiet(text, len, prefixes, &n) < 0)
		return false;
	return say(err, w->text, "has blanks", "write %s", text);
}

// "192.0.2.10-20"
static bool explain_short_last(const struct spelled_word *w, struct err *err)
{
	struct sides s;
	struct addr a;
	addr_text first, last;
	uint32_t part;

	if (!split(w, &s) || !parses(s.first, &a) || a.family != 4 ||
	    num_parse_u32(s.last, strlen(s.last), a.bytes[3], 255, &part) < 0)
		return false;
	addr_format(&a, first);
	a.bytes[3] = (uint8_t)part;
	return say(err, w->text, "is not a range of addresses", "write %s-%s", first,
		   addr_format(&a, last));
}

static struct addr last_of(const struct prefix *p)
{
	struct addr a = p->addr;

	for (unsigned bit = p->len; bit < addr_bits(&a); bit++)
		a.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	return a;
}

// "10.0.0.0/24-10.0.3.0/24"
static bool explain_prefixes(const struct spelled_word *w, struct err *err)
{
	struct prefix first, last;
	addr_text from, to;
	struct addr end;
	struct sides s;

	if (!w->suffix || !split(w, &s) ||
	    prefix_parse_quiet(s.first, strlen(s.first), &first, NULL) < 0 ||
	    prefix_parse_quiet(s.last, strlen(s.last), &last, NULL) < 0)
		return false;
	end = last_of(&last);
	if (first.addr.family != end.family || addr_compare(&first.addr, &end) > 0)
		return say(err, w->text, "is a range of prefixes",
			   "write FIRST-LAST, two addresses");
	return say(err, w->text, "is a range of prefixes", "write %s-%s",
		   addr_format(&first.addr, from), addr_format(&end, to));
}

// One side is wrong by itself.
static bool explain_side(const struct spelled_word *w, struct err *err)
{
	struct prefix p;
	struct sides s;

	if (!split(w, &s))
		return false;
	if (prefix_parse(s.first, strlen(s.first), &p, NULL, err) < 0)
		return true;
	return prefix_parse(s.last, strlen(s.last), &p, NULL, err) < 0;
}

static bool explain_order(const struct spelled_word *w, struct err *err)
{
	struct sides s;
	struct addr first, last;
	addr_text from, to;

	if (!split(w, &s) || !parses(s.first, &first) || !parses(s.last, &last))
		return false;
	if (first.family != last.family)
		return say(err, w->text, "is a range over two families",
			   "write one for IPv4 and one for IPv6");
	return say(err, w->text, "ends before it begins", "write %s-%s", addr_format(&last, from),
		   addr_format(&first, to));
}

static int explain_range(const char *text, size_t len, struct err *err)
{
	static explain_fn *const questions[] = {
		explain_not_range, explain_blanks, explain_short_last,
		explain_prefixes,  explain_side,   explain_order,
	};

	return ask(questions, ARRAY_SIZE(questions), text, len, "is not a range",
		   "write FIRST-LAST, as in 192.0.2.1-192.0.2.9", err);
}

int range_parse(const char *text, size_t len, struct prefix ret[254], size_t *ret_n,
		struct err *err)
{
	return range_parse_quiet(text, len, ret, ret_n) ? explain_range(text, len, err) : 0;
}
