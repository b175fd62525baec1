// SPDX-License-Identifier: GPL-2.0-only
// The list of commands, in the order of `weir help`, and the options of all of them.
#include "ctl/cmd/command.h"

#include <stddef.h>

// clang-format off
const struct command *const commands[] = {
	&cmd_attach, &cmd_detach, &cmd_restore, &cmd_forget,
	&cmd_block, &cmd_unblock, &cmd_allow, &cmd_unallow, &cmd_batch, &cmd_refresh, &cmd_list,
	&cmd_check, &cmd_apply, &cmd_confirm, &cmd_rollback, &cmd_diff, &cmd_show, &cmd_history,
	&cmd_service, &cmd_drain, &cmd_undrain, &cmd_weight, &cmd_backend,
	&cmd_explain, &cmd_status, &cmd_stats, &cmd_metrics, &cmd_watch, &cmd_bypass, &cmd_doctor,
	&cmd_decap, &cmd_run,
	NULL,
};
// clang-format on

const struct args_option global_options[] = {
	{.name = "instance", .letter = 'n', .arg = "NAME", .help = "instance to act on (main)"},
	{.name = "netns",
	 .letter = 'N',
	 .arg = "NETNS",
	 .help = "network namespace to act in, as ip -n"},
	{.name = "geo",
	 .arg = "FILE[,…]",
	 .help = "databases of countries and autonomous systems, or folders with them"},
	{.name = "json", .letter = 'j', .help = "print one JSON document", .repeated = true},
	{.name = "pretty", .letter = 'p', .help = "print indented JSON", .repeated = true},
	{.name = "color", .arg = "WHEN", .help = "auto, always or never"},
	{.name = "quiet", .letter = 'q', .help = "do not print the result line", .repeated = true},
	{.name = "verbose",
	 .letter = 'v',
	 .help = "print more details; -vv: debug messages",
	 .repeated = true},
	{.name = "version", .letter = 'V', .help = "print the version", .repeated = true},
	{.name = "help", .letter = 'h', .help = "print this help", .repeated = true},
	{0},
};
