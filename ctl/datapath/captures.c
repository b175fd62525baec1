// SPDX-License-Identifier: GPL-2.0-only
// The ring of captured frames, under a lease in jiffies.
#include "ctl/datapath/captures.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/chosen.h"
#include "ctl/datapath/reader_lock.h"

#define LEASE_MS 3000

struct captures {
	const struct instance *instance;
	struct captures_wish wish;
	struct ring_buffer *ring;
	captures_visit *visit; // NULL: old records are skipped
	void *ctx;
	size_t taken; // bytes, by the present call
	int lock;
};

// Under a flood the ring is never empty.
static int one_packet(void *ctx, void *data, size_t size)
{
	const struct captured *packet = data;
	struct captures *c = ctx;

	c->taken += size + BPF_RINGBUF_HDR_SZ;
	if (size >= sizeof(*packet) && packet->captured <= size - sizeof(*packet) && c->visit &&
	    c->visit(c->ctx, packet, (const uint8_t *)(packet + 1)))
		return -ECANCELED;
	return c->taken >= WEIR_CAPTURED_BYTES ? -ECANCELED : 0;
}

static int open_ring(struct captures *c, struct err *err)
{
	c->ring = ring_buffer__new(c->instance->captured, one_packet, c, NULL);
	if (!c->ring)
		return err_system(err, errno, "cannot open the captured packets of instance '%s'",
				  c->instance->name);
	return 0;
}

int captures_open(const struct instance *i, const struct captures_wish *wish, captures_visit *visit,
		  void *ctx, struct captures **ret, struct err *err)
{
	struct captures *c;
	size_t old;
	int lock = -1, code = reader_lock(i, "captured", "captured", &lock, err);

	if (code)
		return code;
	c = mem_new(struct captures);
	*c = (struct captures){.instance = i, .wish = *wish, .lock = lock};
	captures_stop(c); // a reader may have been killed
	if ((code = open_ring(c, err)) || (code = captures_take(c, &old, err))) {
		captures_close(c);
		return code;
	}
	c->visit = visit;
	c->ctx = ctx;
	*ret = c;
	return 0;
}

int captures_want(struct captures *c, uint32_t share, struct err *err)
{
	struct knobs *knobs = c->instance->knobs;
	struct clock now;
	int code = instance_clock(c->instance, &now, err);

	if (code)
		return code;
	for (int w = 0; w < 2; w++)
		__atomic_store_n(&knobs->capture_reasons[w], c->wish.reasons[w], __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->capture_iface, c->wish.iface, __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->capture_rule, c->wish.rule, __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->capture_snap, c->wish.snap, __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->capture_until, clock_after_ms(&now, LEASE_MS), __ATOMIC_RELEASE);
	__atomic_store_n(&knobs->capture, share, __ATOMIC_RELEASE);
	chosen_renew(knobs);
	return 0;
}

int captures_take(struct captures *c, size_t *ret_bytes, struct err *err)
{
	int code;

	c->taken = 0;
	code = ring_buffer__consume(c->ring);
	if (code < 0 && code != -ECANCELED)
		return err_system(err, -code, "cannot read captured packets");
	*ret_bytes = c->taken;
	return 0;
}

void captures_stop(struct captures *c)
{
	struct knobs *knobs = c->instance->knobs;

	__atomic_store_n(&knobs->capture, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&knobs->capture_until, 0, __ATOMIC_RELAXED);
	chosen_renew(knobs);
}

void captures_close(struct captures *c)
{
	if (!c)
		return;
	captures_stop(c);
	ring_buffer__free(c->ring);
	fd_close(c->lock);
	free(c);
}
