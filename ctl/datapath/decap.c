// SPDX-License-Identifier: GPL-2.0-only
// Attaches the decapsulating program like attach.c: through libxdp, or alone if the kernel refuses that.
#include "ctl/datapath/decap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/decap_maps.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/probe.h"
#include "xdp/decap.skel.h"

static const struct {
	const char *name, *effect, *text;
} rows[] = {
#define EFFECT_STRIP                  "strip"
#define EFFECT_PASS                   "pass"
#define EFFECT_DROP                   "drop"
#define X(symbol, name, effect, text) [DECAP_##symbol] = {name, EFFECT_##effect, text},
	DECAP_ROWS(X)
#undef X
};

const char *decap_row_name(enum decap_row row)
{
	return rows[row].name;
}

const char *decap_row_text(enum decap_row row)
{
	return rows[row].text;
}

const char *decap_row_effect(enum decap_row row)
{
	return rows[row].effect;
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

int decap_counts(const struct decap *d, struct decap_counter ret[DECAP_ROW_COUNT], struct err *err)
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

// What is there

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
	if (state.readable && ((code = decap_maps_counts(&m, state.rows, err)) ||
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

// What `a` has and `b` has not; both in order. The caller frees it.
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

// libxdp loads the program itself: a second one, around the maps of the first.
static int share_program(const struct decap *d, struct decap_bpf *second)
{
	struct decap_maps m = maps_of(d);
	int code = bpf_map__reuse_fd(second->maps.decap_settings, m.settings);

	if (!code)
		code = bpf_map__reuse_fd(second->maps.decap_here, m.here);
	if (!code)
		code = bpf_map__reuse_fd(second->maps.decap_nets, m.nets);
	return code ? code : bpf_map__reuse_fd(second->maps.decap_counts, m.counts);
}

static int attach_shared(const struct decap *d, uint32_t ifindex, enum iface_mode mode)
{
	struct decap_bpf *second = open_skeleton(NULL);
	struct xdp_program *program;
	int code;

	if (!second)
		return -ENOMEM;
	code = share_program(d, second);
	program = code ? NULL : xdp_program__from_bpf_obj(second->obj, "xdp");
	if (!code && !(code = (int)libxdp_get_error(program))) {
		code = xdp_program__set_xdp_frags_support(program, true);
		if (!code)
			code = hook_attach_shared(program, ifindex, mode);
		xdp_program__close(program);
	}
	decap_bpf__destroy(second);
	return code;
}

static int occupied(const struct decap_link *link, const struct attached_list *there,
		    struct err *err)
{
	hook_occupied(link->name, there, NULL, err);
	if (err)
		err->code = EBUSY;
	return -EBUSY;
}

static int attach_in(const struct decap *d, const struct decap_link *link, enum iface_mode mode,
		     struct err *err)
{
	struct attached_list there;
	int code;

	if (!attach_shared(d, link->ifindex, mode))
		return 0;
	if ((code = attach_query(link->ifindex, 0, &there, err)))
		return code;
	if (there.link_prog_id)
		return occupied(link, &there, err);
	probe_kernel_said();
	code = hook_attach_alone(decap_program(d), link->ifindex, mode);
	return code ? hook_attach_failed(link->name, link->driver, mode, code, err) : 0;
}

static int attach_by_mode(const struct decap *d, const struct decap_link *link,
			  enum attach_mode mode, struct decap_result *ret, struct err *err)
{
	struct err native = {0};
	int code;

	if (mode == ATTACH_GENERIC)
		return attach_in(d, link, IFACE_GENERIC, err);
	code = attach_in(d, link, IFACE_NATIVE, &native);
	if (!code)
		return 0;
	if (mode == ATTACH_NATIVE || native.kind == ERR_REFUSED) {
		if (err)
			*err = native;
		return code;
	}
	snprintf(ret->notice, sizeof(ret->notice),
		 "generic mode, slower: %.200s; the stack may merge packets before they are "
		 "unwrapped: ethtool -K %.16s gro off",
		 native.text, link->name);
	return attach_in(d, link, IFACE_GENERIC, err);
}

// It is there: only what it is told changes.
static int tell_again(const struct decap_link *link, const struct attached_list *there,
		      const struct decap_maps *m, const struct decap_end *end,
		      enum attach_mode mode, struct decap_result *ret, struct err *err)
{
	struct decap_settings settings;
	int code = decap_maps_settings(m, &settings, err);

	if (code)
		return code;
	if (settings.version != DECAP_VERSION) {
		err_refused(err, "'%s' has the decapsulating program of another version of Weir",
			    link->name);
		err_hint(err, "weir decap %s --off first", link->name);
		return -EBUSY;
	}
	if (mode != ATTACH_AUTO && (mode == ATTACH_NATIVE) != (there->mode == IFACE_NATIVE)) {
		err_refused(err, "'%s' decapsulates in %s mode already", link->name,
			    hook_mode_name(there->mode));
		err_hint(err, "weir decap %s --off first", link->name);
		return -EBUSY;
	}
	*ret = (struct decap_result){.mode = there->mode, .shared = there->shared};
	return decap_maps_tell(m, end, err);
}

static int attach_fresh(const struct decap_link *link, const struct decap_end *end,
			enum attach_mode mode, struct decap_result *ret, struct err *err)
{
	CLEANUP_DECAP struct decap *d = NULL;
	CLEANUP_DECAP_STATE struct decap_state state = {0};
	struct decap_result result = {.changed = true};
	int code = decap_load(end, &d, err);

	if (!code)
		code = attach_by_mode(d, link, mode, &result, err);
	if (!code)
		code = decap_query(link->ifindex, &state, err);
	if (code)
		return code;
	if (!state.there)
		return err_system(err, ENOENT, "the program vanished from '%s' at once",
				  link->name);
	result.mode = state.mode;
	result.shared = state.shared;
	if (!result.shared && !result.notice[0])
		snprintf(result.notice, sizeof(result.notice),
			 "'%s' is not shared with other XDP programs: this kernel refuses libxdp's "
			 "dispatcher",
			 link->name);
	*ret = result;
	return 0;
}

int decap_attach(const struct decap_link *link, const struct decap_end *end, enum attach_mode mode,
		 struct decap_result *ret, struct err *err)
{
	CLEANUP_DECAP_MAPS struct decap_maps m = DECAP_NO_MAPS;
	struct attached_list there;
	uint32_t id;
	int code = attach_query(link->ifindex, 0, &there, err);

	if (code)
		return code;
	return find_ours(&there, &id, &m) ? tell_again(link, &there, &m, end, mode, ret, err)
					  : attach_fresh(link, end, mode, ret, err);
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
