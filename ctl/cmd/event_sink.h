// SPDX-License-Identifier: GPL-2.0-only
// Where `weir run --events` records events: the journal, standard error, a file or a named pipe.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

struct event_sink;

// to: journal, stderr or a path; it is opened with the first line.
struct event_sink *event_sink_new(const char *to);
void event_sink_free(struct event_sink *s); // NULL is allowed
// Opens a file again. 0 or -errno with err set; then the next line tries it, too.
int event_sink_reopen(struct event_sink *s, struct err *err);
// Writes a document with its newline. Waits for the reader of a pipe for a second at most, and not
// at all if it was too slow for the line before. A line that fails has no rest in a file. 0 or
// -errno with err set.
int event_sink_write(struct event_sink *s, const char *line, size_t len, struct err *err);
// May `weir run` record there? A file is created. Without a journal -ENOENT and err, ERR_SYSTEM;
// otherwise 0 or -errno with err set.
int event_sink_check(const char *to, struct err *err);
