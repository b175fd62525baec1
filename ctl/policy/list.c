// SPDX-License-Identifier: GPL-2.0-only
// Reads list files: a valid line costs a few comparisons and one prefix_parse; errors may be slow.
#include "ctl/policy/list.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/addr_explain.h"
#include "ctl/base/lines.h"
#include "ctl/base/num.h"
#include "ctl/policy/host.h"

#define PROBLEMS_MAX 20
#define SHOWN_MAX    60

struct reader {
	struct list *l;
	const struct list_options *options;
	uint32_t line;
};

struct line_words {                // words of a line: the first two, and their number
	struct word first, second; // second: may be empty
	struct word all;
};

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
					  .what = arena_strdup(&r->l->arena, text),
					  .hint = arena_strdup(&r->l->arena, hint),
				  }));
}

// ---- files of another kind ----------------------------------------------------------------------

static bool has(struct word w, char c)
{
	return memchr(w.at, c, w.len);
}

static bool is_nft(const struct line_words *w)
{
	static const char *const first[] = {"table",    "chain",  "flush",
					    "elements", "define", "type"};
	static const char *const second[] = {"element", "table", "set", "chain", "rule"};

	if (has(w->all, '{') || word_is(w->first, "}"))
		return true;
	if (!w->second.len)
		return false;
	return word_is_one_of(w->first, first, ARRAY_SIZE(first)) ||
	       (word_is(w->first, "add") && word_is_one_of(w->second, second, ARRAY_SIZE(second)));
}

static bool is_ipset(const struct line_words *w)
{
	return w->second.len && (word_is(w->first, "create") || word_is(w->first, "add"));
}

static bool is_hosts(const struct line_words *w)
{
	struct addr a;

	return w->second.len && addr_parse(w->first.at, w->first.len, &a, NULL) == 0 &&
	       !addr_looks_like(w->second.at, w->second.len) && !has(w->second, ',');
}

static bool is_csv(const struct line_words *w)
{
	return has(w->all, ',');
}

static const char *kind_of_file(const struct line_words *w)
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

static void add_prefixes(struct reader *r, struct word w, const struct prefix *prefixes, size_t n)
{
	struct place place = {.file = r->options->file, .line = r->line};

	for (size_t i = 0; i < n && !r->options->wide; i++)
		if (is_wide(&prefixes[i]) || is_loopback(&prefixes[i])) {
			problem(r, "'wide' accepts it", "'%.*s' is %s", (int)w.len, w.at,
				is_wide(&prefixes[i]) ? "shorter than /8 (IPv4) or /16 (IPv6)"
						      : "loopback");
			return;
		}
	for (size_t i = 0; i < n; i++)
		cidr_add(&r->l->set, &prefixes[i], false, place);
	r->l->good++;
}

static void add_name(struct reader *r, struct word w)
{
	char name[256] = "", text[160];
	const char *what = "is not a host name: longer than 253 letters";

	if (w.len < sizeof(name)) {
		memcpy(name, w.at, w.len);
		what = memchr(name, '\0', w.len) ? "is not an address"
		       : !strchr(name, '.')      ? "is not an address, nor a name with a dot"
						 : host_problem(name, text, sizeof(text));
	}
	if (what) {
		problem(r, NULL, "'%.*s' %s", (int)(w.len < SHOWN_MAX ? w.len : SHOWN_MAX), w.at,
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
		 ((struct list_name){.name = arena_strdup(&r->l->arena, name), .line = r->line}));
	r->l->good++;
}

// A word that is not a prefix: a range, a name, or invalid.
static void add_other(struct reader *r, struct word w)
{
	bool address = addr_looks_like(w.at, w.len);
	struct prefix pieces[254];
	struct err err = {0}, *explain = r->l->problems.n < PROBLEMS_MAX ? &err : NULL;
	size_t n = 1;
	int code;

	if (!address) {
		add_name(r, w);
		return;
	}
	if (memchr(w.at, '-', w.len))
		code = range_parse(w.at, w.len, pieces, &n, explain);
	else
		code = prefix_parse(w.at, w.len, pieces, NULL, explain);
	if (code < 0)
		problem(r, err.hint[0] ? err.hint : NULL, "%s", err.text);
	else
		add_prefixes(r, w, pieces, n);
}

// ---- lines --------------------------------------------------------------------------------------

static void refuse(struct reader *r, const char *kind)
{
	r->l->refused = true;
	r->l->problems.n = 0; // they only follow from this
	problem(r, "a list has one address, prefix, range or name per line", "this is %s", kind);
}

static void read_words(struct reader *r, const struct line_words *w)
{
	struct prefix p;
	bool mapped = false;
	const char *kind;

	if (!w->second.len && prefix_parse_quiet(w->first.at, w->first.len, &p, &mapped) == 0) {
		if (mapped && !r->l->mapped)
			r->l->mapped = r->line;
		add_prefixes(r, w->first, &p, 1);
		return;
	}
	kind = kind_of_file(w);
	if (kind)
		refuse(r, kind);
	else if (w->second.len)
		problem(r, "one address, prefix, range or name per line", "more than one word");
	else
		add_other(r, w->first);
}

// The words of the line that has been reached.
static struct line_words cut(struct lines *l)
{
	struct line_words w = {.first = lines_word(l)};

	w.all = w.first;
	w.second = lines_word(l);
	for (struct word last = w.second; last.len; last = lines_word(l))
		w.all.len = (size_t)(last.at + last.len - w.all.at);
	return w;
}

void list_read(struct list *l, const char *text, size_t len, const struct list_options *options)
{
	struct reader r = {.l = l, .options = options};
	struct lines in = lines_of(text, len);

	while (!l->refused && lines_next(&in)) {
		struct line_words w = cut(&in);

		r.line = in.number;
		read_words(&r, &w);
	}
}

void list_free(struct list *l)
{
	cidr_free(&l->set);
	vec_free(&l->names);
	vec_free(&l->problems);
	arena_free(&l->arena);
}
