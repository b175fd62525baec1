// SPDX-License-Identifier: GPL-2.0-only
// Replays the journal into an index, appends frames, prints snapshots.
#include "ctl/control/entries/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/control/entries/journal_order.h"

#define JOURNAL_BYTES_MAX (1u << 30)
#define PART_BYTES        4000  // bytes of a part of a snapshot, roughly
#define WINDOW_BYTES      16384 // read at once for owners
#define GROWN_BYTES       65536 // a smaller journal is not rewritten
#define LINE_BYTES        40    // bytes of a line of a reference, at least roughly
#define DAMAGED_MAX       1000  // files that are kept
#define SINCE_BYTES_MAX   (1u << 20)

void journal_close(struct journal_file *j)
{
	fd_close(j->fd);
	journal_index_free(j->index);
	free(j->path);
	free(j->index_path);
	free(j->window);
	*j = (struct journal_file){.fd = -1};
}

// ---- replay -------------------------------------------------------------------------------------

struct replay {
	struct journal_index *index;
	size_t base; // offset of the text in the file
};

static const char *enter_line(void *ctx, const struct journal_line *line, size_t at, size_t len)
{
	const struct replay *r = ctx;

	switch (line->what) {
	case JOURNAL_OWNER:
		return journal_index_owner(r->index, line->reference.owner, r->base + at, len,
					   &line->owner);
	case JOURNAL_ADD:
		return journal_index_add(r->index, &line->reference);
	case JOURNAL_REMOVE:
		return journal_index_drop(r->index, &line->reference);
	}
	return "unknown line";
}

// The result of a replay.
struct replayed {
	size_t end;           // end of the last frame that was entered
	uint64_t epoch;       // of the last change
	size_t last;          // offset of the last change
	uint64_t before_last; // epoch of the change before it
	struct records_clock clock;
	bool open;            // parts of a snapshot without its change
	const char *why;      // what is wrong at `end`; NULL: nothing
	bool entered_in_part; // the lines at `end` are damaged, and some are in the index
};

static void note_frame(struct replayed *r, const struct journal_frame *f)
{
	r->end = f->end;
	r->open = f->part;
	if (f->part)
		return;
	r->before_last = r->epoch;
	r->last = f->at;
	r->epoch = f->epoch;
	if (f->clock.boot[0])
		r->clock = f->clock;
}

// Enters the frames of text[0..len) into an empty index.
static struct replayed replay(struct journal_index *index, const char *text, size_t len)
{
	struct replayed r = {.end = strlen(JOURNAL_HEAD)};
	struct replay to = {.index = index};

	for (;;) {
		struct journal_frame f;
		enum journal_found found = journal_find(text, len, r.end, &f, &r.why);

		if (found == JOURNAL_CUT)
			r.why = "the file is cut off";
		if (found != JOURNAL_FRAME)
			return r;
		if ((r.why = journal_lines(text, &f, enter_line, &to))) {
			r.entered_in_part = true;
			return r;
		}
		note_frame(&r, &f);
	}
}

// Is the last change pending: written, and never effective?
static bool is_pending(const struct replayed *r, uint64_t committed)
{
	return committed && !r->why && !r->open && r->epoch == committed + 1 &&
	       r->before_last == committed;
}

// Enters the effective changes, without a pending one. If lines of a frame were refused, the replay
// begins again and ends before that frame.
static struct replayed replay_in_force(struct journal_file *j, const char *index_path,
				       const char *text, size_t len, uint64_t committed)
{
	const char *refused = NULL;

	for (;;) {
		struct replayed r;

		journal_index_free(j->index);
		j->index = journal_index_new(index_path, len / LINE_BYTES);
		r = replay(j->index, text, len);
		if (is_pending(&r, committed)) {
			len = r.last;
		} else if (r.entered_in_part) {
			refused = r.why;
			len = r.end;
		} else {
			r.why = refused ? refused : r.why;
			return r;
		}
	}
}

// Half of a change that never became effective is not damage.
static bool is_harmless(const struct replayed *r, uint64_t committed)
{
	return committed && r->epoch == committed && !r->open;
}

static void note_damage(struct journal_file *j, size_t at, const char *why)
{
	err_stated(&j->damage, EBADMSG,
		   "'%s' is damaged at byte %zu (%s); what follows is not used", j->path, at, why);
}

static void index_text(struct journal_file *j, const char *text, size_t len, uint64_t committed,
		       bool to_write)
{
	struct replayed r =
		replay_in_force(j, to_write ? j->index_path : NULL, text, len, committed);
	struct journal_stamp stamp;

	if (!r.why && (r.open || !r.epoch))
		r.why = "the file is cut off";
	if (r.why && !is_harmless(&r, committed))
		note_damage(j, r.end, r.why);
	journal_index_set(j->index, r.epoch, &r.clock);
	j->end = r.end;
	if (j->damage.text[0] || !to_write || j->unwritable)
		return;
	if (j->end < j->size && !ftruncate(j->fd, (off_t)j->end))
		j->size = j->end;
	if (j->end == j->size && !journal_stamp_of(j->fd, &stamp))
		journal_index_end(j->index, &stamp);
}

static int index_old(struct journal_file *j, const char *text, size_t len, struct err *err)
{
	struct replay to;
	struct journal_frame f;
	int code;

	j->old = true;
	j->index = journal_index_new(NULL, len / LINE_BYTES);
	to = (struct replay){.index = j->index};
	if ((code = journal_find_old(text, len, &f, enter_line, &to, err)))
		return code;
	journal_index_set(j->index, f.epoch, &f.clock);
	return 0;
}

// A damaged file of Weir is not an error of the operator.
static int refuse(const struct journal_file *j, int code, struct err *err)
{
	if (!code)
		return 0;
	err_prefix(err, "'%s'", j->path);
	err_hint(err, "move it away to continue without it");
	if (err)
		err->kind = ERR_SYSTEM;
	return code;
}

static int index_file(struct journal_file *j, uint64_t committed, bool to_write, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len, head = strlen(JOURNAL_HEAD);
	int code = file_read(j->path, JOURNAL_BYTES_MAX, &text, &len, err);

	if (code)
		return code;
	j->size = len;
	if (journal_is_old(text, len))
		return refuse(j, index_old(j, text, len, err), err);
	if (journal_is_newer(text, len))
		return refuse(j, err_input(err, "unsupported version of the overlay file"), err);
	if (len >= head && !memcmp(text, JOURNAL_HEAD, head)) {
		index_text(j, text, len, committed, to_write);
		return 0;
	}
	note_damage(j, 0, "not an overlay file");
	j->index = journal_index_new(NULL, 0);
	return 0;
}

// O_NONBLOCK: a FIFO with that name is refused, and the process does not wait for a writer.
static int open_file(struct journal_file *j, bool to_write, struct err *err)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

	j->fd = to_write ? open(j->path, O_RDWR | flags) : -1;
	j->unwritable = to_write && j->fd < 0 ? errno : 0;
	if (j->fd < 0)
		j->fd = open(j->path, O_RDONLY | flags);
	return j->fd < 0 ? err_system(err, errno, "cannot open '%s'", j->path) : 0;
}

int journal_open(const char *path, const char *index_path, uint64_t committed, bool to_write,
		 struct journal_file *ret, struct err *err)
{
	struct journal_stamp stamp;
	int code;

	*ret = (struct journal_file){
		.fd = -1, .path = mem_strdup(path), .index_path = mem_strdup(index_path)};
	code = open_file(ret, to_write, err);
	if (code == -ENOENT) {
		err_clear(err);
		ret->index = journal_index_new(NULL, 0);
		return 0;
	}
	if (code)
		return code;
	if ((code = journal_stamp_of(ret->fd, &stamp)))
		return err_system(err, -code, "cannot read '%s'", path);
	ret->end = ret->size = stamp.size;
	if (!journal_index_open(index_path, &stamp, to_write, &ret->index))
		return 0;
	return index_file(ret, committed, to_write, err);
}

// ---- owners -------------------------------------------------------------------------------------

// Returns the bytes at that offset, and reads the next ones with them.
static const char *read_window(struct journal_file *j, size_t at, size_t len, struct err *err)
{
	size_t size = len > WINDOW_BYTES ? len : WINDOW_BYTES;
	ssize_t n;

	if (at >= j->window_at && at + len <= j->window_at + j->window_len)
		return j->window + (at - j->window_at);
	j->window = mem_realloc(j->window, size, 1);
	j->window_at = at;
	n = pread(j->fd, j->window, size, (off_t)at);
	j->window_len = n < 0 ? 0 : (size_t)n;
	if (j->window_len >= len)
		return j->window;
	err_system(err, n < 0 ? errno : EBADMSG, "cannot read '%s'", j->path);
	return NULL;
}

int journal_read_owner(struct journal_file *j, const struct journal_owner *where, struct owner *ret,
		       char **ret_room, struct err *err)
{
	CLEANUP_FREE char *room = mem_realloc(NULL, where->bytes + 1, 1);
	const char *line = read_window(j, where->at, where->bytes, err);
	struct journal_line parsed;

	if (!line)
		return -EIO;
	if (journal_line_parse(line, where->bytes, room, &parsed) || parsed.what != JOURNAL_OWNER)
		return err_stated(err, EBADMSG, "'%s' is damaged at byte %zu", j->path,
				  (size_t)where->at);
	*ret = parsed.owner;
	*ret_room = TAKE_PTR(room);
	return 0;
}

// ---- appending ----------------------------------------------------------------------------------

static int write_frame(const struct journal_file *j, const char *frame, size_t len)
{
	int code = j->unwritable ? -j->unwritable : file_write_at(j->fd, frame, len, j->end);

	if (code)
		return code;
	return fdatasync(j->fd) ? -errno : 0;
}

int journal_append(struct journal_file *j, const char *frame, size_t len, struct err *err)
{
	int code = write_frame(j, frame, len);

	if (code) {
		err_system(err, -code, "cannot write '%s'", j->path);
		if (!j->unwritable && ftruncate(j->fd, (off_t)j->end))
			errno = 0; // half a frame remains, which the next command cuts off
		return code;
	}
	j->size = j->end + len;
	return 0;
}

void journal_enter(struct journal_file *j, const char *frame, size_t len)
{
	struct replay to = {.index = j->index, .base = j->end};
	struct journal_stamp stamp;
	struct journal_frame f;
	const char *why = NULL;

	journal_index_begin(j->index);
	if (journal_find_own(frame, len, 0, &f, &why) != JOURNAL_FRAME ||
	    journal_lines(frame, &f, enter_line, &to) || journal_stamp_of(j->fd, &stamp))
		return; // the next command makes a new index
	j->end += len;
	journal_index_set(j->index, f.epoch, &f.clock);
	journal_index_end(j->index, &stamp);
}

static const char *visit_frames(const char *text, size_t len, journal_visit *visit, void *ctx)
{
	for (size_t at = 0; at < len;) {
		struct journal_frame f;
		const char *why = "the file is cut off";

		if (journal_find(text, len, at, &f, &why) != JOURNAL_FRAME ||
		    (why = journal_lines(text, &f, visit, ctx)))
			return why;
		at = f.end;
	}
	return NULL;
}

const char *journal_each_since(const struct journal_file *j, size_t from, journal_visit *visit,
			       void *ctx)
{
	size_t len = j->end - from;
	CLEANUP_FREE char *text = NULL;

	if (from > j->end || len > SINCE_BYTES_MAX)
		return "too much has changed";
	text = mem_zalloc(len + 1, 1);
	if (pread(j->fd, text, len, (off_t)from) != (ssize_t)len)
		return "it cannot be read";
	return visit_frames(text, len, visit, ctx);
}

// ---- damaged files ------------------------------------------------------------------------------

static char *damaged_path(const char *path, unsigned n)
{
	return n == 1 ? mem_printf("%s.damaged", path) : mem_printf("%s.damaged.%u", path, n);
}

// Adds a second name to the file: the file that replaces it takes only the first name.
int journal_keep_damaged(const struct journal_file *j, struct err *err)
{
	if (!j->damage.text[0])
		return 0;
	for (unsigned n = 1; n < DAMAGED_MAX; n++) {
		CLEANUP_FREE char *kept = damaged_path(j->path, n);

		if (!link(j->path, kept))
			return 0;
		if (errno != EEXIST)
			return err_system(err, errno, "cannot keep the damaged file as '%s'", kept);
	}
	return err_system(err, EEXIST, "cannot keep another damaged file '%s'", j->path);
}

void journal_forget_damaged(const char *path, bool dry_run, bool *ret_any)
{
	*ret_any = false;
	for (unsigned n = 1; n < DAMAGED_MAX; n++) {
		CLEANUP_FREE char *kept = damaged_path(path, n);

		if (dry_run ? !file_exists(kept) : unlink(kept))
			return;
		*ret_any = true;
	}
}

// ---- snapshots ----------------------------------------------------------------------------------

void journal_print_begin(struct journal_printer *p)
{
	*p = (struct journal_printer){0};
	text_add(&p->file, JOURNAL_HEAD);
}

static void close_part(struct journal_printer *p)
{
	journal_print_part(&p->file, text_get(&p->lines), p->lines.len);
	p->lines.len = 0;
}

void journal_print_lines(struct journal_printer *p)
{
	if (p->lines.len >= PART_BYTES)
		close_part(p);
}

char *journal_print_end(struct journal_printer *p, uint64_t epoch,
			const struct records_clock *clock, size_t *ret_len)
{
	if (p->lines.len)
		close_part(p);
	journal_print_change(&p->file, "", 0, epoch, clock);
	text_free(&p->lines);
	*ret_len = p->file.len;
	return text_take(&p->file);
}

// Prints the owner's line unchanged except for its new number.
static int print_owner_again(struct journal_file *j, struct journal_printer *p, uint32_t owner,
			     uint32_t number, struct err *err)
{
	size_t len = j->index->owners[owner].bytes;
	const char *line = read_window(j, j->index->owners[owner].at, len, err), *since;

	if (!line)
		return -EIO;
	since = memmem(line, len, " since ", strlen(" since "));
	if (!since)
		return err_system(err, EBADMSG, "cannot read '%s'", j->path);
	text_addf(&p->lines, "holder %u", number);
	text_addn(&p->lines, since, len - (size_t)(since - line));
	text_addc(&p->lines, '\n');
	journal_print_lines(p);
	return 0;
}

static int print_owners(struct journal_file *j, struct journal_printer *p, uint32_t *numbers,
			struct err *err)
{
	uint32_t next = 0;

	for (uint32_t o = 0; o < journal_index_owners(j->index); o++) {
		int code;

		if (!j->index->owners[o].refs)
			continue;
		numbers[o] = next++;
		if ((code = print_owner_again(j, p, o, numbers[o], err)))
			return code;
	}
	return 0;
}

char *journal_print_snapshot(struct journal_file *j, size_t *ret_len, struct err *err)
{
	const struct journal_index *x = j->index;
	CLEANUP_FREE uint32_t *numbers = mem_zalloc(journal_index_owners(x), sizeof(*numbers));
	CLEANUP_JOURNAL_ORDER struct journal_order order = {0};
	struct journal_printer p;

	journal_print_begin(&p);
	if (print_owners(j, &p, numbers, err)) {
		text_free(&p.file);
		text_free(&p.lines);
		return NULL;
	}
	order = journal_order(x);
	for (size_t r = 0; r < order.n; r++) {
		struct reference reference = journal_ref_reference(&x->refs[order.at[r]]);

		journal_print_add(&p.lines, &reference, numbers[reference.owner]);
		journal_print_lines(&p);
	}
	return journal_print_end(&p, journal_index_epoch(x), journal_index_clock(x), ret_len);
}

bool journal_has_grown(const struct journal_file *j)
{
	size_t live = journal_index_bytes(j->index);

	return j->end > GROWN_BYTES && j->end / 2 > live;
}
