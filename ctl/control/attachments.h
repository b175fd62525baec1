// SPDX-License-Identifier: GPL-2.0-only
// The interfaces that `weir attach` has attached, on disk for `weir restore`. The policy names its
// own.
#pragma once

#include "common/words.h"
#include "ctl/base/err.h"
#include "ctl/base/vec.h"

#include <net/if.h>

struct attachment {
	char name[IF_NAMESIZE];
	enum attach_mode mode; // as asked for, not as it became
};

struct attachments {
	VEC(struct attachment) list;
};

// /var/lib/weir/NAME/interfaces (state.h); no file: none. 0 or -errno with err set, as state_read.
int attachments_read(const char *instance, struct attachments *ret, struct err *err);
void attachments_free(struct attachments *a);
#define CLEANUP_ATTACHMENTS CLEANUP(attachments_free)

// Adds an interface, or changes its mode. The caller holds the lock. 0 or -errno with err set. A
// damaged file is kept as interfaces.damaged, and another one begun: 0, with err set.
int attachments_put(const char *instance, const char *name, enum attach_mode mode, struct err *err);
// The same for a command that has attached it. What its user should know, which the caller frees;
// NULL: nothing.
char *attachments_remember(const char *instance, const char *name, enum attach_mode mode);
// Removes an interface; name NULL: all. No error when it is not there. Otherwise as before.
int attachments_take(const char *instance, const char *name, struct err *err);
