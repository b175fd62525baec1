// SPDX-License-Identifier: GPL-2.0-only
// Prints usage, commands and options.
#include "ctl/cmd/help.h"

#include <stdio.h>
#include <string.h>

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

void help_document(struct out *o, const struct command *c, const struct args_option *globals)
{
	if (c) {
		out_set_string(o, "command", c->name);
		out_set_string(o, "usage", c->usage);
		out_set_string(o, "summary", c->summary);
		out_set_string(o, "text", c->text);
		set_options(o, "options", c->options);
	} else {
		out_array(o, "commands");
		for (const struct command *const *one = commands; *one; one++) {
			out_object(o, NULL);
			out_set_string(o, "name", (*one)->name);
			out_set_string(o, "summary", (*one)->summary);
			out_end(o);
		}
		out_end(o);
	}
	set_options(o, "global_options", globals);
}
