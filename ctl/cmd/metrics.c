// SPDX-License-Identifier: GPL-2.0-only
// weir metrics: the numbers of weir status and weir stats for Prometheus.
//
// A document is the object that one of these commands prints with -j; document_ask() takes it.
//
// Text exposition format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/json.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/document.h"

#define LABELS 4

// A number of a document as a metric.
enum form {
	PLAIN,
	OF_MS, // milliseconds, shown as seconds
	OF_US,
	AGE,       // a wall clock time, shown as seconds since then
	IS_FIXED,  // a string, 1 if it is the value of the fixed label, else 0
	HISTOGRAM, // "buckets", "us" and "ended" of agent/check_times.h
};

// A family of samples: a sample for each element of an array of a document, or one for the document
// itself.
struct family {
	const char *name, *type, *help;
	const struct command *command; // whose document
	const char
		*part; // what the agent reports there: "" all, else this part; NULL: the document
	const char *array; // NULL: the document
	const char *value; // key of a number or of a yes; of an array: its length
	struct {
		const char *key, *label;
	} labels[LABELS]; // keys of strings or numbers; without a key the sample has no such label
	struct {
		const char *label, *value;
	} fixed; // a further label; NULL: none
	enum form form;
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
#define OF_LIST                                 \
	{"list", "list"}, {"origin", "origin"}, \
	{                                       \
		"verb", "verb"                  \
	}
#define OF_SERVICE                \
	{                         \
		"name", "service" \
	}

#define OF_BLOCK                                                    \
	{"mode", "mode"}, {"family", "family"}, {"block", "block"}, \
	{                                                           \
		"source", "source"                                  \
	}

#define OF_CHECKS                    \
	{                            \
		"service", "service" \
	}
#define OF_FEED                         \
	{"id", "id"}, {"list", "list"}, \
	{                               \
		"public_url", "url"     \
	}

// Families of the same name follow each other.
// clang-format off
static const struct family families[] = {
	{"weir_packets_total", "counter", "Packets by interface and reason.", STATS, .array = "counters", .value = "packets", .labels = {OF_COUNTER}},
	{"weir_bytes_total", "counter", "Bytes by interface and reason.", STATS, .array = "counters", .value = "bytes", .labels = {OF_COUNTER}},
	{"weir_events_total", "counter", "Events other than verdicts.", STATS, .array = "events", .value = "times", .labels = {{"event", "event"}}},
	{"weir_rule_packets_total", "counter", "Packets that matched a rule.", STATS, .array = "rules", .value = "packets", .labels = {OF_RULE}},
	{"weir_rule_bytes_total", "counter", "Bytes that matched a rule.", STATS, .array = "rules", .value = "bytes", .labels = {OF_RULE}},
	{"weir_backend_flows_total", "counter", "Flows opened to a backend.", STATS, .array = "backends", .value = "opened", .labels = {OF_BACKEND}},
	{"weir_backend_packets_total", "counter", "Packets to a backend.", STATS, .array = "backends", .value = "packets", .labels = {OF_BACKEND}},
	{"weir_backend_bytes_total", "counter", "Bytes to a backend.", STATS, .array = "backends", .value = "bytes", .labels = {OF_BACKEND}},
	{"weir_backend_answer_packets_total", "counter", "Answers of a backend in nat and fullnat.", STATS, .array = "backends", .value = "back_packets", .labels = {OF_BACKEND}},
	{"weir_backend_answer_bytes_total", "counter", "Bytes of answers of a backend in nat and fullnat.", STATS, .array = "backends", .value = "back_bytes", .labels = {OF_BACKEND}},
	{"weir_backend_connections", "gauge", "Connections of a backend in nat and fullnat.", STATS, .array = "backends", .value = "connections", .labels = {OF_BACKEND}},
	{"weir_backend_health", "gauge", "What checks say of a backend; 1 for the present state.", STATS, .array = "backends", .value = "health", .labels = {OF_BACKEND}, .fixed = {"state", "up"}, .form = IS_FIXED},
	{"weir_backend_health", "gauge", NULL, STATS, .array = "backends", .value = "health", .labels = {OF_BACKEND}, .fixed = {"state", "failing"}, .form = IS_FIXED},
	{"weir_backend_health", "gauge", NULL, STATS, .array = "backends", .value = "health", .labels = {OF_BACKEND}, .fixed = {"state", "down"}, .form = IS_FIXED},
	{"weir_origin_entries", "gauge", "Entries of an origin.", STATS, .array = "origins", .value = "entries", .labels = {OF_ORIGIN}},
	{"weir_origin_packets", "gauge", "Packets that the present entries of an origin decided.", STATS, .array = "origins", .value = "packets", .labels = {OF_ORIGIN}},
	{"weir_origin_bytes", "gauge", "Bytes that the present entries of an origin decided.", STATS, .array = "origins", .value = "bytes", .labels = {OF_ORIGIN}},
	{"weir_list_entries", "gauge", "Entries of a list of an origin.", STATS, .array = "lists", .value = "entries", .labels = {OF_LIST}},
	{"weir_list_packets", "gauge", "Packets that the present entries of a list of an origin decided.", STATS, .array = "lists", .value = "packets", .labels = {OF_LIST}},
	{"weir_list_bytes", "gauge", "Bytes that the present entries of a list of an origin decided.", STATS, .array = "lists", .value = "bytes", .labels = {OF_LIST}},
	{"weir_table_entries", "gauge", "Elements that a table has.", STATUS, .array = "limits", .value = "used", .labels = {{"table", "table"}}},
	{"weir_table_size", "gauge", "Elements that a table can have.", STATUS, .array = "limits", .value = "max", .labels = {{"table", "table"}}},
	{"weir_interface_attached", "gauge", "Whether Weir is attached to an interface.", STATUS, .array = "interfaces", .value = "attached", .labels = {{"name", "interface"}}},
	{"weir_service_backends", "gauge", "Backends of a service by state.", STATUS, .array = "services", .value = "up", .labels = {OF_SERVICE}, .fixed = {"state", "up"}},
	{"weir_service_backends", "gauge", NULL, STATUS, .array = "services", .value = "drained", .labels = {OF_SERVICE}, .fixed = {"state", "drained"}},
	{"weir_service_backends", "gauge", NULL, STATUS, .array = "services", .value = "down", .labels = {OF_SERVICE}, .fixed = {"state", "down"}},
	{"weir_service_backends_failing", "gauge", "Backends whose checks fail.", STATUS, .array = "services", .value = "failing", .labels = {OF_SERVICE}},
	{"weir_service_backends_kept", "gauge", "Backends that get new flows though their checks fail.", STATUS, .array = "services", .value = "kept", .labels = {OF_SERVICE}},
	{"weir_service_slots", "gauge", "Slots of a service that are in transition, by state.", STATUS, .array = "services", .value = "slots_changing", .labels = {OF_SERVICE}, .fixed = {"state", "changing"}},
	{"weir_service_slots", "gauge", NULL, STATUS, .array = "services", .value = "slots_pins_only", .labels = {OF_SERVICE}, .fixed = {"state", "pins_only"}},
	{"weir_service_connections", "gauge", "Connections of a service in nat and fullnat, by state.", STATUS, .array = "services", .value = "connections", .labels = {OF_SERVICE}, .fixed = {"state", "all"}},
	{"weir_service_connections", "gauge", NULL, STATUS, .array = "services", .value = "connections_opening", .labels = {OF_SERVICE}, .fixed = {"state", "opening"}},
	{"weir_nat_connections", "gauge", "Connections in a block of nat or fullnat.", STATUS, .array = "nat_blocks", .value = "connections", .labels = {OF_BLOCK}},
	{"weir_nat_fullest_group", "gauge", "Connections in the fullest group of 16 places of nat and fullnat.", STATUS, .value = "nat_fullest_group"},
	{"weir_nat_peers", "gauge", "Ways to clients that nat and fullnat know.", STATUS, .value = "nat_peers"},
	{"weir_trial_left_seconds", "gauge", "Time until a trial ends; 0: no trial.", STATUS, .value = "trial_ms_left", .form = OF_MS},
	{"weir_alarms", "gauge", "Alarms of weir status.", STATUS, .value = "alarms"},
	{"weir_agent_running", "gauge", "Whether the agent runs (weir run).", STATUS, .part = "", .value = "running"},
	{"weir_agent_killed", "gauge", "Whether the last agent was killed or has crashed, and none runs.", STATUS, .part = "", .value = "killed"},
	{"weir_agent_ended", "gauge", "Whether the last agent has ended, and none runs.", STATUS, .part = "", .value = "ended"},
	{"weir_agent_hangs", "gauge", "Whether the agent runs and its loop does not turn.", STATUS, .part = "", .value = "hangs"},
	{"weir_agent_applies_total", "counter", "Applies by the agent since it began: of its file, of the active policy again, and of the API.", STATUS, .part = "policy", .array = "applies", .value = "ok", .labels = {{"source", "source"}}, .fixed = {"result", "ok"}},
	{"weir_agent_applies_total", "counter", NULL, STATUS, .part = "policy", .array = "applies", .value = "failed", .labels = {{"source", "source"}}, .fixed = {"result", "failed"}},
	{"weir_checks_total", "counter", "Checks of backends since the agent began; unknown: this host could not make the check.", STATUS, .part = "health", .array = "checks", .value = "good", .labels = {OF_CHECKS}, .fixed = {"result", "good"}},
	{"weir_checks_total", "counter", NULL, STATUS, .part = "health", .array = "checks", .value = "failed", .labels = {OF_CHECKS}, .fixed = {"result", "failed"}},
	{"weir_checks_total", "counter", NULL, STATUS, .part = "health", .array = "checks", .value = "unknown", .labels = {OF_CHECKS}, .fixed = {"result", "unknown"}},
	{"weir_check_duration_seconds", "histogram", "How long checks of backends took.", STATUS, .part = "health", .array = "checks", .value = "ended", .labels = {OF_CHECKS}, .form = HISTOGRAM},
	{"weir_names", "gauge", "Host names of entries and of the policy that the agent follows.", STATUS, .part = "names", .value = "names"},
	{"weir_names_failing", "gauge", "Host names that did not resolve when last asked for.", STATUS, .part = "names", .value = "failing"},
	{"weir_names_oldest_answer_age_seconds", "gauge", "Time since the good answer that is the oldest of all names.", STATUS, .part = "names", .value = "oldest_s", .form = AGE},
	{"weir_feed_age_seconds", "gauge", "Time since the last good answer of a feed, changed or not.", STATUS, .part = "feeds", .array = "feeds", .value = "good_s", .labels = {OF_FEED}, .form = AGE},
	{"weir_feed_interval_seconds", "gauge", "Time between two requests for a feed.", STATUS, .part = "feeds", .array = "feeds", .value = "every_s", .labels = {OF_FEED}},
	{"weir_feed_failures", "gauge", "Failures of a feed in a row.", STATUS, .part = "feeds", .array = "feeds", .value = "failures", .labels = {OF_FEED}},
	{"weir_feed_entries", "gauge", "Entries of the last good text of a feed.", STATUS, .part = "feeds", .array = "feeds", .value = "entries", .labels = {OF_FEED}},
};
// clang-format on

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

static bool number_of(const struct family *f, const struct json *j, uint64_t *ret)
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
	case JSON_IS_STRING:
		*ret = f->form == IS_FIXED && !strcmp(json_text(j), f->fixed.value);
		return f->form == IS_FIXED;
	default:
		return false;
	}
}

// A string or a number; another value, or none, is no label.
static void add_label_of(struct text *t, const char *label, const struct json *value)
{
	char number[24];

	if (json_kind(value) == JSON_IS_NUMBER) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)json_number(value));
		add_label(t, label, number);
	} else if (json_kind(value) == JSON_IS_STRING) {
		add_label(t, label, json_text(value));
	}
}

static void add_labels(struct text *t, const struct family *f, const char *instance,
		       const struct json *from)
{
	text_add(t, "{");
	add_label(t, "weir_instance", instance);
	for (size_t n = 0; n < LABELS && f->labels[n].key; n++)
		add_label_of(t, f->labels[n].label, json_get(from, f->labels[n].key));
	if (f->fixed.label)
		add_label(t, f->fixed.label, f->fixed.value);
}

static uint64_t age_s(uint64_t since_s)
{
	uint64_t now_s = (uint64_t)time(NULL);

	return now_s > since_s ? now_s - since_s : 0;
}

static void add_value(struct text *t, enum form form, uint64_t value)
{
	switch (form) {
	case OF_MS:
		text_addf(t, " %llu.%03llu\n", (unsigned long long)value / 1000,
			  (unsigned long long)value % 1000);
		return;
	case OF_US:
		text_addf(t, " %llu.%06llu\n", (unsigned long long)value / 1000000,
			  (unsigned long long)value % 1000000);
		return;
	default:
		text_addf(t, " %llu\n", (unsigned long long)(form == AGE ? age_s(value) : value));
	}
}

// Prometheus wants the shortest form of a limit: "0.25", not "0.250000".
static void add_limit(struct text *t, uint64_t us)
{
	char limit[32];
	size_t len;

	snprintf(limit, sizeof(limit), "%llu.%06llu", (unsigned long long)us / 1000000,
		 (unsigned long long)us % 1000000);
	for (len = strlen(limit); limit[len - 1] == '0' && limit[len - 2] != '.'; len--)
		limit[len - 1] = '\0';
	add_label(t, "le", limit);
}

static void add_histogram(struct text *t, const struct family *f, const char *instance,
			  const struct json *from)
{
	const struct json *buckets = json_get(from, "buckets");
	uint64_t ended = json_get_u64(from, "ended");

	for (size_t n = 0; n < json_length(buckets); n++) {
		const struct json *bucket = json_at(buckets, n);

		text_addf(t, "%s_bucket", f->name);
		add_labels(t, f, instance, from);
		add_limit(t, json_get_u64(bucket, "le_us"));
		text_add(t, "}");
		add_value(t, PLAIN, json_get_u64(bucket, "checks"));
	}
	text_addf(t, "%s_bucket", f->name);
	add_labels(t, f, instance, from);
	text_addf(t, ",le=\"+Inf\"} %llu\n%s_sum", (unsigned long long)ended, f->name);
	add_labels(t, f, instance, from);
	text_add(t, "}");
	add_value(t, OF_US, json_get_u64(from, "us"));
	text_addf(t, "%s_count", f->name);
	add_labels(t, f, instance, from);
	text_add(t, "}");
	add_value(t, PLAIN, ended);
}

static void add_sample(struct text *t, const struct family *f, const char *instance,
		       const struct json *from)
{
	uint64_t value;

	if (!number_of(f, json_get(from, f->value), &value))
		return;
	if (f->form == HISTOGRAM) {
		add_histogram(t, f, instance, from);
		return;
	}
	text_add(t, f->name);
	add_labels(t, f, instance, from);
	text_add(t, "}");
	add_value(t, f->form, value);
}

// The object of a family: the document, what the agent reports, or a part of the agent. NULL: no
// agent runs.
static const struct json *object_of(const struct family *f, const struct json *document)
{
	const struct json *agent = json_get(document, "agent"), *parts = json_get(agent, "parts");

	if (!f->part || !*f->part)
		return f->part ? agent : document;
	for (size_t n = 0; n < json_length(parts); n++) {
		const char *name = json_get_string(json_at(parts, n), "name");

		if (name && !strcmp(name, f->part))
			return json_at(parts, n);
	}
	return NULL;
}

static void add_family(struct text *t, const struct family *f, const char *instance,
		       const struct json *document)
{
	const struct json *object = object_of(f, document);
	const struct json *array = f->array ? json_get(object, f->array) : NULL;

	if (f->help)
		text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, f->type);
	if (!f->array)
		add_sample(t, f, instance, object);
	for (size_t n = 0; n < json_length(array); n++)
		add_sample(t, f, instance, json_at(array, n));
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
		code = code ? code : document_ask(ctx, &documents[d], err);
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
