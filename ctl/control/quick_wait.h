// SPDX-License-Identifier: GPL-2.0-only
// Commands that add quick rules at once share a switch: one adds the rules of all.
//
// Each puts its rule into /run/weir/NAME/adding/TOKEN, which it keeps locked while it lives. They
// take turns, and each tries to switch with its own rule and those of the others. The one that
// switches removes their files under the lock of the instance, right before the switch, so a
// command that gives up and removes its own file knows that the rule will not be added. The others
// then get a file with the id of their rule, or, if the one that switched was killed before, find
// their token in the active rules. A rule that fails is marked, and fails by itself.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/control/quick.h"

struct quick_other {
	char *token;
	uint64_t id;   // in the rules of the running attempt; 0: it is not among them
	bool excluded; // it fails, or has no room: for all attempts of this command
};

struct quick_wait {
	char *folder;
	char *token; // the command's; NULL: it does not wait
	int lock;    // its file
	int turn;    // the folder
	bool alone;  // the command failed together with others: it tries its own rule only
	VEC(struct quick_other) others;
};
#define QUICK_NO_WAIT                  \
	{                              \
		.lock = -1, .turn = -1 \
	}
void quick_wait_free(struct quick_wait *w);

// Puts the rule where others find it. A failure only means that no other command adds it.
void quick_wait_begin(struct quick_wait *w, const char *instance, const struct quick_rule *rule,
		      const struct quick_place *place);
// Waits until no other command makes an attempt; for some seconds, since it only saves switches.
void quick_wait_turn(struct quick_wait *w);
void quick_wait_end_turn(struct quick_wait *w);
// Begins an attempt. Returns the id of the rule if another command has added it; it may have ended
// since. 0: not yet.
uint64_t quick_wait_find(struct quick_wait *w, const struct quick_rules *q);
// Adds the rules of the others.
void quick_wait_join(struct quick_wait *w, struct quick_rules *q);
// Are there rules of others in the last attempt?
bool quick_wait_has_others(const struct quick_wait *w);

// Under the lock of the instance: -ESTALE with err set if a command has given up meanwhile, or its
// rule is marked. w NULL: no command waits. Else 0.
int quick_wait_check(struct quick_wait *w, struct err *err);
// Right before the switch: from now on none of the others can give up, and each gets the warnings
// and notices about its rule, which print() writes by quick_wait_say(). -ESTALE with err set: one
// has given up at this moment.
typedef void quick_wait_print(void *ctx, uint64_t id, struct json_writer *file);
int quick_wait_take(struct quick_wait *w, quick_wait_print *print, void *ctx, struct err *err);
// After the switch, under the lock: no other command adds the own rule any more, and the others
// learn the ids of their rules. w may be NULL.
void quick_wait_done(const struct quick_wait *w);
void quick_wait_say(struct json_writer *file, bool notice, const char *text);
// An attempt with others has failed because of the rule `culprit` (0: unknown); decides which rules
// the next one has.
void quick_wait_failed(struct quick_wait *w, uint64_t culprit);

// The command fails by itself. False: another command has taken its rule, so another attempt will
// find it.
bool quick_wait_withdraw(struct quick_wait *w);
// What the other command wrote for this one.
typedef void quick_wait_hear(void *ctx, bool notice, const char *text);
void quick_wait_read(const struct quick_wait *w, quick_wait_hear *hear, void *ctx);
