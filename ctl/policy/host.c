// SPDX-License-Identifier: GPL-2.0-only
// The form of host names: RFC 1123 section 2.1, and '_', which is in use.
#include "ctl/policy/host.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 253
#define LABEL_MAX      63

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_label_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static const char *label_problem(const char *label, size_t len)
{
	if (!len)
		return "two dots without a name between them";
	if (len > LABEL_MAX)
		return "a part is longer than 63 letters";
	for (size_t i = 0; i < len; i++)
		if (!is_label_char(label[i]))
			return "letters, digits, '-' and '_' only";
	if (label[0] == '-' || label[len - 1] == '-')
		return "a part begins or ends with '-'";
	return NULL;
}

static const char *problem_of(const char *word)
{
	size_t len = strlen(word), label = 0;
	bool letter = false;

	if (len && word[len - 1] == '.')
		len--;
	if (!len || len > NAME_MAX_BYTES)
		return len ? "longer than 253 letters" : "it is empty";
	for (size_t i = 0; i <= len; i++) {
		const char *problem;

		if (i < len && word[i] != '.')
			continue;
		problem = label_problem(word + label, i - label);
		if (problem)
			return problem;
		letter = false;
		for (size_t j = label; j < i; j++)
			letter = letter || is_letter(word[j]);
		label = i + 1;
	}
	return letter ? NULL : "the last part has no letter";
}

const char *host_problem(const char *word, char *buf, size_t size)
{
	const char *problem = problem_of(word);

	if (!problem)
		return NULL;
	snprintf(buf, size, "is not a host name: %s", problem);
	return buf;
}

void host_normal(const char *word, char *ret)
{
	size_t len = strlen(word);

	if (len && word[len - 1] == '.')
		len--;
	for (size_t i = 0; i < len; i++)
		ret[i] = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] + 0x20) : word[i];
	ret[len] = '\0';
}
