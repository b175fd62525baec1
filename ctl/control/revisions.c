// SPDX-License-Identifier: GPL-2.0-only
// Reads, writes and removes the folders of revisions.
#include "ctl/control/revisions.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/file_tree.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/control/known.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/net/fetch.h"
#include "ctl/net/fetch_url.h"

#define CHECK_AGAIN_S 3600

static char *folder_of(const char *instance, const char *name)
{
	return mem_printf("%s/%s/accepted%s%s", WEIR_STATE_FOLDER, instance, name[0] ? "/" : "",
			  name);
}

void revision_free(struct revision *r)
{
	free(r->path);
	free(r->by);
	free(r->note);
	free(r->texts);
	free(r->sum);
	*r = (struct revision){0};
}

void revision_sign(const struct revision *r, struct generation_about *about)
{
	about->at_s = r->at_s;
	snprintf(about->revision, sizeof(about->revision), "%s", r->id);
	snprintf(about->path, sizeof(about->path), "%s", r->path);
	snprintf(about->by, sizeof(about->by), "%s", r->by);
}

void revisions_free(struct revisions *r)
{
	vec_each (r, revision)
		revision_free(revision);
	vec_free(r);
}

// A staged record is ID.new, which is what file_commit takes.
static char *staged_of(const char *instance, const char *id)
{
	CLEANUP_FREE char *name = mem_printf("%s.new", id);

	return folder_of(instance, name);
}

static char *texts_of(const struct json *meta)
{
	const struct json *paths = json_get(meta, "files"), *sums = json_get(meta, "sums");
	struct text t = {0};

	for (size_t n = 0; n < json_length(paths); n++) {
		const char *path = json_text(json_at(paths, n)), *sum = json_text(json_at(sums, n));

		if (path && sum && !fetch_is_url(path))
			text_addf(&t, "%s ", sum);
	}
	return text_take(&t);
}

static char *sum_of_file(const struct json *meta, const char *path)
{
	const struct json *paths = json_get(meta, "files"), *sums = json_get(meta, "sums");

	for (size_t n = 0; n < json_length(paths); n++) {
		const char *one = json_text(json_at(paths, n)), *sum = json_text(json_at(sums, n));

		if (one && sum && !strcmp(one, path))
			return mem_strdup(sum);
	}
	return mem_strdup("");
}

static void read_meta(const struct json *meta, const char *id, struct revision *ret)
{
	*ret = (struct revision){
		.path = json_get_copy(meta, "path"),
		.by = json_get_copy(meta, "by"),
		.note = json_get_copy(meta, "note"),
		.at_s = json_get_u64(meta, "at_s"),
		.number = json_get_u64(meta, "number"),
		.answers = json_get_u64(meta, "answers"),
		.fleeting = json_get_u64(meta, "fleeting"),
		.texts = texts_of(meta),
	};
	ret->sum = sum_of_file(meta, ret->path);
	snprintf(ret->id, sizeof(ret->id), "%s", id);
}

// Where its record is, the caller frees it; NULL: nowhere.
static char *record_of(const char *instance, const char *id)
{
	CLEANUP_FREE char *accepted = folder_of(instance, id);
	CLEANUP_FREE char *staged = staged_of(instance, id); // a trial's
	char **folder = file_exists(accepted) ? &accepted : &staged;
	CLEANUP_FREE char *index = mem_printf("%s/index", *folder);

	return id[0] && !strpbrk(id, "/.") && file_exists(index) ? TAKE_PTR(*folder) : NULL;
}

bool revisions_has(const char *instance, const char *id)
{
	CLEANUP_FREE char *folder = record_of(instance, id);

	return folder;
}

typedef int load_record(struct environment *w, const char *folder, struct json **ret_meta,
			struct err *err);

static int load_by(load_record *load, const char *instance, const char *id, struct environment *w,
		   struct revision *ret, struct err *err)
{
	CLEANUP_FREE char *folder = record_of(instance, id);
	CLEANUP_JSON struct json *meta = NULL;
	int code;

	if (!folder) {
		err_input(err, "revision '%s' not found", id);
		err_hint(err, "weir history lists revisions");
		return -ENOENT;
	}
	code = load(w, folder, &meta, err);
	if (code)
		return code;
	read_meta(meta, id, ret);
	return 0;
}

int revisions_load(const char *instance, const char *id, struct environment *w,
		   struct revision *ret, struct err *err)
{
	return load_by(environment_load, instance, id, w, ret, err);
}

static int load_whole(struct environment *w, const char *folder, struct json **ret_meta,
		      struct err *err)
{
	return environment_load_known(w, folder, true, ret_meta, err);
}

static int load_few(struct environment *w, const char *folder, struct json **ret_meta,
		    struct err *err)
{
	return environment_load_known(w, folder, false, ret_meta, err);
}

int revisions_load_known(const char *instance, const char *id, bool whole, struct environment *w,
			 struct revision *ret, struct err *err)
{
	return load_by(whole ? load_whole : load_few, instance, id, w, ret, err);
}

int revisions_load_names(const char *instance, const char *id, struct environment *w,
			 struct revision *ret, struct err *err)
{
	return load_by(environment_load_names, instance, id, w, ret, err);
}

int revisions_check(const char *instance, const char *id, struct err *err)
{
	CLEANUP(revision_free) struct revision r = {0};
	CLEANUP_ENVIRONMENT struct environment record;

	environment_replay(&record);
	return revisions_load(instance, id, &record, &r, err);
}

// A file changes its time of change with each write, and its number when it is replaced.
static void add_stamp(struct text *t, const char *folder, const char *name)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, name);
	struct stat st;

	if (!stat(path, &st))
		text_addf(t, "%s %llu %lld %lld.%09ld\n", name, (unsigned long long)st.st_ino,
			  (long long)st.st_size, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

// The sum of all files of a record. "": they cannot be listed.
static char *stamps_of(const char *folder)
{
	VEC(char *) names = {0};
	struct text t = {0};
	DIR *dir = folder ? opendir(folder) : NULL;
	struct dirent *file;

	while (dir && (file = readdir(dir)))
		if (file->d_name[0] != '.')
			vec_push(&names, mem_strdup(file->d_name));
	if (dir)
		closedir(dir);
	if (names.n)
		qsort(names.at, names.n, sizeof(*names.at), compare_names);
	vec_each (&names, name) {
		add_stamp(&t, folder, *name);
		free(*name);
	}
	vec_free(&names);
	return text_take(&t);
}

int revisions_check_changed(const char *instance, const char *id, struct err *err)
{
	CLEANUP_FREE char *folder = record_of(instance, id);
	CLEANUP_FREE char *path = mem_printf("%s/%s/record", WEIR_RUN_FOLDER, instance);
	CLEANUP_FREE char *stamps = stamps_of(folder);
	static const struct state_kind kind = {.name = "verified"};
	CLEANUP_JSON struct json *kept = NULL;
	CLEANUP(json_writer_free) struct json_writer file = {0};
	const char *last;
	int code;

	state_read(path, &kind, &kept, NULL);
	last = json_get_string(kept, "stamps");
	if (last && !strcmp(last, stamps) &&
	    time_s(CLOCK_BOOTTIME) - json_get_u64(kept, "at_s") < CHECK_AGAIN_S)
		return 0;
	if ((code = revisions_check(instance, id, err)))
		return code;
	state_add(&file, &kind);
	json_write_string(&file, "stamps", stamps);
	json_write_u64(&file, "at_s", time_s(CLOCK_BOOTTIME));
	json_write_end(&file);
	state_note(path, &file);
	return 0;
}

int revisions_save_names(const char *instance, struct revision *r, const struct environment *w,
			 struct err *err)
{
	CLEANUP_FREE char *folder = record_of(instance, r->id);

	if (!folder)
		return err_stated(err, ENOENT, "the record of revision %s is missing", r->id);
	return environment_save_names(w, folder, ++r->answers, err);
}

// Only the index is read: lists of a million lines stay where they are.
static int read_one(const char *folder, const char *id, struct revision *ret, struct err *err)
{
	CLEANUP_JSON struct json *meta = NULL;
	int code = environment_load_index(folder, &meta, err);

	if (code)
		return code;
	read_meta(meta, id, ret);
	return 0;
}

// An error of this moment, not of the file.
static bool is_passing(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EIO ||
	       code == -EACCES;
}

// Skips other files and damaged revisions. A revision that cannot be read now is an error, because
// a rollback would go further back.
static int list_one(const char *instance, const char *id, struct revisions *list, struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(instance, id);
	struct err why = {0};
	struct revision one;
	int code = read_one(folder, id, &one, &why);

	if (code && !is_passing(code))
		return 0;
	if (code && err)
		*err = why;
	if (code)
		return code;
	vec_push(list, one);
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct revision *x = a, *y = b;

	return x->number < y->number ? 1 : x->number > y->number ? -1 : strcmp(x->id, y->id);
}

int revisions_list(const char *instance, struct revisions *ret, struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(instance, "");
	DIR *dir = opendir(folder);
	struct dirent *file;
	int code = 0;

	*ret = (struct revisions){0};
	if (!dir && errno != ENOENT)
		return err_system(err, errno, "cannot read '%s'", folder);
	while (dir && (file = readdir(dir)))
		if (!strchr(file->d_name, '.') && strcmp(file->d_name, "current")) {
			code = list_one(instance, file->d_name, ret, err);
			if (code)
				break;
		}
	if (dir)
		closedir(dir);
	if (code)
		return code;
	if (ret->n)
		qsort(ret->at, ret->n, sizeof(*ret->at), newest_first);
	return 0;
}

int revisions_remove(const char *instance, bool dry_run, size_t *ret_n, struct err *err)
{
	CLEANUP_REVISIONS struct revisions list = {0};
	CLEANUP_FREE char *folder = folder_of(instance, "");
	CLEANUP_FREE char *current = folder_of(instance, "current");
	int code = revisions_list(instance, &list, err);

	if (code)
		return code;
	*ret_n = list.n;
	if (dry_run)
		return 0;
	// First the file that an attach reads: if the command is killed after this, the policy is
	// forgotten.
	if (unlink(current) && errno != ENOENT && errno != ENOTDIR)
		return err_system(err, errno, "cannot remove '%s'", current);
	return file_remove_tree(folder, err);
}

static int draw_id(const char *instance, char ret[REVISION_ID], struct err *err)
{
	for (int tries = 0; tries < 64; tries++) {
		CLEANUP_FREE char *folder = NULL;
		uint16_t n;

		if (getrandom(&n, sizeof(n), 0) != sizeof(n))
			break;
		snprintf(ret, REVISION_ID, "%04x", n);
		folder = folder_of(instance, ret);
		if (!file_exists(folder))
			return 0;
	}
	return err_system(err, EAGAIN, "cannot choose a name for the revision");
}

void revisions_forget(const char *instance, const char *in_force)
{
	CLEANUP_FREE char *folder = folder_of(instance, "");
	CLEANUP_FREE char *kept = mem_printf("%s.new", in_force);
	DIR *dir = opendir(folder);
	struct dirent *file;

	while (dir && (file = readdir(dir))) {
		CLEANUP_FREE char *path = folder_of(instance, file->d_name);
		const char *dot = strchr(file->d_name, '.');

		if (dot && dot > file->d_name && !strcmp(dot, ".new") &&
		    strcmp(file->d_name, kept) != 0)
			file_remove_tree(path, NULL);
	}
	if (dir)
		closedir(dir);
}

static int next_number(const char *instance, uint64_t *ret, struct err *err)
{
	CLEANUP_REVISIONS struct revisions list = {0};
	int code = revisions_list(instance, &list, err);

	if (code)
		return code;
	*ret = list.n ? list.at[0].number + 1 : 1;
	return 0;
}

int revisions_stage(const char *instance, const char *in_force, struct revision *r,
		    const struct environment *w, const struct resolved *resolved, struct err *err)
{
	CLEANUP_FREE char *folder = NULL;
	struct json *meta;
	int code;

	revisions_forget(instance,
			 in_force); // folders of unconfirmed trials and of killed commands
	if ((code = next_number(instance, &r->number, err)) ||
	    (code = draw_id(instance, r->id, err)))
		return code;
	folder = staged_of(instance, r->id);
	meta = json_object();
	json_set(meta, "path", json_string(r->path));
	json_set(meta, "by", json_string(r->by));
	json_set(meta, "note", json_string(r->note));
	json_set(meta, "at_s", json_u64(r->at_s));
	json_set(meta, "number", json_u64(r->number));
	if (r->fleeting)
		json_set(meta, "fleeting", json_u64(1));
	code = environment_save(w, folder, meta, err);
	if (code) {
		file_remove_tree(folder, NULL);
		r->id[0] = '\0';
		return code;
	}
	known_write(folder, resolved);
	return 0;
}

static bool same_files(const struct revision *a, const struct revision *b)
{
	return a->texts[0] && !strcmp(a->texts, b->texts);
}

static bool same_text(const struct revision *a, const struct revision *b)
{
	return same_files(a, b) && !strcmp(a->note, b->note);
}

// Keeps the newest of each run of revisions with the same text; of the first run also one to return
// to.
static void prune(const char *instance, const char *current)
{
	CLEANUP_REVISIONS struct revisions list = {0};
	const struct revision *newer = NULL;
	size_t kept = 0, runs = 0, in_run = 0;

	if (revisions_list(instance, &list, NULL))
		return;
	vec_each (&list, revision) {
		CLEANUP_FREE char *folder = folder_of(instance, revision->id);

		in_run = newer && same_text(newer, revision) ? in_run + 1 : 1;
		runs += in_run == 1;
		newer = revision;
		if (!strcmp(revision->id, current) ||
		    (kept < REVISIONS_KEPT && in_run <= (runs == 1 ? 2u : 1u)))
			kept++;
		else
			file_remove_tree(folder, NULL);
	}
}

int revisions_accept(const char *instance, const char *id, struct err *err)
{
	CLEANUP_FREE char *folder = folder_of(instance, id);
	CLEANUP_FREE char *path = folder_of(instance, "current");
	CLEANUP_FREE char *text = mem_printf("%s\n", id);
	int code = file_exists(folder) ? 0 : file_commit(folder, err);

	if (code)
		return code;
	if ((code = sum_write(path, text, strlen(text), err)))
		return code;
	prune(instance, id);
	return 0;
}

int revisions_current(const char *instance, char ret[REVISION_ID], struct err *err)
{
	CLEANUP_FREE char *path = folder_of(instance, "current");
	CLEANUP_FREE char *text = NULL;
	size_t len;
	int code = file_read(path, 64, &text, &len, err);

	if (code == -EACCES && err) {
		err->kind = ERR_SYSTEM; // no file that the user has named
		err_hint_root(err);
	}
	if (code && code != -ENOENT)
		return code;
	err_clear(err);
	ret[0] = '\0';
	if (code)
		return 0;
	if (sum_open(text, &len) || !len || !memchr(text, '\n', len) ||
	    strcspn(text, "\n") >= REVISION_ID)
		return err_stated(err, EBADMSG, "'%s' is damaged: no revision name", path);
	snprintf(ret, REVISION_ID, "%.*s", (int)strcspn(text, "\n"), text);
	return 0;
}

int revisions_previous(const char *instance, char ret[REVISION_ID], struct err *err)
{
	CLEANUP_REVISIONS struct revisions list = {0};
	const struct revision *now = NULL;
	char current[REVISION_ID];
	int code = revisions_current(instance, current, err);

	if (code)
		return code;
	if ((code = revisions_list(instance, &list, err)))
		return code;
	vec_each (&list, one) {
		if (now && !same_files(now, one)) {
			snprintf(ret, REVISION_ID, "%s", one->id);
			return 0;
		}
		if (!strcmp(one->id, current))
			now = one;
	}
	return err_refused(err, now && list.n > 1 ? "no earlier revision has other files"
						  : "no earlier revision exists");
}

int revisions_recover(const char *instance, const char *id, struct err *err)
{
	CLEANUP_FREE char *accepted = folder_of(instance, id);
	CLEANUP_FREE char *staged = staged_of(instance, id);
	const char *folder = file_exists(accepted) ? accepted : staged;
	char current[REVISION_ID] = "";
	CLEANUP(revision_free) struct revision r = {0};
	int code = revisions_current(instance, current, err);

	if (code == -EBADMSG) { // the kernel knows better
		err_clear(err);
		code = 0;
	}
	if (code || !id[0] || !strcmp(current, id) || !file_exists(folder))
		return code;
	if ((code = read_one(folder, id, &r, err)))
		return code;
	if (!r.fleeting)
		code = revisions_accept(instance, id, err);
	return code;
}
