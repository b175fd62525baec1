// SPDX-License-Identifier: GPL-2.0-only
// Reads lists of items to block in one pass; a plain line needs no separate allocation.
#include "ctl/control/entries/items.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/addr_explain.h"
#include "ctl/base/addr_range.h"
#include "ctl/base/geo.h"
#include "ctl/base/lines.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/net/dns.h"

#define STRINGS_CHUNK 65536 // bytes
#define RANGE_MAX     254   // prefixes, see range_parse
#define SHOWN_MAX     60    // bytes of a word that a message repeats
#define NO_LINE       0     // the command line

struct items_strings {
	struct items_strings *next;
	size_t used, size;
	char at[];
};

// A line that is being read.
struct item_line {
	struct items *items;
	struct lines in; // line number, and the rest of the line
	bool wide;
	struct word what, note; // as written
	struct item item;       // options, and other values that all items of the line share
	struct prefix prefixes[RANGE_MAX]; // n prefixes; none for a name
	size_t n;
	bool mapped;
};

void items_free(struct items *b)
{
	for (struct items_strings *chunk = b->strings, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	vec_free(&b->items);
	vec_free(&b->errors);
	*b = (struct items){0};
}

// Returns a copy of the word that lives as long as the items.
static char *keep(struct items *b, struct word w)
{
	struct items_strings *chunk = b->strings;
	char *copy;

	if (!chunk || chunk->size - chunk->used <= w.len) {
		size_t size = w.len < STRINGS_CHUNK ? STRINGS_CHUNK : w.len + 1;

		chunk = mem_realloc(NULL, sizeof(*chunk) + size, 1);
		*chunk = (struct items_strings){.next = b->strings, .size = size};
		b->strings = chunk;
	}
	copy = chunk->at + chunk->used;
	memcpy(copy, w.at, w.len);
	copy[w.len] = '\0';
	chunk->used += w.len + 1;
	return copy;
}

static bool errors_are_kept(const struct items *b)
{
	return b->errors.n < ITEMS_ERRORS_MAX;
}

// Counts an error of a line, and keeps its sentence if the error is among the first.
__attribute__((format(printf, 2, 3))) static int refuse(struct item_line *l, const char *fmt, ...)
{
	struct items *b = l->items;
	char text[1024];
	va_list ap;

	b->error_count++;
	if (!errors_are_kept(b))
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	vec_push(&b->errors, ((struct items_error){.line = l->in.number}));
	text_put_shown(vec_last(&b->errors)->text, sizeof(vec_last(&b->errors)->text), text);
	return -EINVAL;
}

// For "%.*s": a word as a message quotes it.
#define SHOWN(w) (int)((w).len < SHOWN_MAX ? (w).len : SHOWN_MAX), (w).at

// Refuses the line with the sentence and the hint that the parser of addresses has for the word.
static int explain(struct item_line *l, struct word w, bool range)
{
	struct err err = {0};

	if (!errors_are_kept(l->items))
		return refuse(l, "not kept");
	if (range)
		range_parse(w.at, w.len, l->prefixes, &l->n, &err);
	else
		prefix_parse(w.at, w.len, l->prefixes, NULL, &err);
	return refuse(l, err.hint[0] ? "%s (%s)" : "%s", err.text, err.hint);
}

// Feeds and broken resolvers put such entries into lists by mistake.
const char *items_wide_problem(const struct prefix *p)
{
	if (p->len < (p->addr.family == 4 ? 8 : 16))
		return p->addr.family == 4 ? "is shorter than /8" : "is shorter than /16";
	if (addr_is_loopback(&p->addr))
		return "is loopback";
	return addr_is_unspecified(&p->addr) ? "contains the unspecified address" : NULL;
}

static int check_width(struct item_line *l)
{
	for (size_t i = 0; i < l->n && !l->wide; i++) {
		const char *problem = items_wide_problem(&l->prefixes[i]);

		if (problem)
			return refuse(l, "'%.*s' %s (--wide allows it)", SHOWN(l->what), problem);
	}
	return 0;
}

// Refuses the keywords of the language, which are no names here or in a policy.
static int check_keyword(struct item_line *l)
{
	static const char *const options[] = {"for", "note", "to", "both", "from"};
	static const char *const keywords[] = {"not", "host", "self"};

	if (geo_is_as_number(l->what.at, l->what.len))
		return refuse(l, "'%.*s' is an autonomous system (write asn %.*s)", SHOWN(l->what),
			      (int)l->what.len - 2, l->what.at + 2);
	if (word_is(l->what, "any"))
		return refuse(l, "'any' is every address (write 0.0.0.0/0 or ::/0)");
	if (word_is_one_of(l->what, options, ARRAY_SIZE(options)))
		return refuse(l, "missing address before '%.*s'", SHOWN(l->what));
	if (word_is_one_of(l->what, keywords, ARRAY_SIZE(keywords)))
		return refuse(l,
			      "'%.*s' is a keyword of the policy language (write an address or a "
			      "host name)",
			      SHOWN(l->what));
	return 0;
}

// Reads the rest of "country DE" after the keyword. The name is the result of geo_format.
static int parse_geo(struct item_line *l, enum geo_kind kind)
{
	struct word word = lines_word(&l->in);
	struct err err = {0};
	struct geo geo;
	geo_text name;

	if (!word.len)
		return refuse(l, kind == GEO_COUNTRY
					 ? "missing code after 'country' (write country DE)"
					 : "missing number after 'asn' (write asn 64500)");
	if (geo_parse(kind, word.at, word.len, &geo, &err))
		return refuse(l, "%s (%s)", err.text, err.hint);
	if (l->items->geos == ITEMS_GEOS_MAX)
		return refuse(l, "more than %d countries and autonomous systems", ITEMS_GEOS_MAX);
	geo_format(&geo, name);
	l->item.name = keep(l->items, (struct word){name, strlen(name)});
	return 0;
}

static int parse_name(struct item_line *l)
{
	char buf[256];
	const char *problem;

	if (check_keyword(l) < 0)
		return -EINVAL;
	problem = dns_name_problem(l->what.at, l->what.len, buf, sizeof(buf));
	if (problem)
		return refuse(l, "%s", problem);
	if (l->items->names == ITEMS_NAMES_MAX)
		return refuse(l, "more than %d host names", ITEMS_NAMES_MAX);
	return 0;
}

// Does a word that looks like an address mean a range? Names and lengths may have a '-', too.
static bool looks_like_range(struct word w)
{
	const char *dash = memchr(w.at, '-', w.len);

	return dash && (dash == w.at || addr_looks_like(w.at, (size_t)(dash - w.at)));
}

// Finds the address in "1.2.3.4:80", "[2001:db8::1]:80" or "2001:db8::1%eth0".
static bool address_in(struct word w, char separator, struct word *ret_rest, addr_text ret)
{
	const char *at = memchr(w.at, separator, w.len);
	struct word host = {w.at, at ? (size_t)(at - w.at) : 0};
	struct addr a;

	if (at && host.len && host.at[0] == '[') {
		const char *end = memchr(w.at, ']', w.len);

		if (!end || (size_t)(end - w.at) + 1 >= w.len || end[1] != separator)
			return false;
		at = end + 1;
		host = (struct word){w.at + 1, (size_t)(end - w.at) - 1};
	}
	if (!at || addr_parse(host.at, host.len, &a, NULL))
		return false;
	*ret_rest = (struct word){at + 1, w.len - (size_t)(at + 1 - w.at)};
	addr_format(&a, ret);
	return true;
}

// Refuses more than an address: an entry applies to all packets of an address, on all interfaces,
// and other words of policies would be ignored.
static int refuse_more(struct item_line *l)
{
	addr_text host;
	struct word rest;

	if (address_in(l->what, '%', &rest, host))
		return refuse(
			l,
			"'%.*s' names an interface (an entry applies to all interfaces of the instance: write %s)",
			SHOWN(l->what), host);
	if (!address_in(l->what, ':', &rest, host))
		return 0;
	return refuse(
		l,
		"'%.*s' is an address with a port (an entry matches the whole address: write %s; a port needs a rule: weir rule add … from %s to any port %.*s)",
		SHOWN(l->what), host, host, SHOWN(rest));
}

static bool has_byte(struct word w, char c)
{
	return w.len && memchr(w.at, c, w.len);
}

// Refuses lists: "1.2.3.4,5.6.7.8"
static int refuse_comma(struct item_line *l)
{
	struct word w = l->what;

	if (!has_byte(w, ','))
		return 0;
	return refuse(l, "'%.*s' %s a comma (%s)", SHOWN(w),
		      w.at[w.len - 1] == ',' ? "ends in" : "contains",
		      l->in.number == NO_LINE ? "separate items with blanks"
					      : "write one item per line");
}

// Refuses more than a host name.
static int refuse_url(struct item_line *l)
{
	struct word w = l->what;
	const char *colon = memchr(w.at, ':', w.len);
	char buf[256];

	if (colon && (size_t)(colon - w.at) + 2 < w.len && !memcmp(colon, "://", 3))
		return refuse(l, "'%.*s' is a URL (write only its host name)", SHOWN(w));
	if (colon && colon == memrchr(w.at, ':', w.len) &&
	    !dns_name_problem(w.at, (size_t)(colon - w.at), buf, sizeof(buf)))
		return refuse(
			l,
			"'%.*s' is a host name with a port (an entry matches all of its addresses: write %.*s)",
			SHOWN(w), (int)(colon - w.at), w.at);
	return 0;
}

// Refuses a word that is neither a prefix nor a range, with the reason.
static int parse_other(struct item_line *l)
{
	int code;

	if (memchr(l->what.at, '\0', l->what.len))
		return refuse(l, "NUL byte in the line (is this a text file?)");
	if (word_is(l->what, "0/0") || word_is(l->what, "*"))
		return refuse(l, "'%.*s' is not an address (write 0.0.0.0/0 or ::/0)",
			      SHOWN(l->what));
	if ((code = refuse_comma(l)) || (code = refuse_more(l)) || (code = refuse_url(l)))
		return code;
	if (!l->what.len || addr_looks_like(l->what.at, l->what.len))
		return explain(l, l->what, looks_like_range(l->what));
	return parse_name(l);
}

static int read_prefix(struct item_line *l)
{
	struct word w = l->what;

	if (l->items->mask)
		return prefix_parse_masked(w.at, w.len, l->prefixes, &l->mapped);
	return prefix_parse_quiet(w.at, w.len, l->prefixes, &l->mapped);
}

// The parsers are tried first: they cost less than the functions that recognise what a word looks
// like.
static int parse_what(struct item_line *l)
{
	struct word w = l->what;
	enum geo_kind geo = geo_keyword(w.at, w.len);

	l->n = 1;
	if (!read_prefix(l))
		return check_width(l);
	if (memchr(w.at, '-', w.len) && !range_parse_quiet(w.at, w.len, l->prefixes, &l->n))
		return check_width(l);
	l->n = 0;
	return geo ? parse_geo(l, geo) : parse_other(l);
}

static int parse_for(struct item_line *l)
{
	struct word time = lines_word(&l->in);
	int code;

	if (l->item.for_ms)
		return refuse(l, "duplicate 'for'");
	code = num_parse_time_ms(time.at, time.len, 1, ITEMS_FOR_MAX_MS, &l->item.for_ms);
	if (code == -ERANGE)
		return refuse(l, "'%.*s' is out of range (1ms to 36525d)", SHOWN(time));
	if (code < 0)
		return refuse(l, "'%.*s' is not a time (write for 30s, 10m, 12h, 7d)", SHOWN(time));
	return 0;
}

static int parse_direction(struct item_line *l, bool both)
{
	if (l->item.to || l->item.both)
		return refuse(l, "duplicate direction (write one of to, both)");
	l->item.to = !both;
	l->item.both = both;
	return 0;
}

static bool is_printable(struct word w)
{
	for (size_t i = 0, n; i < w.len; i += n) {
		n = text_shown(w.at + i, w.len - i);
		if (!n)
			return false;
	}
	return true;
}

// Returns how many bytes of s, which is valid UTF-8, fit into ITEMS_NOTE_MAX without half a code
// point.
static size_t fitting(const struct text *s)
{
	size_t n = s->len < ITEMS_NOTE_MAX ? s->len : ITEMS_NOTE_MAX;

	while (n < s->len && n && ((uint8_t)s->at[n] & 0xc0) == 0x80)
		n--;
	return n;
}

bool items_add_note(struct text *t, const char *note)
{
	CLEANUP_TEXT struct text clean = {0};

	text_add_shown(&clean, note, strlen(note));
	for (size_t c = 0; c < clean.len; c++)
		if (clean.at[c] == '"')
			clean.at[c] = '\'';
		else if (clean.at[c] == '\t')
			clean.at[c] = ' ';
	clean.len = fitting(&clean);
	text_addn(t, text_get(&clean), clean.len);
	return clean.len == strlen(note) && !memcmp(text_get(&clean), note, clean.len);
}

static int parse_note(struct item_line *l)
{
	const char *quote;

	if (l->note.at)
		return refuse(l, "duplicate 'note'");
	while (l->in.at < l->in.end && lines_blank(*l->in.at))
		l->in.at++;
	if (l->in.at == l->in.end || *l->in.at != '"')
		return refuse(l, "missing quotes around the note (write note \"TEXT\")");
	l->note.at = ++l->in.at;
	quote = memchr(l->in.at, '"', (size_t)(l->in.end - l->in.at));
	if (!quote)
		return refuse(l, "missing closing quote of the note");
	l->note.len = (size_t)(quote - l->in.at);
	l->in.at = quote + 1;
	if (!l->note.len || l->note.len > ITEMS_NOTE_MAX)
		return refuse(l, "a note has 1 to %d bytes", ITEMS_NOTE_MAX);
	if (!is_printable(l->note))
		return refuse(l, "the note contains unprintable bytes");
	if (l->in.at < l->in.end && !lines_blank(*l->in.at) && !lines_comment(*l->in.at))
		return refuse(l, "missing blank after the note");
	return 0;
}

// Refuses "A - B" and "A -B": the parser of ranges prints the right form.
static int refuse_blanks(struct item_line *l, struct word dash)
{
	struct word range = {.at = l->what.at};

	if (dash.len == 1)
		lines_word(&l->in);
	range.len = (size_t)(l->in.at - range.at);
	return explain(l, range, true);
}

static int refuse_option(struct item_line *l, struct word w)
{
	struct prefix p;

	if (w.at[0] == '-' && l->n)
		return refuse_blanks(l, w);
	if (word_is(w, "from"))
		return refuse(l, "'from' is not written (it is the default direction)");
	if (word_is(w, "port") || word_is(w, "on") || word_is(w, "proto"))
		return refuse(l, "'%.*s' needs a rule in the policy (a list has addresses only)",
			      SHOWN(w));
	if (!prefix_parse_quiet(w.at, w.len, &p, NULL))
		return refuse(l, "unexpected second address '%.*s' (write one per line)", SHOWN(w));
	return refuse(l, "unexpected '%.*s' (after the address: for TIME, to, both, note \"TEXT\")",
		      SHOWN(w));
}

static int parse_option(struct item_line *l, struct word w)
{
	if (word_is(w, "for"))
		return parse_for(l);
	if (word_is(w, "to") || word_is(w, "both"))
		return parse_direction(l, w.at[0] == 'b');
	if (word_is(w, "note"))
		return parse_note(l);
	return refuse_option(l, w);
}

static int parse_options(struct item_line *l)
{
	for (struct word w = lines_word(&l->in); w.len; w = lines_word(&l->in)) {
		int code = parse_option(l, w);

		if (code)
			return code;
	}
	return 0;
}

static void add_name(struct item_line *l)
{
	char *name = keep(l->items, l->what);

	for (char *c = name; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c | 0x20);
	l->item.name = name;
	vec_push(&l->items->items, l->item);
	l->items->names++;
}

static void add_geo(struct item_line *l)
{
	vec_push(&l->items->items, l->item);
	l->items->geos++;
}

// Makes the items of a valid line.
static void add_items(struct item_line *l)
{
	struct items *b = l->items;

	if (b->items.n + (l->n ? l->n : 1) > ITEMS_MAX) {
		refuse(l, "more than %u prefixes and names", ITEMS_MAX);
		return;
	}
	if (l->note.at)
		l->item.note = keep(b, l->note);
	b->mapped += l->mapped;
	if (l->item.name)
		add_geo(l);
	else if (!l->n)
		add_name(l);
	for (size_t i = 0; i < l->n; i++) {
		l->item.prefix = l->prefixes[i];
		vec_push(&b->items, l->item);
	}
}

// Refuses, among the words of the command line, the words that a line of a list or a rule has after
// an address: "1.2.3.4 for 10m", "1.2.3.4 port 80". Returns how many words that is; 0: the first
// word is an item.
static size_t refuse_words(struct item_line *l, const char *const *words, size_t n)
{
	static const struct {
		const char *word;
		size_t takes;
		const char *option; // instead; NULL: a rule has it
	} others[] = {
		{"for", 2, "--for"},   {"note", 2, "--note"}, {"to", 1, "--to"},
		{"both", 1, "--both"}, {"port", 2, NULL},     {"proto", 2, NULL},
	};
	const char *word = words[0];
	const struct item *before;
	addr_text address;
	size_t i = 0;

	while (i < ARRAY_SIZE(others) && strcmp(word, others[i].word) != 0)
		i++;
	if (i == ARRAY_SIZE(others) || !l->items->items.n)
		return 0;
	if (others[i].takes > n) {
		refuse(l, "the value after '%s' is missing", word);
		return n;
	}
	before = vec_last(&l->items->items);
	if (!others[i].option)
		refuse(l,
		       "unexpected '%s' (an entry matches the whole address; a %s needs a rule: weir rule add … from %s %s%s %s)",
		       word, word,
		       before->name ? before->name : prefix_format(&before->prefix, address),
		       strcmp(word, "port") ? "" : "to any ", word, words[1]);
	else
		refuse(l, "unexpected '%s' (write %s%s%s)", word, others[i].option,
		       others[i].takes > 1 ? " " : "", others[i].takes > 1 ? words[1] : "");
	return others[i].takes;
}

// Finds the second part of "country DE" as one word, which is the form of messages and documents.
static const char *second_part(const char *word)
{
	const char *blank = strchr(word, ' ');

	return blank && geo_keyword(word, (size_t)(blank - word)) && !strchr(blank + 1, ' ')
		       ? blank + 1
		       : NULL;
}

size_t items_add_words(struct items *b, const char *const *words, size_t n)
{
	bool two = n > 1 && geo_keyword(words[0], strlen(words[0]));
	const char *second = two ? words[1] : second_part(words[0]);
	struct item_line l;
	size_t refused;

	// Only these members are set, since the prefixes are 4.6 kB that need no zeros.
	l.items = b;
	l.in = (struct lines){.number = NO_LINE};
	l.wide = true;
	l.what = (struct word){words[0], strlen(words[0])};
	if (second) {
		l.in.at = second;
		l.in.end = second + strlen(second);
		l.what.len = two ? l.what.len : (size_t)(second - 1 - words[0]);
	}
	l.note = (struct word){0};
	l.item = (struct item){.line = NO_LINE};
	l.mapped = false;
	if ((refused = refuse_words(&l, words, n)))
		return refused;
	if (parse_what(&l) == 0)
		add_items(&l);
	return two ? 2 : 1;
}

// Beginning of the first line that is not empty, for the detection of other formats.
struct sample {
	struct word line, words[3];
};

static bool is_html(const struct sample *s)
{
	return s->line.at[0] == '<';
}

static bool is_json(const struct sample *s)
{
	return s->line.at[0] == '{' || word_is(s->words[0], "[") ||
	       word_begins(s->words[0], "[{") || word_begins(s->words[0], "[\"");
}

// Is the line a command? Its first word is followed by a word that is not an option here, since a
// host may be called "add".
static bool is_command(const struct sample *s, const char *const *verbs)
{
	static const char *const options[] = {"for", "to", "both", "note"};

	while (*verbs && !word_is(s->words[0], *verbs))
		verbs++;
	return *verbs && s->words[1].len &&
	       !word_is_one_of(s->words[1], options, ARRAY_SIZE(options));
}

static bool is_ipset(const struct sample *s)
{
	static const char *const nft[] = {"table", "chain", "set", "element", "rule", "map"};

	return s->words[2].len && !word_is_one_of(s->words[1], nft, ARRAY_SIZE(nft));
}

// Is the line ADDRESS NAME? The name must show that it is not a misspelt option.
static bool is_hosts(const struct sample *s)
{
	static const char *const locals[] = {"localhost", "broadcasthost"};
	struct word name = s->words[1];
	struct addr a;

	if (!name.len || addr_parse(s->words[0].at, s->words[0].len, &a, NULL) < 0)
		return false;
	if (addr_looks_like(name.at, name.len))
		return false;
	return has_byte(name, '.') || word_begins(name, "ip6-") ||
	       word_is_one_of(name, locals, ARRAY_SIZE(locals));
}

static bool is_csv(const struct sample *s)
{
	return has_byte(s->words[0], ',') || s->line.at[0] == '"' || word_is(s->words[1], ",");
}

static const struct {
	const char *what, *hint;
	bool (*matches)(const struct sample *s); // NULL: each
	const char *verbs[10];                   // of a command; none: the line is no command
} formats[] = {
	{"HTML", "is it an error page?", .matches = is_html},
	{"JSON", "extract the addresses with jq -r", .matches = is_json},
	{"a policy", "weir apply puts it into effect",
	 .verbs = {"interface", "service", "default", "include"}},
	{"output of ipset save", "extract the addresses: awk '/^add/ { print $3 }'",
	 .matches = is_ipset, .verbs = {"create", "add"}},
	{"a file of nft", "extract the elements, one per line",
	 .verbs = {"add", "create", "define", "delete", "destroy", "flush", "set", "elements",
		   "table"}},
	{"a hosts file", "extract the names: awk '!/^#/ { print $2 }'", .matches = is_hosts},
	{"CSV", "extract the column with the addresses: cut -d, -f1", .matches = is_csv},
};

// Returns 0, or an error that names the format of the text.
static int check_format(const struct item_line *line)
{
	struct item_line l = *line;
	struct sample s = {.line = {l.in.at, (size_t)(l.in.end - l.in.at)}};

	for (size_t i = 0; i < ARRAY_SIZE(s.words); i++)
		s.words[i] = lines_word(&l.in);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if ((!formats[i].matches || formats[i].matches(&s)) &&
		    (!formats[i].verbs[0] || is_command(&s, formats[i].verbs)))
			return refuse(&l, "this is %s, not a list (%s)", formats[i].what,
				      formats[i].hint);
	return 0;
}

static void parse_line(struct item_line *l)
{
	l->note = (struct word){0};
	l->item = (struct item){.line = l->in.number};
	l->mapped = false;
	l->what = lines_word(&l->in);
	if (!parse_what(l) && !parse_options(l))
		add_items(l);
}

// Refuses byte order marks and compressed files, which have no lines to inspect.
static int check_start(struct item_line *l, const char *text, size_t len)
{
	struct word start = {text, len};

	if (len > ITEMS_BYTES_MAX)
		return refuse(l, "the list is larger than %u MB", ITEMS_BYTES_MAX >> 20);
	if (word_begins(start, "\xff\xfe") || word_begins(start, "\xfe\xff"))
		return refuse(l, "this is UTF-16, not a list (iconv -f UTF-16 -t UTF-8)");
	if (word_begins(start, "\x1f\x8b") || word_begins(start, "PK\x03\x04") ||
	    word_begins(start, "\xfd"
			       "7zXZ"))
		return refuse(l, "this is compressed (unpack it first)");
	return 0;
}

void items_add_text(struct items *b, const char *text, size_t len, bool wide)
{
	struct item_line l = {.items = b, .wide = wide, .in = {.number = 1}};
	bool known = false;

	if (check_start(&l, text, len) < 0)
		return;
	for (l.in = lines_of(text, len); lines_next(&l.in);) {
		if (!known && check_format(&l) < 0)
			return;
		known = true;
		parse_line(&l);
	}
}
