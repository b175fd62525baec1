// SPDX-License-Identifier: GPL-2.0-only
// The list of commands, in the order of `weir help`, and the options of all commands.
#include "ctl/cmd/command.h"

#include <stddef.h>

// clang-format off
const struct command *const commands[] = {
	&cmd_block, &cmd_unblock, &cmd_allow, &cmd_unallow, &cmd_list, &cmd_batch, &cmd_refresh,
	&cmd_attach, &cmd_detach, &cmd_restore, &cmd_forget,
	&cmd_check, &cmd_apply, &cmd_confirm, &cmd_rollback, &cmd_diff, &cmd_show, &cmd_history,
	&cmd_status, &cmd_explain, &cmd_stats, &cmd_watch, &cmd_metrics, &cmd_doctor, &cmd_bypass,
	&cmd_service, &cmd_drain, &cmd_undrain, &cmd_weight, &cmd_backend, &cmd_decap,
	&cmd_run,
	NULL,
};

const char *commands_group(const struct command *c)
{
	static const struct {
		const struct command *first;
		const char *title;
	} groups[] = {
		{&cmd_block, "Addresses and names"},
		{&cmd_attach, "Interfaces"},
		{&cmd_check, "Policy files"},
		{&cmd_status, "What happens, and why"},
		{&cmd_service, "Load balancer"},
		{&cmd_run, "Agent"},
	};

	for (size_t n = 0; n < sizeof(groups) / sizeof(*groups); n++)
		if (groups[n].first == c)
			return groups[n].title;
	return NULL;
}
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

const char *commands_foreign(const char *word)
{
	static const struct {
		const char *word, *hint;
	} foreign[] = {
		{"ban", "weir block WHAT blocks an address"},
		{"drop", "weir block WHAT blocks an address"},
		{"deny", "weir block WHAT blocks an address"},
		{"add", "weir block WHAT blocks an address"},
		{"unban", "weir unblock WHAT removes a block"},
		{"delete", "weir unblock WHAT removes a block"},
		{"del", "weir unblock WHAT removes a block"},
		{"flush", "weir unblock --all removes all block entries"},
		{"ls", "weir list lists the entries"},
		{"version", "weir -V prints the version"},
		{"start", "weir attach IFACE attaches; systemctl start weir@main starts the agent"},
		{"stop", "weir detach removes Weir; systemctl stop weir@main stops the agent"},
		{"restart", "systemctl restart weir@main restarts the agent"},
		{"reload",
		 "weir apply FILE applies a policy; systemctl reload weir@main tells the agent"},
		{"enable", "systemctl enable --now weir@main starts Weir at boot"},
		{"disable", "systemctl disable --now weir@main ends the start at boot"},
		{"log", "weir watch prints dropped packets"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (!strcmp(foreign[i].word, word))
			return foreign[i].hint;
	return NULL;
}
