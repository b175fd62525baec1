// SPDX-License-Identifier: GPL-2.0-only
// Files in /run/weir/NAME in which commands that take no lock keep what they have seen, for the
// next one.
//
// A file is one JSON document. Nothing is lost without it: a reader treats a damaged file, and the
// file of an earlier instance, like a missing one.
#pragma once

#include <stdint.h>

struct json;

// progs_id: identity of the instance of these counters. NULL: there is no such document. The caller
// frees it.
struct json *kept_read(const char *path, uint32_t progs_id);
// Sets "progs_id" in j, which remains the caller's. A command that finds another one at it leaves
// the file to that one.
void kept_write(const char *path, uint32_t progs_id, struct json *j);
