// SPDX-License-Identifier: GPL-2.0-only
// Opens, sizes and loads the objects of peers.
#include "tests/bench/peer.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "tests/bench/bench.h"

struct peer {
	struct bpf_object *objects[SUBJECT_LOADS];
};

static void release_peer(void *own)
{
	struct peer *p = own;

	for (size_t i = 0; i < SUBJECT_LOADS; i++)
		bpf_object__close(p->objects[i]);
	free(p);
}

static struct bpf_object *open_form(const struct peer_form *f)
{
	return f->path ? bpf_object__open_file(f->path, NULL)
		       : bpf_object__open_mem(f->elf, f->elf_bytes, NULL);
}

// Programs in a program array must have the same support for fragments and the same expected attach
// type.
static void prepare_programs(const struct peer_form *f, const struct bpf_object *o)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, o)
	{
		bpf_program__set_expected_attach_type(p, 0);
		bpf_program__set_flags(p, BPF_F_XDP_HAS_FRAGS);
		bpf_program__set_autoload(p,
					  !f->program || !strcmp(f->program, bpf_program__name(p)));
	}
}

static int size_map(const struct peer_form *f, struct bpf_map *m)
{
	int code = bpf_map__set_max_entries(m, (uint32_t)f->entries);

	return code || !f->key_bytes ? code : bpf_map__set_key_size(m, (uint32_t)f->key_bytes);
}

// xdp-tools pins its maps by name; here they are private.
static int prepare_maps(const struct peer_form *f, const struct bpf_object *o,
			const struct bpf_object *first)
{
	struct bpf_map *m;
	int code;

	bpf_object__for_each_map(m, o)
	{
		code = bpf_map__set_pin_path(m, NULL);
		if (!code && f->map && !strncmp(bpf_map__name(m), f->map, strlen(f->map)))
			code = size_map(f, m);
		if (!code && first && !bpf_map__is_internal(m))
			code = bpf_map__reuse_fd(
				m, bpf_object__find_map_fd_by_name(first, bpf_map__name(m)));
		if (code)
			return code;
	}
	return 0;
}

static int load_form(const struct peer_form *f, const struct bpf_object *first,
		     struct bpf_object **ret)
{
	struct bpf_object *o = *ret = open_form(f);
	int code;

	if (!o)
		return -errno;
	prepare_programs(f, o);
	code = prepare_maps(f, o, first);
	return code ? code : bpf_object__load(o);
}

static int program_of(const struct peer_form *f, const struct bpf_object *o)
{
	return bpf_program__fd(f->program ? bpf_object__find_program_by_name(o, f->program)
					  : bpf_object__next_program(o, NULL));
}

int peer_load(const struct peer_form *f, struct subject *ret)
{
	struct peer *p = mem_new(struct peer);
	int code = 0;

	*ret = (struct subject){
		.name = f->name, .loads = SUBJECT_LOADS, .own = p, .release = release_peer};
	for (size_t i = 0; i < SUBJECT_LOADS && !code; i++) {
		code = load_form(f, i ? p->objects[0] : NULL, &p->objects[i]);
		if (!code)
			ret->programs[i] = program_of(f, p->objects[i]);
	}
	return code;
}

void peer_need(const struct peer_form *f, struct subject *ret)
{
	int code = peer_load(f, ret);

	if (code)
		bench_fail(-code, "cannot load the peer '%s'", f->name);
}

int peer_map(const struct subject *s, const char *name)
{
	const struct peer *p = s->own;

	return bpf_object__find_map_fd_by_name(p->objects[0], name);
}
