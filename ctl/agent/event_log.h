// SPDX-License-Identifier: GPL-2.0-only
// `weir run --events`: logged packets and changes, as lines in the journal, on standard error or in
// a file.
//
// They are a listener as the clients of /v1/events are. The lines are written by a process
// (cmd/event_writer.c), so a full pipe, a slow disk or a journal that hangs holds up nothing: the
// queue of the listener fills, and what does not fit is counted.
#pragma once

// The command that writes. It reads a document a line from standard input, and a control line:
#define EVENT_WRITER "event-writer"
#define EVENT_REOPEN "{\"reopen\":true}\n" // opens the file again
// It prints a document at first, and when one of these changes, at most once a second: "written"
// and "lost" (events so far), "why" (the last line could not be written; else null).

#define EVENTS_JOURNAL "journal"
#define EVENTS_STDERR  "stderr"
#define EVENTS_NONE    "none"
