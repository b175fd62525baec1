// SPDX-License-Identifier: GPL-2.0-only
// Finds expired references. The kernel's clock decides, and the wall clock may be a second late.
// The maps are therefore read at once for all references that expire now.
#include "ctl/control/entries/store_parts.h"

#define CLOCK_SLACK_S 2 // between the two clocks

void store_ends_free(struct store_ends *ends)
{
	vec_free(&ends->asked);
}

static uint64_t wall_s(const struct store *b)
{
	return b->clock.wall_ms / 1000;
}

// If journal and maps differ, a missing entry proves nothing.
static bool is_doubtful(const struct store *b, uint64_t until_s)
{
	return b->agree && until_s > wall_s(b) && until_s <= wall_s(b) + CLOCK_SLACK_S;
}

void store_ends_note(const struct store *b, struct store_ends *ends, const struct prefix *p,
		     uint8_t kind, uint64_t until_s)
{
	if (is_doubtful(b, until_s))
		vec_push(&ends->asked, ((struct overlay_entry){.prefix = *p, .kind = kind}));
}

int store_ends_read(const struct store *b, struct store_ends *ends, struct err *err)
{
	ends->next = 0;
	if (!ends->asked.n)
		return 0;
	return overlay_read_many(b->instance, ends->asked.at, ends->asked.n, err);
}

bool store_ends_expired(const struct store *b, struct store_ends *ends, uint64_t until_s)
{
	if (is_doubtful(b, until_s))
		return ends->asked.at[ends->next++].until <= b->clock.jiffies;
	return until_s <= wall_s(b);
}
