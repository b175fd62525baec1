// SPDX-License-Identifier: GPL-2.0-only
// Walks the tree of a database in the order of addresses.
#include "ctl/net/geo_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"

enum {
	PROBED = 1000,       // records that are read to find out what a database has
	DATA_SEPARATOR = 16, // bytes between tree and data
	IPV4_DEPTH = 96,     // node of ::/96, where a tree over IPv6 has IPv4
	VALUE_MAX = 31,      // bytes of a value that is read
};

// ---- records ------------------------------------------------------------------------------------

// Where publishers put the value: MaxMind and DB-IP first, then IPinfo.
static const char *const country_paths[][3] = {
	{"country", "iso_code", NULL}, {"country_code", NULL}, {"country", NULL}};
static const char *const asn_paths[][3] = {{"autonomous_system_number", NULL},
					   {"traits", "autonomous_system_number", NULL},
					   {"asn", NULL}};

static bool read_string(enum geo_kind kind, const MMDB_entry_data_s *data, struct geo *ret)
{
	const char *word = data->utf8_string;
	size_t len = data->data_size;

	if (!len || len > VALUE_MAX)
		return false;
	if (kind == GEO_ASN && len > 2 && !strncasecmp(word, "as", 2))
		return !geo_parse(kind, word + 2, len - 2, ret, NULL);
	return !geo_parse(kind, word, len, ret, NULL);
}

static bool read_number(enum geo_kind kind, uint32_t number, struct geo *ret)
{
	*ret = (struct geo){.kind = GEO_ASN, .asn = number};
	return kind == GEO_ASN;
}

static bool read_value(enum geo_kind kind, const MMDB_entry_data_s *data, struct geo *ret)
{
	switch (data->type) {
	case MMDB_DATA_TYPE_UTF8_STRING:
		return read_string(kind, data, ret);
	case MMDB_DATA_TYPE_UINT16:
		return read_number(kind, data->uint16, ret);
	case MMDB_DATA_TYPE_UINT32:
		return read_number(kind, data->uint32, ret);
	default:
		return false;
	}
}

// The country or number of a record; a record without one does not change *ret. -EBADMSG: the
// record is damaged.
static int read_record(MMDB_entry_s *entry, enum geo_kind kind, struct geo *ret)
{
	const char *const(*paths)[3] = kind == GEO_COUNTRY ? country_paths : asn_paths;

	for (size_t i = 0; i < ARRAY_SIZE(country_paths); i++) {
		MMDB_entry_data_s data = {0};
		int status = MMDB_aget_value(entry, &data, paths[i]);

		if (status == MMDB_LOOKUP_PATH_DOES_NOT_MATCH_DATA_ERROR)
			continue;
		if (status)
			return -EBADMSG;
		if (data.has_data && read_value(kind, &data, ret))
			return 0;
	}
	return 0;
}

// ---- one address --------------------------------------------------------------------------------

static const struct sockaddr *socket_address(const struct addr *a, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){.ss_family = a->family == 4 ? AF_INET : AF_INET6};
	if (a->family == 4)
		memcpy(&v4->sin_addr, a->bytes, sizeof(v4->sin_addr));
	else
		memcpy(&v6->sin6_addr, a->bytes, sizeof(v6->sin6_addr));
	return (const struct sockaddr *)ret;
}

bool geo_tree_find(const struct geo_tree *t, enum geo_kind kind, const struct addr *a,
		   struct geo *ret)
{
	struct sockaddr_storage address;
	struct geo geo = {0};
	MMDB_lookup_result_s found;
	int status = MMDB_SUCCESS;

	found = MMDB_lookup_sockaddr(&t->db, socket_address(a, &address), &status);
	if (status != MMDB_SUCCESS || !found.found_entry || read_record(&found.entry, kind, &geo) ||
	    !geo.kind)
		return false;
	*ret = geo;
	return true;
}

// ---- requested countries and numbers ------------------------------------------------------------

// The requested item of a record, by the record's offset in the file: many prefixes share a record.
struct memo {
	struct memo_cell {
		uint32_t offset; // plus one; 0: free
		uint32_t index;  // into `wanted`, or n
	} * cells;
	size_t size, used; // size is a power of two
};

struct walk {
	struct geo_tree *tree;
	enum geo_kind kind;
	const struct geo *wanted;
	size_t n;
	struct geo_ranges *ret;
	struct memo memo;
	uint64_t visited, limit; // nodes
	size_t probe;            // records that remain to be read; 0: all
	bool found;              // one with a value
};

static struct memo_cell *memo_find(const struct memo *m, uint32_t offset)
{
	size_t at = (offset * 0x9e3779b1u) & (m->size - 1);

	while (m->cells[at].offset && m->cells[at].offset != offset + 1)
		at = (at + 1) & (m->size - 1);
	return &m->cells[at];
}

static void memo_grow(struct memo *m)
{
	struct memo old = *m;

	m->size = old.size ? old.size * 2 : 1024;
	m->cells = mem_zalloc(m->size, sizeof(*m->cells));
	for (size_t i = 0; i < old.size; i++)
		if (old.cells[i].offset)
			*memo_find(m, old.cells[i].offset - 1) = old.cells[i];
	free(old.cells);
}

static uint32_t find_wanted(const struct walk *w, const struct geo *geo)
{
	uint32_t i = 0;

	while (i < w->n && !geo_equal(&w->wanted[i], geo))
		i++;
	return i;
}

static int index_of_record(struct walk *w, MMDB_entry_s *entry, uint32_t *ret)
{
	struct geo geo = {0};
	struct memo_cell *cell;
	int code;

	if (w->memo.used * 2 >= w->memo.size)
		memo_grow(&w->memo);
	cell = memo_find(&w->memo, entry->offset);
	if (cell->offset) {
		*ret = cell->index;
		return 0;
	}
	if ((code = read_record(entry, w->kind, &geo)))
		return code;
	w->found = w->found || geo.kind;
	*cell = (struct memo_cell){entry->offset + 1, find_wanted(w, &geo)};
	w->memo.used++;
	*ret = cell->index;
	return 0;
}

// ---- the tree -----------------------------------------------------------------------------------

static struct prefix parent_of(const struct prefix *p)
{
	return prefix_of(&p->addr, (uint8_t)(p->len - 1));
}

// Prefixes come in order, so a neighbour that forms a wider one with this one is the last.
static void add_prefix(struct geo_ranges *to, struct prefix p)
{
	while (p.len && to->prefixes.n) {
		const struct prefix *last = vec_last(&to->prefixes);
		struct prefix parent = parent_of(&p);

		if (last->len != p.len || !prefix_contains(&parent, last))
			break;
		to->prefixes.n--;
		p = parent;
	}
	vec_push(&to->prefixes, p);
}

static int take_record(struct walk *w, MMDB_entry_s *entry, const struct prefix *at)
{
	uint32_t index = 0;
	int code = index_of_record(w, entry, &index);

	if (code)
		return code;
	if (index < w->n)
		add_prefix(&w->ret[index], *at);
	if (w->probe && (w->found || !--w->probe))
		return 1;
	return 0;
}

// 0: the whole subtree; 1: enough has been seen; -EBADMSG.
static int walk_node(struct walk *w, uint32_t node, const struct prefix *at);

static int walk_side(struct walk *w, uint64_t record, uint8_t type, MMDB_entry_s *entry,
		     const struct prefix *at)
{
	const MMDB_s *db = &w->tree->db;

	switch (type) {
	case MMDB_RECORD_TYPE_EMPTY:
		return 0;
	case MMDB_RECORD_TYPE_DATA:
		return take_record(w, entry, at);
	case MMDB_RECORD_TYPE_SEARCH_NODE:
		// IPv4 is walked separately; trees over IPv6 also have it below ::ffff:0:0/96,
		// 2002::/16 and others.
		if (at->addr.family == 6 && db->ipv4_start_node.netmask == IPV4_DEPTH &&
		    record == db->ipv4_start_node.node_value)
			return 0;
		return walk_node(w, (uint32_t)record, at);
	default:
		return -EBADMSG;
	}
}

static int walk_node(struct walk *w, uint32_t node, const struct prefix *at)
{
	MMDB_search_node_s sides;
	struct prefix child = *at;
	int code;

	// A damaged tree may have loops.
	if (at->len == addr_bits(&at->addr) || ++w->visited > w->limit ||
	    MMDB_read_node(&w->tree->db, node, &sides))
		return -EBADMSG;
	child.len++;
	code = walk_side(w, sides.left_record, sides.left_record_type, &sides.left_record_entry,
			 &child);
	if (code)
		return code;
	child.addr.bytes[at->len / 8] |= (uint8_t)(0x80 >> at->len % 8);
	return walk_side(w, sides.right_record, sides.right_record_type, &sides.right_record_entry,
			 &child);
}

// In a tree over IPv6 that ends above ::/96, one record is for all of IPv4.
static int walk_ipv4(struct walk *w)
{
	const MMDB_s *db = &w->tree->db;
	const struct prefix all = {.addr = {.family = 4}};
	uint32_t node = db->metadata.ip_version == 6 ? db->ipv4_start_node.node_value : 0;
	MMDB_entry_s entry = {.mmdb = db};

	if (node == db->metadata.node_count)
		return 0;
	if (node < db->metadata.node_count)
		return walk_node(w, node, &all);
	entry.offset = node - db->metadata.node_count - DATA_SEPARATOR;
	return take_record(w, &entry, &all);
}

static int walk_families(struct walk *w)
{
	const struct prefix all = {.addr = {.family = 6}};
	int code = walk_ipv4(w);

	if (code || w->tree->db.metadata.ip_version != 6)
		return code;
	return walk_node(w, 0, &all);
}

static int run(struct walk *w, struct err *err)
{
	int code;

	w->limit = 2ull * w->tree->db.metadata.node_count + IPV4_DEPTH;
	code = walk_families(w);
	free(w->memo.cells);
	if (code < 0)
		err_stated(err, -code, "'%s' is damaged", w->tree->path);
	return code < 0 ? code : 0;
}

int geo_tree_has(struct geo_tree *t, enum geo_kind kind, bool *ret, struct err *err)
{
	struct walk w = {.tree = t, .kind = kind, .probe = PROBED};
	int code = run(&w, err);

	if (code)
		return code;
	*ret = w.found;
	return 0;
}

int geo_tree_walk(struct geo_tree *t, enum geo_kind kind, const struct geo *wanted, size_t n,
		  struct geo_ranges *ret, struct err *err)
{
	struct walk w = {.tree = t, .kind = kind, .wanted = wanted, .n = n, .ret = ret};

	return run(&w, err);
}

// ---- the file -----------------------------------------------------------------------------------

static int refuse_file(const char *path, int status, struct err *err)
{
	size_t len = strlen(path);

	if (access(path, R_OK))
		return err_input(err, "cannot read '%s': %s", path, err_why(errno));
	if (status == MMDB_UNKNOWN_DATABASE_FORMAT_ERROR)
		return err_input(err, "'%s' has a format of another version than 2", path);
	if (status != MMDB_INVALID_METADATA_ERROR)
		return err_stated(err, EBADMSG, "'%s' is damaged: %s", path, MMDB_strerror(status));
	err_input(err, "'%s' is not a MaxMind database", path);
	if (len > 4 && !strcmp(path + len - 4, ".dat"))
		return err_hint(
			err, "GeoIP Legacy files (.dat) are too old: use one that ends in .mmdb");
	return err_hint(err, "use a file that ends in .mmdb, such as GeoLite2-Country.mmdb");
}

int geo_tree_open(const char *path, struct geo_tree *ret, struct err *err)
{
	int status = MMDB_open(path, MMDB_MODE_MMAP, &ret->db);

	if (status)
		return refuse_file(path, status, err);
	ret->path = path;
	return 0;
}

void geo_tree_close(struct geo_tree *t)
{
	if (t->path)
		MMDB_close(&t->db);
}
