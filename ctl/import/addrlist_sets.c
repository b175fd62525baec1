// SPDX-License-Identifier: GPL-2.0-only
// Lists from the sets of ipset and nft. Entries that expire are for dynamic sets.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/split.h"
#include "ctl/import/addrlist.h"
#include "ctl/import/expiring.h"
#include "ctl/import/print_sets.h"
#include "ctl/import/value.h"

// ---- ipset save ---------------------------------------------------------------------------------

struct ipset_reader {
	struct addrlist list;
	const struct addrlist_options *options;
	char *name; // its name; NULL: none yet
	unsigned line;
};

static bool is_taken(const struct ipset_reader *r, const char *name)
{
	return text_same(r->name, name);
}

// The index of an option, 0 without it. In `add`, the word after `comment` is a text; in `create`,
// comment has none.
static size_t find_option(const struct split *line, const char *option)
{
	bool add = !strcmp(line->words.at[0], "add");

	for (size_t i = 3; i < line->words.n; i++) {
		if (!strcmp(line->words.at[i], option))
			return i;
		i += add && !strcmp(line->words.at[i], "comment");
	}
	return 0;
}

static int create_set(struct ipset_reader *r, const struct split *line, struct err *err)
{
	static const char *const types[] = {"hash:ip", "hash:net", "bitmap:ip"};
	const char *name = line->words.at[1], *type = line->words.n > 2 ? line->words.at[2] : "";
	bool known = false;

	if (r->options->set && strcmp(r->options->set, name) != 0)
		return 0;
	if (r->name) {
		err_input(err, "line %u: '%.60s' is a second set", r->line, name);
		return err_hint(err, "choose one: --set %.60s", r->name);
	}
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		known |= !strcmp(types[i], type);
	if (!known || find_option(line, "netmask") || find_option(line, "bitmask"))
		return err_input(err,
				 "line %u: set '%.60s' is of type %.40s%s, but a list has only "
				 "addresses and prefixes",
				 r->line, name, type, known ? " with a mask" : "");
	r->name = mem_strdup(name);
	return 0;
}

static int add_entry(struct ipset_reader *r, const struct split *line, struct err *err)
{
	const char *entry = line->words.n > 2 ? line->words.at[2] : "";
	size_t at = find_option(line, "timeout");
	const char *timeout = at ? at + 1 < line->words.n ? line->words.at[at + 1] : "" : NULL;
	uint64_t seconds = 0;

	if (!is_taken(r, line->words.at[1]))
		return r->options->set ? 0
				       : err_input(err, "line %u: set '%.60s' has not been created",
						   r->line, line->words.at[1]);
	if (find_option(line, "nomatch")) {
		err_input(err, "line %u: a list cannot exclude '%.60s'", r->line, entry);
		return err_hint(err,
				"remove the line, and write 'not %.60s' in the set of the policy",
				entry);
	}
	if (timeout && num_parse_u64(timeout, strlen(timeout), 0, UINT32_MAX, &seconds))
		return err_input(err, "line %u: timeout '%.60s'", r->line, timeout);
	if (seconds) {
		addrlist_note_expiring(&r->list, r->name, entry, seconds);
		return 0;
	}
	return addrlist_add(&r->list, entry, strlen(entry), r->line, err);
}

static int read_line(struct ipset_reader *r, const char *at, size_t len, struct err *err)
{
	CLEANUP_SPLIT struct split line = {0};
	int code = split_line(at, len, &line, err);

	if (code) {
		err_prefix(err, "line %u", r->line);
		return code;
	}
	if (!line.words.n)
		return 0;
	if (line.words.n > 1 && !strcmp(line.words.at[0], "create"))
		return create_set(r, &line, err);
	if (line.words.n > 1 && !strcmp(line.words.at[0], "add"))
		return add_entry(r, &line, err);
	return err_input(err, "line %u is not of ipset save: '%.60s'", r->line, line.words.at[0]);
}

static int read_lines(struct ipset_reader *r, const char *text, size_t len, struct err *err)
{
	size_t end;

	for (size_t i = 0; i < len; i = end + 1) {
		int code;

		for (end = i; end < len && text[end] != '\n'; end++)
			;
		r->line++;
		code = read_line(r, text + i, end - i - (end > i && text[end - 1] == '\r'), err);
		if (code)
			return code;
	}
	if (!r->name)
		return err_input(err, "there is no set%s%s", r->options->set ? " " : "",
				 r->options->set ? r->options->set : "");
	return 0;
}

int import_ipset(const char *text, size_t len, const struct addrlist_options *options,
		 struct text *ret, struct addrlist_counts *counts, struct err *err)
{
	struct ipset_reader r = {.options = options, .list.now_s = options->now_s};
	int code = read_lines(&r, text, len, err);

	code = code ? code : addrlist_print(&r.list, options, ret, counts, err);
	addrlist_free(&r.list);
	free(r.name);
	return code;
}

// ---- nft ----------------------------------------------------------------------------------------

static int find_set(const struct ruleset *r, const char *name, const struct json **ret,
		    struct err *err)
{
	*ret = NULL;
	vec_each (&r->sets, s) {
		if (!text_same(json_get_string(*s, "name"), name))
			continue;
		if (*ret)
			return err_input(err, "several tables have a set '%.60s'", name);
		*ret = *s;
	}
	return *ret ? 0 : err_input(err, "there is no set '%.60s'", name);
}

static void note_elements(struct addrlist *l, const struct json *set, const char *name)
{
	struct expiring_counts n = {0};

	expiring_notes(set, name, l->now_s, SIZE_MAX, &l->notes, &n);
	l->counts.expiring += n.noted;
	l->counts.skipped += n.skipped;
}

static int read_set(struct addrlist *l, const struct ruleset *ruleset, const struct json *set,
		    struct arena *arena, struct err *err)
{
	const char *type = json_get_string(set, "type"), *name = json_get_string(set, "name");
	const struct nft_chain user = {.family = json_get_string(set, "family"),
				       .table = json_get_string(set, "table")};
	const struct value_place place = {ruleset, &user, arena, true, NULL};
	const char *reference = arena_printf(arena, "@%s", name);
	CLEANUP_JSON struct json *at = json_string(reference);
	uint8_t family = text_same(type, "ipv6_addr") ? MATCH_V6 : MATCH_V4;
	struct values v = {0};

	if (!text_same(type, "ipv4_addr") && !text_same(type, "ipv6_addr"))
		return err_input(err, "set '%.60s' has other elements than addresses", name);
	if (!user.family || !user.table || value_read(&place, at, KIND_ADDRESS, family, &v))
		return err_input(err, "set '%.60s' has elements that cannot be read", name);
	note_elements(l, set, name);
	for (size_t i = 0; i < v.n; i++) {
		CLEANUP_TEXT struct text t = {0};
		int code;

		interval_print(&v.at[i], family, &t);
		code = addrlist_add(l, t.at, t.len, 0, err);
		if (code)
			return code;
	}
	return 0;
}

int import_set(const char *json, size_t len, const struct addrlist_options *options,
	       struct text *ret, struct addrlist_counts *counts, struct err *err)
{
	CLEANUP_RULESET struct ruleset ruleset = {0};
	CLEANUP_ADDRLIST struct addrlist l = {.now_s = options->now_s};
	struct arena arena = {0};
	const struct json *set;
	int code = ruleset_read(json, len, &ruleset, err);

	code = code ? code : find_set(&ruleset, options->set, &set, err);
	code = code ? code : read_set(&l, &ruleset, set, &arena, err);
	code = code ? code : addrlist_print(&l, options, ret, counts, err);
	arena_free(&arena);
	return code;
}
