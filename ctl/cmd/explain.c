// SPDX-License-Identifier: GPL-2.0-only
// weir explain PACKET: what happens to a packet, and which rule, line and entry decide it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/cmd/explain_service.h"
#include "ctl/cmd/explain_show.h"
#include "ctl/cmd/packet_text.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/capture_comment.h"
#include "ctl/control/decision.h"
#include "ctl/control/frame.h"
#include "ctl/control/sampled_packet.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/test_program.h"
#include "ctl/net/capture_file.h"
#include "ctl/policy/rule_text.h"

#include <linux/bpf.h>

struct asked {
	struct context *ctx;
	const struct args *args;
	struct explain e;
	bool brief;      // a line for each packet, unless -v
	size_t captured; // bytes of the frame that are known; 0: all
};

// ---- the answer ---------------------------------------------------------------------------------

// NULL: the rules are not known.
static const struct candidate *known(const struct asked *a)
{
	return a->e.recorded ? a->e.c : NULL;
}

static const char *by_key(const struct explain_answer *r)
{
	enum weir_group stage = decision_stage(&r->result, r->result.reason);

	if (r->result.service >= 0 || reason_group(r->result.reason) == GROUP_SERVICE)
		stage = GROUP_SERVICE;
	return group_word(stage);
}

static bool is_default(uint32_t reason)
{
	return group_via(reason_group(reason)) == VIA_DEFAULT;
}

static void add_fragments(struct text *t, const struct asked *a, const struct explain_answer *r)
{
	const struct resolved *policy = a->e.c->resolved;

	text_add(t, reason_text(r->result.reason));
	if (!a->e.recorded || !r->packet.ip)
		return;
	text_add(t, ", ");
	explain_add_place(t, policy, policy->fragments_place[r->packet.proto]);
}

static void add_why(struct text *t, const struct asked *a, const struct explain_question *q,
		    const struct explain_answer *r)
{
	uint32_t reason = r->result.reason;
	const char *by = by_key(r);

	if (r->result.service >= 0)
		explain_add_service(t, &a->e, &r->result);
	else if (r->result.rule >= 0)
		explain_show_rule(t, &a->e, (size_t)r->result.rule);
	else if (r->overlay)
		explain_show_record(t, a->e.store, r->overlay);
	else if (!strcmp(by, "fragments"))
		add_fragments(t, a, r);
	else if (is_default(reason) && !explain_holds_on(&a->e, q->iface))
		text_addf(t, "the policy does not name %s: only entries apply to it",
			  a->e.c->resolved->interfaces[q->iface].name);
	else if (reason == REASON_PASS_DEFAULT || reason == REASON_DROP_DEFAULT)
		explain_show_default(t, &a->e, q->iface, reason_drops(reason));
	else
		text_addf(t, "%s (%s)", reason_name(reason), reason_text(reason));
	if (r->result.rule >= 0 && reason == REASON_DROP_REJECT)
		text_add(t, "; this kind of packet gets no answer");
	if (r->result.rule >= 0 && reason == REASON_DROP_REDIRECT)
		text_add(t, "; its interface does not exist");
}

// ---- details ------------------------------------------------------------------------------------

// The line of the rule as written, from the first word of the rule.
static void add_source(struct text *t, struct diag_at at)
{
	const char *from, *end;

	if (!at.file || at.offset > at.file->len)
		return;
	from = at.file->text + at.offset;
	end = strchr(from, '\n');
	text_add_shown(t, from, end ? (size_t)(end - from) : strlen(from));
}

static void show_source(const struct asked *a, const struct resolved_rule *rule)
{
	struct text line = {0};

	add_source(&line, rule->at);
	out_set_string(a->ctx->out, "text", text_get(&line));
	out_line(a->ctx->out, "  rule:        %s", text_get(&line));
	text_free(&line);
}

static void show_conditions(const struct asked *a, const struct resolved_rule *rule)
{
	struct text line = {0};

	rule_text_conditions(&line, a->e.c->resolved, rule);
	out_set_string(a->ctx->out, "conditions", line.len ? text_get(&line) : NULL);
	if (line.len)
		out_line(a->ctx->out, "  conditions:  %s", text_get(&line));
	text_free(&line);
}

static void show_end(const struct asked *a, const struct resolved_rule *rule,
		     const struct addr *addr, bool to)
{
	const struct resolved *policy = a->e.c->resolved;
	const struct resolved_address *side = to ? &rule->to : &rule->from;
	struct prefix host = prefix_of(addr, (uint8_t)addr_bits(addr));
	struct out *o = a->ctx->out;
	struct text line = {0}, place = {0};
	struct explain_entry entry;
	addr_text prefix;

	if (side->kind != RESOLVED_SET ||
	    !explain_holds(&policy->addresses[side->index], &host, &entry))
		return;
	explain_add_entry(&line, policy, &entry);
	explain_add_place(&place, policy, entry.place);
	out_object(o, to ? "to" : "from");
	out_set_string(o, "set", entry.list->name);
	out_set_string(o, "entry", prefix_format(&entry.prefix, prefix));
	out_set_string(o, "entry_at", text_get(&place));
	out_end(o);
	out_line(o, "  %-11s  %s", to ? "to:" : "from:", text_get(&line));
	text_free(&line);
	text_free(&place);
}

static void show_rule(const struct asked *a, const struct explain_answer *r)
{
	const struct resolved_rule *rule = decision_rule(known(a), &r->result);

	if (!rule)
		return;
	show_source(a, rule);
	show_conditions(a, rule);
	if (!r->packet.ip)
		return;
	show_end(a, rule, &r->packet.from, false);
	show_end(a, rule, &r->packet.to, true);
}

// Count rules that match. They do not decide the packet.
static void show_counted(const struct asked *a, const struct explain_answer *r)
{
	size_t known = ARRAY_SIZE(r->result.first_counted), n = r->result.counted;
	struct out *o = a->ctx->out;

	out_set_u64(o, "counted", n);
	out_array(o, "counted_by");
	for (size_t i = 0; i < n && i < known; i++) {
		struct text line = {0};

		out_object(o, NULL);
		explain_set_rule(o, &a->e, r->result.first_counted[i]);
		out_end(o);
		explain_show_rule(&line, &a->e, r->result.first_counted[i]);
		out_line(o, "  counted by:  %s", text_get(&line));
		text_free(&line);
	}
	out_end(o);
	if (n > known)
		out_line(o, "  counted by:  %zu more %s", n - known,
			 num_plural(n - known, "rule", "rules"));
}

static void add_hex(struct text *t, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		text_addf(t, "%02x", bytes[i]);
}

static void show_bytes(const struct asked *a, const char *key, const char *label,
		       const uint8_t *bytes, size_t length)
{
	struct text hex = {0};

	add_hex(&hex, bytes, length);
	out_set_string(a->ctx->out, key, text_get(&hex));
	if (a->ctx->verbose)
		out_line(a->ctx->out, "  %-11s  %s", label, text_get(&hex));
	text_free(&hex);
}

static void show_reply(const struct asked *a, const struct test_result *r)
{
	char line[256];

	packet_describe(r->packet, r->length, line, sizeof(line));
	out_set_string(a->ctx->out, "answer", line);
	out_line(a->ctx->out, "  answer:      %s", line);
	show_bytes(a, "answer_hex", "", r->packet, r->length);
}

// The packet that goes to a backend or to a client. In mode dr only the link-layer address
// identifies the backend.
static void show_leaving(const struct asked *a, const struct test_result *r)
{
	const uint8_t *mac = r->packet;
	char line[256], to[18];

	packet_describe(r->packet, r->length, line, sizeof(line));
	snprintf(to, sizeof(to), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3],
		 mac[4], mac[5]);
	out_set_string(a->ctx->out, "leaves", line);
	out_set_string(a->ctx->out, "next_hop", to);
	out_line(a->ctx->out, "  leaves:      %s, next hop %s", line, to);
	show_bytes(a, "leaves_hex", "", r->packet, r->length);
}

static void show_sent(const struct asked *a, const struct test_result *r)
{
	if (r->reason == REASON_PASS_SERVICE || r->reason == REASON_PASS_ANSWER_NAT)
		show_leaving(a, r);
	else if (r->verdict == XDP_TX)
		show_reply(a, r);
}

// ---- one packet ---------------------------------------------------------------------------------

static void show_verdict(const struct asked *a, const struct explain_question *q,
			 const struct explain_answer *r, const char *head)
{
	const struct resolved_rule *rule = decision_rule(known(a), &r->result);
	struct decision_line line = {
		.verdict = decision_of(known(a), &r->result),
		.to = rule && rule->redirect ? rule->redirect : "another interface",
	};
	struct out *o = a->ctx->out;
	char packet[256];

	packet_describe(q->frame, q->length, packet, sizeof(packet));
	text_addf(&line.what, "%s%s", head, packet);
	add_why(&line.why, a, q, r);
	out_set_string(o, "packet", packet);
	out_set_string(o, "verdict", decision_word(line.verdict));
	out_set_string(o, "by", by_key(r));
	out_set_string(o, "reason", reason_name(r->result.reason));
	out_set_string(o, "why", text_get(&line.why));
	out_set_bool(o, "policy", explain_holds_on(&a->e, q->iface));
	explain_show_decision(o, &line);
}

// Bytes that the capture does not have are 0: harmless in a payload, but not in a header.
static void show_cut(const struct asked *a, const struct explain_question *q)
{
	if (!a->captured || a->captured >= q->length)
		return;
	out_set_u64(a->ctx->out, "captured", a->captured);
	out_line(a->ctx->out,
		 "  cut off:     the capture has %zu of %zu bytes; the other bytes are taken as 0",
		 a->captured, q->length);
}

static void show_answer(const struct asked *a, const struct explain_question *q,
			const struct explain_answer *r, const char *head)
{
	struct out *o = a->ctx->out;

	show_verdict(a, q, r, head);
	if (r->result.rule >= 0)
		explain_set_rule(o, &a->e, (size_t)r->result.rule);
	if (r->overlay) {
		out_object(o, "overlay");
		explain_set_record(o, a->e.store, r->overlay);
		out_end(o);
	}
	if (a->brief)
		return;
	show_rule(a, r);
	show_counted(a, r);
	if (r->result.service >= 0)
		explain_show_service(o, &a->e, &r->result);
	show_sent(a, &r->result);
	show_bytes(a, "packet_hex", "packet:", q->frame, q->length);
	show_cut(a, q);
	if (r->supposed && a->e.test)
		out_line(o, "  assumed:     over, established and unroutable as given; overlay and "
			    "dynamic sets empty");
}

static int ask(struct asked *a, const struct explain_question *q, const char *head, struct err *err)
{
	struct explain_answer answer;
	int code = explain_ask(&a->e, q, &answer, err);

	if (code)
		return code;
	out_object(a->ctx->out, NULL);
	out_set_bool(a->ctx->out, "live", !answer.supposed);
	show_answer(a, q, &answer, head);
	out_end(a->ctx->out);
	return 0;
}

// ---- where packets come from --------------------------------------------------------------------

static int ask_words(struct asked *a, struct err *err)
{
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	int code;

	for (size_t i = 0; i < a->e.n_packets; i++) {
		const struct resolved_packet *p = &a->e.packets[i];
		struct explain_question q = {
			.frame = frame,
			.iface = p->iface,
			.over = p->over,
			.established = p->established,
			.unroutable = p->unroutable,
		};

		if ((code = frame_build(p, frame, &q.length, err)))
			return code;
		if ((code = ask(a, &q, "", err)))
			return code;
	}
	return 0;
}

// Reads the options that describe a frame given as bytes.
static int read_question(const struct asked *a, struct explain_question *q, struct err *err)
{
	q->over = args_has(a->args, "over");
	q->established = args_has(a->args, "established");
	q->unroutable = args_has(a->args, "unroutable");
	return explain_iface(&a->e, args_value(a->args, "on"), &q->iface, err);
}

static bool hex_digit(char c, unsigned *ret)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *at = c ? strchr(digits, c) : NULL;
	unsigned value;

	if (!at)
		return false;
	value = (unsigned)(at - digits);
	*ret = value < 16 ? value : value - 6;
	return true;
}

// Allows blanks and colons between the bytes.
static int parse_hex(const char *text, uint8_t *ret, size_t *ret_length, struct err *err)
{
	unsigned high, low;
	size_t n = 0;

	while (*text) {
		if (strchr(" :\t\n", *text)) {
			text++;
			continue;
		}
		if (!hex_digit(text[0], &high) || !hex_digit(text[1], &low))
			return err_input(err, "'%.8s' does not begin with two hexadecimal digits",
					 text);
		if (n == FRAME_MAX)
			return err_input(err, "a frame has at most %d bytes", FRAME_MAX);
		ret[n++] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	*ret_length = n;
	return 0;
}

static int ask_hex(struct asked *a, struct err *err)
{
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	struct explain_question q = {.frame = frame};
	int code = parse_hex(args_value(a->args, "hex"), frame, &q.length, err);

	if (code)
		return code;
	if ((code = read_question(a, &q, err)))
		return code;
	return ask(a, &q, "", err);
}

// The interface of a capture, if the policy has one of this name.
static void find_iface(const struct asked *a, const struct pcapng_words *words, uint32_t *ret)
{
	CLEANUP_FREE char *name = mem_strndup(words->at, words->len);

	if (name[0])
		explain_iface(&a->e, name, ret, NULL);
}

static int ask_captured(struct asked *a, const struct captured_packet *p, struct err *err)
{
	CLEANUP_FREE uint8_t *frame = mem_zalloc(1, FRAME_MAX);
	struct explain_question q = {.frame = frame, .length = p->length};
	struct capture_comment comment = {0};
	char head[32];
	bool ours; // written by weir capture
	int code;

	if (p->length > FRAME_MAX)
		return err_input(err, "packet %llu has %zu bytes, more than %d",
				 (unsigned long long)p->number, p->length, FRAME_MAX);
	ours = capture_comment_read(p->note.comment.at, p->note.comment.len, &comment);
	a->captured = sampled_restore(p->bytes, p->captured, comment.front, frame, &q.length);
	if (q.length > FRAME_MAX)
		return err_input(err, "packet %llu had %zu bytes, more than %d",
				 (unsigned long long)p->number, q.length, FRAME_MAX);
	if ((code = read_question(a, &q, err)))
		return code;
	if (ours && !args_has(a->args, "on"))
		find_iface(a, &p->note.interface, &q.iface);
	snprintf(head, sizeof(head), "#%llu ", (unsigned long long)p->number);
	code = ask(a, &q, head, err);
	if (code)
		err_prefix(err, "packet %llu", (unsigned long long)p->number);
	return code;
}

static int read_number(const struct args *args, uint64_t *ret, struct err *err)
{
	const char *word = args_value(args, "packet");

	*ret = 0;
	if (word && num_parse_u64(word, strlen(word), 1, UINT64_MAX, ret))
		return err_input(err, "--packet '%s' is not a positive number", word);
	return 0;
}

static int ask_pcap(struct asked *a, struct err *err)
{
	CLEANUP_CAPTURE_FILE struct capture_file file = {0};
	const char *path = args_value(a->args, "pcap");
	struct captured_packet packet;
	uint64_t number;
	bool any = false;
	int code = read_number(a->args, &number, err), more;

	if (code)
		return code;
	if ((code = capture_file_open(path, &file, err)))
		return code;
	a->brief = !number && !a->ctx->verbose;
	while ((more = capture_file_next(&file, &packet, err))) {
		if (more < 0) {
			err_prefix(err, "'%s'", path);
			return more;
		}
		if (number && packet.number != number)
			continue;
		any = true;
		if ((code = ask_captured(a, &packet, err)))
			return code;
	}
	if (number && !any)
		return err_input(err, "'%s' has only %llu %s", path,
				 (unsigned long long)file.number,
				 num_plural(file.number, "packet", "packets"));
	return 0;
}

// ---- the command --------------------------------------------------------------------------------

// The words, with the options appended as words.
static char *join_packet(const struct args *args)
{
	struct text t = {0};

	vec_each (&args->words, word)
		text_addf(&t, "%s%s", t.len ? " " : "", *word);
	if (args_has(args, "on"))
		text_addf(&t, " on %s", args_value(args, "on"));
	if (args_has(args, "over"))
		text_add(&t, " over");
	if (args_has(args, "established"))
		text_add(&t, " established");
	if (args_has(args, "unroutable"))
		text_add(&t, " unroutable");
	return text_take(&t);
}

// Checks that Weir is attached to the interface of the packet, by default the first of the policy.
static int check_attached(const struct asked *a, struct err *err)
{
	const struct resolved *r = a->e.c->resolved;
	uint32_t number = 0, iface = a->e.n_packets ? a->e.packets[0].iface : 0;
	int code;

	if (!a->e.store)
		return 0;
	if (iface >= r->n_interfaces)
		return show_open(a->e.store->instance, 0, NULL, err);
	code = instance_find_iface(a->e.store->instance, r->interfaces[iface].name, &number, err);
	return code || !number ? code : show_open(a->e.store->instance, number, NULL, err);
}

static int explain_packets(struct asked *a, struct explain_request *request, struct err *err)
{
	int code;

	request->test = true;
	code = explain_open(&a->e, request, err);
	if (a->e.bad_file)
		policy_show_findings(a->ctx, a->e.c);
	if (code)
		return code;
	policy_show_test_refused(test_program_refused(a->e.test ? a->e.test : a->e.c->test));
	out_array(a->ctx->out, "packets");
	code = request->packet            ? ask_words(a, err)
	       : args_has(a->args, "hex") ? ask_hex(a, err)
					  : ask_pcap(a, err);
	out_end(a->ctx->out);
	if (code)
		return code;
	explain_warn(a->ctx, &a->e);
	return check_attached(a, err);
}

static int check_args(const struct args *args, struct err *err)
{
	bool words = args->words.n, hex = args_has(args, "hex"), pcap = args_has(args, "pcap");

	if (!words && !hex && !pcap)
		return args_expect_words(args, 1, 1, "address or packet", err);
	if (words + hex + pcap > 1)
		return err_input(err, "give only one of: a packet in words, --hex, --pcap");
	if (args_has(args, "packet") && !pcap)
		return err_input(err, "--packet needs --pcap");
	if (args->words.n == 1 && (args_has(args, "on") || args_has(args, "over") ||
				   args_has(args, "established") || args_has(args, "unroutable")))
		return err_input(err, "--on, --over, --established and --unroutable need a "
				      "packet, not an address");
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	struct asked a = {.ctx = ctx, .args = args};
	struct explain_request request = {.instance = ctx->instance};
	CLEANUP_FREE char *packet = NULL;
	struct policy_dns dns;
	int code = check_args(args, err);

	if (code)
		return code;
	if ((code = policy_dns(ctx, args, &dns, err)))
		return code;
	request.dns = dns.options;
	request.file = args_value(args, "policy");
	if (!request.file && (code = bpffs_ready(err)))
		return code;
	if (args->words.n == 1)
		return explain_address(ctx, &request, args->words.at[0], err);
	if (args->words.n)
		packet = join_packet(args);
	request.packet = packet;
	code = explain_packets(&a, &request, err);
	explain_free(&a.e);
	return code;
}

static const struct args_option options[] = {
	{.name = "hex", .arg = "BYTES", .help = "the packet, as the bytes of an Ethernet frame"},
	{.name = "pcap", .arg = "FILE", .help = "the packets of a capture file, one line each"},
	{.name = "packet", .arg = "N", .help = "only packet N of --pcap, in full"},
	{.name = "policy",
	 .arg = "FILE",
	 .help = "use the policy in FILE instead of the active one"},
	{.name = "on",
	 .arg = "IFACE",
	 .help = "the packet arrives on IFACE (default: the policy's first)"},
	{.name = "over",
	 .help = "assume that rates and numbers of connections are exceeded, chances taken"},
	{.name = "established", .help = "assume that the packet belongs to a connection"},
	{.name = "unroutable", .help = "assume that no route to its source leads by the interface"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{0},
};

const struct command cmd_explain = {
	.name = "explain",
	.usage = "ADDRESS | PACKET | --hex BYTES | --pcap FILE [OPTIONS]",
	.summary = "show what happens to an address or a packet, and why",
	.text = "For an address: every overlay entry, set and rule that contains it. A packet, in the\n"
		"syntax of a policy's expect lines, is run through a private copy of the active policy\n"
		"with its current rates, sets and overlay. Nothing is counted.\n"
		"\n"
		"  weir explain tcp from 192.0.2.1 to 10.0.0.1 port 22 on eth0\n"
		"  weir explain --policy new.weir --pcap drops.pcap --packet 7",
	.options = options,
	.run = run,
};
