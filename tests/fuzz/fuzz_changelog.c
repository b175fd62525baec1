// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: a line of the record of changes. It is printed again with the same meaning.
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/changelog_line.h"
#include "tests/fuzz/fuzz.h"

static void check_again(const struct changelog_change *c)
{
	CLEANUP_FREE char *line = changelog_print(c, 1);
	size_t len = strlen(line);
	struct changelog_change again;

	fuzz_check(strchr(line, '\n') == line + len - 1 && len < 4096);
	fuzz_check(!changelog_parse(line, len - 1, &again));
	fuzz_check(again.at_ms == c->at_ms && again.uid == c->uid && again.added == c->added);
	if (strlen(c->verb) < CHANGELOG_WORD)
		fuzz_check(!strcmp(again.verb, c->verb));
	changelog_free_change(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct changelog_change c;

	if (changelog_parse((const char *)data, size, &c))
		return 0;
	check_again(&c);
	changelog_free_change(&c);
	return 0;
}
