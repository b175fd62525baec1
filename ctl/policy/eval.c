// SPDX-License-Identifier: GPL-2.0-only
// Reads the words of a list one by one, then puts together what they and their "not" leave.
#include "ctl/policy/eval.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/geo.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

#define SHOWN_MAX 60

void eval_emit(struct eval *e, uint64_t first, uint64_t last)
{
	vec_push(&e->readings,
		 ((struct reading){
			 .first = first, .last = last, .negated = e->negated, .item = e->item}));
}

// The item's location is the word in the text. If that is a definition, the hint names its use.
void eval_fail(struct eval *e, const char *hint, const char *fmt, ...)
{
	CLEANUP(text_free) struct text text = {0}, full = {0};
	struct diag_at at = e->item->at, use = e->v->use;
	va_list ap;

	e->code = -EINVAL;
	va_start(ap, fmt);
	text_vaddf(&text, fmt, ap);
	va_end(ap);
	text_add(&full, hint ? hint : "");
	if (use.file && (use.file != at.file || diag_line(use) != diag_line(at)))
		text_addf(&full, "%sused as %s at %s", hint ? "; " : "", e->domain->item,
			  diag_place(e->v->diag, use, false));
	diag_error(e->v->diag, at, full.len ? text_get(&full) : NULL, "%s", text_get(&text));
}

bool eval_span(struct eval *e, const char *word, uint32_t max)
{
	uint32_t first = 0, last = 0;

	if (strspn(word, "0123456789-") != strlen(word))
		return false;
	if (num_parse_span(word, max, &first, &last) < 0) {
		char hint[64];

		snprintf(hint, sizeof(hint), "a number is 0 to %u, a span FIRST-LAST", max);
		eval_fail(e, hint, "'%.*s' is not %s", SHOWN_MAX, word, e->domain->item);
	} else if (first > last) {
		eval_fail(e, NULL, "'%.*s' ends before it begins", SHOWN_MAX, word);
	} else {
		eval_emit(e, first, last);
	}
	return true;
}

void eval_unknown(struct eval *e, const char *word, const char *near)
{
	if (near)
		eval_fail(e, NULL, "'%.*s' is not %s, did you mean '%s'?", SHOWN_MAX, word,
			  e->domain->item, near);
	else
		eval_fail(e, NULL, "'%.*s' is not %s", SHOWN_MAX, word, e->domain->item);
}

// ---- lists --------------------------------------------------------------------------------------

// A set of numbers is read by value: its exceptions apply to it only.
static void read_numbers(struct eval *e, const struct ast_set *set)
{
	CLEANUP(edges_free) struct edges edges = {0};

	if (set->broken || eval_elements(e->v, e->domain, set, &edges) < 0)
		e->code = -EINVAL; // has been reported
	for (size_t i = 0; i < edges.n; i += 2)
		eval_emit(e, edges.at[i], edges.at[i + 1] - 1);
}

static void wrong_set(struct eval *e, const struct set_kind *kind)
{
	char hint[64];

	snprintf(hint, sizeof(hint), "write set NAME %s { … }", set_kinds[e->domain->sets].word);
	eval_fail(e, e->domain->sets ? hint : NULL, "'@%s' is a set of %s, not %s", e->item->word,
		  kind->what, e->domain->item);
}

static void read_set(struct eval *e)
{
	const struct ast *ast = e->v->expander->ast;
	uint32_t number = index_find(&ast->set_index, e->item->word);

	if (number == INDEX_NONE)
		e->code = -EINVAL; // reported with all unknown names
	else if (e->in_set)
		eval_fail(e, "write a definition: define NAME = …, and $NAME",
			  "a set of %s cannot contain a set", set_kinds[e->domain->sets].what);
	else if (e->domain->sets && ast->sets.at[number].kind == e->domain->sets)
		read_numbers(e, &ast->sets.at[number]);
	else
		wrong_set(e, &set_kinds[ast->sets.at[number].kind]);
}

static bool is_word(struct eval *e)
{
	switch (e->item->kind) {
	case AST_WORD:
		return true;
	case AST_SET:
		read_set(e);
		return false;
	case AST_GEO:
		eval_fail(e, NULL, "'%s %s' stands for addresses, not %s",
			  e->item->geo == GEO_COUNTRY ? "country" : "asn", e->item->word,
			  e->domain->item);
		return false;
	default:
		eval_fail(e, NULL, "a host is not %s", e->domain->item);
		return false;
	}
}

static int compare(const void *a, const void *b)
{
	const struct reading *x = a, *y = b;

	if ((x->item->kind == AST_SET) != (y->item->kind == AST_SET))
		return x->item->kind == AST_SET ? 1 : -1; // those of sets are last
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->last != y->last)
		return x->last < y->last ? -1 : 1;
	return (int)x->negated - y->negated;
}

static void find_contradiction(struct eval *e)
{
	if (e->readings.n)
		qsort(e->readings.at, e->readings.n, sizeof(*e->readings.at), compare);
	for (size_t i = 1; i < e->readings.n && e->readings.at[i].item->kind != AST_SET; i++) {
		if (!compare(&e->readings.at[i - 1], &e->readings.at[i]) ||
		    e->readings.at[i - 1].first != e->readings.at[i].first ||
		    e->readings.at[i - 1].last != e->readings.at[i].last ||
		    strchr(e->readings.at[i - 1].item->word, '*') ||
		    strchr(e->readings.at[i].item->word, '*'))
			continue; // one interface of a pattern is not the pattern
		e->item = e->readings.at[i].item;
		eval_fail(e, NULL, "'%.*s' is given with and without 'not'", SHOWN_MAX,
			  e->item->word);
		return;
	}
}

// The result: the words without the exceptions, or the rest of the domain for a negated list.
void eval_collect(struct eval *e, bool negated, uint64_t first, uint64_t last, struct edges *ret)
{
	VEC(struct stretch) all = {0};

	if (negated)
		vec_push(&all, ((struct stretch){.first = first, .last = last}));
	vec_each (&e->readings, r) {
		vec_push(&all, ((struct stretch){.first = r->first,
						 .last = r->last,
						 .out = negated || r->negated}));
	}
	edges_of(all.at, all.n, ret);
	vec_free(&all);
}

void eval_leaves(struct eval *e, const struct leaves *leaves)
{
	vec_each (&leaves->all, leaf) {
		e->item = leaf->item;
		e->negated = leaf->negated;
		if (is_word(e))
			e->domain->read(e, leaf->item->word);
	}
	find_contradiction(e);
}

static int nothing_left(struct value *v, const struct ast_list *list)
{
	diag_error(v->diag, list->at, NULL, "this list matches nothing");
	return -EINVAL;
}

int eval_elements(struct value *v, const struct domain *domain, const struct ast_set *set,
		  struct edges *ret)
{
	struct eval e = {.v = v, .domain = domain, .in_set = true};
	struct leaves leaves = {0};

	if (expand(v->expander, &set->elements, POLICY_SET_ITEMS, v->diag, &leaves) < 0)
		e.code = -EINVAL;
	eval_leaves(&e, &leaves);
	if (leaves.negated) {
		diag_error(v->diag, set->elements.at, set_kinds[domain->sets].negation,
			   "a set cannot be negated as a whole");
		e.code = -EINVAL;
	}
	if (!e.code)
		eval_collect(&e, false, 0, 0, ret);
	if (!e.code && !ret->n)
		e.code = nothing_left(v, &set->elements);
	leaves_free(&leaves);
	vec_free(&e.readings);
	return e.code;
}

int eval_list(struct value *v, const struct domain *domain, const struct ast_list *list,
	      uint64_t last, struct edges *ret)
{
	struct eval e = {.v = v, .domain = domain};
	struct leaves leaves = {0};

	if (expand(v->expander, list, POLICY_SHORT_ITEMS, v->diag, &leaves) < 0)
		e.code = -EINVAL;
	eval_leaves(&e, &leaves);
	if (!leaves.all.n)
		e.code = -EINVAL; // the reason has been reported
	if (!e.code)
		eval_collect(&e, leaves.negated, domain->first, last, ret);
	if (!e.code && !ret->n)
		e.code = nothing_left(v, list);
	leaves_free(&leaves);
	vec_free(&e.readings);
	return e.code;
}
