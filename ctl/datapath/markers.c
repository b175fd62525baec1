// SPDX-License-Identifier: GPL-2.0-only
// Replaces markers in the instructions of programs by values, which a map keeps.
#include "ctl/datapath/markers.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/kernel_calls.h"
#include "ctl/datapath/parts.h"
#include "ctl/datapath/prune.h"

#define SECTION "xdp/policy" // of xdp/policy.bpf.c

// ---- values -------------------------------------------------------------------------------------

void markers_number(struct markers *m, enum marker_number number, uint64_t value)
{
	m->at[number] = (struct marker){.kind = MARKER_NUMBER, .value = value};
}

void markers_address(struct markers *m, enum marker_number number, const char *map, uint64_t offset)
{
	struct marker marker = {.kind = MARKER_ADDRESS, .value = offset};

	snprintf(marker.map, sizeof(marker.map), "%s", map);
	m->at[number] = marker;
}

// "IFCLASS", "TABLES + 3"; until the next call.
static const char *name_of(enum marker_number number)
{
	static const char *const names[MARK_TABLES] = {
#define X(symbol) [MARK_##symbol] = #symbol,
		WEIR_MARKERS(X)
#undef X
	};
	static char name[32];

	if (number < MARK_TABLES)
		return names[number];
	snprintf(name, sizeof(name), "TABLES + %d", number - MARK_TABLES);
	return name;
}

// ---- instructions -------------------------------------------------------------------------------

// Data for the handler: libbpf passes only the program.
static struct marked_load {
	const struct bpf_object *obj;
	const struct markers *markers;
	struct err *err;
	const struct bpf_program *last; // that libbpf has passed to the kernel
	int code;                       // code of a refusal here: err is set
} * loading;

static bool is_marker(const struct bpf_insn *insn)
{
	return insn[0].code == (BPF_LD | BPF_IMM | BPF_DW) && !insn[0].src_reg &&
	       (uint32_t)insn[1].imm == MARKER_MAGIC;
}

static bool is_jump(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_JEQ | BPF_K) && insn->dst_reg == BPF_REG_10;
}

// The second instruction of three, xdp/order.bpf.h.
static bool is_order(const struct bpf_insn *insn)
{
	return insn->code == (BPF_ALU64 | BPF_AND | BPF_K) && insn->imm == MARKER_ORDER;
}

static int refuse(const char *program, const char *marker)
{
	loading->code = err_stated(loading->err, EBADMSG, "program '%s': %s%s%s", program,
				   marker ? "the marker '" : "it has no marker",
				   marker ? marker : "", marker ? "' has no value" : "");
	return loading->code;
}

// libbpf would continue. Without types the verifier follows each call of a global function, which
// takes minutes.
static int refuse_untyped(const char *program)
{
	loading->code = err_stated(loading->err, EOPNOTSUPP,
				   "the kernel does not accept the types of program '%s'", program);
	return loading->code;
}

static int put_address(struct bpf_insn *insn, const struct marker *m)
{
	int fd = bpf_object__find_map_fd_by_name(loading->obj, m->map);

	if (fd < 0)
		return fd;
	insn[0].src_reg = BPF_PSEUDO_MAP_VALUE;
	insn[0].imm = fd;
	insn[1].imm = (int32_t)m->value;
	return 0;
}

static void put_number(struct bpf_insn *insn, const struct marker *m)
{
	insn[0].imm = (int32_t)(uint32_t)m->value;
	insn[1].imm = (int32_t)(uint32_t)(m->value >> 32);
}

static int replace(const char *program, struct bpf_insn *insn)
{
	uint32_t number = (uint32_t)insn[0].imm;
	const struct marker *m = number < MARKERS ? &loading->markers->at[number] : NULL;

	if (m && m->kind == MARKER_NUMBER) {
		put_number(insn, m);
		return 0;
	}
	if (m && m->kind == MARKER_ADDRESS && !put_address(insn, m))
		return 0;
	return refuse(program, name_of(number));
}

#define IS_SYMBOL(symbol) number == MARK_##symbol ||

static bool is_of_word(uint32_t number)
{
	return WEIR_WORD_MARKERS(IS_SYMBOL) false;
}

// Over nothing: the kernel removes it after verification, prune() if it is of a word.
static int replace_jump(const char *program, struct bpf_insn *insn)
{
	uint32_t number = MARKER_JUMP_NUMBER((uint32_t)insn->imm);
	const struct marker *m = number < MARKERS ? &loading->markers->at[number] : NULL;

	if (!m || m->kind != MARKER_NUMBER)
		return refuse(program, number < MARKERS ? name_of(number) : "of a jump");
	if (m->value == MARKER_JUMP_VALUE((uint32_t)insn->imm))
		*insn = (struct bpf_insn){.code = BPF_JMP | BPF_JA, .off = insn->off};
	else
		*insn = is_of_word(number) ? PRUNE_NOTHING
					   : (struct bpf_insn){.code = BPF_JMP | BPF_JA};
	return 0;
}

static int replace_order(const char *program, struct bpf_insn *insn)
{
	const struct marker *m = &loading->markers->at[MARK_REORDERS];

	if (m->kind != MARKER_NUMBER)
		return refuse(program, name_of(MARK_REORDERS));
	if (m->value)
		insn->imm = 0;
	else
		for (int at = -1; at <= 1; at++)
			insn[at] = (struct bpf_insn){.code = BPF_JMP | BPF_JA};
	return 0;
}

static int replace_one(const char *program, struct bpf_insn *insn)
{
	if (is_order(insn))
		return replace_order(program, insn);
	return is_jump(insn) ? replace_jump(program, insn) : replace(program, insn);
}

// Removes code that is now unreachable.
static int remove_unreachable(struct bpf_program *program, struct bpf_prog_load_opts *opts)
{
	size_t n = bpf_program__insn_cnt(program);
	CLEANUP_FREE struct bpf_insn *insns = mem_zalloc(n, sizeof(*insns));
	// libbpf's own copies too.
	struct prune_records lines = {(void *)opts->line_info, opts->line_info_cnt,
				      opts->line_info_rec_size};
	struct prune_records functions = {(void *)opts->func_info, opts->func_info_cnt,
					  opts->func_info_rec_size};

	memcpy(insns, bpf_program__insns(program), n * sizeof(*insns));
	n = prune(insns, n, &lines, &functions);
	opts->line_info_cnt = (uint32_t)lines.n;
	opts->func_info_cnt = (uint32_t)functions.n;
	return bpf_program__set_insns(program, insns, n);
}

static int complete(struct bpf_program *program, struct bpf_prog_load_opts *opts)
{
	int code = remove_unreachable(program, opts);

	if (code)
		return code;
	opts->fd_array = kernel_calls_put((struct bpf_insn *)bpf_program__insns(program),
					  bpf_program__insn_cnt(program));
	return 0;
}

static int replace_all(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	// The instructions are libbpf's own copy of this program, which it is about to load.
	struct bpf_insn *insns = (struct bpf_insn *)bpf_program__insns(program);
	size_t n = bpf_program__insn_cnt(program), found = 0;
	const char *name = bpf_program__name(program);

	if (!loading)
		return -EINVAL; // loaded by something other than load_marked()
	if (!opts->prog_btf_fd)
		return refuse_untyped(name);
	for (size_t i = 0; i + 1 < n; i++) {
		if (!is_jump(&insns[i]) && !is_marker(&insns[i]) && !is_order(&insns[i]))
			continue;
		if (replace_one(name, &insns[i]))
			return -EBADMSG;
		found++;
	}
	loading->last = program;
	return found ? complete(program, opts) : refuse(name, NULL);
}

int markers_register(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = replace_all);
	static int handler = -1;

	if (handler < 0)
		handler = libbpf_register_prog_handler(SECTION, BPF_PROG_TYPE_XDP, 0, &opts);
	return handler < 0 ? handler : 0;
}

struct policy_bpf *markers_open(void)
{
	int code = markers_register();

	if (code) {
		errno = -code;
		return NULL;
	}
	return policy_bpf__open();
}

const void *markers_object(size_t *ret_size)
{
	return policy_bpf__elf_bytes(ret_size);
}

// The map as libbpf would create it.
static int create(struct bpf_map *map)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = bpf_map__map_flags(map));
	CLEANUP_FD int fd =
		bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
			       bpf_map__value_size(map), bpf_map__max_entries(map), &opts);

	return fd < 0 ? fd : bpf_map__reuse_fd(map, fd);
}

// libbpf 1.4 and 1.5 do not tell the descriptor of a map of their own before all programs are
// loaded.
static int create_addressed(const struct bpf_object *obj, const struct markers *m)
{
	for (enum marker_number n = 0; n < MARKERS; n++) {
		struct bpf_map *map = m->at[n].kind == MARKER_ADDRESS
					      ? bpf_object__find_map_by_name(obj, m->at[n].map)
					      : NULL;
		int code = map && bpf_map__fd(map) < 0 ? create(map) : 0;

		if (code)
			return code;
	}
	return 0;
}

// *ret_refused: the program that the kernel has refused; NULL: none.
static int load_marked(struct bpf_object_skeleton *s, const struct markers *m,
		       const struct bpf_program **ret_refused, struct err *err)
{
	struct marked_load now = {.obj = *s->obj, .markers = m, .err = err};
	int code = create_addressed(now.obj, m);

	*ret_refused = NULL;
	if (code)
		return err_system(err, -code, "cannot create the maps of the policy");
	loading = &now;
	code = bpf_object__load_skeleton(s);
	loading = NULL;
	if (now.code || !code)
		return now.code;
	*ret_refused = now.last;
	return err_system(err, -code, "the kernel refuses the policy program");
}

int markers_load(struct policy_bpf *skel, const struct markers *m, bool *ret_short, struct err *err)
{
	const struct bpf_program *refused;
	int code = load_marked(skel->skeleton, m, &refused, err);

	*ret_short = refused && parts_is_short(skel, refused);
	return code;
}

// ---- kept ---------------------------------------------------------------------------------------

struct kept_markers {
	uint64_t digest; // digest of the names in their order
	struct markers markers;
};

// FNV-1a.
static uint64_t digest_of_names(void)
{
	uint64_t digest = 0xcbf29ce484222325;

	for (enum marker_number n = 0; n < MARKERS; n++)
		for (const char *c = name_of(n);; c++) {
			digest = (digest ^ (uint8_t)*c) * 0x100000001b3;
			if (!*c)
				break;
		}
	return digest;
}

int markers_keep(const struct markers *m, int *ret_fd, struct err *err)
{
	struct kept_markers kept = {.digest = digest_of_names(), .markers = *m};
	CLEANUP_FD int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_markers", sizeof(uint32_t),
					   sizeof(kept), 1, NULL);
	uint32_t zero = 0;

	if (fd < 0)
		return err_system(err, -fd, "cannot create the map 'weir_markers'");
	if (bpf_map_update_elem(fd, &zero, &kept, BPF_ANY) || bpf_map_freeze(fd))
		return err_system(err, errno, "cannot write the map 'weir_markers'");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

// The size of the map first: the kernel copies a whole value.
static bool is_of_this_build(int fd)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);

	return !bpf_obj_get_info_by_fd(fd, &info, &size) &&
	       info.value_size == sizeof(struct kept_markers);
}

int markers_read(int fd, struct markers *ret, struct err *err)
{
	struct kept_markers kept;
	uint32_t zero = 0;

	if (is_of_this_build(fd)) {
		if (bpf_map_lookup_elem(fd, &zero, &kept))
			return err_system(err, errno, "cannot read the markers of a generation");
		if (kept.digest == digest_of_names()) {
			*ret = kept.markers;
			return 0;
		}
	}
	err_stated(err, ENOTSUP, "another version of weir has loaded the policy");
	return err_hint(err, "apply the policy again");
}
