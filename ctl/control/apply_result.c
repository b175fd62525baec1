// SPDX-License-Identifier: GPL-2.0-only
// Frees the result of an apply.
#include "ctl/control/apply_result.h"

#include <stdlib.h>

void apply_result_free(struct apply_result *r)
{
	vec_each (&r->absent, name)
		free(*name);
	vec_each (&r->warnings, text)
		free(*text);
	vec_free(&r->absent);
	vec_free(&r->warnings);
	vec_each (&r->notices, text)
		free(*text);
	vec_free(&r->notices);
	vec_free(&r->attached);
	vec_free(&r->left);
	vec_free(&r->entries_only);
	vec_free(&r->tried);
}
