// SPDX-License-Identifier: GPL-2.0-only
// weir diff: compare a policy file with the accepted policy: the text, the resolved names and the
// lists.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/control/unchanged.h"

struct diff {
	struct context *ctx;
	const struct environment *old, *new;
	size_t differences;
};

static int write_temp(char *path, const struct environment_file *file)
{
	int fd = mkstemp(path);
	bool ok = fd >= 0 && (!file || write(fd, file->text, file->len) == (ssize_t)file->len);

	fd_close(fd);
	return ok ? 0 : -errno;
}

// In the child.
__attribute__((noreturn)) static void run_diff(int to, const char *name, const char *a,
					       const char *b)
{
	dup2(to, STDOUT_FILENO);
	execlp("diff", "diff", "-a", "-u", "--label", "accepted", "--label", name, a, b,
	       (char *)NULL);
	_exit(127);
}

static void read_all(int from, struct text *ret)
{
	char part[4096];
	ssize_t n;

	while ((n = read(from, part, sizeof(part))) > 0 || (n < 0 && errno == EINTR))
		text_addn(ret, part, n > 0 ? (size_t)n : 0);
}

// Its output passes through out_text: the files may have control characters.
static void print_diff(struct out *o, const char *name, const char *a, const char *b)
{
	CLEANUP_TEXT struct text said = {0};
	int pipes[2];
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC))
		return;
	child = fork();
	if (!child)
		run_diff(pipes[1], name, a, b);
	close(pipes[1]);
	if (child > 0) {
		read_all(pipes[0], &said);
		waitpid(child, NULL, 0);
	}
	close(pipes[0]);
	out_text(o, text_get(&said), said.len);
}

// Runs diff -u. Without that program only the names of the files are printed.
static void print_unified(struct out *o, const char *name, const struct environment_file *old,
			  const struct environment_file *new)
{
	char a[] = "/tmp/weir-diff-XXXXXX", b[] = "/tmp/weir-diff-XXXXXX";

	if (!write_temp(a, old) && !write_temp(b, new))
		print_diff(o, name, a, b);
	unlink(a);
	unlink(b);
}

static void differ(struct diff *d, const char *what, const char *name)
{
	d->differences++;
	out_object(d->ctx->out, NULL);
	out_set_string(d->ctx->out, "what", what);
	out_set_string(d->ctx->out, "name", name);
	out_end(d->ctx->out);
	out_line(d->ctx->out, "%s %s differs", what, name);
}

// The text that the accepted policy has for this file. A policy file of another name is compared
// with its policy file, the first one.
static const struct environment_file *before(const struct diff *d,
					     const struct environment_file *file)
{
	const struct environment_file *old = environment_find_file(d->old, file->path);

	return old || file != d->new->files.at || !d->old->files.n ? old : d->old->files.at;
}

static void compare_files(struct diff *d)
{
	vec_each (&d->new->files, file) {
		const struct environment_file *old = environment_find_file(d->old, file->path);

		if (old && old->len == file->len && !memcmp(old->text, file->text, file->len))
			continue;
		differ(d, "file", file->path);
		if (!d->ctx->json)
			print_unified(d->ctx->out, file->path, before(d, file), file);
	}
	vec_each (&d->old->files, file)
		if (!environment_find_file(d->new, file->path))
			differ(d, "file", file->path);
}

static void compare_names(struct diff *d)
{
	vec_each (&d->new->names, name)
		vec_each (&d->old->names, old)
			if (!strcmp(old->name, name->name) && !environment_same_answer(old, name))
				differ(d, "name", name->name);
}

// The accepted revision need not be the policy that packets meet. Another
// text may name other devices and addresses than the revision did.
static void compare_active(struct diff *d, const char *id, const struct candidate *c)
{
	struct out *o = d->ctx->out;
	char state[160];

	if (unchanged_state(d->ctx->instance, id, d->differences ? NULL : c, state, sizeof(state)))
		return;
	d->differences++;
	out_object(o, NULL);
	out_set_string(o, "what", "in-force");
	out_set_string(o, "name", state);
	out_end(o);
	out_line(o, "revision %s is not active here: %s", id, state);
}

// Quick rules belong to no policy, so they are no difference.
static void show_quick(struct context *ctx, size_t n)
{
	out_set_u64(ctx->out, "quick_rules", n);
	if (n && !ctx->quiet)
		out_line(ctx->out, "%zu quick %s in front of the policy (weir rule list)", n,
			 num_plural(n, "rule is", "rules are"));
}

static int compare(struct context *ctx, const struct args *args, const struct candidate *c,
		   const struct environment *old, const char *id, struct err *err)
{
	struct diff d = {.ctx = ctx, .old = old, .new = &c->environment};
	bool current = !args_has(args, "revision");
	const char *file = args->words.at[0];

	out_set_string(ctx->out, "revision", id);
	out_array(ctx->out, "differences");
	compare_files(&d);
	compare_names(&d);
	if (current)
		compare_active(&d, id, c);
	out_end(ctx->out);
	show_quick(ctx, c->quick.n);
	if (d.differences)
		return err_refused(err, "'%s' differs from revision %s%s", file, id,
				   current ? " or from the active policy" : "");
	if (!ctx->quiet)
		out_line(ctx->out, "%s is identical to revision %s", file, id);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	CLEANUP_ENVIRONMENT struct environment old;
	struct revision revision = {0};
	char id[REVISION_ID] = "";
	struct policy_dns dns;
	int code;

	environment_replay(&old);
	if ((code = args_expect_words(args, 1, 1, "policy file", err)))
		return code;
	if ((code = policy_dns(ctx, args, &dns, err)))
		return code;
	if ((code = policy_pick_revision(ctx->instance, args_value(args, "revision"), id, err)))
		return code;
	code = revisions_load(ctx->instance, id, &old, &revision, err);
	revision_free(&revision);
	if (code)
		return code;
	c = candidate_new(&dns.options, &old);
	c->environment.instance = ctx->instance;
	c->environment.offline = args_has(args, "offline");
	c->environment.session = ctx->session_here ? &ctx->session : NULL;
	quick_read(ctx->instance, &c->quick, NULL); // as apply: they add addresses and devices
	code = candidate_compile(c, args->words.at[0], NULL, 0);
	policy_show_findings(ctx, c);
	if (code)
		return err_input(err, "'%s' has errors", args->words.at[0]);
	return compare(ctx, args, c, &old, id, err);
}

static const struct args_option options[] = {
	{.name = "revision",
	 .arg = "REV",
	 .help = "compare with REV instead of the current revision"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	OPTION_OFFLINE,
	{0},
};

const struct command cmd_diff = {
	.name = "diff",
	.usage = "FILE [OPTIONS]",
	.summary = "compare a policy file with the accepted policy (exit status 3: different)",
	.options = options,
	.run = run,
};
