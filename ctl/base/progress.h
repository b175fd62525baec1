// SPDX-License-Identifier: GPL-2.0-only
// Reports to the user what a long operation is waiting for. Without progress_to nothing is
// reported.
#pragma once

// From now on `say` gets each sentence.
void progress_to(void (*say)(const char *text));
__attribute__((format(printf, 1, 2))) void progress_say(const char *fmt, ...);
