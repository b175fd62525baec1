// SPDX-License-Identifier: GPL-2.0-only
// Words of a line of iptables-save: what ends a match, and which matches the translator gets wrong.
#include "ctl/import/save_words.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "ctl/base/mem.h"

static bool is_in(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

bool save_begins_next(const char *word)
{
	static const char *const words[] = {"-m", "-j", "-g", "-s", "-d", "-p", "-i", "-o", "-f"};

	return is_in(word, words, ARRAY_SIZE(words));
}

static bool is_text(const char *word)
{
	static const char *const texts[] = {"--comment",     "--log-prefix", "--nflog-prefix",
					    "--ulog-prefix", "--string",     "--hex-string"};

	return is_in(word, texts, ARRAY_SIZE(texts));
}

size_t save_next(const char *const *words, size_t n, size_t i)
{
	return is_text(words[i]) && i + 1 < n ? i + 2 : i + 1;
}

// ---- forms that are refused ---------------------------------------------------------------------

// iptables accepts abbreviations: "--jum".
static const char *long_form(const char *word)
{
	static const char *const words[][2] = {
		{"--jump", "-j"},         {"--goto", "-g"},          {"--match", "-m"},
		{"--append", "-A"},       {"--protocol", "-p"},      {"--source", "-s"},
		{"--src", "-s"},          {"--destination", "-d"},   {"--dst", "-d"},
		{"--in-interface", "-i"}, {"--out-interface", "-o"}, {"--fragments", "-f"}};
	size_t len = strlen(word);

	for (size_t i = 0; len > 2 && i < ARRAY_SIZE(words); i++)
		if (!strncmp(words[i][0], word, len))
			return words[i][1];
	return NULL;
}

static int check_option(const char *word, struct err *err)
{
	if (long_form(word)) {
		err_input(err, "'%.60s' is not a word of iptables-save", word);
		return err_hint(err, "write %s", long_form(word));
	}
	if (!strncmp(word, "--", 2) && strchr(word, '=')) {
		err_input(err, "'%.60s' is not a word of iptables-save", word);
		return err_hint(err, "write the option and its value as two words");
	}
	if (word[0] == '-' && word[1] != '-' && !save_begins_next(word))
		return err_input(err, "'%.60s' is not a word of iptables-save", word);
	return 0;
}

static bool is_target(const char *word)
{
	return !strcmp(word, "-j") || !strcmp(word, "-g");
}

// words[0] is -A, words[1] the chain.
int save_check(const char *const *words, size_t n, struct err *err)
{
	const char *before = "";
	bool target = false;

	for (size_t i = 2; i < n; i = save_next(words, n, i)) {
		int code = check_option(words[i], err);

		if (code)
			return code;
		if (target && save_begins_next(words[i]))
			return err_input(err, "'%.60s' after the target", words[i]);
		if (!strcmp(before, "-m") && words[i][0] == '-')
			return err_input(err, "'%.60s' is not the name of a match", words[i]);
		if (is_target(words[i]) && i + 1 == n)
			return err_input(err, "no target after '%s'", words[i]);
		target |= is_target(words[i]);
		before = words[i];
	}
	return 0;
}

// ---- what the translator gets wrong -------------------------------------------------------------

static bool has_word(const char *const *options, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (!strcasecmp(options[i], word))
			return true;
	return false;
}

// May the range be all ports? The translator leaves it out.
static bool is_full_range(const char *word)
{
	const char *colon = strchr(word, ':');

	return colon && (colon == word || word[0] == '0') &&
	       (!colon[1] || colon[1] == '0' || !strcmp(colon + 1, "65535"));
}

// Where nothing is left to print, the protocol is lost as well.
static bool are_ports_exact(const char *const *options, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool flags = !strncmp(options[i], "--tcp-f", 7) && i + 1 < n;

		if (is_full_range(options[i]) || (flags && strcasestr(options[i + 1], "none")))
			return false;
	}
	return true;
}

// Other states are lost next to these two, and so is "!".
static bool are_states_exact(const char *const *options, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(options[i], "snat") || strcasestr(options[i], "dnat"))
			return n == 2 && !strchr(options[i], ',');
	return true;
}

// The translator loses the "!" of --ports, and makes a range its two ends.
static bool is_multiport_exact(const char *const *options, size_t n)
{
	bool both = false, other = has_word(options, n, "!");

	for (size_t i = 0; i < n; i++) {
		both |= !strncmp(options[i], "--p", 3);
		other |= strchr(options[i], ':') != NULL;
	}
	return !both || !other;
}

bool save_is_void(const char *const *options, size_t n)
{
	return !n || (n == 2 && !strncmp(options[0], "--icmp", 6) && !strcmp(options[1], "any"));
}

bool save_is_exact(const char *match, const char *const *options, size_t n)
{
	if (!strcmp(match, "udp") && has_word(options, n, "!")) // version 1.8.9 loses some
		return false;
	if (!strcmp(match, "tcp") || !strcmp(match, "udp") || !strcmp(match, "sctp"))
		return are_ports_exact(options, n);
	if (!strcmp(match, "icmp") || !strcmp(match, "icmp6"))
		return save_is_void(options, n) ||
		       (!has_word(options, n, "any") && !has_word(options, n, "255"));
	if (!strcmp(match, "conntrack"))
		return are_states_exact(options, n);
	if (!strcmp(match, "multiport"))
		return is_multiport_exact(options, n);
	return true;
}
