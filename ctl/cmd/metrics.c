// SPDX-License-Identifier: GPL-2.0-only
// weir metrics: the numbers of weir status and weir stats for Prometheus.
//
// Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"

#define LABELS 3

// A family of samples: a sample for each element of an array of a document, or one for the document itself.
struct family {
	const char *name, *type, *help;
	const struct command *command; // whose document
	const char *array;             // NULL: the document
	const char *value;             // key of a number or of a yes; of an array: its length
	struct {
		const char *key, *label;
	} labels[LABELS];  // keys of strings; without a key the sample has no such label
	const char *fixed; // a further label; NULL: none
	bool ms;           // the value is in milliseconds, the sample in seconds
};

#define STATS  &cmd_stats
#define STATUS &cmd_status

#define OF_COUNTER                                          \
	{"interface", "interface"}, {"verdict", "verdict"}, \
	{                                                   \
		"reason", "reason"                          \
	}
#define OF_RULE                \
	{"place", "place"},    \
	{                      \
		"rule", "rule" \
	}
#define OF_BACKEND                   \
	{"service", "service"},      \
	{                            \
		"backend", "backend" \
	}
#define OF_ORIGIN              \
	{"origin", "origin"},  \
	{                      \
		"verb", "verb" \
	}
#define OF_LIST                \
	{"list", "list"},      \
	{                      \
		"verb", "verb" \
	}
#define OF_SERVICE                \
	{                         \
		"name", "service" \
	}

// Families of the same name follow each other.
// clang-format off
static const struct family families[] = {
	{"weir_packets_total", "counter", "Packets by interface and reason.", STATS, "counters", "packets", {OF_COUNTER}, NULL, false},
	{"weir_bytes_total", "counter", "Bytes by interface and reason.", STATS, "counters", "bytes", {OF_COUNTER}, NULL, false},
	{"weir_events_total", "counter", "What happened beside the verdicts.", STATS, "events", "times", {{"event", "event"}}, NULL, false},
	{"weir_rule_packets_total", "counter", "Packets that matched a rule.", STATS, "rules", "packets", {OF_RULE}, NULL, false},
	{"weir_rule_bytes_total", "counter", "Bytes that matched a rule.", STATS, "rules", "bytes", {OF_RULE}, NULL, false},
	{"weir_backend_flows_total", "counter", "Flows opened to a backend.", STATS, "backends", "opened", {OF_BACKEND}, NULL, false},
	{"weir_backend_packets_total", "counter", "Packets to a backend.", STATS, "backends", "packets", {OF_BACKEND}, NULL, false},
	{"weir_backend_bytes_total", "counter", "Bytes to a backend.", STATS, "backends", "bytes", {OF_BACKEND}, NULL, false},
	{"weir_origin_entries", "gauge", "Entries of an origin.", STATS, "origins", "entries", {OF_ORIGIN}, NULL, false},
	{"weir_origin_packets", "gauge", "Packets that the present entries of an origin decided.", STATS, "origins", "packets", {OF_ORIGIN}, NULL, false},
	{"weir_origin_bytes", "gauge", "Bytes that the present entries of an origin decided.", STATS, "origins", "bytes", {OF_ORIGIN}, NULL, false},
	{"weir_list_entries", "gauge", "Entries of a list.", STATS, "lists", "entries", {OF_LIST}, NULL, false},
	{"weir_list_packets", "gauge", "Packets that the present entries of a list decided.", STATS, "lists", "packets", {OF_LIST}, NULL, false},
	{"weir_list_bytes", "gauge", "Bytes that the present entries of a list decided.", STATS, "lists", "bytes", {OF_LIST}, NULL, false},
	{"weir_table_entries", "gauge", "Elements that a table has.", STATUS, "limits", "used", {{"table", "table"}}, NULL, false},
	{"weir_table_size", "gauge", "Elements that a table can have.", STATUS, "limits", "max", {{"table", "table"}}, NULL, false},
	{"weir_interface_attached", "gauge", "Whether Weir is attached to an interface.", STATUS, "interfaces", "attached", {{"name", "interface"}}, NULL, false},
	{"weir_service_backends", "gauge", "Backends of a service by state.", STATUS, "services", "up", {OF_SERVICE}, "state=\"up\"", false},
	{"weir_service_backends", "gauge", NULL, STATUS, "services", "drained", {OF_SERVICE}, "state=\"drained\"", false},
	{"weir_service_backends", "gauge", NULL, STATUS, "services", "down", {OF_SERVICE}, "state=\"down\"", false},
	{"weir_service_backends_failing", "gauge", "Backends whose checks fail.", STATUS, "services", "failing", {OF_SERVICE}, NULL, false},
	{"weir_service_backends_kept", "gauge", "Backends that get new flows though their checks fail.", STATUS, "services", "kept", {OF_SERVICE}, NULL, false},
	{"weir_service_slots", "gauge", "Slots of a service that are in transition, by state.", STATUS, "services", "slots_changing", {OF_SERVICE}, "state=\"changing\"", false},
	{"weir_service_slots", "gauge", NULL, STATUS, "services", "slots_pins_only", {OF_SERVICE}, "state=\"pins_only\"", false},
	{"weir_trial_left_seconds", "gauge", "Time until a trial ends; 0: no trial.", STATUS, NULL, "trial_ms_left", {{NULL, NULL}}, NULL, true},
	{"weir_alarms", "gauge", "Alarms of weir status.", STATUS, NULL, "alarms", {{NULL, NULL}}, NULL, false},
};
// clang-format on

struct document {
	const struct command *command;
	const char *options[2];
	struct json *json;
};

// A label value: backslash, quote and line feed are escaped.
static void add_label(struct text *t, const char *label, const char *value)
{
	text_addf(t, "%s%s=\"", t->at[t->len - 1] == '{' ? "" : ",", label);
	for (; *value; value++)
		if (*value == '\n')
			text_add(t, "\\n");
		else
			text_addf(t, "%s%c", strchr("\\\"", *value) ? "\\" : "", *value);
	text_add(t, "\"");
}

static bool number_of(const struct json *j, uint64_t *ret)
{
	switch (json_kind(j)) {
	case JSON_IS_NUMBER:
		*ret = json_number(j);
		return true;
	case JSON_IS_BOOL:
		*ret = json_is_yes(j);
		return true;
	case JSON_IS_ARRAY:
		*ret = json_length(j);
		return true;
	default:
		return false;
	}
}

static void add_sample(struct text *t, const struct family *f, const char *instance,
		       const struct json *from)
{
	uint64_t value;

	if (!number_of(json_get(from, f->value), &value))
		return;
	text_addf(t, "%s{", f->name);
	add_label(t, "weir_instance", instance);
	for (size_t n = 0; n < LABELS && f->labels[n].key; n++) {
		const char *text = json_get_string(from, f->labels[n].key);

		if (text)
			add_label(t, f->labels[n].label, text);
	}
	if (f->fixed)
		text_addf(t, ",%s", f->fixed);
	if (f->ms)
		text_addf(t, "} %llu.%03llu\n", (unsigned long long)value / 1000,
			  (unsigned long long)value % 1000);
	else
		text_addf(t, "} %llu\n", (unsigned long long)value);
}

static void add_family(struct text *t, const struct family *f, const char *instance,
		       const struct json *document)
{
	const struct json *array = f->array ? json_get(document, f->array) : NULL;

	if (f->help)
		text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, f->type);
	if (!f->array)
		add_sample(t, f, instance, document);
	for (size_t n = 0; n < json_length(array); n++)
		add_sample(t, f, instance, json_at(array, n));
}

// The document that `weir -j COMMAND OPTIONS` prints.
static int ask(const struct context *ctx, struct document *d, struct err *err)
{
	struct context own = *ctx;
	struct args args = {.tables = {d->command->options, global_options}};
	CLEANUP_FREE char *text = NULL;
	char *argv[2];
	size_t used, n = 0;
	int code;

	for (; n < ARRAY_SIZE(argv) && d->options[n]; n++)
		argv[n] = (char *)d->options[n];
	if (!(code = args_parse(&args, argv, n, false, &used, err))) {
		own.json = true;
		own.out = out_new_document();
		code = d->command->run(&own, &args, err);
		text = out_take_document(own.out);
		out_free(own.out);
	}
	args_free(&args);
	if (text)
		d->json = json_parse(text, strlen(text), NULL, 0);
	// weir status fails where it has alarms; its document is whole.
	if (!d->json || (code && !json_get(d->json, "alarms")))
		return code ? code
			    : err_system(err, 0, "cannot read the document of weir %s",
					 d->command->name);
	err_clear(err);
	return 0;
}

static void print(struct context *ctx, const struct document *documents, size_t n)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, "# HELP weir_build_info Version of Weir.\n# TYPE weir_build_info gauge\n"
		     "weir_build_info{version=\"" WEIR_VERSION "\"} 1\n");
	for (size_t f = 0; f < ARRAY_SIZE(families); f++)
		for (size_t d = 0; d < n; d++)
			if (documents[d].command == families[f].command)
				add_family(&t, &families[f], ctx->instance, documents[d].json);
	fputs(text_get(&t), stdout);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	struct document documents[] = {
		{.command = STATS, .options = {"--interfaces"}},
		{.command = STATUS, .options = {"--limits"}},
	};
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if (ctx->json)
		return err_input(err, "weir metrics has one form only (weir -j stats prints JSON)");
	for (size_t d = 0; d < ARRAY_SIZE(documents); d++)
		code = code ? code : ask(ctx, &documents[d], err);
	if (code == 0)
		print(ctx, documents, ARRAY_SIZE(documents));
	for (size_t d = 0; d < ARRAY_SIZE(documents); d++)
		json_free(documents[d].json);
	return code;
}

const struct command cmd_metrics = {
	.name = "metrics",
	.usage = "",
	.summary = "print counters and states for Prometheus",
	.text = "The text exposition format, always: for the textfile collector of node_exporter, or\n"
		"through the agent (weir run --metrics ADDRESS).",
	.run = run,
};
