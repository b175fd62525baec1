// SPDX-License-Identifier: GPL-2.0-only
// Prints the table of drivers.
#include "ctl/cmd/doctor_drivers.h"

#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/net/driver.h"

static const char *const channels[] = {
	[CHANNELS_ANY] = "any",
	[CHANNELS_HALF] = "half at most",
	[CHANNELS_COMBINED] = "combined",
	[CHANNELS_RESERVED] = "one more per CPU",
};
static const char *const tags[] = {
	[TAGS_KEPT] = "kept",
	[TAGS_REMOVED] = "removed (rxvlan)",
	[TAGS_OF_PEER] = "removed (txvlan of the peer)",
};
static const char *const redirects[] = {
	[REDIRECT_ALWAYS] = "sent",
	[REDIRECT_PEER] = "sent if the peer has GRO or a program",
	[REDIRECT_PROGRAM] = "sent while it has a program",
	[REDIRECT_CPUS] = "sent while it has a program, by CPUs with a channel",
};
static const char *const runs[] = {
	[RUNS_ALWAYS] = "always",
	[RUNS_UNTIL_DOWN] = "until it goes down",
	[RUNS_HEADROOM] = "with headroom of the backend",
};

static void set_name(struct out *o, const struct driver *d)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, d->name);
	if (d->known_as[0])
		text_addf(&t, " (%s)", d->known_as);
	out_cell(o, "driver", "DRIVER", text_get(&t));
}

static void set_mtu(struct out *o, const struct driver *d)
{
	CLEANUP_TEXT struct text t = {0};

	if (d->mtu)
		text_addf(&t, "%u", d->mtu);
	if (d->mtu && d->buffers[0])
		text_addf(&t, ", any from %s", d->buffers);
	out_cell(o, "mtu", "MTU", d->mtu ? text_get(&t) : "any");
}

static void set_clashes(struct out *o, const struct driver *d)
{
	static const struct {
		enum driver_clash bit;
		const char *word;
	} words[] = {{CLASH_LRO, "LRO"},
		     {CLASH_HW_GRO, "HW-GRO"},
		     {CLASH_HDS, "HDS"},
		     {CLASH_SRIOV, "SR-IOV"}};
	CLEANUP_TEXT struct text t = {0};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (d->clashes & words[i].bit)
			text_addf(&t, "%s%s", t.len ? ", " : "", words[i].word);
	out_cell(o, "refuses_with", "REFUSES WITH", t.len ? text_get(&t) : "-");
}

void doctor_drivers(struct out *o)
{
	size_t n;
	const struct driver *list = driver_list(&n);

	out_table(o, "drivers");
	for (const struct driver *d = list; d < list + n; d++) {
		out_row(o);
		set_name(o, d);
		out_cell(o, "since", "SINCE", d->since);
		out_cell(o, "tested", "TESTED", d->tested ? "yes" : "no");
		set_mtu(o, d);
		out_cell(o, "above", "ABOVE",
			 !d->mtu                     ? "-"
			 : d->excess == DRIVER_LOSES ? "loses packets"
						     : "refuses");
		out_cell(o, "channels", "CHANNELS", channels[d->channels]);
		set_clashes(o, d);
		out_cell(o, "tags", "TAGS", tags[d->tags]);
		out_cell(o, "redirected", "REDIRECTED TO IT", redirects[d->redirect]);
		out_cell(o, "runs", "RUNS", runs[d->runs]);
		out_cell(o, "resets", "ATTACH RESETS", d->resets ? "yes" : "no");
	}
	out_table_end(o);
}
