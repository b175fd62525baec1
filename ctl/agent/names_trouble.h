// SPDX-License-Identifier: GPL-2.0-only
// What is wrong with names as a whole, apart from single answers: told when it begins, when it
// becomes another failure and when it ends, and a problem of the part in between.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/json.h"

enum names_trouble {
	TROUBLE_LIST,     // which names there are is not known
	TROUBLE_QUESTION, // none of the names that were asked for has an answer
	TROUBLE_ENTRIES,  // entries cannot be changed
	TROUBLE_POLICY,   // the policy cannot be changed, or its record cannot be read
	TROUBLES,
};

struct names_troubles {
	struct {
		char *why;      // a sentence; NULL: nothing is wrong
		unsigned times; // in a row
	} at[TROUBLES];
};
void names_troubles_free(struct names_troubles *t);

void names_trouble_begin(struct names_troubles *t, enum names_trouble which, const char *why);
// True if there was one.
bool names_trouble_end(struct names_troubles *t, enum names_trouble which);
bool names_has_trouble(const struct names_troubles *t, enum names_trouble which);
// Until it is tried again: `first` ms, then longer and longer up to a minute.
uint64_t names_trouble_pause_ms(const struct names_troubles *t, enum names_trouble which,
				uint64_t first);
void names_troubles_report(const struct names_troubles *t, struct json *problems);
