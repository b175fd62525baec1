// SPDX-License-Identifier: GPL-2.0-only
// The commands in the order of `weir help`, the options of all commands, and the text that help
// prints of both.
#include "ctl/cmd/help.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cmd/command.h"

// clang-format off
const struct command *const commands[] = {
	&cmd_block, &cmd_unblock, &cmd_allow, &cmd_unallow, &cmd_list, &cmd_batch, &cmd_rule, &cmd_refresh,
	&cmd_attach, &cmd_detach, &cmd_restore, &cmd_forget,
	&cmd_check, &cmd_apply, &cmd_confirm, &cmd_rollback, &cmd_diff, &cmd_show, &cmd_history,
	&cmd_changes,
	&cmd_import,
	&cmd_status, &cmd_explain, &cmd_stats, &cmd_top, &cmd_page, &cmd_watch, &cmd_capture,
	&cmd_metrics, &cmd_doctor, &cmd_bypass,
	&cmd_service, &cmd_drain, &cmd_undrain, &cmd_weight, &cmd_backend, &cmd_decap,
	&cmd_run,
	NULL,
};

// The title of the group that begins with this command; NULL: it begins none.
static const char *commands_group(const struct command *c)
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

#define COLUMN 26

static void print_option(const struct args_option *o)
{
	char text[128];
	size_t width;

	snprintf(text, sizeof(text), "  %c%c%s--%s%s%s%s", o->letter ? '-' : ' ',
		 o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
		 !o->arg       ? ""
		 : o->optional ? "[="
			       : " ",
		 o->arg ? o->arg : "", o->optional ? "]" : "");

	width = out_width(text);
	if (width >= COLUMN)
		printf("%s\n%*s%s\n", text, COLUMN, "", o->help);
	else
		printf("%s%*s%s\n", text, COLUMN - (int)width, "", o->help);
}

static void print_options(const char *title, const struct args_option *options)
{
	if (!options || !options->name)
		return;
	printf("\n%s:\n", title);
	for (const struct args_option *o = options; o->name; o++)
		print_option(o);
}

void help_overview(const struct args_option *globals)
{
	puts("usage: weir [GLOBAL OPTIONS] COMMAND …\n"
	     "\n"
	     "XDP packet filter and load balancer.");
	for (const struct command *const *c = commands; *c; c++) {
		const char *title = commands_group(*c);

		if (title)
			printf("\n%s:\n", title);
		printf("  %-*s%s\n", COLUMN - 2, (*c)->name, (*c)->summary);
	}
	printf("\n  %-*s%s\n", COLUMN - 2, "help COMMAND", "print the options of a command");
	print_options("Global options", globals);
	puts("\nExit status: 0 success; 1 invalid input; 2 refused by the kernel or the system;\n"
	     "3 valid, but refused by Weir, without effect, or different.");
}

void help_command(const struct command *c, const struct args_option *globals)
{
	printf("usage: weir [GLOBAL OPTIONS] %s%s%s\n\n%s\n", c->name, c->usage[0] ? " " : "",
	       c->usage, c->summary);
	if (c->text)
		printf("\n%s\n", c->text);
	print_options("Options", c->options);
	print_options("Global options", globals);
}

static void set_options(struct out *o, const char *key, const struct args_option *options)
{
	out_array(o, key);
	for (; options && options->name; options++) {
		char letter[2] = {options->letter, '\0'};

		out_object(o, NULL);
		out_set_string(o, "name", options->name);
		out_set_string(o, "letter", letter[0] ? letter : NULL);
		out_set_string(o, "argument", options->arg);
		out_set_bool(o, "argument_optional", options->optional);
		out_set_bool(o, "repeated", options->repeated);
		out_set_string(o, "help", options->help);
		out_end(o);
	}
	out_end(o);
}

static void set_commands(struct out *o)
{
	const char *group = NULL;

	out_array(o, "commands");
	for (const struct command *const *one = commands; *one; one++) {
		const char *begun = commands_group(*one);

		group = begun ? begun : group;
		out_object(o, NULL);
		out_set_string(o, "name", (*one)->name);
		out_set_string(o, "group", group);
		out_set_string(o, "summary", (*one)->summary);
		out_end(o);
	}
	out_end(o);
}

void help_document(struct out *o, const struct command *c, const struct args_option *globals)
{
	if (c) {
		out_set_string(o, "command", c->name);
		out_set_string(o, "usage", c->usage);
		out_set_string(o, "summary", c->summary);
		out_set_string(o, "text", c->text);
		set_options(o, "options", c->options);
	} else {
		set_commands(o);
	}
	set_options(o, "global_options", globals);
}
