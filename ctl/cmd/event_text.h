// SPDX-License-Identifier: GPL-2.0-only
// A document of `weir watch` or `weir changes` as an entry of the journal. Pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/text.h"

// Adds the fields of an entry (systemd.io/JOURNAL_NATIVE_PROTOCOL): MESSAGE, PRIORITY,
// SYSLOG_IDENTIFIER, and each value of the document as WEIR_KEY; a value with several lines in the
// binary form. line: the document, with or without its newline.
void event_fields(const char *line, size_t len, struct text *ret);
// Adds a document about events that were left out, with its newline.
void event_missed_line(uint64_t missed, const char *why, struct text *ret);
