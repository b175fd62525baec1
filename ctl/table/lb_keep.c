// SPDX-License-Identifier: GPL-2.0-only
// Selects the backends that get new flows although their checks fail: by `keep`, and if no other is
// left.
#include "ctl/table/lb_state.h"

// The members of a service.
struct pool_view {
	const struct lb_member *at;
	uint32_t n;
	bool *kept;
};

static bool is_up(const struct lb_member *m, bool backup)
{
	return m->backup == backup && lb_member_state(m) == BACKEND_UP && lb_member_weight(m);
}

// Nothing but its checks keeps new flows from it.
static bool is_doubted(const struct lb_member *m, bool backup)
{
	return m->backup == backup && !m->gone && m->override == BACKEND_UP &&
	       m->health != BACKEND_UP && !m->cut && lb_member_weight(m);
}

static bool is_waiting(const struct lb_member *m, bool backup)
{
	return m->backup == backup && lb_member_waits(m) && lb_member_weight(m);
}

static uint64_t weight_of(const struct pool_view *v, bool backup,
			  bool (*counts)(const struct lb_member *m, bool backup))
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < v->n; i++)
		sum += counts(&v->at[i], backup) ? lb_member_weight(&v->at[i]) : 0;
	return sum;
}

// The doubted one that failed last; of several, the first. NULL: all are kept.
static const struct lb_member *last_failed(const struct pool_view *v)
{
	const struct lb_member *last = NULL;

	for (uint32_t i = 0; i < v->n; i++)
		if (is_doubted(&v->at[i], false) && !v->kept[i] &&
		    (!last || v->at[i].failed > last->failed))
			last = &v->at[i];
	return last;
}

static void keep_share(const struct pool_view *v, uint64_t staying, uint32_t keep)
{
	uint64_t all = staying + weight_of(v, false, is_doubted);
	const struct lb_member *next;

	while (staying * 10000 < all * keep && (next = last_failed(v))) {
		v->kept[next - v->at] = true;
		staying += lb_member_weight(next);
	}
}

static enum lb_flows keep_all(const struct pool_view *v)
{
	bool backup = !weight_of(v, false, is_doubted);
	enum lb_flows flows = LB_FLOWS_LAST;

	for (uint32_t i = 0; i < v->n; i++)
		if ((v->kept[i] = is_doubted(&v->at[i], backup)))
			flows = LB_FLOWS_OPEN;
	return flows;
}

enum lb_flows lb_service_keep(const struct lb_state *b, const struct lb_service *s, bool *ret)
{
	const struct pool_view v = {&b->members[s->first_member], s->n_members, ret};
	uint64_t up = weight_of(&v, false, is_up);
	bool backup = weight_of(&v, true, is_up);

	for (uint32_t i = 0; i < v.n; i++)
		ret[i] = false;
	if (!up && !backup && (weight_of(&v, false, is_waiting) || weight_of(&v, true, is_waiting)))
		return LB_FLOWS_WAIT;
	if (!up && !backup)
		return keep_all(&v);
	if (!backup)
		keep_share(&v, up, s->keep);
	return LB_FLOWS_UP;
}
