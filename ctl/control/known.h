// SPDX-License-Identifier: GPL-2.0-only
// The addresses of a policy's lists as values, beside the record of its revision, so that commands
// which only ask need not read list files of a million lines again.
//
// The file `addresses` of a record has the prefixes of each list that has list files in it, as
// resolve has found them. It is derived from the other files, and its sums find what a crash or a
// disk has done to it: a command that finds it missing or damaged reads the lists. It is not
// written for small lists, nor for lists in which host names or own addresses are mixed with files,
// since those may be others another time.
#pragma once

#include "ctl/policy/resolved.h"

struct known;
struct policy_known;

// Into the folder of a record, without an error: it is not needed. Not flushed.
void known_write(const char *folder, const struct resolved *r);
// NULL: it is missing, damaged, or written by another build. whole: the prefixes are verified too,
// not only their number.
struct known *known_read(const char *folder, bool whole);
void known_free(struct known *k);
// For struct policy_env. Its results are valid as long as k.
const struct policy_known *known_policy(const struct known *k);
