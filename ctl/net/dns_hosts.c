// SPDX-License-Identifier: GPL-2.0-only
// Reads the hosts file (hosts(5)) once for all names, because a name may be in several of its
// lines.
#include "ctl/net/dns_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"

enum { HOSTS_BYTES_MAX = 64 * 1024 * 1024 };

static const char blanks[] = " \t\r\f\v";

// The next word of *at, NUL-terminated in place; NULL at the end of the line.
static char *take_word(char **at)
{
	char *word = *at + strspn(*at, blanks);
	size_t len = strcspn(word, blanks);

	if (!len)
		return NULL;
	*at = word[len] ? word + len + 1 : word + len;
	word[len] = '\0';
	return word;
}

// Converts to lower case, without the final dot: names are stored and searched in this form.
static void make_normal(char *word)
{
	size_t len = strlen(word);

	if (len && word[len - 1] == '.')
		word[len - 1] = '\0';
	for (; *word; word++)
		if (*word >= 'A' && *word <= 'Z')
			*word = (char)(*word + ('a' - 'A'));
}

static void add_line(struct hosts *h, char *line)
{
	struct addr addr;
	char *word;

	line[strcspn(line, "#")] = '\0';
	word = take_word(&line);
	if (!word || addr_parse(word, strlen(word), &addr, NULL))
		return;
	while ((word = take_word(&line))) {
		make_normal(word);
		if (word[0])
			vec_push(&h->entries, ((struct hosts_entry){.name = word, .addr = addr}));
	}
}

static int compare_entry(const void *a, const void *b)
{
	const struct hosts_entry *ea = a, *eb = b;

	return strcmp(ea->name, eb->name);
}

void hosts_read(const char *path, struct hosts *ret)
{
	struct hosts h = {0};
	size_t len;

	if (file_read(path ? path : "/etc/hosts", HOSTS_BYTES_MAX, &h.text, &len, NULL)) {
		*ret = h;
		return;
	}
	for (char *rest = h.text, *line; (line = strsep(&rest, "\n"));)
		add_line(&h, line);
	if (h.entries.n)
		qsort(h.entries.at, h.entries.n, sizeof(*h.entries.at), compare_entry);
	*ret = h;
}

void hosts_cleanup(struct hosts *h)
{
	mem_cleanup_free(&h->text);
	vec_free(&h->entries);
}

// The first entry that is not before `name`.
static size_t lower_bound(const struct hosts *h, const char *name)
{
	size_t low = 0, high = h->entries.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(h->entries.at[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct hosts_entry *hosts_find(const struct hosts *h, const char *name, size_t *ret_n)
{
	CLEANUP_FREE char *normal = mem_strdup(name);
	size_t first, n = 0;

	make_normal(normal);
	first = lower_bound(h, normal);
	while (first + n < h->entries.n && !strcmp(h->entries.at[first + n].name, normal))
		n++;
	if (!n)
		return NULL;
	*ret_n = n;
	return &h->entries.at[first];
}
