// SPDX-License-Identifier: GPL-2.0-only
// Writes and maps the file `addresses` of a record.
#include "ctl/control/known.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/policy/env.h"

#define FEW   4096 // prefixes: fewer are read as fast from the texts
#define MAGIC "weir addresses 1"

struct known_head {
	char magic[24];
	uint32_t size4, size6; // of a prefix
	uint64_t lists;
	sum_text sum; // of the lists
	char pad[7];
};

// Follows the head, then the prefixes of all lists.
struct known_list {
	uint32_t file, offset; // where the list is written
	uint64_t n4, n6;
	uint64_t at4, at6; // from the begin of the file, in bytes
	uint8_t empty, pad[7];
	sum_text sum4, sum6;
	char more[6];
};
_Static_assert(sizeof(struct known_head) == 64 && sizeof(struct known_list) == 88, "layout");

struct known {
	struct policy_known policy;
	char *at; // the file
	size_t size;
	const struct known_list *lists;
	struct resolved_addresses *addresses; // one for each
	size_t n;
};

// ---- writing ------------------------------------------------------------------------------------

static bool is_worth(const struct resolved *r)
{
	size_t n = 0;

	for (size_t a = 0; a < r->n_addresses; a++) {
		const struct resolved_addresses *list = &r->addresses[a];

		if (list->listed && list->asked)
			return false;
		n += list->listed ? list->n4 + list->n6 : 0;
	}
	return n >= FEW;
}

static struct known_list list_of(const struct resolved_addresses *from, uint64_t at)
{
	struct known_list list = {
		.file = from->place.file,
		.offset = from->at.offset,
		.n4 = from->n4,
		.n6 = from->n6,
		.at6 = at,
		.at4 = at + from->n6 * sizeof(*from->v6), // members of eight bytes first
		.empty = from->empty,
	};

	sum_of_words(from->v4, from->n4 * sizeof(*from->v4), list.sum4);
	sum_of_words(from->v6, from->n6 * sizeof(*from->v6), list.sum6);
	return list;
}

static uint64_t padded(uint64_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

static bool put(int fd, const void *bytes, uint64_t len, uint64_t at)
{
	return !file_write_at(fd, bytes, len, at);
}

static bool put_prefixes(int fd, const struct resolved_addresses *from,
			 const struct known_list *list)
{
	return put(fd, from->v6, from->n6 * sizeof(*from->v6), list->at6) &&
	       put(fd, from->v4, from->n4 * sizeof(*from->v4), list->at4);
}

static bool put_all(int fd, const struct resolved *r)
{
	CLEANUP_FREE struct known_list *lists = mem_zalloc(r->n_addresses + 1, sizeof(*lists));
	struct known_head head = {.magic = MAGIC,
				  .size4 = sizeof(struct resolved_prefix4),
				  .size6 = sizeof(struct resolved_prefix6)};
	uint64_t at;

	for (size_t a = 0; a < r->n_addresses; a++)
		head.lists += r->addresses[a].listed;
	at = sizeof(head) + head.lists * sizeof(*lists);
	for (size_t a = 0, n = 0; a < r->n_addresses; a++) {
		if (!r->addresses[a].listed)
			continue;
		lists[n] = list_of(&r->addresses[a], at);
		if (!put_prefixes(fd, &r->addresses[a], &lists[n]))
			return false;
		at = padded(lists[n].at4 + lists[n].n4 * sizeof(struct resolved_prefix4));
		n++;
	}
	sum_of_words(lists, head.lists * sizeof(*lists), head.sum);
	return !ftruncate(fd, (off_t)at) &&
	       put(fd, lists, head.lists * sizeof(*lists), sizeof(head)) &&
	       put(fd, &head, sizeof(head), 0);
}

static char *path_of(const char *folder)
{
	return mem_printf("%s/addresses", folder);
}

void known_write(const char *folder, const struct resolved *r)
{
	CLEANUP_FREE char *path = path_of(folder);
	CLEANUP_FD int fd =
		is_worth(r) ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (fd >= 0 && !put_all(fd, r))
		unlink(path);
}

// ---- reading ------------------------------------------------------------------------------------

void known_free(struct known *k)
{
	if (!k)
		return;
	if (k->at)
		munmap(k->at, k->size);
	free(k->addresses);
	free(k);
}

static void cleanup(struct known **k)
{
	known_free(*k);
}

static bool map(struct known *k, const char *folder)
{
	CLEANUP_FREE char *path = path_of(folder);
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size < sizeof(struct known_head))
		return false;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return false;
	k->at = at;
	k->size = (size_t)st.st_size;
	return true;
}

static bool read_head(struct known *k)
{
	const struct known_head *head = (const void *)k->at;
	sum_text sum;

	if (strncmp(head->magic, MAGIC, sizeof(head->magic)) != 0 ||
	    head->size4 != sizeof(struct resolved_prefix4) ||
	    head->size6 != sizeof(struct resolved_prefix6) ||
	    head->lists > (k->size - sizeof(*head)) / sizeof(*k->lists))
		return false;
	k->lists = (const void *)(k->at + sizeof(*head));
	k->n = head->lists;
	sum_of_words(k->lists, k->n * sizeof(*k->lists), sum);
	return !memcmp(sum, head->sum, sizeof(sum));
}

static bool is_inside(const struct known *k, uint64_t at, uint64_t n, size_t size)
{
	return at <= k->size && n <= (k->size - at) / size;
}

static bool is_as_written(const void *bytes, uint64_t len, const sum_text wanted)
{
	sum_text sum;

	sum_of_words(bytes, len, sum);
	return !memcmp(sum, wanted, sizeof(sum));
}

static bool read_list(const struct known *k, const struct known_list *list, bool whole,
		      struct resolved_addresses *ret)
{
	if (!is_inside(k, list->at4, list->n4, sizeof(*ret->v4)) ||
	    !is_inside(k, list->at6, list->n6, sizeof(*ret->v6)) || list->at6 % 8 || list->at4 % 4)
		return false;
	*ret = (struct resolved_addresses){
		.v4 = (const void *)(k->at + list->at4),
		.v6 = (const void *)(k->at + list->at6),
		.n4 = list->n4,
		.n6 = list->n6,
		.empty = list->empty,
	};
	return !whole || (is_as_written(ret->v4, ret->n4 * sizeof(*ret->v4), list->sum4) &&
			  is_as_written(ret->v6, ret->n6 * sizeof(*ret->v6), list->sum6));
}

static const struct resolved_addresses *find(const struct policy_known *policy, uint16_t file,
					     uint32_t offset)
{
	const struct known *k = (const void *)policy; // its first member

	for (size_t n = 0; n < k->n; n++)
		if (k->lists[n].file == file && k->lists[n].offset == offset)
			return &k->addresses[n];
	return NULL;
}

struct known *known_read(const char *folder, bool whole)
{
	CLEANUP(cleanup) struct known *k = mem_new(struct known);

	k->policy.find = find;
	if (!map(k, folder) || !read_head(k))
		return NULL;
	k->addresses = mem_zalloc(k->n + 1, sizeof(*k->addresses));
	for (size_t n = 0; n < k->n; n++)
		if (!read_list(k, &k->lists[n], whole, &k->addresses[n]))
			return NULL;
	return TAKE_PTR(k);
}

const struct policy_known *known_policy(const struct known *k)
{
	return k ? &k->policy : NULL;
}
