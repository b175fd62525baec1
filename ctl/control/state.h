// SPDX-License-Identifier: GPL-2.0-only
// Small files of an instance: rows of one kind, and a checksum.
//
//	weir-state 1
//	override {"service":"web","address":"203.0.113.7","port":0,"state":2,"until_s":0}
//	sum 0123456789abcdef
//
// A row is a kind and a JSON object. The last row may be "text LENGTH"; this many bytes follow it.
// A file is always replaced as a whole. In /var/lib/weir/NAME/ these are `drains`, `rules`,
// `interfaces`, `feeds/KEY` and `feeds/KEY.list`; in /run/weir/NAME/ `health`, `answered`, `looks`,
// `alarms`, `unseen`, `record`, and the files in `adding` (quick_wait.h). There is a file for each:
//
// - Commands write `drains`, `rules`, `interfaces` and `feeds/KEY.list` under the lock; the agent
//   writes `feeds/KEY` (up to 64 MB) and `health` without the lock; commands that only read write
//   `looks`, `alarms`, `unseen` and `record`. In one file, each would have to take the lock, and to
//   write what belongs to the others.
// - Damage has different consequences. Without the overrides a drained backend would get
//   connections again, and without the quick rules the packets that they decide would meet the
//   policy, so `drains` and `rules` are refused. A damaged `interfaces` is kept as
//   `interfaces.damaged` and begun again, a damaged feed is fetched again, and a damaged file in
//   /run is a missing one.
// - A version without this format finds such a file damaged, and refuses it: it does not start
//   without the overrides, or attach nothing at boot. Files without this format are read, except
//   `looks`, `unseen` and `record`, and replaced when a command writes them.
// - Another format, or another kind, is refused as written by a newer version. `drains`, `rules`
//   and `interfaces` are then not replaced; the other files are begun again.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"
#include "ctl/base/json.h"
#include "ctl/table/lb_state.h"

// What a file consists of. Each function returns 0, or -EBADMSG: what it was given is not valid.
struct state_kind {
	const char *name;
	int (*row)(void *ctx, const struct json *row); // NULL: ctx is a struct json **, for one row
	int (*text)(void *ctx, const char *text, size_t len); // NULL: no text is expected
	// The file as it was before this format, without its checksum; NULL: it did not exist.
	int (*old)(void *ctx, const char *text, size_t len);
};

// Reads a file, row by row; a missing file has none. 0 or -errno with err set: -EBADMSG: it is
// damaged, -ENOTSUP: it is of a newer version. Some rows may have been read by then.
int state_read(const char *path, const struct state_kind *kind, void *ctx, struct err *err);
// Reads a JSON document with a checksum in its last line.
int state_read_document(const char *path, struct json **ret, struct err *err);
// The rows of a list, as the files had them before this format; -EBADMSG where it is no list.
int state_each(const struct json *list, int (*row)(void *ctx, const struct json *row), void *ctx);

// Begins a row of a file in memory, which is not pretty: its values follow, and json_write_end.
void state_add(struct json_writer *file, const struct state_kind *kind);
// Adds the text, after all rows.
void state_add_text(struct json_writer *file, const char *text, size_t len);
// Replaces the file, as file_replace does; creates its folder if necessary.
int state_write(const char *path, struct json_writer *file, struct err *err);
// The same for commands that take no lock and note in /run what they have seen: if it fails, or
// another command writes at this moment, the file stays as it was.
void state_note(const char *path, struct json_writer *file);
// Keeps a damaged file as PATH.damaged, instead of an earlier one.
int state_set_aside(const char *path, struct err *err);

// Whether what an instance has to remember can be written now. False: a sentence with the cause is
// in text.
bool state_folder_works(const char *instance, char *text, size_t size);

// The backend that a row is about: "service", "address" ("here": family 0) and "port".
void state_add_backend(struct json_writer *file, const char *service, const struct addr *addr,
		       uint16_t port);
// 0 or -EBADMSG.
int state_get_backend(const struct json *row, char ret_service[LB_NAME], struct addr *ret_addr,
		      uint16_t *ret_port);
