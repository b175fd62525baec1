// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces files of rows.
#include "ctl/control/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "ctl/base/err.h"
#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/sum.h"
#include "ctl/datapath/bpffs.h"

#define FILE_MAX (256u << 20)
#define HEAD     "weir-state "
#define FORMAT   "1"
#define TEXT     "text "
#define HERE     "here"

// ---- reading ------------------------------------------------------------------------------------

// A file in memory, and the part of it that has not been read.
struct state_reading {
	const char *path;
	char *text, *at, *end;
	unsigned line; // number of the last line that was read
	struct err *err;
};

static int damaged(const struct state_reading *r, const char *what)
{
	return err_stated(r->err, EBADMSG, "'%s' is damaged: %s", r->path, what);
}

static int invalid_line(const struct state_reading *r)
{
	return err_stated(r->err, EBADMSG, "'%s' is damaged: line %u is not valid", r->path,
			  r->line);
}

static int newer(const struct state_reading *r, const char *what)
{
	err_stated(r->err, ENOTSUP, "'%s' was written by a newer version: '%s' is unknown", r->path,
		   what);
	err_hint(r->err, "move it away to start without it");
	return -ENOTSUP;
}

static int read_file(struct state_reading *r)
{
	size_t len;
	int code = file_read(r->path, FILE_MAX, &r->text, &len, r->err);

	if (code)
		return code;
	r->at = r->text;
	r->end = r->text + len;
	return 0;
}

// Removes the checksum. needed: a file without it is damaged, too.
static int check_sum(struct state_reading *r, bool needed)
{
	size_t len = (size_t)(r->end - r->at), before = len;

	if (sum_open(r->at, &len) || (needed && len == before))
		return damaged(r, "checksum mismatch");
	r->end = r->at + len;
	return 0;
}

// Ends the next line with NUL instead of its newline. NULL: no whole line is left.
static char *next_line(struct state_reading *r)
{
	char *line = r->at, *end = memchr(line, '\n', (size_t)(r->end - line));

	if (!end)
		return NULL;
	*end = '\0';
	r->at = end + 1;
	r->line++;
	return line;
}

static int read_text(struct state_reading *r, const struct state_kind *kind, void *ctx,
		     const char *length)
{
	size_t left = (size_t)(r->end - r->at);
	uint64_t len;

	if (num_parse_u64(length, strlen(length), 0, FILE_MAX, &len) || len + 1 != left ||
	    kind->text(ctx, r->at, len))
		return invalid_line(r);
	return 0;
}

static int take_row(struct json **ret, struct json **row)
{
	if (*ret)
		return -EBADMSG;
	*ret = TAKE_PTR(*row);
	return 0;
}

static int read_rows(struct state_reading *r, const struct state_kind *kind, void *ctx)
{
	for (char *line = next_line(r); r->at < r->end;) {
		CLEANUP_JSON struct json *row = NULL;
		char *value;

		if (!(line = next_line(r)) || !(value = strchr(line, ' ')))
			return invalid_line(r);
		if (kind->text && !strncmp(line, TEXT, sizeof(TEXT) - 1))
			return read_text(r, kind, ctx, value + 1);
		*value++ = '\0';
		if (strcmp(line, kind->name) != 0)
			return newer(r, line);
		row = json_parse(value, strlen(value), NULL, 0);
		if (!row || (kind->row ? kind->row(ctx, row) : take_row(ctx, &row)))
			return invalid_line(r);
	}
	return 0;
}

int state_read(const char *path, const struct state_kind *kind, void *ctx, struct err *err)
{
	struct state_reading r = {.path = path, .err = err};
	int code = file_exists(path) ? read_file(&r) : 0;
	CLEANUP_FREE char *text = r.text;
	bool old = text && strncmp(text, HEAD, sizeof(HEAD) - 1) != 0;

	if (code || !text)
		return code;
	if (!old && strncmp(text, HEAD FORMAT "\n", sizeof(HEAD FORMAT)) != 0) {
		if (!next_line(&r))
			return damaged(&r, "it is cut off");
		return newer(&r, text);
	}
	if ((code = check_sum(&r, !old)))
		return code;
	if (!old)
		return read_rows(&r, kind, ctx);
	if (!kind->old || kind->old(ctx, r.at, (size_t)(r.end - r.at)))
		return damaged(&r, "unknown format");
	return 0;
}

int state_read_document(const char *path, struct json **ret, struct err *err)
{
	struct state_reading r = {.path = path, .err = err};
	int code = read_file(&r);
	CLEANUP_FREE char *text = r.text;
	struct json *j;
	char why[160];

	if (code || (code = check_sum(&r, false)))
		return code;
	if (!(j = json_parse(text, (size_t)(r.end - text), why, sizeof(why))))
		return damaged(&r, why);
	*ret = j;
	return 0;
}

int state_each(const struct json *list, int (*row)(void *ctx, const struct json *row), void *ctx)
{
	if (json_kind(list) != JSON_IS_ARRAY)
		return -EBADMSG;
	for (size_t n = 0; n < json_length(list); n++)
		if (row(ctx, json_at(list, n)))
			return -EBADMSG;
	return 0;
}

// ---- writing ------------------------------------------------------------------------------------

static void begin(struct text *file)
{
	if (!file->len)
		text_add(file, HEAD FORMAT "\n");
}

void state_add(struct json_writer *file, const struct state_kind *kind)
{
	begin(&file->text);
	text_add(&file->text, kind->name);
	text_addc(&file->text, ' ');
	json_write_object(file, NULL);
}

// The newline is for the checksum, which begins a line.
void state_add_text(struct json_writer *file, const char *text, size_t len)
{
	text_addf(&file->text, TEXT "%zu\n", len);
	text_addn(&file->text, text, len);
	text_addc(&file->text, '\n');
}

int state_write(const char *path, struct json_writer *file, struct err *err)
{
	begin(&file->text);
	return sum_write(path, file->text.at, file->text.len, err);
}

// Two writers would share the file that is staged.
void state_note(const char *path, struct json_writer *file)
{
	CLEANUP_FREE char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
	CLEANUP_FD int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock >= 0 && !flock(lock, LOCK_EX | LOCK_NB))
		state_write(path, file, NULL);
}

int state_set_aside(const char *path, struct err *err)
{
	CLEANUP_FREE char *kept = mem_printf("%s.damaged", path);

	return rename(path, kept) ? err_system(err, errno, "cannot rename '%s'", path) : 0;
}

// ---- rows of backends ---------------------------------------------------------------------------

void state_add_backend(struct json_writer *file, const char *service, const struct addr *addr,
		       uint16_t port)
{
	addr_text address = HERE;

	if (addr->family)
		addr_format(addr, address);
	json_write_string(file, "service", service);
	json_write_string(file, "address", address);
	json_write_u64(file, "port", port);
}

int state_get_backend(const struct json *row, char ret_service[LB_NAME], struct addr *ret_addr,
		      uint16_t *ret_port)
{
	const char *service = json_get_string(row, "service");
	const char *address = json_get_string(row, "address");

	if (!service || !address || strlen(service) >= LB_NAME)
		return -EBADMSG;
	snprintf(ret_service, LB_NAME, "%s", service);
	*ret_port = (uint16_t)json_get_u64(row, "port");
	*ret_addr = (struct addr){0};
	if (!strcmp(address, HERE))
		return 0;
	return addr_parse(address, strlen(address), ret_addr, NULL) ? -EBADMSG : 0;
}

// ---- the folder ---------------------------------------------------------------------------------

// The folder is made with the first change that is saved.
static int try_folders(const char *instance)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_STATE_FOLDER, instance);
	int code = file_try_write(folder);

	if (code == -ENOENT)
		code = file_try_write(WEIR_STATE_FOLDER);
	return code == -ENOENT ? 0 : code;
}

bool state_folder_works(const char *instance, char *text, size_t size)
{
	int code = try_folders(instance);

	if (code)
		snprintf(text, size, "'%s/%s' cannot be written: %s; nothing is saved",
			 WEIR_STATE_FOLDER, instance, err_why(code));
	return !code;
}
