// SPDX-License-Identifier: GPL-2.0-only
// The programs at the root of cgroup 2, with the iterator over sockets that exist.
#include "ctl/datapath/connections.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "common/connections.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/cgroup.h"
#include "ctl/datapath/confined.h"
#include "ctl/datapath/maps.h"
#include "ctl/datapath/parts.h"
#include "xdp/connections.skel.h"

// A source has two lines of eight words: they are half full at most.
static uint64_t lines_of(uint32_t sources)
{
	uint64_t lines = 2;

	while (lines * CONNECTION_WORDS < sources * 2ull)
		lines *= 2;
	return lines;
}

const void *connections_object(size_t *ret_size)
{
	return connections_bpf__elf_bytes(ret_size);
}

size_t connections_elements(const struct image *image)
{
	return image->n_connection_rules ? 1 + 2 * lines_of(image->connection_sources) : 1;
}

// ---- the table ----------------------------------------------------------------------------------

struct table {
	struct mapping mapping;
	struct connections_head *head;
	struct connections_line *lines; // of both halves
};

static void table_close(struct table *t)
{
	mapping_close(&t->mapping);
}

static int table_open(int fd, struct table *ret, struct err *err)
{
	uint32_t n;
	int code = mapping_entries(fd, &n, err);

	if (code ||
	    (code = mapping_open(&ret->mapping, fd, n * sizeof(struct connections_line), err)))
		return code;
	ret->head = ret->mapping.at;
	ret->lines = (struct connections_line *)ret->mapping.at + 1;
	return 0;
}

static int table_begin(int fd, const struct image *image, struct err *err)
{
	CLEANUP(table_close) struct table t = {0};
	int code = table_open(fd, &t, err);

	if (code)
		return code;
	t.head->lines = lines_of(image->connection_sources);
	t.head->active = 1; // empty
	if (getrandom(&t.head->seed, sizeof(t.head->seed), 0) != sizeof(t.head->seed))
		return err_system(err, errno, "cannot choose a seed");
	return 0;
}

// ---- counting -----------------------------------------------------------------------------------

static int run(int link, struct err *err)
{
	CLEANUP_FD int fd = bpf_iter_create(link);
	char none[64];
	ssize_t n;

	if (fd < 0)
		return err_system(err, -fd, "cannot list the connections of this host");
	do
		n = read(fd, none, sizeof(none));
	while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	return n ? err_system(err, errno, "cannot list the connections of this host") : 0;
}

// Empties a half that nothing reads, and that no program writes at that time: the first grace
// period waits for programs that count in it, if the previous count was interrupted, and the second
// for programs that remove connections of its previous round. Programs may read `counting` and
// `round` in any order, so none may see a new bit with the previous round.
static int clear(struct connections_head *head, struct connections_line *lines, uint32_t part,
		 struct err *err)
{
	uint32_t bit = 1u << part;
	int code;

	if (__atomic_fetch_and(&head->counting, ~bit, __ATOMIC_SEQ_CST) & bit &&
	    (code = grace_wait(err)))
		return code;
	__atomic_store_n(&head->round[part], head->round[part] + 1, __ATOMIC_SEQ_CST);
	if ((code = grace_wait(err)))
		return code;
	memset(lines + part * head->lines, 0, head->lines * sizeof(*lines));
	head->full[part] = 0;
	head->missed[part] = 0;
	return 0;
}

// Into the half that nothing reads. Connections that open meanwhile are counted in both; the grace
// period waits for programs that do not know this yet.
static int count_into(struct connections_head *head, struct connections_line *lines, uint32_t part,
		      int link, struct err *err)
{
	int code = clear(head, lines, part, err);

	if (code)
		return code;
	__atomic_or_fetch(&head->counting, 1u << part, __ATOMIC_SEQ_CST);
	if ((code = grace_wait(err)) || (code = run(link, err)))
		return code;
	__atomic_store_n(&head->active, part, __ATOMIC_SEQ_CST);
	__atomic_store_n(&head->counting, 1u << part, __ATOMIC_SEQ_CST);
	return grace_wait(err);
}

bool connections_are_counted(const struct generation *g)
{
	return g->fd[PART_FOUND] >= 0;
}

int connections_repeat(const struct generation *g, struct err *err)
{
	CLEANUP(table_close) struct table t = {0};
	int code = table_open(g->fd[PART_CONNECTIONS], &t, err);

	if (code)
		return code;
	return count_into(t.head, t.lines, !t.head->active, g->fd[PART_FOUND], err);
}

// ---- attaching ----------------------------------------------------------------------------------

static void skeleton_cleanup(struct connections_bpf **skel)
{
	connections_bpf__destroy(*skel);
}

static int load_into(uint64_t home, const struct generation *g, const struct image *image,
		     struct connections_bpf *skel)
{
	int code;

	if (!skel)
		return -errno;
	memcpy(skel->bss->rules, image->connection_rules, sizeof(skel->bss->rules));
	memcpy(skel->bss->rules_of_port, image->rules_of_port, sizeof(skel->bss->rules_of_port));
	skel->bss->home = home;
	code = bpf_map__reuse_fd(skel->maps.connections, g->fd[PART_CONNECTIONS]);
	return code ? code : connections_bpf__load(skel);
}

static int load(uint64_t home, const struct generation *g, const struct image *image,
		struct connections_bpf **ret, struct err *err)
{
	CLEANUP(skeleton_cleanup) struct connections_bpf *skel = connections_bpf__open();
	int code = load_into(home, g, image, skel);

	if (code) {
		err_system(err, -code, "this kernel refuses the programs that count connections");
		err_hint(err, "'over N connections' needs types of the kernel "
			      "(CONFIG_DEBUG_INFO_BTF) and CONFIG_CGROUP_BPF");
		confined_explain(err, CONFINED_LOAD);
		return code;
	}
	*ret = TAKE_PTR(skel);
	return 0;
}

// Kernels since 6.18 keep data with a socket only if the processor exchanges 16 bytes at once.
static int try_mark(const struct bpf_map *marks, struct err *err)
{
	CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP_FREE void *mark = mem_zalloc(1, bpf_map__value_size(marks));

	if (fd >= 0 && !bpf_map_update_elem(bpf_map__fd(marks), &fd, mark, BPF_ANY))
		return 0;
	err_system(err, errno, "this kernel keeps no data of programs with a socket");
	return err_hint(err, "new kernels need a processor with cmpxchg16b");
}

static int attach(const struct bpf_program *program, int cgroup, enum bpf_attach_type type,
		  int *ret_fd, struct err *err)
{
	int fd = bpf_link_create(bpf_program__fd(program), cgroup, type, NULL);

	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	err_system(err, -fd, "cannot attach '%s' to %s", bpf_program__name(program),
		   type == BPF_TRACE_ITER ? "the sockets" : "the root of cgroup 2");
	if (fd == -EPERM && type != BPF_TRACE_ITER)
		err_hint(err, "another program may be attached there for itself only: bpftool "
			      "cgroup show /sys/fs/cgroup");
	confined_explain(err, CONFINED_LOAD);
	return fd;
}

static int attach_all(const struct connections_bpf *skel, struct generation *g, struct err *err)
{
	CLEANUP_FD int cgroup = -1;
	uint64_t root;
	int code = cgroup_open_root(&cgroup, &root, err);

	if (code ||
	    (code = attach(skel->progs.weir_accepted, cgroup, BPF_CGROUP_SOCK_OPS,
			   &g->fd[PART_ACCEPTED], err)) ||
	    (code = attach(skel->progs.weir_released, cgroup, BPF_CGROUP_INET_SOCK_RELEASE,
			   &g->fd[PART_RELEASED], err)))
		return code;
	return attach(skel->progs.weir_found, 0, BPF_TRACE_ITER, &g->fd[PART_FOUND], err);
}

int connections_try(const struct generation *g, const struct image *image, struct err *err)
{
	CLEANUP(skeleton_cleanup) struct connections_bpf *skel = NULL;
	CLEANUP_FD int cgroup = -1;
	uint64_t root;
	int code;

	if (!image->n_connection_rules)
		return 0;
	if ((code = load(0, g, image, &skel, err)))
		return code;
	if ((code = try_mark(skel->maps.marks, err)) ||
	    (code = cgroup_open_root(&cgroup, &root, err)))
		err_prefix(err, "'over N connections'");
	return code;
}

int connections_begin(const struct instance *i, struct generation *g, const struct image *image,
		      struct err *err)
{
	CLEANUP(skeleton_cleanup) struct connections_bpf *skel = NULL;
	int code = table_begin(g->fd[PART_CONNECTIONS], image, err);

	if (code || (code = load(i->meta.netns_cookie, g, image, &skel, err)))
		return code;
	if ((code = try_mark(skel->maps.marks, err)) || (code = attach_all(skel, g, err)) ||
	    (code = connections_repeat(g, err))) {
		err_prefix(err, "'over N connections'");
		return code;
	}
	return 0;
}

// ---- state --------------------------------------------------------------------------------------

static bool is_link(int fd)
{
	struct bpf_link_info info = {0};
	uint32_t size = sizeof(info);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) && info.cgroup.cgroup_id;
}

int connections_read(const struct generation *g, struct connections_state *ret, struct err *err)
{
	CLEANUP(table_close) struct table t = {0};
	struct connections_state s = {.present = connections_are_counted(g)};
	int code = s.present ? table_open(g->fd[PART_CONNECTIONS], &t, err) : 0;

	if (code)
		return code;
	for (uint64_t n = 0; s.present && n < t.head->lines; n++)
		for (int w = 0; w < CONNECTION_WORDS; w++) {
			uint64_t word = t.lines[t.head->active * t.head->lines + n].word[w];

			s.sources += word != 0;
			s.open += word & ((1u << CONNECTION_COUNT) - 1);
		}
	if (s.present) {
		s.attached = is_link(g->fd[PART_ACCEPTED]) && is_link(g->fd[PART_RELEASED]);
		s.room = t.head->lines * CONNECTION_WORDS;
		s.full = t.head->full[t.head->active & 1];
		s.missed = t.head->missed[t.head->active & 1];
	}
	*ret = s;
	return 0;
}
