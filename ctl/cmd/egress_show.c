// SPDX-License-Identifier: GPL-2.0-only
// Prints the devices of services: warnings and a table.
#include "ctl/cmd/egress_show.h"

#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/control/pool.h"

void egress_look(const char *instance, struct egress_findings *ret)
{
	CLEANUP_POOL struct pool f = {.lock = -1};
	CLEANUP_EGRESSES struct egresses egresses = {0};

	if (pool_open_few(instance, NULL, &f, NULL))
		return;
	egress_find(&f, &egresses);
	egress_check(&egresses, false, ret);
	egress_forget(instance, &egresses);
}

static void print_findings(struct context *ctx, const struct egress_findings *list, bool problems)
{
	vec_each (list, one) {
		CLEANUP_FREE char *text = mem_printf("%s (%s)", one->text, one->mend);

		if (one->problem != problems)
			continue;
		out_item_string(ctx->out, text);
		if (problems)
			log_warning("%s", text);
		else
			log_notice("%s", text);
	}
}

// What a warning says of its service, "service 'web': …"; the whole of any other warning.
static const char *without_service(const char *warning)
{
	const char *colon = strncmp(warning, "service '", 9) ? NULL : strstr(warning, "': ");

	return colon ? colon + 3 : warning;
}

// A warning that hundreds of services share is one line.
static void log_once(char *const *warnings, size_t n, size_t at)
{
	const char *text = without_service(warnings[at]);
	size_t others = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(without_service(warnings[i]), text))
			continue;
		if (i < at)
			return;
		others += i > at;
	}
	if (others && text != warnings[at])
		log_warning("%.*s and %zu %s: %s", (int)(text - warnings[at] - 2), warnings[at],
			    others, num_plural(others, "other", "others"), text);
	else
		log_warning("%s", warnings[at]);
}

void egress_report(struct context *ctx, char *const *warnings, size_t n,
		   const struct egress_findings *list)
{
	out_array(ctx->out, "warnings");
	for (size_t i = 0; i < n; i++) {
		out_item_string(ctx->out, warnings[i]);
		log_once(warnings, n, i);
	}
	print_findings(ctx, list, true);
	out_end(ctx->out);
	out_array(ctx->out, "notices");
	print_findings(ctx, list, false);
	out_end(ctx->out);
}

void egress_table(struct out *o, const struct egresses *a)
{
	out_table(o, "devices");
	vec_each (a, egress) {
		out_row(o);
		out_cell(o, "device", "DEVICE", egress->link.name);
		out_cell(o, "carries", "CARRIES",
			 egress->in && egress->out ? "in, out"
			 : egress->in              ? "in"
						   : "out");
		out_cell(o, "mode", "MODE",
			 !egress->in      ? ""
			 : egress->native ? "native"
					  : "generic");
		if (egress->lost.known)
			out_cell_u64(o, "lost", "LOST", egress->lost.frames);
		else
			out_cell(o, "lost", "LOST", "");
		out_cell(o, "lost_counter", "COUNTER",
			 egress->lost.frames ? egress->lost.counter : "");
	}
	out_table_end(o);
}
