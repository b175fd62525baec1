// SPDX-License-Identifier: GPL-2.0-only
// Compares a planned service with the running one for its errors and warnings.
#include "ctl/table/lb_plan_warn.h"

#include "ctl/base/num.h"
#include "ctl/policy/words.h"

static bool same_key(const struct lb_service *a, const struct lb_service *b)
{
	return a->key.word[0] == b->key.word[0] && a->key.word[1] == b->key.word[1];
}

bool lb_plan_moves_all(const struct lb_service *planned, const struct lb_service *running)
{
	return !same_key(planned, running) || planned->hash != running->hash ||
	       planned->size != running->size || planned->mode != running->mode;
}

#define FORCE "--force moves all of its connections"

static bool translates(const struct lb_service *s)
{
	return service_mode_does(s->mode) & MODE_NAT;
}

// Connections in a table are served as they began.
static const char *force_ring(const struct lb_service *running)
{
	return translates(running) ? "--force: its connections continue, new ones use the new ring"
				   : FORCE;
}

// Pins are not read for a place in the table.
static const char *force_mode(const struct lb_service *planned, const struct lb_service *running)
{
	if (translates(running))
		return "--force: its connections continue, new ones begin in the new mode";
	return translates(planned) ? "--force ends all of its connections" : FORCE;
}

void lb_plan_refuse(struct diag *d, const struct resolved_service *from,
		    const struct lb_service *planned, const struct lb_service *running)
{
	if (!same_key(planned, running))
		diag_error(d, from->at, force_ring(running),
			   "service '%s' runs with a different seed", from->name);
	if (planned->hash != running->hash)
		diag_error(d, from->at, force_ring(running),
			   "service '%s' runs with a different hash: %s", from->name,
			   choice_word(&choice_hashes, running->hash));
	if (planned->size != running->size)
		diag_error(d, from->at, force_ring(running),
			   "service '%s' runs with a different ring size: %u", from->name,
			   running->size);
	if (planned->mode != running->mode)
		diag_error(d, from->at, force_mode(planned, running),
			   "service '%s' runs in a different mode: %s", from->name,
			   choice_word(&choice_modes, running->mode));
}

void lb_plan_warn_share(struct diag *d, const struct resolved_service *from,
			const struct lb_ring *ring)
{
	size_t worst;
	uint64_t error =
		ring_share_error(ring->backends, ring->n, from->ring, ring->owners, &worst);
	uint64_t hundredths = (error + 99) / 100; // of a percent, rounded up like the error
	const struct ring_backend *b = &ring->backends[worst];
	addr_text text = "here";

	if (error <= SERVICE_SHARE_WARN)
		return;
	if (b->addr.family)
		addr_format(&b->addr, text);
	diag_warning(d, from->at, "a larger 'ring' gives finer shares",
		     "service '%s': the share of backend '%s' is off by %llu.%02llu %%", from->name,
		     text, (unsigned long long)(hundredths / 100),
		     (unsigned long long)(hundredths % 100));
}

void lb_plan_warn_no_backend(struct diag *d, const struct resolved_service *from, bool before)
{
	diag_warning(d, from->at, NULL, "service '%s': no backend is up with a weight above 0: %s",
		     from->name,
		     before ? "the current ring stays in use" : "its packets are dropped");
}

void lb_plan_warn_pins(struct diag *d, const struct resolved_service *from, uint64_t pins,
		       bool trial)
{
	diag_warning(d, from->at,
		     trial ? "apply it again after it is confirmed"
			   : "apply it again when its ring is stable",
		     "service '%s' keeps its %llu %s, which connections still use", from->name,
		     (unsigned long long)pins, num_plural(pins, "pin", "pins"));
}
