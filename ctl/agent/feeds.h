// SPDX-License-Identifier: GPL-2.0-only
// Fetches the feeds of the policy and of lists again, each in its time.
#pragma once

struct agent;

// The policy may have other feeds now.
void feeds_follow(struct agent *a);
// The policy file may have other places now.
void feeds_watch(struct agent *a);
