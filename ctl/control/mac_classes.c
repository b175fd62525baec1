// SPDX-License-Identifier: GPL-2.0-only
// Goes through the edges of all lists of MAC addresses in order. Between two edges all addresses
// are in the same lists.
#include "ctl/control/mac_classes.h"

#include <stdlib.h>

#include "ctl/base/splitmix.h"

#define MAC_END (1ull << 48)

struct mac_edge {
	uint64_t at, list; // list: its random word
};

struct edge_list {
	VEC(struct mac_edge) of;
};

static void edge_list_free(struct edge_list *l)
{
	vec_free(&l->of);
}

void mac_classes_free(struct mac_classes *m)
{
	vec_free(&m->of);
}

static int compare_edges(const void *a, const void *b)
{
	const struct mac_edge *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static void collect(const struct resolved *r, struct edge_list *ret)
{
	uint64_t state = 0;

	for (size_t l = 0; l < r->n_macs; l++) {
		uint64_t word = splitmix64(&state);

		for (size_t e = 0; e < r->macs[l].n; e++)
			if (r->macs[l].at[e] < MAC_END)
				vec_push(&ret->of, ((struct mac_edge){r->macs[l].at[e], word}));
	}
	if (ret->of.n)
		qsort(ret->of.at, ret->of.n, sizeof(*ret->of.at), compare_edges);
}

// The lists that have an address are the exclusive or of their words.
void mac_classes_find(const struct resolved *r, struct mac_classes *ret)
{
	CLEANUP(edge_list_free) struct edge_list edges = {0};
	uint64_t seen[MAC_CLASSES_MAX], lists = 0, at = 0;
	size_t e = 0;

	collect(r, &edges);
	for (;;) {
		size_t known = 0;

		for (; e < edges.of.n && edges.of.at[e].at == at; e++)
			lists ^= edges.of.at[e].list;
		while (known < ret->of.n && seen[known] != lists)
			known++;
		if (known == MAC_CLASSES_MAX) {
			ret->cut = true;
			return;
		}
		if (known == ret->of.n) {
			seen[known] = lists;
			vec_push(&ret->of, at);
		}
		if (e == edges.of.n)
			return;
		at = edges.of.at[e].at;
	}
}
