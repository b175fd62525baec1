// SPDX-License-Identifier: GPL-2.0-only
// The options of weir capture that choose packets.
#include "ctl/cmd/capture_wish.h"

#include <errno.h>
#include <string.h>

#include "common/event.h"
#include "common/policy.h"
#include "ctl/base/diag_nearest.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/control/active.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/identities.h"

#define SNAP_MOST 262144u

// ---- names --------------------------------------------------------------------------------------

static int read_iface(struct capture_wish *w, const char *name, const struct instance *i,
		      struct err *err)
{
	int code = instance_find_iface(i, name, &w->kernel.iface, err);

	if (code || w->kernel.iface)
		return code;
	err_input(err, "Weir is not attached to '%s'", name);
	return err_hint(err, "weir status lists the interfaces of instance '%s'", i->name);
}

static void want(struct capture_wish *w, enum weir_reason reason)
{
	w->kernel.reasons[reason / 64] |= 1ull << reason % 64;
}

static int read_reason(struct capture_wish *w, const char *word, struct err *err)
{
	const char *names[WEIR_REASON_COUNT], *nearest;

	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++) {
		names[r] = reason_name(r);
		if (strcmp(word, names[r]))
			continue;
		want(w, r);
		return 0;
	}
	err_input(err, "'%s' is not a reason", word);
	nearest = diag_nearest(word, names, WEIR_REASON_COUNT);
	if (nearest)
		return err_hint(err, "did you mean '%s'?", nearest);
	return err_hint(err, "weir stats lists the reasons");
}

static int read_policy(struct capture_wish *w, const struct instance *i, struct err *err)
{
	int code = active_rules(i, true, &w->policy, err);

	return code == -ENOENT ? err_input(err, "no policy is active in instance '%s'", i->name)
			       : code;
}

static int read_rule(struct capture_wish *w, const char *word, const struct instance *i,
		     struct err *err)
{
	int code = read_policy(w, i, err);

	if (code)
		return code;
	for (size_t r = 0; r < w->policy->resolved->n_rules; r++) {
		const struct resolved_rule *rule = &w->policy->resolved->rules[r];

		if (rule->service || strcmp(rule->identity, word))
			continue;
		if (rule->action == ACTION_COUNT) {
			err_input(err, "the rule '%s' only counts", word);
			return err_hint(err, "only rules that decide about packets are captured");
		}
		if (identities_index(i, rule->identity, &w->kernel.rule))
			break;
		return 0;
	}
	err_input(err, "the active policy has no rule '%s'", word);
	return err_hint(err,
			"weir stats lists the names of rules; a rule without one has its text");
}

static int read_service(struct capture_wish *w, const char *word, const struct instance *i,
			struct err *err)
{
	int code = w->policy ? 0 : read_policy(w, i, err);

	if (code)
		return code;
	for (size_t s = 0; s < w->policy->resolved->n_services; s++)
		if (!strcmp(w->policy->resolved->services[s].name, word))
			w->service = &w->policy->resolved->services[s];
	if (w->service)
		return 0;
	err_input(err, "the active policy has no service '%s'", word);
	return err_hint(err, "weir service lists them");
}

// ---- options ------------------------------------------------------------------------------------

// Of these, one describes the packets.
static int refuse_several(const struct args *args, struct err *err)
{
	static const char *const kinds[] = {"rule", "reason", "drops", "service"};
	const char *first = NULL;

	for (size_t n = 0; n < ARRAY_SIZE(kinds); n++) {
		if (!args_has(args, kinds[n]))
			continue;
		if (first)
			return err_input(err, "--%s cannot be combined with --%s", kinds[n], first);
		first = kinds[n];
	}
	return 0;
}

static void want_all(struct capture_wish *w, bool only_drops)
{
	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
		if (!only_drops || reason_drops(r))
			want(w, r);
}

static int read_reasons(struct capture_wish *w, const struct args *args, struct err *err)
{
	const char *words[WEIR_REASON_COUNT];
	size_t n = args_values(args, "reason", words, ARRAY_SIZE(words));
	int code;

	if (!n)
		want_all(w, args_has(args, "drops"));
	for (size_t at = 0; at < n; at++)
		if ((code = read_reason(w, words[at], err)))
			return code;
	return 0;
}

static int read_filter(struct capture_wish *w, const struct args *args, struct err *err)
{
	CLEANUP_TEXT struct text words = {0};

	vec_each (&args->words, word)
		text_addf(&words, "%s%s", words.len ? " " : "", *word);
	return words.len ? pcap_filter_new(text_get(&words), &w->filter, err) : 0;
}

static int read_snap(struct capture_wish *w, const struct args *args, struct err *err)
{
	const char *snap = args_value(args, "snap");

	w->kernel.snap = SNAP_MOST;
	if (!snap || !num_parse_u32(snap, strlen(snap), 1, SNAP_MOST, &w->kernel.snap))
		return 0;
	return err_input(err, "--snap '%s' is not a number of bytes from 1 to %u", snap, SNAP_MOST);
}

int capture_wish_read(struct capture_wish *w, const struct args *args, const struct instance *i,
		      struct err *err)
{
	const char *iface = args_value(args, "interface"), *rule = args_value(args, "rule");
	const char *service = args_value(args, "service");
	int code;

	w->kernel = (struct captures_wish){.rule = EVENT_NO_RULE};
	if ((code = refuse_several(args, err)) || (code = read_snap(w, args, err)) ||
	    (code = read_reasons(w, args, err)) || (code = read_filter(w, args, err)))
		return code;
	if (iface && (code = read_iface(w, iface, i, err)))
		return code;
	if (rule && (code = read_rule(w, rule, i, err)))
		return code;
	return service ? read_service(w, service, i, err) : 0;
}

// ---- packets ------------------------------------------------------------------------------------

static bool has_port(const struct resolved_service *s, uint16_t port)
{
	for (size_t n = 0; n < s->ports.n; n++)
		if (port >= s->ports.at[n].first && port <= s->ports.at[n].last)
			return true;
	return s->any_port;
}

void capture_read(const struct captured *packet, const uint8_t *frame, struct sampled_packet *ret)
{
	struct sampled sample = {
		.reason = (uint16_t)packet->reason,
		.bytes = packet->bytes,
		.length = packet->length,
	};

	sample.captured =
		packet->captured < WEIR_SAMPLE_SNAP ? (uint16_t)packet->captured : WEIR_SAMPLE_SNAP;
	memcpy(sample.packet, frame, sample.captured);
	sampled_read(&sample, ret);
}

static bool is_for_service(const struct capture_wish *w, const struct captured *packet,
			   const uint8_t *frame)
{
	const struct resolved_service *s = w->service;
	struct sampled_packet read;
	const struct packet_fields *f = &read.fields;

	capture_read(packet, frame, &read);
	return f->ip && resolved_contains(&w->policy->resolved->addresses[s->vip], &f->to, NULL) &&
	       bits_has(s->proto.bits, f->proto) && (!f->ports || has_port(s, f->to_port));
}

bool capture_wish_has(const struct capture_wish *w, const struct captured *packet,
		      const uint8_t *frame)
{
	if (w->service && !is_for_service(w, packet, frame))
		return false;
	return !w->filter ||
	       pcap_filter_matches(w->filter, frame, packet->captured, packet->length);
}

void capture_wish_free(struct capture_wish *w)
{
	pcap_filter_free(w->filter);
	candidate_free(w->policy);
}
