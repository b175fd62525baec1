// SPDX-License-Identifier: GPL-2.0-only
// What a long operation waits for, told to who waits for the command. Without progress_to nothing
// is said.
#pragma once

// From now on `say` gets each sentence.
void progress_to(void (*say)(const char *text));
__attribute__((format(printf, 1, 2))) void progress_say(const char *fmt, ...);
