// SPDX-License-Identifier: GPL-2.0-only
// Functions common to all subjects.
#include "tests/bench/subject.h"

#include <stdlib.h>

void subject_free(struct subject *s)
{
	if (s->release)
		s->release(s->own);
	free(s->skipped);
	*s = (struct subject){0};
}

int subject_load(const struct subject *s, size_t load)
{
	if (s->choose)
		s->choose(s->own, load % s->loads);
	return s->programs[load % s->loads];
}
