// SPDX-License-Identifier: GPL-2.0-only
// Keeps sentences in the order in which they were added.
#include "ctl/control/sentences.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/vec.h"

void sentences_add(struct sentences *list, char *text)
{
	vec_each (list, known)
		if (!strcmp(*known, text)) {
			free(text);
			return;
		}
	vec_push(list, text);
}

void sentences_free(struct sentences *list)
{
	vec_each (list, text)
		free(*text);
	vec_free(list);
}
