// SPDX-License-Identifier: GPL-2.0-only
// The worst of the kept items is at the top of the heap, so a better one replaces it in log N
// steps.
#include "ctl/base/best.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_worse(const struct best_item *a, const struct best_item *b)
{
	return a->rank != b->rank ? a->rank > b->rank : a->at > b->at;
}

static void swap(struct best_item *a, struct best_item *b)
{
	struct best_item spare = *a;

	*a = *b;
	*b = spare;
}

static void sift_up(struct best *b, size_t i)
{
	for (; i && is_worse(&b->kept.at[i], &b->kept.at[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&b->kept.at[i], &b->kept.at[(i - 1) / 2]);
}

static void sift_down(struct best *b, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < b->kept.n; i = child) {
		if (child + 1 < b->kept.n && is_worse(&b->kept.at[child + 1], &b->kept.at[child]))
			child++;
		if (!is_worse(&b->kept.at[child], &b->kept.at[i]))
			return;
		swap(&b->kept.at[child], &b->kept.at[i]);
	}
}

void best_offer(struct best *b, uint64_t rank, size_t at)
{
	struct best_item item = {rank, at};

	if (b->kept.n < b->max) {
		vec_push(&b->kept, item);
		if (b->max != BEST_ALL)
			sift_up(b, b->kept.n - 1);
	} else if (b->max && is_worse(b->kept.at, &item)) {
		b->kept.at[0] = item;
		sift_down(b, 0);
	}
}

static int compare(const void *a, const void *b)
{
	return is_worse(a, b) ? 1 : is_worse(b, a) ? -1 : 0;
}

void best_sort(struct best *b)
{
	if (b->kept.n)
		qsort(b->kept.at, b->kept.n, sizeof(*b->kept.at), compare);
}

void best_free(struct best *b)
{
	vec_free(&b->kept);
}
