// SPDX-License-Identifier: GPL-2.0-only
// Reads targets, directions, times and notes from the command line.
#include "ctl/cmd/overlay_options.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"

#define FILES_MAX 64
#define TEXT_MAX  255

static int read_list(struct targets *t, const char *path, bool wide, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len;
	int code = file_read_stream(path, ITEMS_BYTES_MAX, &text, &len, err);

	if (code)
		return code;
	items_add_text(&t->items, text, len, wide);
	return 0;
}

// Input without items usually means that the command before the pipe failed.
static int refuse_empty(const char *path, struct err *err)
{
	bool standard = !strcmp(path, "-");

	err_input(err, "%s%s%s contains no address, prefix or host name", standard ? "" : "'",
		  standard ? "standard input" : path, standard ? "" : "'");
	return err_hint(err, "did the command that wrote it fail?");
}

void overlay_add_place(struct text *t, const char *file, unsigned line)
{
	if (strcmp(file, "-"))
		text_addf(t, "%s:%u", file, line);
	else
		text_addf(t, "standard input, line %u", line);
}

// Prints an invalid line of a file, or an invalid argument.
static void report_error(struct context *ctx, const struct items_error *bad)
{
	CLEANUP_TEXT struct text place = {0};

	out_row(ctx->out);
	out_cell(ctx->out, "file", NULL, bad->file ? bad->file : "");
	out_cell_u64(ctx->out, "line", NULL, bad->line);
	out_cell(ctx->out, "text", NULL, bad->text);
	if (!out_has_lines(ctx->out))
		return;
	if (bad->file)
		overlay_add_place(&place, bad->file, bad->line);
	log_error("%s%s%s", text_get(&place), bad->file ? ": " : "", bad->text);
}

void overlay_report_errors(struct context *ctx, const struct targets *t)
{
	out_table(ctx->out, "errors");
	vec_each (&t->items.errors, bad)
		report_error(ctx, bad);
	out_table_end(ctx->out);
}

static int read_words(const struct args *args, bool keep_going, struct targets *t, struct err *err)
{
	for (size_t w = 0; w < args->words.n;)
		w += items_add_words(&t->items, args->words.at + w, args->words.n - w);
	if (t->items.error_count != 1 || !args->words.n || args_has(args, "file") || keep_going)
		return 0;
	err_input(err, "%s", t->items.errors.at[0].text);
	t->items.errors.n = 0;
	return -EINVAL;
}

static int read_files(const struct args *args, struct targets *t, struct err *err)
{
	const char *files[FILES_MAX];
	size_t n = args_values(args, "file", files, FILES_MAX);

	for (size_t f = 0; f < n; f++) {
		size_t e = t->items.errors.n;
		int code = read_list(t, files[f], args_has(args, "wide"), err);

		for (; e < t->items.errors.n; e++)
			t->items.errors.at[e].file = files[f];
		if (code)
			return code;
	}
	return 0;
}

int overlay_read_targets(const struct args *args, bool keep_going, bool empty_ok, struct targets *t,
			 size_t *ret_bad, struct err *err)
{
	int code;

	t->items.mask = args_has(args, "mask");
	code = read_words(args, keep_going, t, err);
	if (code || (code = read_files(args, t, err)))
		return code;
	*ret_bad = t->items.error_count;
	if (t->items.error_count && !keep_going)
		return err_input(err, "%zu invalid %s; nothing was changed", t->items.error_count,
				 num_plural(t->items.error_count, "item", "items"));
	if (!empty_ok && !t->items.items.n && !t->items.error_count && args_has(args, "file"))
		return refuse_empty(args_value(args, "file"), err);
	return 0;
}

static bool has(const struct args *args, const char *option)
{
	return args_knows(args, option) && args_has(args, option);
}

// The kind of block --out, by the error and the namespaces.
static int out_kind(const struct args *args, enum overlay_kind *ret, struct err *err)
{
	static const char *const words[] = {"denied", "refused", "unreachable"};
	const char *word = args_value(args, "errno");
	bool all = args_has(args, "all-namespaces");
	uint8_t which = 0;

	while (word && which < ARRAY_SIZE(words) && strcmp(word, words[which]) != 0)
		which++;
	if (which == ARRAY_SIZE(words))
		return err_input(err, "invalid --errno '%s': denied, refused or unreachable", word);
	*ret = (all ? OVERLAY_BLOCK_OUT_ALL : OVERLAY_BLOCK_OUT) + which;
	return 0;
}

static int out_kinds(const struct args *args, bool allow, bool removes, unsigned *ret,
		     struct err *err)
{
	// An allow entry of packets would open the firewall for all packets of the address.
	unsigned answers = allow || has(args, "out-only") ? 0 : kinds_of(allow, true, false);
	enum overlay_kind kind = OVERLAY_ALLOW_OUT;
	int code = 0;

	if (!removes && !allow && (code = out_kind(args, &kind, err)))
		return code;
	*ret = answers | (removes ? kinds_out(allow) : 1u << kind);
	return 0;
}

// Options that only a block of outgoing connections has, and options that it does not have.
static int check_out(const struct args *args, bool allow, bool out, struct err *err)
{
	static const char *const others[] = {"to", "both", "group", "set", "url", "live"};
	static const char *const own[] = {"errno", "all-namespaces"};

	for (size_t o = 0; out && o < ARRAY_SIZE(others); o++)
		if (has(args, others[o]))
			return err_input(err, "--out cannot be combined with --%s", others[o]);
	for (size_t o = 0; o < ARRAY_SIZE(own); o++)
		if (has(args, own[o]) && (!out || allow))
			return err_input(err, "--%s requires %s", own[o],
					 allow ? "weir block --out" : "--out");
	return 0;
}

int overlay_kinds(const struct args *args, bool allow, bool removes, unsigned *ret, struct err *err)
{
	bool to = args_has(args, "to"), both = args_has(args, "both");
	bool out = has(args, "out") || has(args, "out-only");
	int code = check_out(args, allow, out, err);

	if (code)
		return code;
	if (to && both)
		return err_input(err, "--to and --both are mutually exclusive");
	if (out)
		return out_kinds(args, allow, removes, ret, err);
	*ret = both      ? kinds_of(allow, true, true)
	       : to      ? kinds_of(allow, false, true)
	       : removes ? kinds_all(allow)
			 : kinds_of(allow, true, false);
	return 0;
}

int overlay_until(const struct args *args, uint64_t now_s, uint64_t *ret, struct err *err)
{
	const char *text = args_value(args, "for");
	uint64_t ms;
	int code;

	if (!text) {
		*ret = RECORD_NEVER;
		return 0;
	}
	code = num_parse_time_ms(text, strlen(text), 1, ITEMS_FOR_MAX_MS, &ms);
	if (code) {
		err_input(err,
			  code == -ERANGE ? "--for '%s' is out of range" : "'%s' is not a time",
			  text);
		return err_hint(
			err, "write a number and a unit: 30s, 10m, 2h, 7d, 4w; at most 100 years");
	}
	*ret = now_s + (ms + 999) / 1000;
	return 0;
}

int overlay_text(const struct args *args, const char *option, const char **ret, struct err *err)
{
	const char *text = args_value(args, option);

	if (!text)
		text = "";
	// An empty name is usually an unset variable of a script. It would match the entries of all
	// owners.
	if (args_has(args, option) && !text[0] && strcmp(option, "note") != 0)
		return err_input(err, "--%s is empty", option);
	if (strlen(text) > TEXT_MAX)
		return err_input(err, "--%s is longer than %d bytes", option, TEXT_MAX);
	for (size_t at = 0, n; text[at]; at += n) {
		n = text_shown(text + at, strlen(text + at));
		if (!n)
			return err_input(err, "--%s contains a control character or is not UTF-8",
					 option);
		if (text[at] == '"')
			return err_input(err, "--%s contains '\"', which list --plain cannot print",
					 option);
	}
	*ret = text;
	return 0;
}

int overlay_group(const struct args *args, bool allow, uint32_t *ret, struct err *err)
{
	static const char *const others[] = {"sync", "set", "live"};
	const char *text = args_value(args, "group");

	*ret = 0;
	if (!text)
		return 0;
	if (allow)
		return err_input(err, "--group is for block entries");
	for (size_t o = 0; o < ARRAY_SIZE(others); o++)
		if (args_has(args, others[o]))
			return err_input(err, "--group cannot be combined with --%s", others[o]);
	if (num_parse_u32(text, strlen(text), 2, 256, ret))
		return err_input(err, "--group '%s' is not a number of hosts from 2 to 256", text);
	return 0;
}

char *overlay_note(const struct args *args)
{
	CLEANUP_TEXT struct text note = {0};
	const char *given = args_value(args, "note");

	if (!items_add_note(&note, given ? given : ""))
		log_notice("the note is saved as \"%s\"", text_get(&note));
	return text_take(&note);
}
