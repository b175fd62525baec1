// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the list of interfaces that commands have attached.
#include "ctl/control/attachments.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/control/state.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/policy/words.h"

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/interfaces", WEIR_STATE_FOLDER, instance);
}

static int add(struct attachments *to, const char *name, const char *mode)
{
	struct attachment one;
	size_t number;

	if (!name || !name[0] || strlen(name) >= sizeof(one.name) || !mode ||
	    choice_find(&choice_attach, mode, &number))
		return -EBADMSG;
	snprintf(one.name, sizeof(one.name), "%s", name);
	one.mode = (enum attach_mode)number;
	vec_push(&to->list, one);
	return 0;
}

static int read_row(void *ctx, const struct json *row)
{
	return add(ctx, json_get_string(row, "name"), json_get_string(row, "mode"));
}

// A line for each: "eth0 auto".
static int read_old(void *ctx, const char *text, size_t len)
{
	CLEANUP_FREE char *lines = mem_strndup(text, len);
	char *rest = NULL;

	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *name = strsep(&line, " ");

		if (add(ctx, name, line))
			return -EBADMSG;
	}
	return strlen(text) < len ? -EBADMSG : 0;
}

static const struct state_kind interface_kind = {
	.name = "interface", .row = read_row, .old = read_old};

int attachments_read(const char *instance, struct attachments *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	int code;

	*ret = (struct attachments){0};
	if ((code = state_read(path, &interface_kind, ret, err)))
		attachments_free(ret);
	return code;
}

void attachments_free(struct attachments *a)
{
	vec_free(&a->list);
}

static int write_file(const char *instance, const struct attachments *a, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP(json_writer_free) struct json_writer file = {0};

	if (!a->list.n) {
		if (unlink(path) && errno != ENOENT)
			return err_system(err, errno, "cannot remove '%s'", path);
		return 0;
	}
	vec_each (&a->list, one) {
		state_add(&file, &interface_kind);
		json_write_string(&file, "name", one->name);
		json_write_string(&file, "mode", choice_word(&choice_attach, one->mode));
		json_write_end(&file);
	}
	return state_write(path, &file, err);
}

// Reads the list. Of a damaged one, *err has the message.
static int read_for_change(const char *instance, struct attachments *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	int code = attachments_read(instance, ret, err);

	if (code != -EBADMSG || (code = state_set_aside(path, NULL)))
		return code;
	err_hint(err, "it is kept as '%s.damaged'", path);
	return 0;
}

static struct attachment *find(struct attachments *a, const char *name)
{
	vec_each (&a->list, one)
		if (!strcmp(one->name, name))
			return one;
	return NULL;
}

int attachments_put(const char *instance, const char *name, enum attach_mode mode, struct err *err)
{
	CLEANUP_ATTACHMENTS struct attachments a;
	struct attachment *there, fresh = {.mode = mode};
	int code = read_for_change(instance, &a, err);

	if (code)
		return code;
	there = find(&a, name);
	if (there && there->mode == mode)
		return 0;
	if (there) {
		there->mode = mode;
	} else {
		snprintf(fresh.name, sizeof(fresh.name), "%s", name);
		vec_push(&a.list, fresh);
	}
	return write_file(instance, &a, err);
}

char *attachments_remember(const char *instance, const char *name, enum attach_mode mode)
{
	struct err why = {0};
	err_full_text full;

	if (attachments_put(instance, name, mode, &why))
		return mem_printf("%s: '%s' is not attached again at boot", why.text, name);
	return why.text[0] ? mem_strdup(err_full(&why, full)) : NULL;
}

int attachments_take(const char *instance, const char *name, struct err *err)
{
	CLEANUP_ATTACHMENTS struct attachments a;
	struct attachment *there;
	int code = read_for_change(instance, &a, err);

	if (code)
		return code;
	if (!name) {
		a.list.n = 0;
		return write_file(instance, &a, err);
	}
	if (!(there = find(&a, name)))
		return 0;
	*there = a.list.at[--a.list.n];
	return write_file(instance, &a, err);
}
