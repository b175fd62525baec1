// SPDX-License-Identifier: GPL-2.0-only
// Evaluates lists of numbers: cuts the list into words, lets a domain read each word, and turns the
// words and their "not" into edges.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/policy/edges.h"
#include "ctl/policy/expand.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"
#include "ctl/policy/services.h"

struct resolved;

struct value { // who asks
	struct diag *diag;
	struct expander *expander;
	const struct resolved *r; // whose interfaces `on` names
	struct diag_at use;       // the field's keyword, for errors in definitions
	// Only for ports: the protocols whose names count (NULL: a name of any is valid), and the
	// names.
	const uint64_t *protos;
	struct services *services;
};

struct eval;

struct domain {           // what the items of a list are
	const char *item; // "a port"
	const char
		*expected; // what the parser expects where it is more than the item; NULL: the item
	const char *keywords[10]; // that are values here
	uint8_t sets;             // enum ast_set_kind of the sets that can be items; 0: none
	uint64_t first, last;     // all values, of which "not" leaves the rest
	// Reads a word: eval_emit or eval_fail. NULL: the list has no numbers.
	void (*read)(struct eval *e, const char *word);
	// Adds the text of a number. NULL: decimal.
	void (*print)(struct text *t, const struct resolved *r, unsigned value);
};

struct reading { // what a word means
	uint64_t first, last;
	bool negated;
	const struct ast_item *item; // for "the same with and without not"
};

struct eval {
	struct value *v;
	const struct domain *domain;
	const struct ast_item *item; // that is being read
	bool negated;
	bool in_set; // the elements of a set are read, which contain no set
	VEC(struct reading) readings;
	unsigned families, known; // types: those asked for, those that know some word
	unsigned family;          // types: the one being read
	uint64_t emitted[2];      // interfaces: each is read once, and once with "not"
	int code;
};

void eval_emit(struct eval *e, uint64_t first, uint64_t last);
// Queues an error at the item. `hint` may be NULL.
__attribute__((format(printf, 3, 4))) void eval_fail(struct eval *e, const char *hint,
						     const char *fmt, ...);
// The word is not of the domain; `near` is suggested, or NULL.
void eval_unknown(struct eval *e, const char *word, const char *near);
// A number or FIRST-LAST up to max; false: the word has another form.
bool eval_span(struct eval *e, const char *word, uint32_t max);

// The steps, for lists that are read twice.
void eval_leaves(struct eval *e, const struct leaves *leaves);
void eval_collect(struct eval *e, bool negated, uint64_t first, uint64_t last, struct edges *ret);

// The numbers of a set: the same.
int eval_elements(struct value *v, const struct domain *domain, const struct ast_set *set,
		  struct edges *ret);
// The values of a list, sorted: 0, or -EINVAL with errors queued. No value is an error. `last` is
// at most the last value of the domain.
int eval_list(struct value *v, const struct domain *domain, const struct ast_list *list,
	      uint64_t last, struct edges *ret);
