// SPDX-License-Identifier: GPL-2.0-only
// Fuzz target: the journal of the overlay, its frames, its lines and its index.
#include "ctl/control/entries/journal.h"
#include "ctl/control/entries/journal_index.h"
#include "tests/fuzz/fuzz.h"

struct reading {
	struct journal_index *index;
	struct text again; // the lines, printed
};

static void print_line(struct text *t, const struct journal_line *line)
{
	switch (line->what) {
	case JOURNAL_OWNER:
		journal_print_owner(t, line->reference.owner, &line->owner);
		break;
	case JOURNAL_ADD:
		journal_print_add(t, &line->reference, line->reference.owner);
		break;
	case JOURNAL_REMOVE:
		journal_print_remove(t, &line->reference, line->reference.owner);
	}
}

static const char *enter(void *ctx, const struct journal_line *line, size_t at, size_t len)
{
	struct reading *r = ctx;

	print_line(&r->again, line);
	switch (line->what) {
	case JOURNAL_OWNER:
		return journal_index_owner(r->index, line->reference.owner, at, len, &line->owner);
	case JOURNAL_ADD:
		return journal_index_add(r->index, &line->reference);
	case JOURNAL_REMOVE:
		return journal_index_drop(r->index, &line->reference);
	}
	return NULL;
}

// A text that was read must be printed as a text that has the same meaning.
static void check_again(const struct reading *first)
{
	struct reading second = {.index = journal_index_new(NULL, 0)};
	struct text file = {0};
	struct journal_frame f;
	const char *why = NULL;

	journal_print_change(&file, text_get(&first->again), first->again.len, 1,
			     &(struct records_clock){0});
	fuzz_check(journal_find(file.at, file.len, 0, &f, &why) == JOURNAL_FRAME);
	fuzz_check(f.end == file.len);
	fuzz_check(!journal_lines(file.at, &f, enter, &second));
	fuzz_check(second.again.len == first->again.len &&
		   !memcmp(text_get(&second.again), text_get(&first->again), first->again.len));
	fuzz_check(journal_index_count(second.index) == journal_index_count(first->index));
	journal_index_free(second.index);
	text_free(&second.again);
	text_free(&file);
}

static bool read_frames(const char *text, size_t size, struct reading *r)
{
	struct journal_frame f = {.end = 0};
	enum journal_found found;
	const char *why = NULL;

	while ((found = journal_find(text, size, f.end, &f, &why)) == JOURNAL_FRAME) {
		fuzz_check(f.at < f.lines && f.lines <= f.lines_end && f.lines_end < f.end &&
			   f.end <= size);
		if (journal_lines(text, &f, enter, r))
			return false;
	}
	fuzz_check(found != JOURNAL_DAMAGED || why);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct reading r = {.index = journal_index_new(NULL, 0)};
	struct journal_frame f;
	struct err err = {0};
	bool whole;

	journal_is_newer(text, size);
	if (journal_is_old(text, size)) {
		whole = !journal_find_old(text, size, &f, enter, &r, &err);
		fuzz_check(whole || err.text[0]);
	} else {
		// The checksum stops all but the first steps, so the lines are also read as if it
		// was right.
		whole = read_frames(text, size, &r);
		f = (struct journal_frame){.lines_end = size};
		whole = whole && !journal_lines(text, &f, enter, &r);
	}
	if (whole)
		check_again(&r);
	journal_index_free(r.index);
	text_free(&r.again);
	free(text);
	return 0;
}
