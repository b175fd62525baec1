// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes the list of interfaces that commands have attached.
#include "ctl/control/attachments.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/policy/words.h"

#define FILE_MAX 65536

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/interfaces", WEIR_STATE_FOLDER, instance);
}

static bool read_mode(const char *word, enum attach_mode *ret)
{
	for (size_t m = 0; m < choice_attach.n; m++)
		if (!strcmp(word, choice_word(&choice_attach, m))) {
			*ret = (enum attach_mode)m;
			return true;
		}
	return false;
}

// One line, "eth0 auto", which is written into.
static bool read_line(char *line, struct attachment *ret)
{
	char *mode = strchr(line, ' ');

	if (!mode || mode == line || (size_t)(mode - line) >= sizeof(ret->name))
		return false;
	*mode = '\0';
	snprintf(ret->name, sizeof(ret->name), "%s", line);
	return read_mode(mode + 1, &ret->mode);
}

static bool read_lines(char *text, struct attachments *ret)
{
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct attachment one;

		if (!read_line(line, &one))
			return false;
		vec_push(&ret->list, one);
	}
	return true;
}

int attachments_read(const char *instance, struct attachments *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_FREE char *text = NULL;
	size_t len;
	int code;

	*ret = (struct attachments){0};
	if (!file_exists(path))
		return 0;
	if ((code = file_read(path, FILE_MAX, &text, &len, err)))
		return code;
	if (sum_open(text, &len) || strlen(text) < len)
		return err_stated(err, EBADMSG, "'%s' is damaged", path);
	text[len] = '\0';
	if (read_lines(text, ret))
		return 0;
	attachments_free(ret);
	return err_stated(err, EBADMSG, "'%s' is damaged", path);
}

void attachments_free(struct attachments *a)
{
	vec_free(&a->list);
}

static int write_file(const char *instance, const struct attachments *a, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_TEXT struct text lines = {0};

	if (!a->list.n) {
		if (unlink(path) && errno != ENOENT)
			return err_system(err, errno, "cannot remove '%s'", path);
		return 0;
	}
	vec_each (&a->list, one)
		text_addf(&lines, "%s %s\n", one->name, choice_word(&choice_attach, one->mode));
	return sum_write(path, lines.at, lines.len, err);
}

// Reads the list; empty if it is damaged.
static int read_for_change(const char *instance, struct attachments *ret, struct err *err)
{
	int code = attachments_read(instance, ret, err);

	if (code != -EBADMSG)
		return code;
	err_clear(err);
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
