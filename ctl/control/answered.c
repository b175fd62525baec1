// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces the file of times.
#include "ctl/control/answered.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/lines.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/datapath/bpffs.h"

#define FILE_MAX (256u << 20)
#define KEPT_S   86400

static char *path_of(const char *instance)
{
	return mem_printf("%s/%s/answered", WEIR_RUN_FOLDER, instance);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct refresh_name *)a)->name,
		      ((const struct refresh_name *)b)->name);
}

static struct refresh_name *find(const struct refresh *r, const char *name)
{
	struct refresh_name key = {.name = (char *)name};

	return r->n ? bsearch(&key, r->at, r->n, sizeof(key), compare) : NULL;
}

// Splits a line in place. False if it is damaged.
static bool read_line(char *line, uint64_t *ret_s)
{
	char *blank = strchr(line, ' ');

	if (!blank)
		return false;
	*blank = '\0';
	return !num_parse_u64(blank + 1, strlen(blank + 1), 0, UINT64_MAX, ret_s);
}

static char *read_text(const char *instance)
{
	CLEANUP_FREE char *path = path_of(instance);
	char *text = NULL;
	size_t len;

	return file_read(path, FILE_MAX, &text, &len, NULL) ? NULL : text;
}

void answered_read(const char *instance, struct refresh *r)
{
	CLEANUP_FREE char *text = r->n ? read_text(instance) : NULL;
	char *rest = NULL;
	uint64_t s;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		struct refresh_name *one = read_line(line, &s) ? find(r, line) : NULL;

		if (one && s > one->since_s)
			one->since_s = s;
	}
}

static bool is_answered(const struct refresh_name *one)
{
	return one && !one->error && one->addresses;
}

static void add_others(const char *instance, const struct refresh *r, uint64_t now_s,
		       struct text *to)
{
	CLEANUP_FREE char *text = read_text(instance);
	char *rest = NULL;
	uint64_t s;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest))
		if (read_line(line, &s) && !is_answered(find(r, line)) && s + KEPT_S > now_s)
			text_addf(to, "%s %" PRIu64 "\n", line, s);
}

int answered_note(const char *instance, const struct refresh *r, struct err *err)
{
	CLEANUP_FREE char *path = path_of(instance);
	CLEANUP_TEXT struct text t = {0};
	uint64_t now_s = (uint64_t)time(NULL);

	add_others(instance, r, now_s, &t);
	vec_each (r, one)
		if (is_answered(one))
			text_addf(&t, "%s %" PRIu64 "\n", one->name, now_s);
	return file_replace(path, text_get(&t), t.len, 0600, err);
}
