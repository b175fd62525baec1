// SPDX-License-Identifier: GPL-2.0-only
// Functions that commands about policies share: files, revisions, options, findings, costs.
#include "ctl/cmd/policy_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/agent/process.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/control/active.h"

#define TRIAL_MS     60000
#define TRIAL_MAX_MS (24ull * 3600 * 1000)

static void add_finding(void *ctx, enum diag_level level, const char *file, unsigned line,
			unsigned column, const char *message, const char *hint)
{
	struct out *o = ctx;

	out_object(o, NULL);
	out_set_string(o, "level", level == DIAG_ERROR ? "error" : "warning");
	out_set_string(o, "file", file);
	out_set_u64(o, "line", line);
	out_set_u64(o, "column", column);
	out_set_string(o, "text", message);
	out_set_string(o, "hint", hint);
	out_end(o);
}

void policy_show_findings(struct context *ctx, const struct candidate *c)
{
	out_array(ctx->out, "diagnostics");
	diag_each(c->diag, add_finding, ctx->out);
	out_end(ctx->out);
	if (out_has_lines(ctx->out))
		diag_print(c->diag, stderr, ctx->color && isatty(STDERR_FILENO));
}

static void show_memory(struct out *o, const struct lb_state *b)
{
	uint64_t rings = b->n_slots * sizeof(*b->slots), pins = lb_state_pin_bytes(b);
	num_text rings_text, pins_text;

	out_set_u64(o, "ring_bytes", rings);
	out_set_u64(o, "pin_bytes", pins);
	out_line(o, "%zu %s, rings %s, pins %s", b->n_services,
		 num_plural(b->n_services, "service", "services"),
		 num_format_bytes(rings, rings_text), num_format_bytes(pins, pins_text));
}

// The table of connections.
static void show_places(struct out *o, const struct nat_wish *w)
{
	uint64_t places = nat_wish_places(w), blocks = nat_wish_blocks(w);
	num_text places_text, bytes;

	out_set_u64(o, "nat_places", places);
	out_set_u64(o, "nat_bytes", nat_wish_bytes(w));
	out_line(o, "%s places for connections in %llu %s, %s",
		 num_format_grouped(places, places_text), (unsigned long long)blocks,
		 num_plural(blocks, "block", "blocks"), num_format_bytes(nat_wish_bytes(w), bytes));
}

static void show_services(struct out *o, const struct candidate *c)
{
	const struct lb_state *b = c->lb.lb;
	struct lb_service_figures f;

	if (b && b->n_services)
		show_memory(o, b);
	if (c->lb.nat.plan)
		show_places(o, &c->lb.nat.plan->wish);
	out_array(o, "services");
	for (size_t n = 0; b && n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];

		lb_service_figures(b, s, c->lb.clock.jiffies, c->lb.clock.hz, &f);
		out_object(o, NULL);
		out_set_string(o, "name", s->name);
		out_set_u64(o, "slots", s->size);
		out_set_u64(o, "share_error_ppm", f.share_error);
		out_end(o);
		out_line(o, "service %s: %u %s, largest share error %llu.%02llu %%", s->name,
			 s->size, num_plural(s->size, "slot", "slots"),
			 (unsigned long long)f.share_error / 10000,
			 (unsigned long long)f.share_error / 100 % 100);
	}
	out_end(o);
}

static void show_programs(struct out *o, const struct generation_cost *cost)
{
	static const char *const names[GENERATION_PROGRAMS] = {
		[GENERATION_SHORT] = "short",
		[GENERATION_GENERAL] = "general",
		[GENERATION_BALANCE] = "balancer's",
		[GENERATION_NAT_ANSWER] = "answers'",
		[GENERATION_NAT] = "translator's",
		[GENERATION_NAT_ANY] = "uncommon packets'",
		[GENERATION_NAT_ANSWER_ANY] = "uncommon answers'",
	};
	num_text verified;

	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++) {
		const struct program_cost *c = &cost->program[p];

		if (c->instructions)
			out_line(
				o,
				"%s program: %u %s (%u in the object), %s verified, %u bytes of machine code",
				names[p], c->instructions,
				num_plural(c->instructions, "instruction", "instructions"),
				c->object, num_format_grouped(c->verified, verified),
				c->jited_bytes);
	}
}

void policy_show_refused(const struct generation_cost *cost)
{
	if (cost->refused[0])
		log_notice(
			"the kernel refuses the short program of this policy: every packet takes the general program, which is slower: %s",
			cost->refused);
	policy_show_test_refused(cost->test_refused);
}

void policy_show_test_refused(const char *refused)
{
	if (refused[0])
		log_notice(
			"the kernel refuses the short program as a test program: the general program answers for it: %s",
			refused);
}

// Instructions verified in the largest program of nat and fullnat.
static uint32_t most_of_nat(const struct generation_cost *cost)
{
	uint32_t most = 0;

	for (enum generation_program p = GENERATION_NAT_ANSWER; p < GENERATION_PROGRAMS; p++)
		most = cost->program[p].verified > most ? cost->program[p].verified : most;
	return most;
}

void policy_show_cost(struct context *ctx, const struct candidate *c)
{
	const struct program_cost *general = &c->cost.program[GENERATION_GENERAL];
	num_text bytes;
	struct out *o = ctx->out;

	out_set_u64(o, "rules", c->image->n_rules);
	out_set_u64(o, "rows", c->image->matrix[MATRIX_RULES].n_rows);
	out_set_u64(o, "table_bytes", image_bytes(c->image));
	if (general->instructions) {
		out_set_u64(o, "object_instructions", general->object);
		out_set_u64(o, "instructions", general->instructions);
		out_set_u64(o, "verified", general->verified);
		out_set_u64(o, "jited_bytes", general->jited_bytes);
		out_set_u64(o, "short_verified", c->cost.program[GENERATION_SHORT].verified);
		out_set_u64(o, "balance_verified", c->cost.program[GENERATION_BALANCE].verified);
		out_set_u64(o, "nat_verified", most_of_nat(&c->cost));
		out_set_u64(o, "load_us", c->cost.load_us);
	}
	out_line(o, "%zu %s, %zu %s, tables %s", c->image->n_rules,
		 num_plural(c->image->n_rules, "rule", "rules"),
		 c->image->matrix[MATRIX_RULES].n_rows,
		 num_plural(c->image->matrix[MATRIX_RULES].n_rows, "row", "rows"),
		 num_format_bytes(image_bytes(c->image), bytes));
	if (ctx->verbose && general->instructions) {
		out_line(o, "maps %s, loaded in %llu us",
			 num_format_bytes(c->cost.map_bytes, bytes),
			 (unsigned long long)c->cost.load_us);
		show_programs(o, &c->cost);
	}
	show_services(o, c);
}

// Not every command has the options.
static const char *dns_value(const struct args *args, const char *option, const char *variable)
{
	return args_knows(args, option) ? args_value_or(args, option, variable) : getenv(variable);
}

int policy_dns(const struct context *ctx, const struct args *args, struct policy_dns *ret,
	       struct err *err)
{
	const char *timeout = dns_value(args, "resolver-timeout", PROCESS_TIMEOUT);
	uint64_t ms = 0;

	if (timeout && num_parse_time_ms(timeout, strlen(timeout), 1, 600000, &ms))
		return err_input(err, "--resolver-timeout '%s' is not a time of 1ms to 10m",
				 timeout);
	snprintf(ret->path, sizeof(ret->path), "/etc/netns/%s/resolv.conf",
		 ctx->netns ? ctx->netns : "");
	ret->options = (struct dns_options){
		.servers = dns_value(args, "resolver", PROCESS_RESOLVER),
		.resolv_conf = ctx->netns && file_exists(ret->path) ? ret->path : NULL,
		.timeout_ms = (unsigned)ms,
	};
	return 0;
}

int policy_trial(const struct args *args, uint64_t *ret, struct err *err)
{
	const char *text = args_value(args, "confirm");

	*ret = args_has(args, "confirm") ? TRIAL_MS : 0;
	if (text && num_parse_time_ms(text, strlen(text), 1000, TRIAL_MAX_MS, ret))
		return err_input(err, "--confirm '%s' is not a time of 1s to 24h", text);
	return 0;
}

int policy_pick_revision(const char *instance, const char *named, char ret[REVISION_ID],
			 struct err *err)
{
	int code;

	if (named)
		snprintf(ret, REVISION_ID, "%s", named);
	else if ((code = revisions_current(instance, ret, err)))
		return code;
	return ret[0] ? 0 : err_input(err, "no accepted policy in instance '%s'", instance);
}

char *policy_path(const struct context *ctx, const struct args *args)
{
	return args->words.n ? mem_strdup(args->words.at[0])
			     : mem_printf("/etc/weir/%s.weir", ctx->instance);
}

bool policy_was_replaced(const char *instance, const char *path)
{
	char revision[REVISION_ID], current[REVISION_ID];

	if (!revision_was_replaced(instance, path, revision, current))
		return false;
	log_notice("'%s' is not applied: it is revision %s, which revision %s has replaced", path,
		   revision, current);
	return true;
}
