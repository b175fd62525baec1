// SPDX-License-Identifier: GPL-2.0-only
// Reads cases line by line, runs each, and compares everything that a frame may change.
#include "tests/datapath/cases.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "tests/datapath/balance.h"
#include "tests/datapath/decap.h"

#define FILE_MAX    (64u << 20)
#define CHECK_EVERY 64

struct one_case {
	const char *name;
	const char *overlay; // entries as text, "" none
	const char *hit;     // the entry that counts the packet, NULL none
	bool lenient;
	uint32_t iface, linear;
	struct frame frame;
	uint32_t verdict;
	enum weir_reason reason;
	uint64_t bytes;
};

struct reader {
	struct rig *rig;
	const char *path, *only;
	size_t line;
	struct one_case now;
	const char *in_force; // text of the overlay that the rig has
	struct tally *tally;
	size_t unchecked; // cases since all counters were read
};

_Noreturn static void wrong(const struct reader *r, const char *what)
{
	struct err err = {0};

	err_input(&err, "%s:%zu: %s", r->path, r->line, what);
	test_die(&err);
}

// Reading

static uint32_t number(const struct reader *r, const char *text, uint32_t max)
{
	uint32_t n;

	if (num_parse_u32(text, strlen(text), 0, max, &n))
		wrong(r, "not a number in range");
	return n;
}

static unsigned nibble(const struct reader *r, char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, c) : NULL;

	if (!found)
		wrong(r, "not hexadecimal");
	return (unsigned)(found - digits);
}

static void read_frame(struct reader *r, const char *hex)
{
	struct frame *f = &r->now.frame;

	for (f->len = 0; *hex; hex += 2) {
		if (f->len == FRAME_MAX)
			wrong(r, "frame too long");
		f->at[f->len++] = (uint8_t)(nibble(r, hex[0]) << 4 | nibble(r, hex[1]));
	}
}

static enum weir_reason reason_of(const struct reader *r, const char *name)
{
	for (enum weir_reason reason = 0; reason < WEIR_REASON_COUNT; reason++)
		if (!strcmp(reason_name(reason), name))
			return reason;
	wrong(r, "no such reason");
}

static void run_case(struct reader *r);

// VERDICT REASON BYTES
static void read_expect(struct reader *r, char *text)
{
	const char *verdict = strsep(&text, " "), *reason = strsep(&text, " ");

	if (!r->now.name || !reason || !text)
		wrong(r, "expect wants verdict, reason, bytes, and a case before it");
	r->now.verdict = !strcmp(verdict, "drop") ? XDP_DROP : XDP_PASS;
	r->now.reason = reason_of(r, reason);
	r->now.bytes = number(r, text, UINT32_MAX);
	if (!r->only || strstr(r->now.name, r->only))
		run_case(r);
}

static void read_decap(const struct reader *r, const char *word, char *value)
{
	if (!decap_case_line(word, value, r->only, r->tally))
		wrong(r, "not a line of a decap case");
}

static void add_counted(struct text *why, const struct moved *m)
{
	text_addf(why, "counted '%s' on %u by %llu packets, %llu bytes; ", reason_name(m->reason),
		  m->number, (unsigned long long)m->by.packets, (unsigned long long)m->by.bytes);
}

// A case reads the counters of its own interface; now and then all counters are compared.
static void check_elsewhere(struct reader *r)
{
	struct text why = {0};
	struct outcome o;

	if (!r->unchecked)
		return;
	o = rig_look(r->rig);
	for (size_t n = 0; n < o.moved_n && n < ARRAY_SIZE(o.moved); n++)
		add_counted(&why, &o.moved[n]);
	if (why.len) {
		r->tally->failed++;
		printf("FAIL one of the last %zu cases (before %s:%zu) also %s\n", r->unchecked,
		       r->path, r->line, text_get(&why));
	}
	r->unchecked = 0;
	text_free(&why);
}

static void read_balance(struct reader *r, const char *word, char *value)
{
	check_elsewhere(r);
	if (!balance_case_line(r->rig, word, value, r->only, r->tally))
		wrong(r, "not a line of a balancer's case");
}

static void read_line(struct reader *r, char *line)
{
	const char *word = strsep(&line, " ");

	if (!*word || *word == '#')
		return;
	if (!line)
		wrong(r, "a word alone");
	if (!strcmp(word, "case"))
		r->now = (struct one_case){.name = line, .overlay = "", .iface = RIG_IFACE};
	else if (!strcmp(word, "overlay"))
		r->now.overlay = line;
	else if (!strcmp(word, "hit"))
		r->now.hit = line;
	else if (!strcmp(word, "policy"))
		r->now.lenient = !strcmp(line, "malformed-pass");
	else if (!strcmp(word, "iface"))
		r->now.iface = number(r, line, WEIR_IFACES - 1);
	else if (!strcmp(word, "linear"))
		r->now.linear = number(r, line, FRAME_MAX);
	else if (!strcmp(word, "frame"))
		read_frame(r, line);
	else if (!strncmp(word, "decap-", 6))
		read_decap(r, word + 6, line);
	else if (!strncmp(word, "balance-", 8))
		read_balance(r, word + 8, line);
	else if (!strcmp(word, "expect"))
		read_expect(r, line);
	else
		wrong(r, "unknown word");
}

// Comparing: each of these adds a sentence for each difference

static void check_outcome(const struct one_case *c, const struct outcome *o, struct text *why)
{
	bool seen = false;

	if (o->verdict != c->verdict)
		text_addf(why, "verdict %u, expected %u; ", o->verdict, c->verdict);
	if (o->changed)
		text_add(why, "the packet was changed; ");
	for (size_t n = 0; n < o->moved_n && n < ARRAY_SIZE(o->moved); n++) {
		const struct moved *m = &o->moved[n];

		if (m->reason == c->reason && m->number == c->iface && m->by.packets == 1 &&
		    m->by.bytes == c->bytes)
			seen = true;
		else
			add_counted(why, m);
	}
	if (!seen)
		text_addf(why, "expected '%s' on %u by 1 packet, %llu bytes; ",
			  reason_name(c->reason), c->iface, (unsigned long long)c->bytes);
}

static void check_row(const struct one_case *c, const struct overlay_entry *hit,
		      const struct overlay_entry *before, const struct overlay_entry *after,
		      const struct clock clocks[2], struct text *why)
{
	bool is = hit && hit->kind == after->kind && !prefix_compare(&hit->prefix, &after->prefix);
	uint64_t packets = after->hits.packets - before->hits.packets;
	uint64_t bytes = after->hits.bytes - before->hits.bytes;
	addr_text buf;

	if (packets != is || bytes != (is ? c->bytes : 0))
		text_addf(why, "entry '%s %s' counted %llu packets, %llu bytes; ",
			  kind_name(after->kind), prefix_format(&after->prefix, buf),
			  (unsigned long long)packets, (unsigned long long)bytes);
	// Hosts remember it in units of 64 jiffies.
	if (is && (after->seen >> OVERLAY_HEARD_UNIT < clocks[0].jiffies >> OVERLAY_HEARD_UNIT ||
		   after->seen > clocks[1].jiffies))
		text_addf(why, "entry '%s %s' has another time of the last packet; ",
			  kind_name(after->kind), prefix_format(&after->prefix, buf));
}

static void check_rows(const struct one_case *c, const struct overlay_entries *before,
		       const struct overlay_entries *after, const struct clock clocks[2],
		       struct text *why)
{
	struct overlay_entry hit;
	struct err err = {0};

	if (c->hit && want_parse(c->hit, 0, &hit, &err))
		test_die(&err);
	if (before->n != after->n)
		text_add(why, "the overlay has changed; ");
	for (size_t n = 0; n < after->n && n < before->n; n++)
		check_row(c, c->hit ? &hit : NULL, &before->at[n], &after->at[n], clocks, why);
}

// Running

static void read_overlay(const struct rig *rig, struct overlay_entries *ret)
{
	struct err err = {0};

	if (overlay_read(rig->instance, ret, &err))
		test_die(&err);
}

static struct outcome send_case(struct reader *r, struct text *why)
{
	const struct one_case *c = &r->now;
	struct overlay_entries before = {0}, after = {0};
	struct clock clocks[2];
	struct outcome o;

	if (*c->overlay)
		read_overlay(r->rig, &before);
	clocks[0] = rig_clock(r->rig);
	o = rig_send_on(r->rig, c->iface, &c->frame, c->linear);
	clocks[1] = rig_clock(r->rig);
	if (*c->overlay)
		read_overlay(r->rig, &after);
	if (o.code)
		text_addf(why, "not run: %s; ", err_name(o.code));
	else
		check_outcome(c, &o, why);
	check_rows(c, &before, &after, clocks, why);
	vec_free(&before);
	vec_free(&after);
	return o;
}

static void prepare(struct reader *r)
{
	suite_names(r->now.name);
	if (strcmp(r->in_force, r->now.overlay) != 0)
		rig_overlay_text(r->rig, r->now.overlay);
	r->in_force = r->now.overlay;
	rig_iface(r->rig, r->now.iface);
	if (r->now.lenient)
		rig_policy(r->rig, PROG_ACTIVE, rig_lenient(r->rig));
}

static void print_failure(const struct reader *r, const char *why)
{
	const struct one_case *c = &r->now;

	printf("FAIL case '%s' (%s:%zu): %s\n", c->name, r->path, r->line, why);
	if (*c->overlay)
		printf("     overlay: %s\n", c->overlay);
	print_hex(c->frame.at, c->frame.len);
}

static void run_case(struct reader *r)
{
	struct text why = {0};
	struct outcome o;

	prepare(r);
	o = send_case(r, &why);
	if (r->now.lenient)
		rig_policy(r->rig, PROG_ACTIVE, r->rig->policy);
	// Before 6.18 a test run has no short first buffer.
	if (o.code == -EINVAL && r->now.linear) {
		r->tally->skipped++;
	} else if (why.len) {
		r->tally->failed++;
		print_failure(r, text_get(&why));
	} else {
		r->tally->passed++;
	}
	text_free(&why);
	if (++r->unchecked == CHECK_EVERY)
		check_elsewhere(r);
}

void cases_run(struct rig *rig, const char *path, const char *only, struct tally *tally)
{
	struct reader r = {.rig = rig, .path = path, .only = only, .in_force = "", .tally = tally};
	CLEANUP_FREE char *text = NULL;
	struct err err = {0};
	size_t len;

	if (file_read(path, FILE_MAX, &text, &len, &err))
		test_die(&err);
	for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
		r.line++;
		read_line(&r, line);
	}
	check_elsewhere(&r);
	decap_cases_end();
	balance_cases_end(rig);
	rig_overlay_text(rig, "");
	rig_iface(rig, RIG_IFACE);
}
