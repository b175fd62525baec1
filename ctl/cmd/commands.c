// SPDX-License-Identifier: GPL-2.0-only
// The list of commands, in the order of `weir help`.
#include "ctl/cmd/command.h"

#include <stddef.h>

// clang-format off
const struct command *const commands[] = {
	&cmd_attach, &cmd_detach, &cmd_forget,
	&cmd_block, &cmd_unblock, &cmd_allow, &cmd_unallow, &cmd_list,
	&cmd_check, &cmd_apply, &cmd_confirm, &cmd_rollback, &cmd_diff, &cmd_show, &cmd_history,
	&cmd_service, &cmd_drain, &cmd_undrain, &cmd_weight, &cmd_backend,
	&cmd_explain, &cmd_status, &cmd_stats, &cmd_watch, &cmd_bypass, &cmd_doctor,
	&cmd_decap,
	NULL,
};
// clang-format on
