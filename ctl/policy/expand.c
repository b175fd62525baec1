// SPDX-License-Identifier: GPL-2.0-only
// Splices definitions with an explicit stack, because they may nest to any depth.
#include "ctl/policy/expand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"

struct frame {
	const struct ast_list *list;
	size_t next;
	bool negated; // "not $x": its items are exceptions
};

struct splicing {
	struct expander *x;
	struct diag *diag;
	struct leaves *ret;
	VEC(struct frame) stack;
	size_t max, spliced;
	int code;
};

static void fail(struct splicing *w, const struct ast_item *item, const char *what)
{
	const struct ast_list *list = w->stack.at[0].list;
	char hint[160];

	w->code = -EINVAL;
	if (!w->diag)
		return;
	snprintf(hint, sizeof(hint), "used at %.120s", diag_place(w->diag, list->at, false));
	diag_error(w->diag, item->at, w->stack.n > 1 ? hint : NULL, "%s", what);
}

// Is a definition whose list begins with "not" allowed here? Only as the single item: it then
// negates the list.
static bool splice_negated(struct splicing *w, const struct ast_item *item)
{
	const struct frame *top = vec_last(&w->stack);

	for (size_t i = 0; i < w->stack.n; i++)
		if (w->stack.at[i].list->items.n != 1 || w->stack.at[i].negated) {
			fail(w, item, "a definition that begins with 'not' must be the only item");
			return false;
		}
	if (w->ret->negated || item->negated || top->negated) {
		fail(w, item, "'not' before a definition that begins with 'not'");
		return false;
	}
	w->ret->negated = true;
	return true;
}

static const struct ast_define *find_define(const struct splicing *w, const char *name,
					    uint32_t *ret)
{
	*ret = index_find(&w->x->ast->define_index, name);
	return *ret == INDEX_NONE ? NULL : &w->x->ast->defines.at[*ret];
}

// Definitions count like items, so that a list of many empty definitions costs no more than a long
// one.
static bool has_room(struct splicing *w)
{
	if (w->ret->all.n + w->spliced < w->max)
		return true;
	if (w->code == 0 && w->diag)
		diag_error(w->diag, w->stack.at[0].list->at,
			   w->max == POLICY_LIST_ITEMS ? "use a set" : NULL,
			   "more than %zu items in one list", w->max);
	w->code = -EINVAL;
	w->stack.n = 0;
	return false;
}

static void splice(struct splicing *w, const struct ast_item *item, bool negated)
{
	uint32_t number, mark = w->x->run + negated;
	const struct ast_define *define = find_define(w, item->word, &number);

	if (!define) {
		w->code = -EINVAL;
		return;
	}
	if (w->x->seen[number] == (mark ^ 1)) {
		fail(w, item, "this is given with and without 'not'");
		return;
	}
	if (w->x->seen[number] == mark)
		return;
	w->x->seen[number] = mark;
	if ((define->list.negated && !splice_negated(w, item)) || !has_room(w))
		return;
	w->spliced++;
	vec_push(&w->stack, ((struct frame){.list = &define->list, .negated = negated}));
}

static void add_leaf(struct splicing *w, struct ast_item *item, bool negated)
{
	if (w->ret->negated && negated)
		fail(w, item, "a list is either negated as a whole or has exceptions");
	else if (has_room(w))
		vec_push(&w->ret->all, ((struct leaf){.item = item, .negated = negated}));
}

static void step(struct splicing *w)
{
	struct frame *top = vec_last(&w->stack);
	struct ast_item *item;
	bool negated;

	if (top->next == top->list->items.n) {
		w->stack.n--;
		return;
	}
	item = &top->list->items.at[top->next++];
	negated = top->negated || item->negated;
	if (top->negated && item->negated)
		fail(w, item, "exceptions cannot be nested");
	else if (item->kind == AST_DEFINE)
		splice(w, item, negated);
	else
		add_leaf(w, item, negated);
}

static int walk(struct expander *x, const struct ast_list *list, size_t max, struct diag *diag,
		struct leaves *ret)
{
	struct splicing w = {.x = x, .diag = diag, .ret = ret, .max = max};

	if (!x->seen)
		x->seen = mem_zalloc(x->ast->defines.n, sizeof(*x->seen));
	x->run += 2; // two marks a run: without and with "not"
	ret->negated = list->negated;
	ret->all.n = 0;
	vec_push(&w.stack, ((struct frame){.list = list}));
	while (w.stack.n)
		step(&w);
	vec_free(&w.stack);
	return w.code;
}

int expand(struct expander *x, const struct ast_list *list, size_t max, struct diag *diag,
	   struct leaves *ret)
{
	return walk(x, list, max, diag, ret);
}

int expand_elements(struct expander *x, const struct ast_list *list, struct diag *diag,
		    struct leaves *ret)
{
	int code = walk(x, list, SIZE_MAX, diag, ret);

	if (!ret->negated)
		return code;
	if (diag) // "{ $x }" where x begins with "not"
		diag_error(diag, list->at, "write any, not …",
			   "a set cannot be negated as a whole");
	return -EINVAL;
}

void leaves_free(struct leaves *l)
{
	vec_free(&l->all);
}

void expander_free(struct expander *x)
{
	free(x->seen);
	x->seen = NULL;
}
