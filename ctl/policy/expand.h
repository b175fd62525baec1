// SPDX-License-Identifier: GPL-2.0-only
// Expands lists: every $ is replaced by its definition.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/base/vec.h"
#include "ctl/policy/ast.h"

struct leaf {
	struct ast_item *item; // never AST_DEFINE
	bool negated;          // an exception
};

struct leaves {
	bool negated; // the list as a whole
	VEC(struct leaf) all;
};

struct expander {              // {.ast = …}
	const struct ast *ast; // with its indexes filled
	uint32_t *seen;        // by definition: the run that has spliced it, and with which sign
	uint32_t run;
};

// Each definition is spliced once into a list, so the result is never longer than the text, and a
// loop ends. At most `max` leaves and definitions together. 0, or -EINVAL: errors are queued where
// diag is not NULL (unknown names, which check reports, are left out silently). ret is filled as
// far as possible, and freed by leaves_free.
int expand(struct expander *x, const struct ast_list *list, size_t max, struct diag *diag,
	   struct leaves *ret);
// The elements of a set: no bound, and "not" in front is an exception like any other.
int expand_elements(struct expander *x, const struct ast_list *list, struct diag *diag,
		    struct leaves *ret);
void leaves_free(struct leaves *l);
void expander_free(struct expander *x);
