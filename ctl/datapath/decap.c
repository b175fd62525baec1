// SPDX-License-Identifier: GPL-2.0-only
// Attaches the decapsulating program like attach.c: through libxdp, or as the only program if the
// kernel refuses that.
#include "ctl/datapath/decap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/decap_maps.h"
#include "xdp/decap.skel.h"

static const struct {
	const char *name, *effect, *text;
} reasons[] = {
#define EFFECT_STRIP                  "strip"
#define EFFECT_PASS                   "pass"
#define EFFECT_DROP                   "drop"
#define X(symbol, name, effect, text) [DECAP_##symbol] = {name, EFFECT_##effect, text},
	DECAP_REASONS(X)
#undef X
};

const char *decap_reason_name(enum decap_reason reason)
{
	return reasons[reason].name;
}

const char *decap_reason_text(enum decap_reason reason)
{
	return reasons[reason].text;
}

const char *decap_reason_effect(enum decap_reason reason)
{
	return reasons[reason].effect;
}

// The program

struct decap {
	struct decap_bpf *skel;
};

void decap_free(struct decap *d)
{
	if (d)
		decap_bpf__destroy(d->skel);
	free(d);
}

void decap_cleanup(struct decap **d)
{
	decap_free(*d);
}

int decap_program(const struct decap *d)
{
	return bpf_program__fd(d->skel->progs.weir_decap);
}

static struct decap_maps maps_of(const struct decap *d)
{
	return (struct decap_maps){
		.settings = bpf_map__fd(d->skel->maps.decap_settings),
		.here = bpf_map__fd(d->skel->maps.decap_here),
		.nets = bpf_map__fd(d->skel->maps.decap_nets),
		.counts = bpf_map__fd(d->skel->maps.decap_counts),
	};
}

int decap_counts(const struct decap *d, struct decap_counter ret[DECAP_REASON_COUNT],
		 struct err *err)
{
	struct decap_maps m = maps_of(d);

	return decap_maps_counts(&m, ret, err);
}

static struct decap_bpf *open_skeleton(struct err *err)
{
	struct decap_bpf *skel = decap_bpf__open();

	if (!skel) {
		err_system(err, errno, "cannot open the decapsulating program");
		return NULL;
	}
	bpf_program__set_expected_attach_type(skel->progs.weir_decap, 0);
	bpf_program__set_flags(skel->progs.weir_decap, BPF_F_XDP_HAS_FRAGS);
	return skel;
}

int decap_load(const struct decap_end *end, struct decap **ret, struct err *err)
{
	CLEANUP_DECAP struct decap *d = mem_new(struct decap);
	struct decap_maps m;
	int code;

	if (!(d->skel = open_skeleton(err)))
		return -ENOMEM;
	if ((code = decap_bpf__load(d->skel)))
		return err_system(err, -code, "the kernel refuses the decapsulating program");
	m = maps_of(d);
	if ((code = decap_maps_tell(&m, end, err)))
		return code;
	*ret = TAKE_PTR(d);
	return 0;
}

// The attached program

static bool find_ours(const struct attached_list *list, uint32_t *ret_id, struct decap_maps *ret)
{
	for (size_t n = 0; n < list->n; n++)
		if (!strcmp(list->at[n].name, DECAP_PROGRAM) &&
		    decap_maps_of(list->at[n].prog_id, ret)) {
			*ret_id = list->at[n].prog_id;
			return true;
		}
	return false;
}

void decap_state_cleanup(struct decap_state *state)
{
	free(state->here);
	free(state->from);
}

int decap_query(uint32_t ifindex, struct decap_state *ret, struct err *err)
{
	CLEANUP_DECAP_MAPS struct decap_maps m = DECAP_NO_MAPS;
	CLEANUP_DECAP_STATE struct decap_state state = {0};
	struct decap_settings settings;
	struct attached_list there;
	int code = attach_query(ifindex, 0, &there, err);

	if (code)
		return code;
	state.there = find_ours(&there, &state.prog_id, &m);
	state.mode = there.mode;
	state.shared = there.shared;
	if (state.there && (code = decap_maps_settings(&m, &settings, err)))
		return code;
	state.readable = state.there && settings.version == DECAP_VERSION;
	if (state.readable && ((code = decap_maps_counts(&m, state.counters, err)) ||
			       (code = decap_maps_told(&m, &state, err))))
		return code;
	if (state.readable) {
		state.port = settings.port;
		state.forward = settings.flags & DECAP_FORWARD;
	}
	*ret = state;
	state = (struct decap_state){0};
	return 0;
}

// The prefixes of `a` that are not in `b`; both are sorted. The caller frees the result.
static struct prefix *beyond(const struct prefix *a, size_t n_a, const struct prefix *b, size_t n_b,
			     size_t *ret_n)
{
	struct prefix *only = mem_zalloc(n_a + 1, sizeof(*only));
	size_t n = 0, at = 0;

	for (size_t i = 0; i < n_a; i++) {
		while (at < n_b && prefix_compare(&b[at], &a[i]) < 0)
			at++;
		if (at == n_b || prefix_compare(&b[at], &a[i]) > 0)
			only[n++] = a[i];
	}
	*ret_n = n;
	return only;
}

struct decap_change decap_changed(const struct decap_state *state, const struct prefix *own,
				  size_t n)
{
	struct decap_change c;

	c.added = beyond(own, n, state->here, state->n_here, &c.n_added);
	c.gone = beyond(state->here, state->n_here, own, n, &c.n_gone);
	return c;
}

void decap_change_cleanup(struct decap_change *change)
{
	free(change->added);
	free(change->gone);
}

// Attaching

// Input of attach_shared() and attach_alone().
struct decap_attach {
	const struct decap *program;
	uint32_t ifindex;
};

// libxdp loads the program itself: a second one, around the maps of the first.
static int share_maps(const struct decap *d, const struct decap_bpf *second)
{
	const struct decap_maps m = maps_of(d);
	const struct {
		struct bpf_map *map;
		int fd;
	} maps[] = {
		{second->maps.decap_settings, m.settings},
		{second->maps.decap_here, m.here},
		{second->maps.decap_nets, m.nets},
		{second->maps.decap_counts, m.counts},
	};

	for (size_t n = 0; n < ARRAY_SIZE(maps); n++) {
		int code = bpf_map__reuse_fd(maps[n].map, maps[n].fd);

		if (code)
			return code;
	}
	return 0;
}

static int attach_object(const struct decap_bpf *skel, uint32_t ifindex, enum iface_mode mode)
{
	struct xdp_program *program = xdp_program__from_bpf_obj(skel->obj, "xdp");
	int code = (int)libxdp_get_error(program);

	if (code)
		return code;
	code = xdp_program__set_xdp_frags_support(program, true);
	code = code ? code : hook_attach_shared(program, ifindex, mode);
	xdp_program__close(program);
	return code;
}

static int attach_shared(void *ctx, enum iface_mode mode, struct err *err)
{
	const struct decap_attach *a = ctx;
	CLEANUP_DECAP struct decap *second = mem_new(struct decap);
	int code;

	if (!(second->skel = open_skeleton(err)))
		return -ENOMEM;
	if ((code = share_maps(a->program, second->skel)) ||
	    (code = attach_object(second->skel, a->ifindex, mode)))
		return err_system(err, -code, "this kernel refuses libxdp's dispatcher");
	return 0;
}

static int attach_alone(void *ctx, enum iface_mode mode)
{
	const struct decap_attach *a = ctx;

	return hook_attach_alone(decap_program(a->program), a->ifindex, mode);
}

// The program is attached: only its settings change.
static int tell_again(const struct hook_target *target, const struct attached_list *there,
		      const struct decap_maps *m, const struct decap_end *end,
		      enum attach_mode mode, struct decap_result *ret, struct err *err)
{
	struct decap_settings settings;
	int code = decap_maps_settings(m, &settings, err);

	if (code)
		return code;
	if (settings.version != DECAP_VERSION) {
		err_refused(err, "'%s' has the decapsulating program of another version of Weir",
			    target->name);
		err_hint(err, "weir decap %s --off first", target->name);
		return -EBUSY;
	}
	if (mode != ATTACH_AUTO && (mode == ATTACH_NATIVE) != (there->mode == IFACE_NATIVE)) {
		err_refused(err, "'%s' already decapsulates in %s mode", target->name,
			    hook_mode_name(there->mode));
		err_hint(err, "weir decap %s --off first", target->name);
		return -EBUSY;
	}
	*ret = (struct decap_result){.mode = there->mode, .shared = there->shared};
	return decap_maps_tell(m, end, err);
}

static int attach_new(const struct hook_target *target, const struct decap_end *end,
		      enum attach_mode mode, const struct err *unfit, struct decap_result *ret,
		      struct err *err)
{
	CLEANUP_DECAP struct decap *d = NULL;
	CLEANUP_DECAP_STATE struct decap_state state = {0};
	struct decap_result result = {.attached = true};
	struct decap_attach a = {.ifindex = target->ifindex};
	const struct hook_program program = {
		.shared = attach_shared,
		.alone = attach_alone,
		.ctx = &a,
		.can_share = true,
		.before = "they are unwrapped",
	};
	int code = decap_load(end, &d, err);

	if (code)
		return code;
	a.program = d;
	if ((code = hook_attach(target, mode, unfit, &program, result.notice, err)) ||
	    (code = decap_query(target->ifindex, &state, err)))
		return code;
	if (!state.there)
		return err_stated(err, ENOENT, "the program on '%s' was removed at once",
				  target->name);
	result.mode = state.mode;
	result.shared = state.shared;
	*ret = result;
	return 0;
}

int decap_attach(const struct hook_target *target, const struct decap_end *end,
		 enum attach_mode mode, const struct err *unfit, struct decap_result *ret,
		 struct err *err)
{
	CLEANUP_DECAP_MAPS struct decap_maps m = DECAP_NO_MAPS;
	struct attached_list there;
	uint32_t id;
	int code = attach_query(target->ifindex, 0, &there, err);

	if (code)
		return code;
	return find_ours(&there, &id, &m) ? tell_again(target, &there, &m, end, mode, ret, err)
					  : attach_new(target, end, mode, unfit, ret, err);
}

// Detaching

int decap_detach(uint32_t ifindex, bool *ret_was_there, struct err *err)
{
	CLEANUP_DECAP_MAPS struct decap_maps m = DECAP_NO_MAPS;
	struct attached_list there;
	uint32_t id;
	int code = attach_query(ifindex, 0, &there, err);

	if (code)
		return code;
	*ret_was_there = find_ours(&there, &id, &m);
	if (!*ret_was_there)
		return 0;
	return hook_remove(ifindex, &there, id, err);
}
