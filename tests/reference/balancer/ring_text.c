// SPDX-License-Identifier: GPL-2.0-only
// A backend as a line of text, and a list of backends by id.
#include "ring_text.h"

#include <string.h>

const char *const words_state[] = {"up", "drain", "down", "failing", NULL};
const char *const words_hash[] = {"tuple", "source", NULL};

static const char *const words_role[] = {"primary", "backup", NULL};

struct backend backend_read(const struct line *line)
{
	struct backend backend = {
		.id = (uint16_t)word_number(line, 1, 1, BACKEND_ID_MAX),
		.port = (uint16_t)word_number(line, 3, 0, UINT16_MAX),
		.weight = (uint32_t)word_number(line, 4, 0, UINT16_MAX),
		.state = word_choice(line, 5, words_state),
		.backup = word_choice(line, 6, words_role),
	};

	backend.family = word_address(line, 2, backend.address);
	return backend;
}

bool backend_same_place(const struct backend *a, const struct backend *b)
{
	return a->family == b->family && a->port == b->port && !memcmp(a->address, b->address, 16);
}

struct backend *backends_find(struct backends *backends, uint16_t id)
{
	for (size_t i = 0; i < backends->count; i++)
		if (backends->v[i].id == id)
			return &backends->v[i];
	return NULL;
}

void backends_put(struct backends *backends, const struct backend *backend, const struct line *line)
{
	struct backend *place = backends_find(backends, backend->id);

	for (size_t i = 0; i < backends->count; i++)
		if (&backends->v[i] != place && backend_same_place(&backends->v[i], backend))
			line_fail(line, "backend %u has the same address and port",
				  backends->v[i].id);
	if (!place && backends->count == RING_BACKENDS_MAX)
		line_fail(line, "more than %d backends", RING_BACKENDS_MAX);
	if (!place)
		place = &backends->v[backends->count++];
	*place = *backend;
}

void backends_remove(struct backends *backends, uint16_t id)
{
	struct backend *place = backends_find(backends, id);

	if (place)
		*place = backends->v[--backends->count];
}
