// SPDX-License-Identifier: GPL-2.0-only
// Keeps the matches of "-A CHAIN MATCHES -j TARGET" that are translated exactly.
#include "ctl/import/iptables.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/split.h"
#include "ctl/import/save_words.h"
#include "ctl/import/words.h"

// For a match that is missing here, the condition is omitted.
static const char *const matches[] = {
	"tcp",   "udp",       "sctp",    "icmp",    "icmp6", "state", "length",  "multiport",
	"limit", "conntrack", "comment", "iprange", "ttl",   "hl",    "pkttype", "mac"};
static const char *const targets[] = {"ACCEPT", "DROP",     "REJECT", "RETURN",
				      "DNAT",   "REDIRECT", "SNAT",   "MASQUERADE"};

struct save_chain {
	char *name, *nft; // in the text, and for nft
};

#define COMMENT 128

struct save_reader {
	VEC(struct save_chain) chains; // in this table
	struct iptables_save *ret;
	bool taken; // the table is filter or nat
	bool nat;
	bool open; // COMMIT is missing
	size_t number;
};

struct save_line {
	const char *const *words;
	size_t n;
	struct text kept;
	struct import_mark mark;
	bool unknown; // has a condition that became the mark
};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

static void keep(struct save_line *l, const char *word)
{
	bool bare = word[0] && !strpbrk(word, " \t'");

	text_addf(&l->kept, "%s%s%s%s", l->kept.len ? " " : "", bare ? "" : "\"", word,
		  bare ? "" : "\"");
}

// The translator does not escape a comment, and nft has at most 128 bytes.
static void keep_comment(struct save_line *l, const char *text)
{
	char clean[COMMENT + 1];
	size_t n = 0;

	for (; text[n] && n < COMMENT; n++)
		clean[n] =
			text[n] < ' ' || text[n] > '~' || strchr("\"\\", text[n]) ? '_' : text[n];
	clean[n] = '\0';
	keep(l, clean);
}

static void keep_words(struct save_line *l, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (i && !strcmp(l->words[i - 1], "--comment"))
			keep_comment(l, l->words[i]);
		else
			keep(l, l->words[i]);
}

// The index after the options of a match, which begin at i.
static size_t end_of(const struct save_line *l, size_t i)
{
	while (i < l->n && !save_begins_next(l->words[i]) &&
	       !(!strcmp(l->words[i], "!") && i + 1 < l->n && save_begins_next(l->words[i + 1])))
		i = save_next(l->words, l->n, i);
	return i;
}

static const char *value_of(const struct save_line *l, size_t first, size_t end, const char *option)
{
	for (size_t i = first; i + 1 < end; i = save_next(l->words, end, i))
		if (!strcmp(l->words[i], option))
			return l->words[i + 1];
	return NULL;
}

// ---- lines --------------------------------------------------------------------------------------

// A line that the translator may not read as iptables does is refused.
static int check_line(const struct save_line *l, bool taken, struct err *err)
{
	for (size_t i = 2; taken && i < l->n; i = save_next(l->words, l->n, i))
		if (strpbrk(l->words[i], "\"\\"))
			return err_input(err, "a quote or backslash in '%.60s'", l->words[i]);
	return save_check(l->words, l->n, err);
}

// Without options, the translator omits the protocol of -p too.
static size_t take_match(struct save_line *l, size_t i, size_t first)
{
	const char *name = i + 1 < l->n ? l->words[i + 1] : "";
	size_t options = i + 2 < l->n ? i + 2 : l->n, end = end_of(l, options);

	if (!is_one_of(name, matches, ARRAY_SIZE(matches)) ||
	    !save_is_exact(name, l->words + options, end - options))
		l->unknown = true;
	else if (!save_is_void(l->words + options, end - options))
		keep_words(l, first, end);
	return end;
}

// Not all options follow -m: "-p tcp --dport 22", "-p tcp -s 10.0.0.1 --dport 22".
static size_t take_general(struct save_line *l, size_t i, size_t first)
{
	static const char *const protocols[] = {"tcp", "udp", "sctp", "icmp", "icmp6"};
	size_t value = !strncmp(l->words[i], "--", 2) ? i
		       : strcmp(l->words[i], "-f")    ? i + 2
						      : i + 1;
	size_t end = end_of(l, i + 1), options = value < end ? value : end;
	bool exact = true;

	for (size_t k = 0; k < ARRAY_SIZE(protocols); k++)
		exact &= save_is_exact(protocols[k], l->words + options, end - options);
	l->unknown |= !exact;
	keep_words(l, first, exact ? end : options);
	return end;
}

// ---- chains -------------------------------------------------------------------------------------

// NULL: the table does not have it.
static const struct save_chain *find_chain(const struct save_reader *r, const char *name)
{
	vec_each (&r->chains, c)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static bool is_nft_name(const struct save_reader *r, const char *name)
{
	vec_each (&r->chains, c)
		if (!strcmp(c->nft, name))
			return true;
	return false;
}

// nft reserves many words, and does not have all characters: chains whose names could be such words
// get other names.
static char *nft_name(const struct save_reader *r, const char *name)
{
	CLEANUP_TEXT struct text t = {0};
	bool word = true;
	size_t len;

	for (size_t i = 0; name[i]; i++) {
		bool known = isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-';

		word &= islower((unsigned char)name[i]) != 0;
		text_addc(&t, !known || (!i && !isalpha((unsigned char)name[i])) ? '_' : name[i]);
	}
	text_add(&t, word ? "_" : "");
	len = t.len;
	for (size_t n = 2; is_nft_name(r, text_get(&t)); n += n < 20 ? 1 : r->chains.n) {
		t.len = len;
		text_addf(&t, "_%zu", n);
	}
	return text_take(&t);
}

static void free_chains(struct save_reader *r)
{
	vec_each (&r->chains, c) {
		free(c->name);
		free(c->nft);
	}
	vec_free(&r->chains);
}

#define CHAINS 10000

static int add_chain(struct save_reader *r, const char *line, struct err *err)
{
	size_t len = strcspn(line, " ");
	CLEANUP_FREE char *name = mem_strndup(line, len);
	struct save_chain c;

	if (!len || r->chains.n >= CHAINS || find_chain(r, name))
		return err_input(err, "line %zu: %s chain '%.60s'", r->number,
				 !len                    ? "no name of the"
				 : r->chains.n >= CHAINS ? "too many chains, at"
							 : "duplicate",
				 name);
	c.nft = nft_name(r, name);
	c.name = TAKE_PTR(name);
	vec_push(&r->chains, c);
	if (r->taken)
		text_addf(&r->ret->text, ":%s%s\n", c.nft, line + len);
	return 0;
}

// ---- targets ------------------------------------------------------------------------------------

static void add_mark(struct save_line *l, struct iptables_marks *marks, const char *original)
{
	if (!l->unknown)
		return;
	text_addf(&l->kept, " -m mark --mark 0x%x", IMPORT_MARK + (unsigned)marks->n);
	l->mark.text = mem_strdup(original);
	vec_push(marks, l->mark);
}

// False: the target neither accepts nor drops, and the line is left out. A target that is not known
// may accept the packet, or send it elsewhere.
static bool take_target(struct save_reader *r, struct save_line *l, size_t i, const char *original)
{
	const char *target = l->words[i + 1];
	const struct save_chain *chain = find_chain(r, target);
	bool logs = !strcmp(target, "LOG"), known = is_one_of(target, targets, ARRAY_SIZE(targets));

	if (!chain && !logs && import_is_harmless(target))
		return false;
	if (!chain && !logs && !known) {
		l->unknown = true;
		l->mark.rewrites = r->nat;
		r->ret->facts.masquerades |= r->nat;
		target = "ACCEPT";
	}
	add_mark(l, &r->ret->marks, original);
	keep(l, l->words[i]);
	keep(l, chain ? chain->nft : target);
	if (known || chain)
		keep_words(l, i + 2, l->n);
	return true;
}

static bool take_words(struct save_reader *r, struct save_line *l, const char *original)
{
	size_t first;

	keep(l, "-A");
	keep(l, find_chain(r, l->words[1])->nft);
	for (size_t i = 2; i < l->n;) {
		first = i;
		if (!strcmp(l->words[i], "!") && i + 1 < l->n)
			i++;
		if (!strcmp(l->words[i], "-j") || !strcmp(l->words[i], "-g"))
			return take_target(r, l, i, original);
		if (!strcmp(l->words[i], "-m"))
			i = take_match(l, i, first);
		else
			i = take_general(l, i, first);
	}
	return false; // a rule that only counts
}

// Does Weir know what the target of another table does to packets?
static bool is_known(const struct save_reader *r, const char *target)
{
	static const char *const known[] = {"ACCEPT", "DROP",    "RETURN", "REJECT",
					    "CT",     "NOTRACK", "DSCP",   "TOS",
					    "TTL",    "HL",      "TPROXY"};

	return import_is_harmless(target) || is_one_of(target, known, ARRAY_SIZE(known)) ||
	       find_chain(r, target);
}

// A rule of a table that is not translated.
static int note_effects(struct save_reader *r, const struct save_line *l, struct err *err)
{
	static const char *const dscp[] = {"DSCP", "TOS"}, *const ttl[] = {"TTL", "HL"};
	struct import_facts *facts = &r->ret->facts;
	const char *target = value_of(l, 0, l->n, "-j");

	for (size_t i = 0; i < l->n; i++) {
		facts->untracks |= !strcmp(l->words[i], "--notrack");
		facts->helpers |= !strcmp(l->words[i], "--helper");
		facts->zones |= !strncmp(l->words[i], "--zone", 6);
	}
	if (!target)
		return 0;
	if (!is_known(r, target))
		return err_input(
			err,
			"line %zu: target '%.60s' may rewrite packets, so that Weir cannot "
			"know which rules they meet",
			r->number, target);
	facts->untracks |= !strcmp(target, "NOTRACK");
	facts->dscp |= is_one_of(target, dscp, ARRAY_SIZE(dscp));
	facts->ttl |= is_one_of(target, ttl, ARRAY_SIZE(ttl));
	facts->diverts |= !strcmp(target, "TPROXY");
	return 0;
}

static int add_rule(struct save_reader *r, const char *at, size_t len, struct err *err)
{
	CLEANUP_SPLIT struct split words = {0};
	CLEANUP_FREE char *original = mem_strndup(at, len);
	struct save_line l = {0};
	int code = split_line(at, len, &words, err);

	l.words = (const char *const *)words.words.at;
	l.n = words.words.n;
	if (code || (code = check_line(&l, r->taken, err)))
		err_prefix(err, "line %zu", r->number);
	else if (l.n < 2 || !find_chain(r, l.words[1]))
		code = err_input(err,
				 "line %zu: a rule of chain '%.60s', which the table does not have",
				 r->number, l.n < 2 ? "" : l.words[1]);
	else if (!r->taken)
		code = note_effects(r, &l, err);
	else if (take_words(r, &l, original))
		text_addf(&r->ret->text, "%s\n", text_get(&l.kept));
	text_free(&l.kept);
	return code;
}

static int read_line(struct save_reader *r, const char *at, size_t len, struct err *err)
{
	CLEANUP_FREE char *line = mem_strndup(at, len);

	if (line[0] == '*' && !r->open) {
		r->nat = !strcmp(line, "*nat");
		r->taken = r->nat || !strcmp(line, "*filter");
		r->open = true;
		free_chains(r);
	} else if (!strcmp(line, "COMMIT") && r->open) {
		r->open = false;
	} else if (line[0] == ':' && r->open) {
		return add_chain(r, line + 1, err);
	} else if (r->open && !strncmp(line, "-A ", 3)) {
		return add_rule(r, at, len, err);
	} else {
		return err_input(err, "line %zu is not of iptables-save: '%.60s'", r->number, line);
	}
	if (r->taken)
		text_addf(&r->ret->text, "%s\n", line);
	return 0;
}

// "# Generated by ip6tables-save v1.8.9 on …"
static int read_comment(struct save_reader *r, const char *at, size_t len, struct err *err)
{
	static const char *const heads[] = {
		"# Generated by iptables-save ", "# Generated by ip6tables-save ",
		"# Generated by iptables-nft-save ", "# Generated by ip6tables-nft-save "};

	for (unsigned i = 0; i < ARRAY_SIZE(heads); i++) {
		uint8_t family = i % 2 ? 6 : 4;

		if (len < strlen(heads[i]) || strncmp(at, heads[i], strlen(heads[i])))
			continue;
		if (r->ret->family && r->ret->family != family)
			return err_input(err,
					 "line %zu: the rules are for IPv6 and IPv4; import each "
					 "family on its own",
					 r->number);
		r->ret->family = family;
	}
	return 0;
}

// "[12:3400] -A INPUT …" of iptables-save -c.
static size_t counters(const char *at, size_t len)
{
	size_t n = 0;

	if (!len || at[0] != '[')
		return 0;
	while (n < len && at[n] != ' ')
		n++;
	return n < len ? n + 1 : 0;
}

static int read_lines(struct save_reader *r, const char *text, size_t len, struct err *err)
{
	for (size_t i = 0, n = 0; i < len; i += n + 1) {
		size_t skip;
		int code = 0;

		for (n = 0; i + n < len && text[i + n] != '\n'; n++)
			;
		skip = counters(text + i, n);
		r->number++;
		if (n && text[i] == '#')
			code = read_comment(r, text + i, n, err);
		else if (n > skip && !(n == skip + 1 && text[i + skip] == '\r'))
			code = read_line(r, text + i + skip, n - skip - (text[i + n - 1] == '\r'),
					 err);
		if (code)
			return code;
	}
	if (r->open)
		return err_input(err, "line %zu: the table has no COMMIT", r->number);
	return r->ret->text.len ? 0 : err_input(err, "there is no table filter or nat");
}

int iptables_prepare(const char *text, size_t len, struct iptables_save *ret, struct err *err)
{
	struct save_reader r = {.ret = ret};
	int code = read_lines(&r, text, len, err);

	free_chains(&r);
	return code;
}

// ---- after the translator -----------------------------------------------------------------------

// The last -j or -g: the translator removes the quotes, so that a comment can have both.
static const char *find_target(const struct split *line, const char **ret_option)
{
	const char *target = NULL;

	for (size_t i = 0; i + 1 < line->words.n; i++) {
		const char *word = line->words.at[i];

		if (!strcmp(word, "-j") || !strcmp(word, "-g")) {
			*ret_option = word;
			target = line->words.at[i + 1];
		}
	}
	return target;
}

// Without quotes there are only blanks between words.
static void split_blanks(const char *line, struct split *ret)
{
	char *at = ret->text = mem_strdup(line);

	for (size_t n; *at; at += n) {
		at += strspn(at, " ");
		n = strcspn(at, " ");
		if (n)
			vec_push(&ret->words, at);
		if (at[n])
			at[n++] = '\0';
	}
}

static const char *nft_verdict(const char *line, struct text *t)
{
	static const char *const verdicts[][2] = {
		{"ACCEPT", "accept"},   {"DROP", "drop"},
		{"REJECT", "drop"},     {"RETURN", "return"},
		{"DNAT", "redirect"},   {"REDIRECT", "redirect"},
		{"SNAT", "masquerade"}, {"MASQUERADE", "masquerade"},
		{"LOG", "log"}};
	CLEANUP_SPLIT struct split words = {0};
	const char *target, *option = "";

	split_blanks(line, &words);
	target = find_target(&words, &option);
	if (!target)
		return "accept";
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (!strcmp(verdicts[i][0], target))
			return verdicts[i][1];
	text_addf(t, "%s %s", option[1] == 'j' ? "jump" : "goto", target);
	return text_get(t);
}

// "# -A INPUT …" or "# -t filter -A INPUT …": the rule. NULL: another line.
static const char *left_rule(const char *line)
{
	const char *rule = line + 2;

	if (!strncmp(line, "# -t ", 5)) {
		rule = line + 5 + strcspn(line + 5, " ");
		rule += rule[0] == ' ';
	}
	return !strncmp(line, "# ", 2) && !strncmp(rule, "-A ", 3) ? rule : NULL;
}

// "add table ip filter" names the table of the rules that follow.
static void complete_line(const char *line, struct text *table, struct text *ret,
			  struct iptables_marks *marks)
{
	CLEANUP_TEXT struct text call = {0};
	const char *rule = left_rule(line), *verdict;

	if (!strncmp(line, "add table ", 10)) {
		text_free(table);
		text_add(table, line + 10);
	}
	if (!rule) {
		text_addf(ret, "%s\n", line);
		return;
	}
	verdict = nft_verdict(rule, &call);
	text_addf(ret, "add rule %s %.*s meta mark 0x%x %s\n", text_get(table),
		  (int)strcspn(rule + 3, " "), rule + 3, IMPORT_MARK + (unsigned)marks->n, verdict);
	vec_push(marks, ((struct import_mark){.text = mem_strdup(rule)}));
}

void iptables_complete(const char *nft, size_t len, struct text *ret, struct iptables_marks *marks)
{
	CLEANUP_TEXT struct text table = {0};

	for (size_t i = 0; i < len;) {
		size_t n = strcspn(nft + i, "\n");
		CLEANUP_FREE char *line = mem_strndup(nft + i, n);

		complete_line(line, &table, ret, marks);
		i += n + 1;
	}
}

void iptables_free(struct iptables_save *save)
{
	vec_each (&save->marks, m)
		free(m->text);
	vec_free(&save->marks);
	text_free(&save->text);
}
