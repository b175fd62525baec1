// SPDX-License-Identifier: GPL-2.0-only
// A backend as a line of text, and a list of backends by id.
#ifndef REF_RING_TEXT_H
#define REF_RING_TEXT_H

#include "ring.h"
#include "words.h"

#define BACKEND_ID_MAX 16383

extern const char *const words_state[]; /* in the order of enum backend_state */
extern const char *const words_hash[];  /* tuple, source */

struct backends {
	struct backend v[RING_BACKENDS_MAX];
	size_t count;
};

/* "backend ID ADDRESS PORT WEIGHT up|drain|down primary|backup" */
struct backend backend_read(const struct line *line);

/* Adds a backend or replaces the one with its id; the line fails if there are too many, or two
 * equal ones. */
void backends_put(struct backends *backends, const struct backend *backend,
		  const struct line *line);

/* NULL: not found. */
struct backend *backends_find(struct backends *backends, uint16_t id);
void backends_remove(struct backends *backends, uint16_t id);

bool backend_same_place(const struct backend *a, const struct backend *b);

#endif
