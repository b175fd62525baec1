// SPDX-License-Identifier: GPL-2.0-only
// Quick rules in memory: rules of commands, in front of the rules of any policy.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/policy/env.h"

#define QUICK_MAX      256
#define QUICK_TEXT_MAX 16384 // bytes of a rule

struct quick_rule {
	uint64_t id;
	char label[32];            // "quick 3"
	char *name;                // NULL: none
	char *text;                // without the name
	char *by, *note, *origin;  // origin NULL: none
	char *token;               // the file of a command (quick_wait.h); NULL: none
	uint64_t since_s, until_s; // wall clock; until_s 0: permanent
	bool fresh;                // of the running command
};

struct quick_rules {
	struct quick_rule *at; // in the order in which they are evaluated
	size_t n, cap;
	uint64_t version;      // of these rules; 0: there never was a rule
	uint64_t base, newest; // when they were read: of the active generation, of the file
	uint64_t next;         // id of the next rule
	bool changed;          // not written yet
};
// Where a new rule goes.
struct quick_place {
	bool first;      // in front of all others
	uint64_t before; // id of a rule; 0: at the end
};

void quick_free(struct quick_rules *q);
#define CLEANUP_QUICK CLEANUP(quick_free)
void quick_free_rule(struct quick_rule *rule);
void quick_set_id(struct quick_rule *rule, uint64_t id);

// The words of `rule add`: name and text of a rule. name: of --name; NULL: not given. ret is empty
// before, and the caller frees it. 0, or -EINVAL with err set.
int quick_read_words(const char *words, const char *name, struct quick_rule *ret, struct err *err);
// For candidates: the array has one for each rule and points into q. The caller frees it.
struct policy_quick *quick_texts(const struct quick_rules *q);

// Adds a copy of a rule, whose id and label it sets, and makes that a change. 0 or -errno with err
// set: there is no room, or no such place, or another rule has the name.
int quick_insert(struct quick_rules *q, struct quick_rule *rule, const struct quick_place *place,
		 struct err *err);
// Adds the rule of a row of a file; -EBADMSG: it has no valid rule.
int quick_read_row(const struct json *from, struct quick_rules *ret);
// The same without its id.
void quick_read_rule(const struct json *from, struct quick_rule *ret);
void quick_write_rule(struct json_writer *file, const struct quick_rule *rule);
// Were they not active when they were read, since the policy does not compile with them?
bool quick_is_left_out(const struct quick_rules *q);
// The rules that remain active under the same policy: those that are left out stay in the file.
void quick_keep_active(struct quick_rules *q);
// Another version: the rules are written with the next switch.
void quick_change(struct quick_rules *q);
// Removes the rules whose time has come, and makes that a change. Returns their number.
size_t quick_end(struct quick_rules *q, uint64_t now_s);
// The rules that remain after this time, for another candidate: *ret, which is empty, gets copies
// of what a candidate needs.
void quick_remain(const struct quick_rules *q, uint64_t after_s, struct quick_rules *ret);
// The time of the first end; UINT64_MAX: none ends.
uint64_t quick_next_end(const struct quick_rules *q);
