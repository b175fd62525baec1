// SPDX-License-Identifier: GPL-2.0-only
// The steps of a feed.
#include "ctl/agent/feeds_plan.h"

#include "ctl/base/log.h"

#define JITTER_SHARE   10    // of the pause
#define RETRY_FIRST_MS 10000 // after a failure, doubled up to `every`
#define SOON_MS        100   // for one without a copy

void feed_plan_free(struct feed_plan *p)
{
	trouble_end(&p->trouble);
	plan_messages_free(&p->messages);
}

// ---- when ---------------------------------------------------------------------------------------

static void fetch_in(struct feed_plan *p, uint64_t ms, const struct plan_now *now)
{
	p->due_ms = now->ms + ms;
	p->due_s = now->wall_s + ms / 1000;
}

// Up to a tenth earlier, so that many hosts do not come at once.
static void fetch_about(struct feed_plan *p, uint64_t ms, const struct plan_now *now)
{
	fetch_in(p, ms - plan_random_below(&p->random, ms / JITTER_SHARE + 1), now);
}

void feed_plan_follow(struct feed_plan *p, uint64_t every_ms, bool has_copy,
		      const struct plan_now *now)
{
	p->every_ms = every_ms;
	if (has_copy)
		fetch_about(p, every_ms, now);
	else
		fetch_in(p, SOON_MS, now);
}

void feed_plan_hurry(struct feed_plan *p, bool at_once, const struct plan_now *now)
{
	if (at_once && p->step == FEED_FETCHES)
		p->step = FEED_WAITS;
	fetch_in(p, at_once ? 0 : SOON_MS, now);
}

bool feed_plan_begin(struct feed_plan *p)
{
	if (p->step != FEED_WAITS)
		return false;
	p->step = FEED_FETCHES;
	return true;
}

// ---- results ------------------------------------------------------------------------------------

static enum feed_step succeed(struct feed_plan *p, const struct plan_now *now)
{
	if (trouble_end(&p->trouble)) {
		plan_say(&p->messages, log_notice, "'%s' is good again", p->url);
		p->good = true;
	}
	p->good_s = now->wall_s;
	fetch_about(p, p->every_ms, now);
	return p->step = FEED_WAITS;
}

// The texts of one failure differ in times, bytes and entries.
void feed_plan_failed(struct feed_plan *p, const char *why, const char *full,
		      const struct plan_now *now)
{
	// A copy that cannot be read is not asked for as "if changed since" again.
	if (p->step == FEED_READS && p->list && !p->fresh)
		p->copy_time = 0;
	p->step = FEED_WAITS;
	p->failing |= !p->trouble.times;
	if (trouble_begin_like(&p->trouble, why))
		plan_say(&p->messages, log_warning, "%s; %s", full,
			 p->ends ? "the entries of its last good text stay until their ends"
				 : "the last good text stays in use");
	fetch_about(p, trouble_pause_ms(p->trouble.times, RETRY_FIRST_MS, p->every_ms), now);
}

bool feed_plan_is_plain(const struct feed_plan *p)
{
	return !p->ends && p->copy_time && p->plain_time == p->copy_time;
}

enum feed_step feed_plan_fetched(struct feed_plan *p, bool same, const struct plan_now *now)
{
	p->fresh = !same;
	if (same && (!p->list || feed_plan_is_plain(p)))
		return succeed(p, now);
	return p->step = FEED_READS;
}

static enum feed_step take_policy_text(struct feed_plan *p, const struct plan_now *now)
{
	if (p->fresh) {
		plan_say(&p->messages, log_notice, "'%s' has changed", p->url);
		p->changed = true;
	}
	return succeed(p, now);
}

enum feed_step feed_plan_read(struct feed_plan *p, const struct feed_found *found,
			      const struct plan_now *now)
{
	p->fresh = !found->same;
	p->plain = found->plain;
	if (!p->list)
		return take_policy_text(p, now);
	if (p->fresh || !p->plain)
		return p->step = FEED_CHANGES;
	p->plain_time = p->copy_time;
	return succeed(p, now);
}

enum feed_step feed_plan_listed(struct feed_plan *p, const struct plan_now *now)
{
	return p->fresh ? p->step = FEED_SAVES : succeed(p, now);
}

enum feed_step feed_plan_saved(struct feed_plan *p, uint64_t copy_time, const struct plan_now *now)
{
	p->copy_time = copy_time;
	p->plain_time = p->plain ? copy_time : 0;
	return succeed(p, now);
}
