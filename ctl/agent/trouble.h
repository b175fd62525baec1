// SPDX-License-Identifier: GPL-2.0-only
// Something that fails for a while: logged when it begins, when it becomes another failure and when
// it ends, a problem of its part in between, tried again later and later. Pure: the callers log.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/json.h"
#include "ctl/base/vec.h"

struct trouble {
	char *why;      // a sentence; NULL: nothing is wrong
	unsigned times; // failures in a row
};

// One more failure. True: it is to be logged, because it is the first one, or the previous one had
// another sentence. trouble_begin_like: sentences that differ only in numbers are the same failure.
bool trouble_begin(struct trouble *t, const char *why);
bool trouble_begin_like(struct trouble *t, const char *why);
// It works. True: it did not before, so the end is to be logged.
bool trouble_end(struct trouble *t);
// Adds "WHAT: WHY" while it lasts. what NULL: only the sentence.
void trouble_report(const struct trouble *t, const char *what, struct json *problems);
// The pause after so many failures in a row: `first`, then twice as long each time, at most `most`.
uint64_t trouble_pause_ms(unsigned times, uint64_t first, uint64_t most);

// The troubles of many objects, which are checked together.
struct trouble_of {
	char *name;
	struct trouble trouble;
	bool lasts; // noted since troubles_begin()
};
struct troubles {
	VEC(struct trouble_of) all;
};
// Begins a check.
void troubles_begin(struct troubles *t);
// In this look an object fails. True: as with trouble_begin().
bool troubles_note(struct troubles *t, const char *name, const char *why);
// Ends it: objects that were not noted are forgotten, after a call of `over`, which may be NULL.
void troubles_end(struct troubles *t, void (*over)(void *ctx, const char *name, const char *why),
		  void *ctx);
// Why an object fails; NULL: it does not.
const char *troubles_why(const struct troubles *t, const char *name);
void troubles_free(struct troubles *t);
