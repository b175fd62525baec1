// SPDX-License-Identifier: GPL-2.0-only
// A growable array of any type: VEC(struct rule) rules = {0}; *vec_add(&rules) = rule;
#pragma once

#include "ctl/base/mem.h"

#define VEC(type)              \
	struct {               \
		type *at;      \
		size_t n, cap; \
	}

// Makes room for `more` further items.
#define vec_reserve(v, more)                                                       \
	((v)->n + (more) <= (v)->cap                                               \
		 ? (void)0                                                         \
		 : (void)((v)->at = vec_grow_((v)->at, &(v)->cap, (v)->n + (more), \
					      sizeof(*(v)->at))))

// A pointer to a new last item, not initialised. Valid until the next call.
#define vec_add(v)        (vec_reserve(v, 1), &(v)->at[(v)->n++])
#define vec_push(v, item) ((void)(*vec_add(v) = (item)))
#define vec_last(v)       (&(v)->at[(v)->n - 1])
#define vec_each(v, item) \
	for (__typeof__((v)->at + 0) item = (v)->at; (v)->n && (item) < (v)->at + (v)->n; (item)++)
// Frees the array, not what the items own; the vector is empty and usable afterwards.
#define vec_free(v) (free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0, (void)0)

#include <stdlib.h>

// Frees the array of the vector when it leaves its scope: CLEANUP_VEC VEC(int) numbers = {0};
#define CLEANUP_VEC CLEANUP(vec_cleanup_)

void vec_cleanup_(void *vec);
void *vec_grow_(void *at, size_t *cap, size_t need, size_t size);
