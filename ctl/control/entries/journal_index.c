// SPDX-License-Identifier: GPL-2.0-only
// A hash with chains over an array of references, in one mapping: head, buckets, references,
// owners.
#include "ctl/control/entries/journal_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/clock.h"

#define LAYOUT     0x3278646e69726577ull // "weirindx" and a version: other layouts are replaced
#define HEAD_BYTES 4096
#define REFS_MIN   1024
#define REF_BYTES  48 // a line of the journal has about this length

struct journal_index_head {
	uint64_t layout;
	char boot[CLOCK_BOOT];
	bool finished;
	struct journal_stamp stamp;
	uint64_t epoch;
	struct records_clock clock;
	struct hash_key key;  // outsiders cannot choose addresses of one bucket
	uint64_t owner_bytes; // lines of owners that have references
	uint32_t buckets_n, refs_cap, owners_cap;
	uint32_t refs_used, refs_n, owners_n;
	uint32_t grouped; // references whose owner has a group
	uint32_t free;    // the first free reference
	uint32_t hand;    // position of journal_index_walk
	uint32_t lengths[2][129];
};
_Static_assert(sizeof(struct journal_index_head) <= HEAD_BYTES, "layout");
_Static_assert(sizeof(struct journal_ref) == 40 && sizeof(struct journal_owner) == 32, "layout");

int journal_stamp_of(int fd, struct journal_stamp *ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret = (struct journal_stamp){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec,
	};
	return 0;
}

// ---- the mapping --------------------------------------------------------------------------------

static size_t size_of(uint32_t buckets_n, uint32_t refs_cap, uint32_t owners_cap)
{
	return HEAD_BYTES + (size_t)buckets_n * sizeof(uint32_t) +
	       (size_t)refs_cap * sizeof(struct journal_ref) +
	       (size_t)owners_cap * sizeof(struct journal_owner);
}

static void set_areas(struct journal_index *x, void *at)
{
	char *bytes = at;

	x->head = at;
	x->buckets = (void *)(bytes + HEAD_BYTES);
	x->refs = (void *)(x->buckets + x->head->buckets_n);
	x->owners = (void *)(x->refs + x->head->refs_cap);
}

static char *new_path(const char *path)
{
	return mem_printf("%s.new", path);
}

// Maps a new file of this size and allocates its blocks, so that a store into the mapping does not
// fail. NULL: the disk has no space.
static void *map_new_file(const char *path, size_t size)
{
	CLEANUP_FREE char *fresh = new_path(path);
	CLEANUP_FD int fd = -1;
	void *at;

	unlink(fresh); // another process may have mapped it, so it is not overwritten
	fd = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	if (posix_fallocate(fd, 0, (off_t)size)) {
		unlink(fresh);
		return NULL;
	}
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		return at;
	unlink(fresh);
	return NULL;
}

static void *map_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		mem_exhausted();
	return at;
}

static uint32_t power_of_two(uint32_t n)
{
	uint32_t power = REFS_MIN;

	while (power < n)
		power *= 2;
	return power;
}

// Gives *x a mapping of that capacity. The head is set, all other bytes are zero, the buckets are
// empty.
static void map_new(struct journal_index *x, uint32_t refs_cap, uint32_t owners_cap)
{
	uint32_t buckets_n = power_of_two(refs_cap);
	void *at;

	x->size = size_of(buckets_n, refs_cap, owners_cap);
	at = x->path ? map_new_file(x->path, x->size) : NULL;
	x->beside = at;
	if (!at) {
		free(TAKE_PTR(x->path));
		at = map_memory(x->size);
	}
	*(struct journal_index_head *)at = (struct journal_index_head){
		.layout = LAYOUT,
		.buckets_n = buckets_n,
		.refs_cap = refs_cap,
		.owners_cap = owners_cap,
		.free = JOURNAL_NONE,
	};
	set_areas(x, at);
	memset(x->buckets, 0xff, (size_t)buckets_n * sizeof(*x->buckets));
}

struct journal_index *journal_index_new(const char *path, size_t refs)
{
	struct journal_index *x = mem_new(struct journal_index);

	if (refs < REFS_MIN)
		refs = REFS_MIN;
	x->path = path ? mem_strdup(path) : NULL;
	map_new(x, (uint32_t)refs, REFS_MIN);
	if (getrandom(&x->head->key, sizeof(x->head->key), 0) != sizeof(x->head->key))
		x->head->key.word[0] = (unsigned)getpid(); // slower during an attack, still correct
	return x;
}

// Maps the file of *from again, with private changes. NULL: the file does not exist.
static void *map_privately(const struct journal_index *from)
{
	CLEANUP_FREE char *fresh = from->beside ? new_path(from->path) : NULL;
	const char *path = fresh ? fresh : from->path;
	CLEANUP_FD int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size != from->size)
		return NULL;
	at = mmap(NULL, from->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

static struct journal_index *in_memory(void *at, size_t size)
{
	struct journal_index *x = mem_new(struct journal_index);

	x->size = size;
	set_areas(x, at);
	return x;
}

struct journal_index *journal_index_keep(const struct journal_index *from)
{
	return in_memory(memcpy(map_memory(from->size), from->head, from->size), from->size);
}

struct journal_index *journal_index_copy(const struct journal_index *from)
{
	void *at = map_privately(from);

	return at ? in_memory(at, from->size) : journal_index_keep(from);
}

void journal_index_free(struct journal_index *x)
{
	if (!x)
		return;
	if (x->beside) { // no process looks for that name
		CLEANUP_FREE char *fresh = new_path(x->path);

		unlink(fresh);
	}
	munmap(x->head, x->size);
	free(x->path);
	free(x);
}

void journal_index_cleanup(struct journal_index **x)
{
	journal_index_free(*x);
}

void journal_index_remove_file(const char *path)
{
	CLEANUP_FREE char *fresh = new_path(path);

	unlink(fresh);
	unlink(path);
}

// Is the mapped file a complete index of that journal, written by this version?
static bool is_current(const struct journal_index_head *h, size_t size,
		       const struct journal_stamp *stamp)
{
	char boot[CLOCK_BOOT];

	if (h->layout != LAYOUT || !h->finished ||
	    size != size_of(h->buckets_n, h->refs_cap, h->owners_cap))
		return false;
	clock_boot(boot);
	return !strcmp(h->boot, boot) && !memcmp(&h->stamp, stamp, sizeof(*stamp));
}

int journal_index_open(const char *path, const struct journal_stamp *stamp, bool to_write,
		       struct journal_index **ret)
{
	CLEANUP_FD int fd = open(path, (to_write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
	struct journal_index *x;
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size < HEAD_BYTES)
		return -ESTALE;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | (to_write ? PROT_WRITE : 0), MAP_SHARED, fd,
		  0);
	if (at == MAP_FAILED)
		return -ESTALE;
	if (!is_current(at, (size_t)st.st_size, stamp)) {
		munmap(at, (size_t)st.st_size);
		return -ESTALE;
	}
	x = mem_new(struct journal_index);
	x->size = (size_t)st.st_size;
	x->path = mem_strdup(path);
	set_areas(x, at);
	*ret = x;
	return 0;
}

void journal_index_begin(struct journal_index *x)
{
	__atomic_store_n(&x->head->finished, false, __ATOMIC_SEQ_CST);
}

void journal_index_set(struct journal_index *x, uint64_t epoch, const struct records_clock *clock)
{
	x->head->epoch = epoch;
	if (clock->boot[0])
		x->head->clock = *clock;
}

void journal_index_end(struct journal_index *x, const struct journal_stamp *stamp)
{
	x->head->stamp = *stamp;
	clock_boot(x->head->boot);
	if (x->beside) {
		CLEANUP_FREE char *fresh = new_path(x->path);

		if (rename(fresh, x->path))
			unlink(fresh); // the next command makes a new one
		x->beside = false;
	}
	__atomic_store_n(&x->head->finished, true, __ATOMIC_SEQ_CST);
}

// ---- the hash -----------------------------------------------------------------------------------

static uint32_t *bucket_of(const struct journal_index *x, const struct prefix *p)
{
	struct hash_state s;
	__u64 word[2];

	memcpy(word, p->addr.bytes, sizeof(word));
	hash_begin(&s, &x->head->key);
	hash_add(&s, word[0]);
	hash_add(&s, word[1]);
	hash_add(&s, (uint64_t)p->addr.family << 8 | p->len);
	return &x->buckets[hash_done(&s, 24) & (x->head->buckets_n - 1)];
}

struct prefix journal_ref_prefix(const struct journal_ref *r)
{
	struct prefix p = {.addr.family = r->family, .len = r->len};

	memcpy(p.addr.bytes, r->bytes, sizeof(p.addr.bytes));
	return p;
}

struct reference journal_ref_reference(const struct journal_ref *r)
{
	return (struct reference){
		.prefix = journal_ref_prefix(r),
		.kind = r->kind,
		.owner = r->owner,
		.until_s = r->until_s,
	};
}

static bool is_of(const struct journal_ref *r, const struct prefix *p)
{
	return r->family == p->addr.family && r->len == p->len &&
	       !memcmp(r->bytes, p->addr.bytes, sizeof(r->bytes));
}

static uint32_t from_here(const struct journal_index *x, const struct prefix *p, uint32_t ref)
{
	while (ref != JOURNAL_NONE && !is_of(&x->refs[ref], p))
		ref = x->refs[ref].next;
	return ref;
}

uint32_t journal_index_first(const struct journal_index *x, const struct prefix *p)
{
	return from_here(x, p, *bucket_of(x, p));
}

uint32_t journal_index_next(const struct journal_index *x, const struct prefix *p, uint32_t ref)
{
	return from_here(x, p, x->refs[ref].next);
}

// Moves the same content into another mapping, rehashed.
static void grow(struct journal_index *x, uint32_t refs_cap, uint32_t owners_cap)
{
	struct journal_index old = *x;
	struct journal_index_head sizes;

	map_new(x, refs_cap, owners_cap);
	sizes = *x->head;
	*x->head = *old.head;
	x->head->buckets_n = sizes.buckets_n;
	x->head->refs_cap = sizes.refs_cap;
	x->head->owners_cap = sizes.owners_cap;
	memcpy(x->refs, old.refs, old.head->refs_used * sizeof(*x->refs));
	memcpy(x->owners, old.owners, old.head->owners_n * sizeof(*x->owners));
	for (uint32_t r = 0; r < x->head->refs_used; r++) {
		struct prefix p = journal_ref_prefix(&x->refs[r]);
		uint32_t *bucket = x->refs[r].family ? bucket_of(x, &p) : NULL;

		if (!bucket)
			continue;
		x->refs[r].next = *bucket;
		*bucket = r;
	}
	munmap(old.head, old.size);
}

uint64_t journal_who(const char *list, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a

	for (const char *s = list; *s; s++)
		hash = (hash ^ (uint8_t)*s) * 0x100000001b3ull;
	hash *= 0x100000001b3ull; // the NUL between them
	for (const char *s = name; *s; s++)
		hash = (hash ^ (uint8_t)*s) * 0x100000001b3ull;
	return hash;
}

const char *journal_index_owner(struct journal_index *x, uint32_t number, size_t at, size_t bytes,
				const struct owner *owner)
{
	if (number != x->head->owners_n)
		return "unexpected holder";
	if (number == x->head->owners_cap)
		grow(x, x->head->refs_cap, x->head->owners_cap * 2);
	x->owners[x->head->owners_n++] = (struct journal_owner){
		.at = at,
		.who = journal_who(owner->list, owner->name),
		.bytes = (uint32_t)bytes,
		.group = owner->group,
	};
	return NULL;
}

static void claim(struct journal_index *x, uint32_t owner)
{
	x->head->grouped += x->owners[owner].group != 0;
	if (!x->owners[owner].refs++)
		x->head->owner_bytes += x->owners[owner].bytes;
}

static void disclaim(struct journal_index *x, uint32_t owner)
{
	x->head->grouped -= x->owners[owner].group != 0;
	if (!--x->owners[owner].refs)
		x->head->owner_bytes -= x->owners[owner].bytes;
}

static uint32_t *length_of(const struct journal_index *x, uint8_t family, uint8_t len)
{
	return &x->head->lengths[family == 6][len];
}

static uint32_t new_ref(struct journal_index *x)
{
	struct journal_index_head *h = x->head;
	uint32_t ref = h->free;

	if (ref != JOURNAL_NONE) {
		h->free = x->refs[ref].next;
		return ref;
	}
	if (h->refs_used == h->refs_cap)
		grow(x, h->refs_cap * 2, h->owners_cap);
	return x->head->refs_used++;
}

static uint32_t find_ref(const struct journal_index *x, const struct reference *r)
{
	uint32_t ref = journal_index_first(x, &r->prefix);

	while (ref != JOURNAL_NONE &&
	       (x->refs[ref].kind != r->kind || x->refs[ref].owner != r->owner))
		ref = journal_index_next(x, &r->prefix, ref);
	return ref;
}

static uint32_t make_ref(struct journal_index *x, const struct reference *r)
{
	const struct prefix *p = &r->prefix;
	uint32_t ref = new_ref(x); // may move the buckets
	uint32_t *bucket = bucket_of(x, p);

	x->refs[ref] = (struct journal_ref){
		.owner = r->owner,
		.next = *bucket,
		.family = p->addr.family,
		.len = p->len,
		.kind = r->kind,
	};
	memcpy(x->refs[ref].bytes, p->addr.bytes, sizeof(x->refs[ref].bytes));
	*bucket = ref;
	x->head->refs_n++;
	++*length_of(x, p->addr.family, p->len);
	claim(x, r->owner);
	return ref;
}

static const char *set_ref(struct journal_index *x, const struct reference *r, bool staged)
{
	uint32_t ref;

	if (r->owner >= x->head->owners_n)
		return "unknown holder of the entry";
	ref = find_ref(x, r);
	if (ref == JOURNAL_NONE)
		ref = make_ref(x, r);
	x->refs[ref].until_s = r->until_s;
	x->refs[ref].staged = staged;
	return NULL;
}

const char *journal_index_add(struct journal_index *x, const struct reference *r)
{
	return set_ref(x, r, false);
}

const char *journal_index_stage(struct journal_index *x, const struct reference *r)
{
	return set_ref(x, r, true);
}

const char *journal_index_drop(struct journal_index *x, const struct reference *what)
{
	struct journal_index_head *h = x->head;

	for (uint32_t *at = bucket_of(x, &what->prefix); *at != JOURNAL_NONE;
	     at = &x->refs[*at].next) {
		struct journal_ref *r = &x->refs[*at];
		uint32_t ref = *at;

		if (!is_of(r, &what->prefix) || r->kind != what->kind || r->owner != what->owner)
			continue;
		*at = r->next;
		--*length_of(x, r->family, r->len);
		disclaim(x, what->owner);
		*r = (struct journal_ref){.next = h->free};
		h->free = ref;
		h->refs_n--;
		return NULL;
	}
	return "the entry to remove does not exist";
}

// ---- what it holds ------------------------------------------------------------------------------

uint64_t journal_index_epoch(const struct journal_index *x)
{
	return x->head->epoch;
}

const struct records_clock *journal_index_clock(const struct journal_index *x)
{
	return &x->head->clock;
}

uint32_t journal_index_owners(const struct journal_index *x)
{
	return x->head->owners_n;
}

size_t journal_index_count(const struct journal_index *x)
{
	return x->head->refs_n;
}

size_t journal_index_grouped(const struct journal_index *x)
{
	return x->head->grouped;
}

uint32_t journal_index_slots(const struct journal_index *x)
{
	return x->head->refs_used;
}

size_t journal_index_bytes(const struct journal_index *x)
{
	return (size_t)x->head->refs_n * REF_BYTES + x->head->owner_bytes;
}

bool journal_index_has_length(const struct journal_index *x, uint8_t family, uint8_t len)
{
	return *length_of(x, family, len);
}

uint32_t journal_index_walk(struct journal_index *x, uint32_t n)
{
	uint32_t from = x->head->hand < x->head->refs_used ? x->head->hand : 0;

	x->head->hand = from + n;
	return from;
}

void journal_index_release(const struct journal_index *x, uint32_t before)
{
	char *map = (char *)x->head;
	size_t from = (size_t)((char *)x->refs - map) + HEAD_BYTES - 1;
	size_t to = (size_t)((char *)&x->refs[before] - map);

	from -= from % HEAD_BYTES;
	to -= to % HEAD_BYTES;
	if (x->path && to > from)
		madvise(map + from, to - from, MADV_DONTNEED);
}
