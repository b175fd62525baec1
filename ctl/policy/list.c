// SPDX-License-Identifier: GPL-2.0-only
// A line's good case is a handful of comparisons and one prefix_parse; everything else may be slow.
#include "ctl/policy/list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/num.h"
#include "ctl/policy/host.h"

#define PROBLEMS_MAX 20
#define SHOWN_MAX    60

struct reader {
	struct list *l;
	const struct list_options *options;
	uint32_t line;
};

struct words { // of a line: the first one, and how much there is
	const char *at;
	size_t len;           // of the first word
	const char *next;     // the second word, NULL: none
	const char *line_end; // behind the last word
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

__attribute__((format(printf, 3, 4))) static void problem(struct reader *r, const char *hint,
							  const char *fmt, ...)
{
	va_list ap;
	char text[512];

	r->l->bad++;
	if (r->l->problems.n >= PROBLEMS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	vec_push(&r->l->problems, ((struct list_problem){
					  .line = r->line,
					  .what = pool_strdup(&r->l->pool, text),
					  .hint = pool_strdup(&r->l->pool, hint),
				  }));
}

// ---- files of another kind ------------------------------------------------------------------------

static bool word_is(const char *at, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(at, word, len);
}

static size_t word_len(const char *at, const char *end)
{
	size_t n = 0;

	while (at + n < end && !is_blank(at[n]))
		n++;
	return n;
}

static bool any_word(const char *at, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (word_is(at, len, words[i]))
			return true;
	return false;
}

static bool is_nft(const struct words *w)
{
	static const char *const first[] = {"table",    "chain",  "flush",
					    "elements", "define", "type"};
	static const char *const second[] = {"element", "table", "set", "chain", "rule"};

	if (memchr(w->at, '{', (size_t)(w->line_end - w->at)) || word_is(w->at, w->len, "}"))
		return true;
	if (!w->next)
		return false;
	return any_word(w->at, w->len, first, ARRAY_SIZE(first)) ||
	       (word_is(w->at, w->len, "add") &&
		any_word(w->next, word_len(w->next, w->line_end), second, ARRAY_SIZE(second)));
}

static bool is_ipset(const struct words *w)
{
	return w->next && (word_is(w->at, w->len, "create") || word_is(w->at, w->len, "add"));
}

static bool is_hosts(const struct words *w)
{
	size_t len = w->next ? word_len(w->next, w->line_end) : 0;
	struct addr a;

	return len && addr_parse(w->at, w->len, &a, NULL) == 0 && !addr_looks_like(w->next, len) &&
	       memchr(w->next, ',', len) == NULL;
}

static bool is_csv(const struct words *w)
{
	return memchr(w->at, ',', (size_t)(w->line_end - w->at));
}

static const char *kind_of_file(const struct words *w)
{
	if (is_nft(w))
		return "an nft file";
	if (is_ipset(w))
		return "the output of 'ipset save'";
	if (is_csv(w))
		return "a CSV file";
	if (is_hosts(w))
		return "a hosts file";
	return NULL;
}

// ---- entries ------------------------------------------------------------------------------------

static bool is_loopback(const struct prefix *p)
{
	static const struct prefix loopback[] = {
		{.addr = {.family = 4, .bytes = {127}}, .len = 8},
		{.addr = {.family = 6, .bytes = {[15] = 1}}, .len = 128},
	};

	return prefix_overlaps(p, &loopback[p->addr.family == 6]);
}

static bool is_wide(const struct prefix *p)
{
	return p->len < (p->addr.family == 4 ? 8 : 16);
}

static void add_prefixes(struct reader *r, const struct words *w, const struct prefix *prefixes,
			 size_t n)
{
	struct place place = {.file = r->options->file, .line = r->line};

	for (size_t i = 0; i < n && !r->options->wide; i++)
		if (is_wide(&prefixes[i]) || is_loopback(&prefixes[i])) {
			problem(r, "'wide' lets it in", "'%.*s' is %s", (int)w->len, w->at,
				is_wide(&prefixes[i]) ? "shorter than /8 (IPv4) or /16 (IPv6)"
						      : "loopback");
			return;
		}
	for (size_t i = 0; i < n; i++)
		cidr_add(&r->l->set, &prefixes[i], false, place);
	r->l->good++;
}

static void add_name(struct reader *r, const struct words *w)
{
	char name[256] = "", text[160];
	const char *what = "is not a host name: longer than 253 letters";

	if (w->len < sizeof(name)) {
		memcpy(name, w->at, w->len);
		what = memchr(name, '\0', w->len) ? "is not an address"
		       : !strchr(name, '.')       ? "is not an address, nor a name with a dot"
						  : host_problem(name, text, sizeof(text));
	}
	if (what) {
		problem(r, NULL, "'%.*s' %s", (int)(w->len < SHOWN_MAX ? w->len : SHOWN_MAX), w->at,
			what);
		return;
	}
	if (r->l->names.n == POLICY_FILE_NAMES) {
		if (!r->l->refused)
			problem(r, NULL, "more than %d host names in one file", POLICY_FILE_NAMES);
		r->l->refused = true;
		return;
	}
	host_normal(name, name);
	vec_push(&r->l->names,
		 ((struct list_name){.name = pool_strdup(&r->l->pool, name), .line = r->line}));
	r->l->good++;
}

// A word that is no prefix: a range, a name, or wrong.
static void add_other(struct reader *r, const struct words *w)
{
	bool address = addr_looks_like(w->at, w->len);
	struct prefix pieces[254];
	struct err err = {0}, *explain = r->l->problems.n < PROBLEMS_MAX ? &err : NULL;
	size_t n = 1;
	int result;

	if (!address) {
		add_name(r, w);
		return;
	}
	if (memchr(w->at, '-', w->len))
		result = range_parse(w->at, w->len, pieces, &n, explain);
	else
		result = prefix_parse(w->at, w->len, pieces, NULL, explain);
	if (result < 0)
		problem(r, err.hint[0] ? err.hint : NULL, "%s", err.text);
	else
		add_prefixes(r, w, pieces, n);
}

// ---- lines --------------------------------------------------------------------------------------

static void refuse(struct reader *r, const char *kind)
{
	r->l->refused = true;
	r->l->problems.n = 0; // they only follow from this
	problem(r, "a list has one address, prefix, range or name a line", "this is %s", kind);
}

static void read_words(struct reader *r, const struct words *w)
{
	struct prefix p;
	bool mapped = false;
	const char *kind;

	if (!w->next && prefix_parse(w->at, w->len, &p, &mapped, NULL) == 0) {
		if (mapped && !r->l->mapped)
			r->l->mapped = r->line;
		add_prefixes(r, w, &p, 1);
		return;
	}
	kind = kind_of_file(w);
	if (kind)
		refuse(r, kind);
	else if (w->next)
		problem(r, "one address, prefix, range or name a line", "more than one word");
	else
		add_other(r, w);
}

// Cuts blanks and the comment off; false for an empty line.
static bool cut(const char *at, const char *end, struct words *ret)
{
	const char *word_end;

	while (at < end && is_blank(*at))
		at++;
	for (word_end = at; word_end < end && !is_blank(*word_end); word_end++)
		if (*word_end == '#' || *word_end == ';')
			break;
	*ret = (struct words){.at = at, .len = (size_t)(word_end - at), .line_end = word_end};
	if (word_end == end || *word_end == '#' || *word_end == ';')
		return ret->len > 0;
	for (at = word_end; at < end && *at != '#' && *at != ';'; at++) {
		if (is_blank(*at))
			continue;
		if (!ret->next)
			ret->next = at;
		ret->line_end = at + 1;
	}
	return true;
}

void list_read(struct list *l, const char *text, size_t len, const struct list_options *options)
{
	struct reader r = {.l = l, .options = options};
	const char *end = text + len;

	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3;
	while (text < end && !l->refused) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct words w;

		r.line++;
		if (cut(text, newline ? newline : end, &w))
			read_words(&r, &w);
		text = newline ? newline + 1 : end;
	}
}

void list_free(struct list *l)
{
	cidr_free(&l->set);
	vec_free(&l->names);
	vec_free(&l->problems);
	pool_free(&l->pool);
}
