// SPDX-License-Identifier: GPL-2.0-only
// Counts the results of a self-test.
#ifndef REF_VERDICTS_H
#define REF_VERDICTS_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

struct verdicts {
	unsigned int passed;
	unsigned int failed;
};

static inline void expect(struct verdicts *verdicts, const char *what, uint64_t got,
			  uint64_t wanted)
{
	if (got == wanted) {
		verdicts->passed++;
		return;
	}
	verdicts->failed++;
	printf("FAILED %s: got %" PRIx64 ", wanted %" PRIx64 "\n", what, got, wanted);
}

/* The last line of a self-test, and the exit status. */
static inline int verdicts_end(const struct verdicts *verdicts)
{
	printf("%u passed, %u failed\n", verdicts->passed, verdicts->failed);
	return verdicts->failed ? 1 : 0;
}

#endif
