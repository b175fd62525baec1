// SPDX-License-Identifier: GPL-2.0-only
// The array of records of `log`, mapped.
#include "ctl/datapath/logs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/datapath/maps.h"

#define PENDING_MS 100

struct logs {
	struct mapping records, head;
	uint64_t next; // the record to be read
	uint64_t missed;
	uint64_t pending_ms; // record `next` was found pending then; 0: it was not
	enum logs_use use;
};

static void copy_words(struct event *to, const struct event *from)
{
	const uint64_t *words = (const uint64_t *)(const void *)from;
	uint64_t copy[sizeof(*to) / sizeof(uint64_t)];

	_Static_assert(sizeof(*to) % sizeof(uint64_t) == 0, "whole words");
	for (size_t n = 0; n < ARRAY_SIZE(copy); n++)
		copy[n] = __atomic_load_n(&words[n], __ATOMIC_RELAXED);
	memcpy(to, copy, sizeof(*to));
}

enum log_state log_record_read(const struct log_record *at, uint64_t n, struct event *ret)
{
	const struct log_record *r = &at[n % WEIR_LOGS];
	uint64_t begun, ended = __atomic_load_n(&r->ended, __ATOMIC_ACQUIRE);

	copy_words(ret, &r->event);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	begun = __atomic_load_n(&r->begun, __ATOMIC_RELAXED);
	if (begun > n + 1 || ended > n + 1)
		return LOG_GONE;
	if (begun < n + 1 || ended < n + 1)
		return LOG_PENDING;
	if (ret->captured > WEIR_SNAP_MAX) // another process may write to the map
		ret->captured = WEIR_SNAP_MAX;
	return LOG_WHOLE;
}

static struct log_head *head_of(const struct logs *l)
{
	return l->head.at;
}

// Skips the records that were overwritten.
static void skip_gone(struct logs *l, uint64_t end)
{
	if (end < l->next || end - l->next <= WEIR_LOGS)
		return;
	l->missed += end - l->next - WEIR_LOGS;
	l->next = end - WEIR_LOGS;
	l->pending_ms = 0;
}

static int map_both(struct logs *l, const struct instance *i, struct err *err)
{
	int code = mapping_open(&l->records, i->logs, WEIR_LOGS * sizeof(struct log_record), err);

	return code ? code : mapping_open(&l->head, i->loghead, sizeof(struct log_head), err);
}

int logs_open(const struct instance *i, enum logs_use use, struct logs **ret, struct err *err)
{
	struct logs *l = mem_new(struct logs);
	int code = map_both(l, i, err);

	l->use = use;
	if (code) {
		logs_close(l);
		return code;
	}
	*ret = l;
	return 0;
}

static void have_read(struct logs *l)
{
	uint64_t *read = (uint64_t *)&head_of(l)->read;
	uint64_t before = __atomic_load_n(read, __ATOMIC_RELAXED);

	while (before < l->next && !__atomic_compare_exchange_n(read, &before, l->next, true,
								__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

// Has the record been pending for too long?
static bool given_up(struct logs *l)
{
	uint64_t now = time_ms(CLOCK_MONOTONIC);

	if (!l->pending_ms)
		l->pending_ms = now;
	return now - l->pending_ms >= PENDING_MS;
}

int logs_take(struct logs *l, logs_visit *visit, void *ctx)
{
	uint64_t end = __atomic_load_n(&head_of(l)->next, __ATOMIC_ACQUIRE);
	struct event event;
	int n = 0;

	skip_gone(l, end);
	for (; l->next < end; l->next++, l->pending_ms = 0) {
		enum log_state state = log_record_read(l->records.at, l->next, &event);

		if (state == LOG_PENDING && !given_up(l))
			break;
		if (state != LOG_WHOLE) {
			l->missed++;
			continue;
		}
		visit(ctx, &event, l->missed);
		l->missed = 0;
		n++;
	}
	if (l->use == LOGS_READ)
		have_read(l);
	return n;
}

void logs_close(struct logs *l)
{
	if (!l)
		return;
	mapping_close(&l->records);
	mapping_close(&l->head);
	free(l);
}
