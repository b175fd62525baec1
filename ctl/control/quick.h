// SPDX-License-Identifier: GPL-2.0-only
// Quick rules on disk: rules of commands, in front of the rules of any policy.
//
// /var/lib/weir/NAME/rules has the list of the latest change and the list before it, each with a
// version. It is written before the switch. A generation names the version that it was made with,
// so after a kill the kernel decides which list is active. No id is used twice.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/control/quick_list.h"
#include "ctl/datapath/instance.h"

// The rules of a generation that names this version. -ENODATA if the file does not have them. 0 or
// -errno with err set.
int quick_read_version(const char *instance, uint64_t version, struct quick_rules *ret,
		       struct err *err);
// The active rules; of an instance that does not exist, or whose version the file does not have,
// those of the latest change. 0 or -errno with err set.
int quick_read(const char *instance, struct quick_rules *ret, struct err *err);
// Under the lock, before a switch: refuses rules that were read before another command changed them
// (-ESTALE). 0 or -errno with err set.
int quick_check(const struct instance *i, const struct quick_rules *q, struct err *err);
// Writes changed rules beside the active ones, before the switch. 0 or -errno with err set.
int quick_stage(const struct instance *i, const struct quick_rules *q, struct err *err);
// Writes the rules as the only list. The caller holds the lock. 0 or -errno with err set.
int quick_save(const char *instance, const struct quick_rules *q, struct err *err);
// Removes a list that no switch has activated; without a generation both lists stay. The caller
// holds the lock. 0 or -errno with err set.
int quick_settle(const struct instance *i, struct err *err);
