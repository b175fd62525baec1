// SPDX-License-Identifier: GPL-2.0-only
// Each line is processed by the functions of its command.
#include "ctl/cmd/batch_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/diag.h"
#include "ctl/base/log.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"

static const struct batch_verb verbs[] = {
	{.command = &cmd_block},
	{.command = &cmd_allow, .allow = true},
	{.command = &cmd_unblock, .removes = true},
	{.command = &cmd_unallow, .removes = true, .allow = true},
};

// Options of these commands that a line cannot have.
static const struct {
	const char *name, *why;
} excluded[] = {
	{"iface", "attach first: weir attach IFACE"},
	{"mode", "attach first: weir attach IFACE"},
	{"live", "run weir block --live by itself"},
	{"url", "run weir block --url by itself"},
	{"set", "a dynamic set changes at once: run weir block --set by itself"},
	{"keep-going", "a batch is applied as a whole or not at all"},
	{"dry-run", "weir batch --dry-run tests the whole batch"},
};

static void free_line(struct batch_line *line)
{
	blocking_free(&line->blocking);
	unblocking_free(&line->unblocking);
	args_free(&line->args);
	split_free(&line->split);
	free(line);
}

void batch_free(struct batch *b)
{
	vec_each (&b->lines, line)
		free_line(*line);
	vec_free(&b->lines);
	guard_free(&b->guard);
}

static void fail(struct batch *b, struct batch_line *line, const struct err *err)
{
	if (!b->failed)
		b->first = *err;
	b->failed += !line->failed;
	line->failed = true;
	b->say(b->say_ctx, line, err);
}

// Reading

static bool is_command(const char *word)
{
	for (const struct command *const *c = commands; *c; c++)
		if (!strcmp((*c)->name, word))
			return true;
	return false;
}

static int find_verb(const char *word, const struct batch_verb **ret, struct err *err)
{
	const char *names[ARRAY_SIZE(verbs)], *near;

	for (size_t v = 0; v < ARRAY_SIZE(verbs); v++) {
		names[v] = verbs[v].command->name;
		if (strcmp(word, names[v]))
			continue;
		*ret = &verbs[v];
		return 0;
	}
	near = diag_nearest(word, names, ARRAY_SIZE(names));
	err_input(err,
		  is_command(word) ? "'%s' is not a command of a batch" : "unknown command '%s'",
		  word);
	if (!strcmp(word, "weir"))
		return err_hint(err, "a line begins with block, allow, unblock or unallow");
	if (near)
		return err_hint(err, "did you mean '%s'?", near);
	return err_hint(err, "the commands are block, allow, unblock and unallow");
}

static int check_option(const struct batch *b, const struct args *args,
			const struct args_given *given, struct err *err)
{
	const char *name = given->option->name;

	if (!args_knows(args, name)) {
		err_input(err, "option '--%s' does not belong on a line", name);
		return err_hint(err, "write it before the command: weir --%s batch", name);
	}
	for (size_t x = 0; x < ARRAY_SIZE(excluded); x++) {
		if (strcmp(name, excluded[x].name))
			continue;
		err_input(err, "a batch cannot have --%s", name);
		return err_hint(err, "%s", excluded[x].why);
	}
	if (!strcmp(name, "file") && !strcmp(given->value, "-") && !strcmp(b->file, "-")) {
		err_input(err, "standard input is the batch itself");
		return err_hint(err, "weir batch -f FILE leaves it to the line");
	}
	return 0;
}

static int parse_args(const struct batch *b, struct batch_line *line, struct err *err)
{
	size_t used;
	int code = args_parse(&line->args, line->split.words.at + 1, line->split.words.n - 1, false,
			      &used, err);

	if (code)
		return code;
	vec_each (&line->args.given, given)
		if ((code = check_option(b, &line->args, given, err)))
			return code;
	return 0;
}

static int parse(const struct batch *b, struct batch_line *line, struct err *err)
{
	int code = find_verb(line->split.words.at[0], &line->verb, err);

	if (code)
		return code;
	line->args.tables[0] = line->verb->command->options;
	line->args.tables[1] = global_options;
	line->args.foreign = line->verb->command->foreign;
	line->args.command = line->verb->command->name;
	if ((code = parse_args(b, line, err)))
		return code;
	if (line->verb->removes)
		code = unblocking_read(&line->args, line->verb->allow, &line->unblocking, err);
	else
		code = blocking_read(b->ctx, &line->args, line->verb->allow, &line->blocking, err);
	line->blocking.dry_run = line->unblocking.dry_run = b->dry_run;
	return code;
}

static struct targets *targets_of(struct batch_line *line)
{
	return line->verb->removes ? &line->unblocking.targets : &line->blocking.targets;
}

// An error of an item: of a word, or of a line of a list that the command reads.
static void fail_item(struct batch *b, struct batch_line *line, const struct items_error *bad)
{
	CLEANUP_TEXT struct text place = {0};
	struct err err = {0};

	err_input(&err, "%s", bad->text);
	if (bad->file) {
		overlay_add_place(&place, bad->file, bad->line);
		err_prefix(&err, "%s", text_get(&place));
	}
	fail(b, line, &err);
}

static void fail_reading(struct batch *b, struct batch_line *line, const struct err *err)
{
	if (!line->verb || !targets_of(line)->items.errors.n) {
		fail(b, line, err);
		return;
	}
	vec_each (&targets_of(line)->items.errors, bad)
		fail_item(b, line, bad);
}

void batch_read_line(struct batch *b, const char *text, size_t len, unsigned number)
{
	struct batch_line *line = mem_new(struct batch_line);
	struct err err = {0};

	line->number = number;
	if (split_line(text, len, &line->split, &err)) {
		vec_push(&b->lines, line);
		fail(b, line, &err);
		return;
	}
	if (!line->split.words.n) {
		free_line(line);
		return;
	}
	vec_push(&b->lines, line);
	if (parse(b, line, &err))
		fail_reading(b, line, &err);
}

// Checking

// A line that is to be checked further: it adds, and nothing is wrong with it so far.
static bool adds(const struct batch_line *line)
{
	return !line->failed && !line->verb->removes;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_resolver(const struct blocking *a, const struct blocking *b)
{
	return a->resolver_timeout_ms == b->resolver_timeout_ms &&
	       same_text(args_value(a->args, "resolver"), args_value(b->args, "resolver"));
}

static bool has_names(const struct targets *t)
{
	return t->items.names || t->items.geos;
}

static bool asks(const struct batch_line *line)
{
	const struct targets *t = &line->blocking.targets;

	return adds(line) && has_names(t) && !t->names;
}

// Asks for the names of this line and of all later ones that ask the same servers, in parallel.
static void resolve_with(struct batch *b, size_t first)
{
	CLEANUP_VEC VEC(struct targets *) together = {0};
	struct batch_line *line = b->lines.at[first];
	char path[BLOCKING_PATH];
	struct dns_options options = blocking_resolver(b->ctx, &line->blocking, path);
	struct err err = {0};

	for (size_t l = first; l < b->lines.n; l++)
		if (asks(b->lines.at[l]) &&
		    same_resolver(&line->blocking, &b->lines.at[l]->blocking))
			vec_push(&together, &b->lines.at[l]->blocking.targets);
	if (targets_resolve(together.at, together.n, &options, &err))
		fail(b, line, &err);
}

static void check_line(struct batch *b, struct batch_line *line)
{
	struct targets *t = &line->blocking.targets;
	struct err err = {0};

	if (has_names(t) && !t->asked)
		return; // the first line that asked the same servers has failed
	if ((has_names(t) && blocking_answered(&line->blocking, &b->guard, &err)) ||
	    blocking_check(&line->blocking, &b->guard, &err))
		fail(b, line, &err);
}

// One collection for all lines: it fails the first line that needs it.
static void collect_guard(struct batch *b)
{
	struct batch_line *first = NULL;
	bool forced = true, names = false;
	struct err err = {0};

	vec_each (&b->lines, line) {
		if (!adds(*line) || (*line)->verb->allow)
			continue;
		names |= blocking_extends(&(*line)->blocking);
		if (!first || (forced && !(*line)->blocking.force))
			first = *line;
		forced &= (*line)->blocking.force;
	}
	if (!first || !blocking_guard(b->ctx, &first->blocking, names, forced, &b->guard, &err))
		return;
	b->unguarded = true;
	fail(b, first, &err);
}

void batch_check(struct batch *b)
{
	unsigned kinds = 0;

	collect_guard(b);
	for (size_t l = 0; l < b->lines.n; l++)
		if (asks(b->lines.at[l]))
			resolve_with(b, l);
	vec_each (&b->lines, line) {
		if (!adds(*line))
			continue;
		check_line(b, *line);
		kinds |= (*line)->blocking.intent.kinds;
	}
	blocking_warn_no_forwarding(kinds);
}

// Applying

// The first command that adds something: the instance must be attached then.
static const struct batch_line *first_that_adds(const struct batch *b)
{
	vec_each (&b->lines, line)
		if (adds(*line))
			return *line;
	return NULL;
}

static int open_store(struct batch *b, struct store **ret, struct err *err)
{
	const struct batch_line *line = first_that_adds(b);

	if (line)
		return blocking_open(b->ctx, line->verb->command->name, b->dry_run, ret, err);
	if (!bpffs_exist(b->ctx->instance))
		return not_attached(b->ctx->instance, "undo", err);
	return store_open(b->ctx->instance, b->ctx->line, ret, err);
}

static void record(struct batch *b, struct batch_line *line, struct store *store)
{
	struct err err = {0};

	if (line->verb->removes ? unblocking_record(&line->unblocking, store, &err)
				: blocking_record(&line->blocking, store, &err))
		fail(b, line, &err);
}

static void record_all(struct batch *b, struct store *store)
{
	bool later = false;

	vec_each (&b->lines, line) {
		if ((*line)->failed)
			continue;
		if (later)
			store_next(store);
		later = true;
		record(b, *line, store);
	}
}

static bool changes(const struct batch_line *line)
{
	return !line->failed && (!line->verb->removes || line->unblocking.removed);
}

static int commit(struct batch *b, struct store *store, struct err *err)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	bool changed = false, fleeting = true;

	vec_each (&b->lines, line) {
		if (!changes(*line))
			continue;
		changed = true;
		fleeting &= (*line)->verb->removes ? (*line)->unblocking.fleeting
						   : (*line)->blocking.intent.fleeting;
		if ((*line)->blocking.intent.group)
			store->guard = &b->guard;
	}
	return changed ? store_commit(store, fleeting, &plan, err) : 0;
}

int batch_apply(struct batch *b, struct store **ret_store, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	size_t failed = b->failed;
	int code = open_store(b, &store, err);

	if (code)
		return code;
	show_damage(&store->damaged);
	record_all(b, store);
	if ((code = store_gather(store, err)))
		return code;
	if (b->failed == failed && !b->dry_run && (code = commit(b, store, err)))
		return code;
	store_unlock(store);
	*ret_store = TAKE_PTR(store);
	return 0;
}

void batch_describe(struct text *text, const struct batch_line *line, const struct store *store,
		    struct out *o)
{
	out_set_string(o, "command", line->verb->command->name);
	if (line->verb->removes) {
		unblocking_describe(text, &line->unblocking, o);
		return;
	}
	blocking_describe(text, &line->blocking, store, o);
	blocking_add_change(text, &line->blocking);
	blocking_add_groups(text, &line->blocking, store, o);
}

const char *batch_shown_file(const char *file)
{
	return strcmp(file, "-") ? file : "standard input";
}
