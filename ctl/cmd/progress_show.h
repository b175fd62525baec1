// SPDX-License-Identifier: GPL-2.0-only
// Shows a line on the terminal while an operation (base/progress.h) takes longer than a second.
//
// A thread draws it, since the operation may be one long call of the kernel; it exists only while
// an operation runs. A timer would not do: the verifier ends a load when a signal arrives.
#pragma once

// Begins if standard error is a terminal. Messages of base/log.h erase the line first.
void progress_show(void);
