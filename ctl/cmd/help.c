// SPDX-License-Identifier: GPL-2.0-only
// Prints usage, commands and options.
#include "ctl/cmd/help.h"

#include <stdio.h>
#include <string.h>

#define COLUMN 26

static void print_option(const struct args_option *o)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "  %c%c%s--%s%s%s%s", o->letter ? '-' : ' ',
			   o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
			   !o->arg       ? ""
			   : o->optional ? "[="
					 : " ",
			   o->arg ? o->arg : "", o->optional ? "]" : "");

	if (len >= COLUMN)
		printf("%s\n%*s%s\n", text, COLUMN, "", o->help);
	else
		printf("%-*s%s\n", COLUMN, text, o->help);
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
	     "XDP packet filter and load balancer.\n"
	     "\n"
	     "Commands:");
	for (const struct command *const *c = commands; *c; c++)
		printf("  %-*s%s\n", COLUMN - 2, (*c)->name, (*c)->summary);
	printf("  %-*s%s\n", COLUMN - 2, "help COMMAND", "more about a command");
	print_options("Global options", globals);
	puts("\nExit status: 0 done; 1 the input is wrong; 2 the kernel or the system refused;\n"
	     "3 understood and possible, but refused, without effect or different.");
}

void help_command(const struct command *c, const struct args_option *globals)
{
	printf("usage: weir [GLOBAL OPTIONS] %s %s\n\n%s\n", c->name, c->usage, c->summary);
	if (c->text)
		printf("\n%s\n", c->text);
	print_options("Options", c->options);
	print_options("Global options", globals);
}
