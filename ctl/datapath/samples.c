// SPDX-License-Identifier: GPL-2.0-only
// The ring of samples, under a lease in jiffies.
#include "ctl/datapath/samples.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/chosen.h"
#include "ctl/datapath/reader_lock.h"

#define LEASE_MS 3000

struct samples {
	const struct instance *instance;
	struct ring_buffer *ring;
	samples_visit *visit;
	void *ctx;
	int lock;
};

static int one_sample(void *ctx, void *data, size_t size)
{
	struct samples *s = ctx;

	if (size == sizeof(struct sampled) && s->visit)
		s->visit(s->ctx, data);
	return 0;
}

static int open_ring(struct samples *s, struct err *err)
{
	s->ring = ring_buffer__new(s->instance->samples, one_sample, s, NULL);
	if (!s->ring)
		return err_system(err, errno, "cannot open the samples of instance '%s'",
				  s->instance->name);
	return 0;
}

int samples_open(const struct instance *i, samples_visit *visit, void *ctx, struct samples **ret,
		 struct err *err)
{
	struct samples *s;
	int lock = -1, code = reader_lock(i, "samples", "sampled", &lock, err);

	if (code)
		return code;
	s = mem_new(struct samples);
	*s = (struct samples){.instance = i, .lock = lock};
	if ((code = open_ring(s, err)) || (code = samples_take(s, err)) < 0) {
		samples_close(s);
		return code;
	}
	s->visit = visit;
	s->ctx = ctx;
	*ret = s;
	return 0;
}

int samples_want(struct samples *s, uint32_t share, struct err *err)
{
	struct knobs *knobs = s->instance->knobs;
	struct clock now;
	int code = instance_clock(s->instance, &now, err);

	if (code)
		return code;
	__atomic_store_n(&knobs->sample_until, clock_after_ms(&now, LEASE_MS), __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->sample, share, __ATOMIC_RELAXED);
	chosen_renew(knobs);
	return 0;
}

int samples_take(struct samples *s, struct err *err)
{
	int code = ring_buffer__consume(s->ring);

	if (code < 0)
		return err_system(err, -code, "cannot read samples");
	return code;
}

void samples_close(struct samples *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->instance->knobs->sample, 0, __ATOMIC_RELAXED);
	chosen_renew(s->instance->knobs);
	__atomic_store_n(&s->instance->knobs->sample_until, 0, __ATOMIC_RELAXED);
	ring_buffer__free(s->ring);
	fd_close(s->lock);
	free(s);
}
