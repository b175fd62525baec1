// SPDX-License-Identifier: GPL-2.0-only
// The share and the headers are at the end, so that no name of a rule is mistaken for them.
#include "ctl/control/capture_comment.h"

#include <string.h>

#include "ctl/base/num.h"
#include "ctl/control/capture_share.h"
#include "ctl/datapath/counters.h"

#define FRONT_UNIT " bytes of headers added"
#define SHARE      ", share 1 of "
#define ALL        4294967296.0
#define FRONT_MOST 1024

void capture_comment_write(const struct capture_comment *c, const char *what, struct text *to)
{
	capture_share_text share;

	if (c->reason < WEIR_REASON_COUNT)
		text_addf(to, "%s %s", reason_outcome(c->reason), reason_name(c->reason));
	else
		text_addf(to, "reason %u", c->reason);
	text_add(to, what);
	if (c->front)
		text_addf(to, ", %u" FRONT_UNIT, c->front);
	text_addf(to, ", share %s", capture_share_format(c->share, share));
}

// The last `word` in text[0..len); NULL: it has none.
static const char *find_last(const char *text, size_t len, const char *word)
{
	const char *found = NULL, *at = text;

	while ((at = memmem(at, (size_t)(text + len - at), word, strlen(word))))
		found = at++;
	return found;
}

// "042": a part of one.
static bool read_decimals(const char *text, size_t len, double *ret)
{
	double unit = 0.1;

	for (; len; len--, text++, unit /= 10) {
		if (*text < '0' || *text > '9')
			return false;
		*ret += (*text - '0') * unit;
	}
	return true;
}

// "1" is all; "8.125": one of so many.
static bool read_share(const char *text, size_t len, uint32_t *ret)
{
	const char *dot = memchr(text, '.', len);
	size_t whole = dot ? (size_t)(dot - text) : len;
	double share, of = 0;
	uint64_t n;

	if (num_parse_u64(text, whole, 1, 1ull << 32, &n) ||
	    (dot && !read_decimals(dot + 1, len - whole - 1, &of)))
		return false;
	share = ALL / (of + (double)n);
	if (share < 1) // one of more than 2^32
		return false;
	*ret = share >= CAPTURE_ALL ? CAPTURE_ALL : (uint32_t)share;
	return true;
}

// The first two words.
static bool read_reason(const char *text, size_t len, uint32_t *ret)
{
	const char *space = memchr(text, ' ', len);
	size_t n;

	if (!space)
		return false;
	n = (size_t)(text + len - ++space);
	for (uint32_t r = 0; r < WEIR_REASON_COUNT; r++) {
		const char *name = reason_name(r), *outcome = reason_outcome(r);
		size_t of_name = strlen(name), of_outcome = strlen(outcome);

		if (of_name > n || memcmp(space, name, of_name) != 0 ||
		    (of_name < n && space[of_name] != ',') ||
		    of_outcome + 1 != (size_t)(space - text) ||
		    memcmp(text, outcome, of_outcome) != 0)
			continue;
		*ret = r;
		return true;
	}
	*ret = WEIR_REASON_COUNT;
	return len > 7 && !memcmp(text, "reason ", 7);
}

// ", 28 bytes of headers added" at the end.
static uint32_t read_front(const char *text, size_t len)
{
	const size_t unit = strlen(FRONT_UNIT);
	const char *at = find_last(text, len, ", ");
	uint64_t n;

	if (!at)
		return 0;
	len -= (size_t)(at + 2 - text);
	at += 2;
	if (len <= unit || memcmp(at + len - unit, FRONT_UNIT, unit) != 0 ||
	    num_parse_u64(at, len - unit, 1, FRONT_MOST, &n))
		return 0;
	return (uint32_t)n;
}

bool capture_comment_read(const char *text, size_t len, struct capture_comment *ret)
{
	const char *share = len ? find_last(text, len, SHARE) : NULL;
	struct capture_comment c = {0};
	size_t head;

	if (!share)
		return false;
	head = (size_t)(share - text);
	share += strlen(SHARE);
	if (!read_share(share, (size_t)(text + len - share), &c.share) ||
	    !read_reason(text, head, &c.reason))
		return false;
	c.front = read_front(text, head);
	*ret = c;
	return true;
}
