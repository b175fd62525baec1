// SPDX-License-Identifier: GPL-2.0-only
// Files of commands that wait to add quick rules.
#include "ctl/control/quick_wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

#define TURN_MS 5000
#define MARKED  ".marked" // the rule fails, or makes others fail
#define SAID    ".said"   // warnings for the command
#define ADDED   ".added"  // id of its rule

static char *path_of(const struct quick_wait *w, const char *token, const char *kind)
{
	return mem_printf("%s/%s%s", w->folder, token, kind);
}

static int remove_file(const struct quick_wait *w, const char *token, const char *kind)
{
	CLEANUP_FREE char *path = path_of(w, token, kind);

	return unlink(path) ? -errno : 0;
}

void quick_wait_turn(struct quick_wait *w)
{
	if (!w->token || w->turn >= 0)
		return;
	w->turn = open(w->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->turn >= 0 && !lock_wait(w->turn, TURN_MS))
		quick_wait_end_turn(w);
}

void quick_wait_end_turn(struct quick_wait *w)
{
	fd_close(w->turn);
	w->turn = -1;
}

static void remove_all(const struct quick_wait *w, const char *token)
{
	remove_file(w, token, "");
	remove_file(w, token, MARKED);
	remove_file(w, token, SAID);
	remove_file(w, token, ADDED);
}

static void free_others(struct quick_wait *w)
{
	vec_each (&w->others, other)
		free(other->token);
	vec_free(&w->others);
}

void quick_wait_free(struct quick_wait *w)
{
	quick_wait_end_turn(w);
	if (w->token)
		remove_all(w, w->token);
	fd_close(w->lock);
	w->lock = -1;
	free_others(w);
	free(TAKE_PTR(w->folder));
	free(TAKE_PTR(w->token));
}

// ---- the own rule -------------------------------------------------------------------------------

struct request {
	struct quick_rule rule;
	struct quick_place place;
};

static void request_free(struct request *r)
{
	quick_free_rule(&r->rule);
}

static int read_request(void *ctx, const struct json *row)
{
	struct request *r = ctx;

	request_free(r);
	r->place = (struct quick_place){
		.first = json_is_yes(json_get(row, "first")),
		.before = json_get_u64(row, "before"),
	};
	quick_read_rule(row, &r->rule);
	return r->rule.text[0] ? 0 : -EBADMSG;
}

static const struct state_kind request_kind = {.name = "add", .row = read_request};

static void write_request(const char *path, const struct quick_rule *rule,
			  const struct quick_place *place)
{
	CLEANUP(json_writer_free) struct json_writer file = {0};

	state_add(&file, &request_kind);
	json_write_bool(&file, "first", place->first);
	json_write_u64(&file, "before", place->before);
	quick_write_rule(&file, rule);
	json_write_end(&file);
	state_write(path, &file, NULL);
}

void quick_wait_begin(struct quick_wait *w, const char *instance, const struct quick_rule *rule,
		      const struct quick_place *place)
{
	CLEANUP_FREE char *run = mem_printf("%s/%s", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *path = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	w->folder = mem_printf("%s/adding", run);
	w->token = mem_printf("%012lld.%09ld-%d", (long long)now.tv_sec, now.tv_nsec, getpid());
	path = path_of(w, w->token, "");
	if (file_mkdirs(run, 0755, NULL) || file_mkdirs(w->folder, 0700, NULL))
		return;
	write_request(path, rule, place);
	w->lock = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (w->lock >= 0 && flock(w->lock, LOCK_EX | LOCK_NB))
		errno = 0; // then others take it for the file of a command that was killed
}

static int read_added(void *ctx, const struct json *row)
{
	*(uint64_t *)ctx = json_get_u64(row, "id");
	return 0;
}

static const struct state_kind added_kind = {.name = "added", .row = read_added};

static uint64_t find_added(const struct quick_wait *w, const struct quick_rules *q)
{
	CLEANUP_FREE char *path = w->token ? path_of(w, w->token, ADDED) : NULL;
	uint64_t id = 0;

	if (!path)
		return 0;
	if (!state_read(path, &added_kind, &id, NULL) && id)
		return id;
	vec_each (q, rule)
		if (rule->token && !strcmp(rule->token, w->token))
			return rule->id;
	return 0;
}

uint64_t quick_wait_find(struct quick_wait *w, const struct quick_rules *q)
{
	vec_each (&w->others, other) // they belong to the attempt before
		other->id = 0;
	return find_added(w, q);
}

bool quick_wait_withdraw(struct quick_wait *w)
{
	bool taken = w->token && w->lock >= 0 && remove_file(w, w->token, "") == -ENOENT;

	fd_close(w->lock);
	w->lock = -1; // it is asked once
	return !taken;
}

struct hearing {
	quick_wait_hear *hear;
	void *ctx;
};

static int read_said(void *ctx, const struct json *row)
{
	const struct hearing *h = ctx;
	const char *text = json_get_string(row, "text");

	if (!text)
		return -EBADMSG;
	h->hear(h->ctx, json_is_yes(json_get(row, "notice")), text);
	return 0;
}

static const struct state_kind said_kind = {.name = "said", .row = read_said};

void quick_wait_say(struct json_writer *file, bool notice, const char *text)
{
	state_add(file, &said_kind);
	json_write_bool(file, "notice", notice);
	json_write_string(file, "text", text);
	json_write_end(file);
}

void quick_wait_read(const struct quick_wait *w, quick_wait_hear *hear, void *ctx)
{
	CLEANUP_FREE char *path = path_of(w, w->token, SAID);
	struct hearing h = {hear, ctx};

	state_read(path, &said_kind, &h, NULL);
}

// ---- the rules of others ------------------------------------------------------------------------

// Is the file of a command that lives? Other files are removed.
static bool is_alive(const struct quick_wait *w, const char *token)
{
	CLEANUP_FREE char *path = path_of(w, token, "");
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return false;
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	remove_all(w, token);
	return false;
}

static bool is_marked(const struct quick_wait *w, const char *token)
{
	CLEANUP_FREE char *path = path_of(w, token, MARKED);

	return file_exists(path);
}

static struct quick_other *find_other(struct quick_wait *w, const char *token)
{
	vec_each (&w->others, other)
		if (!strcmp(other->token, token))
			return other;
	vec_push(&w->others, (struct quick_other){.token = mem_strdup(token)});
	return vec_last(&w->others);
}

static bool is_active(const struct quick_rules *q, const char *token)
{
	vec_each (q, rule)
		if (rule->token && !strcmp(rule->token, token))
			return true;
	return false;
}

static bool has_ended(const struct quick_rule *rule)
{
	return rule->until_s && rule->until_s <= time_s(CLOCK_REALTIME);
}

static void join_one(struct quick_wait *w, const char *token, struct quick_rules *q)
{
	CLEANUP_FREE char *path = path_of(w, token, "");
	CLEANUP(request_free) struct request r = {0};
	struct quick_other *other = find_other(w, token);

	if (other->excluded || is_active(q, token) || !is_alive(w, token) || is_marked(w, token))
		return;
	if (state_read(path, &request_kind, &r, NULL) || !r.rule.text || has_ended(&r.rule))
		return;
	free(r.rule.token);
	r.rule.token = mem_strdup(token);
	r.rule.fresh = true;
	other->excluded = quick_insert(q, &r.rule, &r.place, NULL);
	other->id = other->excluded ? 0 : r.rule.id;
}

static int is_ours(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool is_token(const char *name)
{
	return !name[strspn(name, "0123456789.-")];
}

// Removes what a command that was killed could not read any more.
static void remove_unread(const struct quick_wait *w, const char *name)
{
	const char *pid = strrchr(name, '-');
	uint64_t number;

	if (!pid || num_parse_u64(pid + 1, strspn(pid + 1, "0123456789"), 1, INT_MAX, &number) ||
	    (kill((pid_t)number, 0) && errno == ESRCH))
		remove_file(w, name, "");
}

void quick_wait_join(struct quick_wait *w, struct quick_rules *q)
{
	struct dirent **names = NULL;
	int n;

	if (!w->token || w->alone)
		return;
	n = scandir(w->folder, &names, is_ours, alphasort); // the oldest first
	for (int i = 0; i < n; i++) {
		if (!is_token(names[i]->d_name))
			remove_unread(w, names[i]->d_name);
		else if (strcmp(names[i]->d_name, w->token) != 0)
			join_one(w, names[i]->d_name, q);
		free(names[i]);
	}
	free(names);
}

bool quick_wait_has_others(const struct quick_wait *w)
{
	vec_each (&w->others, other)
		if (other->id)
			return true;
	return false;
}

static int other_command(struct err *err)
{
	err_refused(err, "another command has changed the quick rules meanwhile");
	return -ESTALE;
}

int quick_wait_check(struct quick_wait *w, struct err *err)
{
	if (!w)
		return 0;
	vec_each (&w->others, other) {
		if (!other->id || (is_alive(w, other->token) && !is_marked(w, other->token)))
			continue;
		return other_command(err);
	}
	return 0;
}

int quick_wait_take(struct quick_wait *w, quick_wait_print *print, void *ctx, struct err *err)
{
	vec_each (&w->others, other) {
		CLEANUP_FREE char *path = path_of(w, other->token, SAID);
		CLEANUP(json_writer_free) struct json_writer file = {0};

		if (!other->id)
			continue;
		print(ctx, other->id, &file);
		if (file.text.len)
			state_write(path, &file, NULL);
		if (remove_file(w, other->token, ""))
			return other_command(err);
	}
	return 0;
}

void quick_wait_done(const struct quick_wait *w)
{
	if (w && w->token)
		remove_file(w, w->token, ""); // else it would be added again after it is deleted
	for (size_t n = 0; w && n < w->others.n; n++) {
		const struct quick_other *other = &w->others.at[n];
		CLEANUP_FREE char *path = path_of(w, other->token, ADDED);
		CLEANUP(json_writer_free) struct json_writer file = {0};

		if (!other->id)
			continue;
		state_add(&file, &added_kind);
		json_write_u64(&file, "id", other->id);
		json_write_end(&file);
		state_write(path, &file, NULL);
	}
}

void quick_wait_failed(struct quick_wait *w, uint64_t culprit)
{
	vec_each (&w->others, other) {
		CLEANUP_FREE char *path = path_of(w, other->token, MARKED);

		if (!culprit || other->id != culprit)
			continue;
		other->excluded = true;
		file_replace(path, "", 0, 0600, NULL);
		return;
	}
	w->alone = true;
}
