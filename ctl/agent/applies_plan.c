// SPDX-License-Identifier: GPL-2.0-only
// The applies of the agent.
#include "ctl/agent/applies_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"

#define AGAIN_FIRST_MS 10000 // after a failure: a trial may end, a name may resolve
#define AGAIN_MOST_MS  600000
#define OTHER_MS       1000 // after another policy has come meanwhile

static uint64_t again_ms(const struct trouble *trouble, const struct plan_now *now)
{
	return now->ms + trouble_pause_ms(trouble->times, AGAIN_FIRST_MS, AGAIN_MOST_MS);
}

// ---- the policy file ----------------------------------------------------------------------------

void file_plan_free(struct file_plan *p)
{
	plan_messages_free(&p->messages);
}

static void want(struct file_plan *p, bool offline)
{
	p->offline = offline && (p->offline || !p->wanted);
	p->wanted = true;
}

void file_plan_want(struct file_plan *p, const struct file_seen *seen, bool offline)
{
	if (!seen->exists && seen->optional)
		return;
	if (!seen->replaced[0])
		want(p, offline);
	else
		plan_say(&p->messages, log_info,
			 "'%s' is not applied: it is revision %s, which revision %s has replaced",
			 p->path, seen->replaced, seen->current);
}

// A person who writes the policy file wants it applied, also if it is an older one again.
static bool is_other_text(struct file_plan *p, const struct file_seen *seen)
{
	bool other = strcmp(seen->text, p->text) != 0;

	memcpy(p->text, seen->text, sizeof(p->text));
	return other;
}

// Without the file nothing is applied or refused, and its last policy stays active. A named file
// that has never existed is an error of its apply.
static bool is_absent(struct file_plan *p, const struct file_seen *seen)
{
	bool gone = p->text[0] && !seen->exists;
	bool absent = gone || (seen->optional && !seen->exists);

	if (gone && !p->gone)
		plan_say(&p->messages, log_warning,
			 "'%s' no longer exists; the active policy stays", p->path);
	p->gone = gone;
	if (absent) {
		trouble_end(p->refused);
		p->due_ms = 0;
	}
	return absent;
}

void file_plan_changed(struct file_plan *p, const struct file_seen *seen)
{
	if (is_absent(p, seen))
		return;
	if (is_other_text(p, seen))
		want(p, false);
	else
		file_plan_want(p, seen, false);
}

bool file_plan_reload(struct file_plan *p, const struct file_seen *seen)
{
	if (seen->optional && !seen->exists)
		p->text[0] = '\0';
	file_plan_changed(p, seen);
	if (p->reloading)
		return false;
	return p->reloading = p->running || p->wanted;
}

void file_plan_due(struct file_plan *p, const struct file_seen *seen)
{
	p->due_ms = 0;
	if (!is_absent(p, seen))
		file_plan_want(p, seen, false);
}

bool file_plan_awaits(const struct file_plan *p)
{
	return !p->running && p->refused->why;
}

// A command may have applied what was refused.
void file_plan_accepted(struct file_plan *p, const struct file_seen *seen, const char *accepted)
{
	if (file_plan_awaits(p) && strcmp(accepted, p->accepted) != 0)
		file_plan_want(p, seen, false);
}

void file_plan_start(struct file_plan *p, const struct file_seen *seen, bool was_absent,
		     const char *accepted, const struct plan_now *now)
{
	if (was_absent) {
		file_plan_want(p, seen, false);
		return;
	}
	is_other_text(p, seen);
	if (!p->refused->why)
		return;
	snprintf(p->accepted, sizeof(p->accepted), "%s", accepted);
	p->due_ms = again_ms(p->refused, now);
}

bool file_plan_begin(struct file_plan *p, bool *ret_offline)
{
	if (!p->wanted || p->running)
		return false;
	*ret_offline = p->offline;
	p->running = true;
	p->wanted = p->offline = false;
	p->due_ms = 0;
	return true;
}

// The same failure again is not logged: the same sentence, and the same first line before it.
bool file_plan_failed(struct file_plan *p, const char *why, const char *first, const char *accepted,
		      const struct plan_now *now)
{
	bool same = !trouble_begin(p->refused, why);
	char line[sizeof(p->first)];

	snprintf(line, sizeof(line), "%s", first);
	same = same && (!p->first[0] || !strcmp(line, p->first));
	memcpy(p->first, line, sizeof(line));
	snprintf(p->accepted, sizeof(p->accepted), "%s", accepted);
	p->running = false;
	if (!p->wanted)
		p->due_ms = again_ms(p->refused, now);
	return !same;
}

void file_plan_succeeded(struct file_plan *p)
{
	trouble_end(p->refused);
	p->running = false;
}

bool file_plan_ends_reload(struct file_plan *p)
{
	bool ends = p->reloading && !p->running && !p->wanted;

	p->reloading &= !ends;
	return ends;
}

// ---- the active policy --------------------------------------------------------------------------

void again_plan_free(struct again_plan *p)
{
	trouble_end(&p->trouble);
	plan_messages_free(&p->messages);
	free(p->feed);
}

static void change(struct again_plan *p, const char *what, const struct plan_now *now)
{
	p->changed = what;
	p->stale = true;
	p->due_ms = now->ms;
}

bool again_plan_look(struct again_plan *p, const char *revision, bool trial)
{
	if (trial || !strcmp(revision, p->revision))
		return false;
	snprintf(p->revision, sizeof(p->revision), "%s", revision);
	return true;
}

// The databases may have changed while no agent ran.
void again_plan_read(struct again_plan *p, bool places, const struct plan_now *now)
{
	p->places = places;
	if (!p->looked && places)
		change(p, "databases", now);
	p->looked = true;
}

void again_plan_feed(struct again_plan *p, const char *feed, const struct plan_now *now)
{
	CLEANUP_FREE char *before = TAKE_PTR(p->feed);
	bool others = p->stale || p->trouble.times;

	if (!others || (before && !strcmp(before, feed)))
		p->feed = mem_strdup(feed);
	change(p, "feeds", now);
}

// A change causes one apply: of the active policy, unless only the file has countries.
void again_plan_databases(struct again_plan *p, const struct plan_now *now)
{
	free(TAKE_PTR(p->feed));
	if (p->places)
		change(p, "databases", now);
	else
		p->file = true;
}

bool again_plan_begin(struct again_plan *p)
{
	p->due_ms = 0;
	if (p->running)
		return false;
	p->running = true;
	p->stale = false;
	memcpy(p->tried, p->revision, sizeof(p->tried));
	return true;
}

// A file that could not be applied may have waited for the same.
void again_plan_succeeded(struct again_plan *p, bool file_refused, const struct plan_now *now)
{
	p->running = false;
	trouble_end(&p->trouble);
	if (p->stale)
		p->due_ms = now->ms;
	else
		p->file = p->offline = file_refused;
}

// If another policy has come, the apply of the former one is refused, which is nothing to report.
bool again_plan_failed(struct again_plan *p, const char *why, const char *active,
		       const struct plan_now *now)
{
	CLEANUP_FREE char *text =
		mem_printf("the %s of the policy have changed, but %s", p->changed, why);

	p->running = false;
	if (active && strcmp(active, p->tried) != 0) {
		p->due_ms = now->ms + OTHER_MS;
		return false;
	}
	if (trouble_begin_like(&p->trouble, text))
		plan_say(&p->messages, log_error, "%s; the active policy stays", text);
	p->due_ms = again_ms(&p->trouble, now);
	return true;
}
