// SPDX-License-Identifier: GPL-2.0-only
// weir: global options, dispatch, and the exit statuses of results.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/agent/notify.h"
#include "ctl/agent/process.h"
#include "ctl/base/diag_nearest.h"
#include "ctl/base/log.h"
#include "ctl/base/text.h"
#include "ctl/cmd/changing.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/help.h"
#include "ctl/cmd/progress_show.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/probe.h"
#include "ctl/net/geo_db.h"

#define COLUMNS_DEFAULT 80 // width of a terminal that does not report it

static size_t count(const struct args *args, const char *name)
{
	const char *values[8];

	return args_values(args, name, values, ARRAY_SIZE(values));
}

static int want_color(const struct args *args, bool *ret, struct err *err)
{
	const char *when = args_value(args, "color");

	if (!when || !strcmp(when, "auto"))
		*ret = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	else if (!strcmp(when, "always") || !strcmp(when, "never"))
		*ret = when[0] == 'a';
	else
		return err_input(err, "invalid --color '%s': auto, always or never", when);
	return 0;
}

static const struct command *find_command(const char *word, struct err *err)
{
	const char *names[64];
	const char *near;
	size_t n = 0;

	if (!strcmp(word, cmd_event_writer.name))
		return &cmd_event_writer;
	for (const struct command *const *c = commands; *c; c++) {
		if (!strcmp((*c)->name, word))
			return *c;
		names[n++] = (*c)->name;
	}
	err_input(err, "unknown command '%s'", word);
	if (commands_foreign(word)) {
		err_hint(err, "%s", commands_foreign(word));
		return NULL;
	}
	near = diag_nearest(word, names, n);
	err_hint(err, near ? "did you mean '%s'?" : "weir help lists all commands", near);
	return NULL;
}

static bool same_netns(const struct stat *a)
{
	struct stat b;

	return !stat("/proc/self/ns/net", &b) && a->st_ino == b.st_ino && a->st_dev == b.st_dev;
}

static int enter_netns(const char *name, struct err *err)
{
	CLEANUP_FREE char *path =
		name[0] == '/' ? mem_strdup(name) : mem_printf("/run/netns/%s", name);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT) {
		err_input(err, "network namespace '%s' not found", name);
		return err_hint(err, "ip netns lists the network namespaces");
	}
	if (fd >= 0 && !setns(fd, CLONE_NEWNET))
		return 0;
	err_system(err, errno, "cannot enter the network namespace '%s'", name);
	return geteuid() ? err_hint_root(err) : -err->code;
}

// A command that the agent runs for a client of its API.
static void log_for_client(void)
{
	const char *client = getenv(PROCESS_FOR);

	if (!client)
		return;
	log_for(client);
	if (notify_logs_to_journal())
		log_to_journal();
}

// Finds the session before entering another namespace: the packets of the session pass the first
// one.
static int prepare(struct context *ctx, const struct args *args, struct err *err)
{
	const char *name = args_value(args, "instance");
	struct stat before;
	int code;

	ctx->instance = name ? name : "main";
	ctx->netns = args_value(args, "netns");
	ctx->by = getenv(PROCESS_BY);
	geo_db_use(args_value(args, "geo"));
	ctx->pretty = args_has(args, "pretty");
	ctx->json = args_has(args, "json") || ctx->pretty;
	ctx->quiet = args_has(args, "quiet");
	ctx->verbose = (unsigned)count(args, "verbose");
	if ((code = want_color(args, &ctx->color, err)))
		return code;
	log_setup(LOG_NOTICE + (enum log_level)(ctx->verbose < 2 ? ctx->verbose : 2),
		  ctx->color && isatty(STDERR_FILENO));
	log_for_client();
	if (!ctx->quiet)
		progress_show();
	probe_quiet(ctx->verbose);
	if ((code = bpffs_check_name(ctx->instance, err)))
		return code;
	session_find(&ctx->session);
	if (stat("/proc/self/ns/net", &before))
		return err_system(err, errno, "cannot read '/proc/self/ns/net'");
	if (ctx->netns && (ctx->netns_before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
		return err_system(err, errno, "cannot read '/proc/self/ns/net'");
	if (ctx->netns && (code = enter_netns(ctx->netns, err)))
		return code;
	ctx->session_here = same_netns(&before) && !getenv(PROCESS_WITHOUT_LOGIN);
	return 0;
}

static char *command_line(char **argv)
{
	struct text line = {0};

	for (char **arg = argv + 1; *arg; arg++)
		text_addf(&line, "%s%s", arg == argv + 1 ? "" : " ", *arg);
	return text_take(&line);
}

static void print_failure(const struct context *ctx, const struct err *err)
{
	err_full_text full;

	if (ctx->out && ctx->json)
		out_error(ctx->out, err->text, err->hint, err->code ? err_name(err->code) : "");
	if (ctx->verbose && err->code && !strstr(err->text, err_name(err->code)))
		log_error("%s (%s)", err_full(err, full), err_name(err->code));
	else
		log_error("%s", err_full(err, full));
}

static int finish(struct context *ctx, int code, const struct err *err)
{
	int status = code ? (int)err->kind : 0;

	if (code && !status)
		status = ERR_SYSTEM; // a failure without a description
	if (status)
		print_failure(ctx, err);
	if (ctx->out && out_finish(ctx->out) && !status) {
		log_error("cannot write to standard output");
		status = ERR_SYSTEM;
	}
	out_free(ctx->out);
	free(ctx->about);
	return status;
}

// The width of the terminal on standard output; 0: not a terminal, and lines may have any length,
// as with ps or ss.
static size_t terminal_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? COLUMNS_DEFAULT
								       : size.ws_col;
}

static bool wants_wide(const struct command *c, const struct args *args)
{
	for (const struct args_option *o = c->options; o && o->name; o++)
		if (!strcmp(o->name, "wide"))
			return args_has(args, "wide");
	return false;
}

static int run_command(const struct command *c, struct args *args, struct err *err,
		       struct context *ctx)
{
	int code = prepare(ctx, args, err);

	ctx->out = out_new(ctx->json, ctx->pretty, ctx->color);
	if (getenv(PROCESS_TELLS))
		out_tell(ctx->out);
	out_fit(ctx->out, wants_wide(c, args) ? 0 : terminal_columns());
	if (code)
		return code;
	code = c->run(ctx, args, err);
	changing_note(c, args, ctx, code, err);
	return code;
}

// The error may come before -j on the command line: the user asked for JSON nevertheless.
static bool asks_json(const struct args *args, char **argv)
{
	if (args_has(args, "json") || args_has(args, "pretty"))
		return true;
	for (; *argv && strcmp(*argv, "--") != 0; argv++)
		if (!strcmp(*argv, "-j") || !strcmp(*argv, "--json") || !strcmp(*argv, "-p") ||
		    !strcmp(*argv, "--pretty"))
			return true;
	return false;
}

// For help and version, where no command runs: opens the document with -j, else returns false.
static bool wants_document(const struct args *args, bool json, struct context *ctx)
{
	ctx->pretty = args_has(args, "pretty");
	ctx->json = json || ctx->pretty;
	if (ctx->json)
		ctx->out = out_new(true, ctx->pretty, false);
	return ctx->json;
}

static void show_help(const struct args *args, const struct command *c, struct context *ctx)
{
	if (wants_document(args, args_has(args, "json"), ctx))
		help_document(ctx->out, c, global_options);
	else if (c)
		help_command(c, global_options);
	else
		help_overview(global_options);
}

static int help(const struct args *args, size_t from, struct context *ctx, struct err *err)
{
	const struct command *c = NULL;
	const char *word = args->words.n > from ? args->words.at[from] : "help";

	if (strcmp(word, "help") && !(c = find_command(word, err)))
		return -EINVAL;
	show_help(args, c, ctx);
	return 0;
}

static void show_version(const struct args *args, bool json, struct context *ctx)
{
	if (wants_document(args, json, ctx))
		out_set_string(ctx->out, "version", WEIR_VERSION);
	else
		puts("weir " WEIR_VERSION);
}

// Runs argv[0..n), which follows the global options: the command, its options, and again global
// options.
static int dispatch(struct args *args, char **argv, size_t n, struct context *ctx, struct err *err)
{
	const struct command *c;
	size_t used;
	int code;

	if (!strcmp(argv[0], "help")) {
		code = args_parse(args, argv + 1, n - 1, false, &used, err);
		return code ? code : help(args, 0, ctx, err);
	}
	if (!(c = find_command(argv[0], err)))
		return -EINVAL;
	args->tables[0] = c->options;
	args->foreign = c->foreign;
	args->command = c->name;
	if ((code = args_parse(args, argv + 1, n - 1, false, &used, err)))
		return code;
	if (args_has(args, "version")) {
		show_version(args, args_has(args, "json"), ctx);
		return 0;
	}
	if (args_has(args, "help")) {
		show_help(args, c, ctx);
		return 0;
	}
	return run_command(c, args, err, ctx);
}

static int run(struct args *args, char **argv, size_t n, struct context *ctx, struct err *err)
{
	size_t used;
	int code = args_parse(args, argv, n, true, &used, err);

	if (code)
		return code;
	if (args_has(args, "version")) {
		show_version(args, asks_json(args, argv), ctx);
		return 0;
	}
	if (used < n)
		return dispatch(args, argv + used, n - used, ctx, err);
	if (args_has(args, "help"))
		return help(args, 0, ctx, err);
	if (!args_has(args, "json"))
		help_overview(global_options);
	return err_input(err, "missing command");
}

int main(int argc, char **argv)
{
	CLEANUP_FREE char *line = command_line(argv);
	struct context ctx = {.line = line, .instance = "main", .netns_before = -1};
	struct args args = {.tables = {NULL, global_options}};
	struct err err = {0};
	int code, status;

	log_setup(LOG_NOTICE, false);
	code = run(&args, argv + 1, (size_t)(argc > 0 ? argc - 1 : 0), &ctx, &err);
	// With -j an error is one document, also if no command ran.
	if (code && !ctx.out && asks_json(&args, argv + 1)) {
		ctx.json = true;
		ctx.out = out_new(true, args_has(&args, "pretty"), false);
	}
	status = finish(&ctx, code, &err);
	args_free(&args);
	return status;
}
