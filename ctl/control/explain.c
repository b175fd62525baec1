// SPDX-License-Identifier: GPL-2.0-only
// Questions to a policy: the answer of its test program, and the overlay entry that decided.
#include "ctl/control/explain.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/test_program.h"

void explain_free(struct explain *e)
{
	test_program_free(e->test);
	generation_free(e->generation);
	lb_maps_close(e->live);
	candidate_free(e->c);
	store_free(e->store);
	*e = (struct explain){0};
}

// ---- the policy's text, followed by the packet --------------------------------------------------

// The environment in which a policy is compiled, with two changes: an expect line of the packet
// follows the main file, and a name or country that is not in the record is looked up.
struct explain_step {
	const struct policy_env *below;
	struct source_reader files;
	struct policy_env env;    // of all this
	struct environment asked; // the live environment, for names
	const char *path;         // of the main file
	const char *packet;       // NULL: none
	unsigned line;            // of the packet
};

static unsigned count_lines(const char *text, size_t length)
{
	unsigned lines = 0;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

static int read_file(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_length,
		     struct err *err)
{
	struct explain_step *q = ctx;
	const struct source_reader *below = q->below->files;
	int code = below->read(below->ctx, path, max, ret_text, ret_length, err);
	char *text;

	if (code || !q->packet || strcmp(path, q->path) != 0)
		return code;
	q->line = count_lines(*ret_text, *ret_length) + 3;
	// The first line's end is for a last line without one, the second for one that ends in "\".
	text = mem_printf("%s\n\nexpect pass %s\n", *ret_text, q->packet);
	free(*ret_text);
	*ret_text = text;
	*ret_length = strlen(text);
	return 0;
}

static int list_files(void *ctx, const char *pattern, char ***ret, size_t *ret_n, struct err *err)
{
	const struct source_reader *below = ((const struct explain_step *)ctx)->below->files;

	return below->glob(below->ctx, pattern, ret, ret_n, err);
}

static int find_names(void *ctx, const struct policy_question *questions, size_t n,
		      struct policy_answer *answers, struct err *err)
{
	struct explain_step *q = ctx;
	int code = q->below->resolve(q->below->ctx, questions, n, answers, err);

	if (code)
		return code;
	// All names of a record are known, so these belong to the packet.
	for (size_t i = 0; q->below->names_may_fail && i < n; i++) {
		if (!answers[i].error)
			continue;
		if ((code = q->asked.env.resolve(q->asked.env.ctx, &questions[i], 1, &answers[i],
						 err)))
			return code;
	}
	return 0;
}

// As find_names.
static int find_ranges(void *ctx, const struct geo *wanted, size_t n, struct policy_ranges *answers,
		       struct err *err)
{
	struct explain_step *q = ctx;
	int code = q->below->ranges(q->below->ctx, wanted, n, answers, err);

	if (code)
		return code;
	for (size_t i = 0; q->below->names_may_fail && i < n; i++) {
		if (answers[i].n)
			continue;
		if ((code = q->asked.env.ranges(q->asked.env.ctx, &wanted[i], 1, &answers[i], err)))
			return code;
	}
	return 0;
}

static void fetch_lists(void *ctx, const struct policy_url *urls, size_t n)
{
	const struct policy_env *below = ((const struct explain_step *)ctx)->below;

	if (below->fetch)
		below->fetch(below->ctx, urls, n);
}

static int find_addresses(void *ctx, struct addr **ret, size_t *ret_n, struct err *err)
{
	const struct policy_env *below = ((const struct explain_step *)ctx)->below;

	return below->addresses(below->ctx, ret, ret_n, err);
}

static void question_begin(struct explain_step *q, const struct policy_env *below,
			   const struct explain_request *request, const char *path)
{
	*q = (struct explain_step){.below = below, .path = path, .packet = request->packet};
	q->files = (struct source_reader){.read = read_file, .glob = list_files, .ctx = q};
	q->env = (struct policy_env){
		.ctx = q,
		.files = &q->files,
		.resolve = find_names,
		.ranges = find_ranges,
		.fetch = fetch_lists,
		.addresses = find_addresses,
		.known = below->known,
		.may_be_empty = below->may_be_empty,
		.names_may_fail = below->names_may_fail,
	};
	environment_live(&q->asked, &request->dns, NULL);
}

// The finding that the sentence is made of: the first in the packet, else the first of the file.
struct explain_finding {
	const struct explain_step *question;
	enum diag_level worst; // the address to find
	struct text text;
	char hint[256];
	bool in_packet;
};

static void keep_first(void *ctx, enum diag_level level, const char *file, unsigned line,
		       unsigned column, const char *message, const char *hint)
{
	struct explain_finding *f = ctx;
	const struct explain_step *q = f->question;
	bool in_packet = q->packet && file && line == q->line && !strcmp(file, q->path);

	if (level > f->worst || (f->text.len && (f->in_packet || !in_packet)))
		return;
	text_free(&f->text);
	if (file && !in_packet)
		text_addf(&f->text, "%s:%u: ", file, line);
	text_add(&f->text, message);
	snprintf(f->hint, sizeof(f->hint), "%s", hint ? hint : "");
	f->in_packet = in_packet;
}

static int report_packet(const struct explain_finding *f, struct err *err)
{
	err_input(err, "%s", text_get(&f->text));
	return f->hint[0] ? err_hint(err, "%s", f->hint) : -EINVAL;
}

// A mistake in the packet is the command line's; others are the file's, and of a record its end.
static int report(struct explain *e, const struct explain_step *q, bool file, struct err *err)
{
	struct explain_finding first = {.question = q, .worst = DIAG_ERROR};
	int code;

	diag_each(e->c->diag, keep_first, &first);
	if (first.in_packet)
		code = report_packet(&first, err);
	else if ((e->bad_file = file))
		code = err_input(err, "'%s' has errors", q->path);
	else
		code = err_stated(err, EBADMSG, "the record of revision %s is damaged: %s",
				  e->revision, text_get(&first.text));
	text_free(&first.text);
	return code;
}

static int take_packets(struct explain *e, const struct explain_step *q, struct err *err)
{
	const struct resolved *r = e->c->resolved;
	struct explain_finding first = {.question = q, .worst = DIAG_WARNING};
	int code = 0;

	e->packets = r->expects[r->n_expects - 1].packets;
	e->n_packets = r->expects[r->n_expects - 1].n_packets;
	if (e->n_packets)
		return 0;
	// A name without an address is only a warning where names may fail.
	diag_each(e->c->diag, keep_first, &first);
	code = first.in_packet ? report_packet(&first, err)
			       : err_input(err, "not a packet description");
	text_free(&first.text);
	return code;
}

static int compile_text(struct explain *e, const struct explain_request *request, const char *path,
			const char *const *ifaces, size_t n, struct err *err)
{
	struct policy_env below = e->c->environment.env;
	struct explain_step q;
	int code;

	question_begin(&q, &below, request, path);
	e->c->environment.env = q.env;
	code = request->file ? candidate_compile(e->c, path, ifaces, n)
			     : candidate_name(e->c, path, ifaces, n);
	e->c->environment.env = below;
	if (code)
		code = report(e, &q, request->file, err);
	else if (q.packet)
		code = take_packets(e, &q, err);
	environment_free(&q.asked);
	return code;
}

// Characters that would end the line of the packet and start another statement.
static int check_packet(const char *packet, struct err *err)
{
	if (packet && strpbrk(packet, "\n\r;#{}"))
		return err_input(err, "a packet description must be one line");
	return 0;
}

// ---- policies -----------------------------------------------------------------------------------

static int load_test(struct candidate *c, struct err *err)
{
	int code = lb_apply_find_nexthops(&c->lb, c->resolved, NEXTHOP_WAIT_MS, err);

	if (code)
		return code;
	return candidate_load(c, NULL, err);
}

static int open_file(struct explain *e, const struct explain_request *request, struct err *err)
{
	int code;

	e->c = candidate_new(&request->dns, NULL);
	e->recorded = true;
	if ((code = compile_text(e, request, request->file, NULL, 0, err)))
		return code;
	for (size_t n = 0; n < e->c->resolved->n_interfaces; n++)
		e->classes[n] = (uint8_t)(n + 1);
	e->named = e->c->resolved->n_interfaces;
	if (request->test && (code = load_test(e->c, err)))
		return code;
	e->lb = e->c->lb.lb;
	return 0;
}

// Names of the interfaces that a packet may come in on.
struct names {
	const char *at[WEIR_IFACES];
	size_t n;
	struct iface ifaces[WEIR_IFACES];
};

static bool has_name(const struct names *names, const char *name)
{
	for (size_t n = 0; n < names->n; n++)
		if (!strcmp(names->at[n], name))
			return true;
	return false;
}

// First the interfaces of the policy as applied (-i may have replaced the text's), then the others
// of the instance: those that match a pattern, and those that the policy does not name.
static void collect_names(struct explain *e, const struct generation_about *about,
			  struct names *ret)
{
	for (uint32_t i = 0; i < about->n_ifaces && i < WEIR_IFACES; i++) {
		ret->at[ret->n++] = about->ifaces[i];
		e->classes[i] = (uint8_t)(i + 1);
	}
	for (uint32_t number = 1; number < WEIR_IFACES && ret->n < WEIR_IFACES - 1; number++) {
		struct iface *iface = &ret->ifaces[number];

		if (instance_iface(e->store->instance, number, iface, NULL) ||
		    iface->state == IFACE_FREE || has_name(ret, iface->name))
			continue;
		e->classes[ret->n] = e->reach.classes.class[number];
		ret->at[ret->n++] = iface->name;
	}
}

static int load_record(struct explain *e, const char *instance, bool known,
		       struct revision *ret_revision)
{
	struct err why = {0};

	candidate_free(e->c);
	e->c = candidate_new_replay();
	return known ? revisions_load_known(instance, e->revision, true, &e->c->environment,
					    ret_revision, &why)
		     : revisions_load(instance, e->revision, &e->c->environment, ret_revision,
				      &why);
}

// known: what list files have need not be read again, unless the packet's words ask for more.
static int compile_record(struct explain *e, const struct explain_request *request,
			  const struct generation_about *about, bool known, struct err *err)
{
	CLEANUP_FREE struct names *names = mem_new(struct names);
	CLEANUP(revision_free) struct revision revision = {0};
	bool found = !load_record(e, request->instance, known, &revision) && e->revision[0];
	const char *path = found ? revision.path : candidate_no_policy(e->c);

	e->recorded = found || !e->revision[0];
	if (e->recorded && quick_read_version(request->instance, about->quick, &e->c->quick, NULL))
		e->recorded = false;
	collect_names(e, about, names);
	return compile_text(e, request, path, names->at, names->n, err);
}

static int compile_running(struct explain *e, const struct explain_request *request,
			   const struct generation_about *about, struct err *err)
{
	struct err why = {0};
	int code = compile_record(e, request, about, true, &why);

	if (code && e->c->environment.known)
		return compile_record(e, request, about, false, err);
	if (code && err)
		*err = why;
	return code;
}

static int open_active(struct explain *e, uint32_t *ret_number, struct err *err)
{
	struct commit_state state;
	uint32_t number;
	int code = commit_in_force(e->store->instance, &state, &number, err);

	if (code)
		return code;
	*ret_number = number;
	return generation_open(e->store->instance, number, &e->generation, err);
}

static int open_balancer(struct explain *e, uint32_t number, struct err *err)
{
	int code = lb_maps_open(e->store->instance, number, LB_SLOTS_ALL, &e->live, err);

	if (code || !e->live)
		return code;
	e->lb = lb_maps_state(e->live);
	return 0;
}

// The test program of an empty policy is not pinned.
static int open_test(struct explain *e, uint32_t number, struct err *err)
{
	int code = test_program_find(e->store->instance, number, &e->test, err);

	return code == -ENOENT ? test_program_open(e->store->instance, e->generation, &e->test, err)
			       : code;
}

static int open_running(struct explain *e, const struct explain_request *request, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	uint32_t number = 0;
	int code = store_peek(request->instance, &e->store, err);

	if (code)
		return code;
	if ((code = open_active(e, &number, err)))
		return code;
	if ((code = generation_read_about(e->store->instance, number, about, err)))
		return code;
	if ((code = reach_in_force(e->store->instance, &e->reach, err)))
		return code;
	if ((code = open_balancer(e, number, err)))
		return code;
	if (request->test && (code = open_test(e, number, err)))
		return code;
	snprintf(e->revision, sizeof(e->revision), "%s", about->revision);
	e->named = e->reach.named;
	return compile_running(e, request, about, err);
}

int explain_open(struct explain *e, const struct explain_request *request, struct err *err)
{
	int code = check_packet(request->packet, err);

	if (code)
		return code;
	return request->file ? open_file(e, request, err) : open_running(e, request, err);
}

// ---- questions ----------------------------------------------------------------------------------

struct explain_search {
	uint8_t kind;
	const struct reference *found;
};

// They come widest first.
static void see(void *ctx, const struct reference *record)
{
	struct explain_search *s = ctx;

	if (record->kind == s->kind)
		s->found = record;
}

const struct reference *explain_overlay(const struct explain *e, const struct prefix *p,
					uint8_t kind)
{
	struct explain_search s = {.kind = kind};

	if (e->store)
		records_covering(&e->store->records, p, see, &s);
	return s.found;
}

// The records that contain the ends of a packet. Pointers to records of another packet are then
// invalid.
static int load_overlay(const struct explain *e, const struct packet_fields *packet,
			struct err *err)
{
	const struct prefix prefixes[] = {
		prefix_of(&packet->from, (uint8_t)addr_bits(&packet->from)),
		prefix_of(&packet->to, (uint8_t)addr_bits(&packet->to)),
	};

	if (!e->store || !packet->ip)
		return 0;
	return store_load_covering(e->store, prefixes, ARRAY_SIZE(prefixes), err);
}

// The datapath knows the kind (for allow: from before to), the store the owner.
static const struct reference *find_overlay(const struct explain *e, const struct explain_answer *a)
{
	struct prefix from = prefix_of(&a->packet.from, (uint8_t)addr_bits(&a->packet.from));
	struct prefix to = prefix_of(&a->packet.to, (uint8_t)addr_bits(&a->packet.to));
	const struct reference *found;

	if (!a->packet.ip)
		return NULL;
	switch (a->result.reason) {
	case REASON_DROP_BLOCK_FROM:
		return explain_overlay(e, &from, OVERLAY_BLOCK_FROM);
	case REASON_DROP_BLOCK_TO:
		return explain_overlay(e, &to, OVERLAY_BLOCK_TO);
	case REASON_PASS_ALLOW:
		found = explain_overlay(e, &from, OVERLAY_ALLOW_FROM);
		return found ? found : explain_overlay(e, &to, OVERLAY_ALLOW_TO);
	default:
		return NULL;
	}
}

// Index of the device of this interface; 0: none, for a pattern for instance.
static uint32_t device_of(const struct explain *e, uint32_t iface)
{
	const struct resolved *r = e->c->resolved;
	struct iface found;
	uint32_t number = 0;

	if (!e->store || iface >= r->n_interfaces ||
	    instance_find_iface(e->store->instance, r->interfaces[iface].name, &number, NULL) ||
	    !number || instance_iface(e->store->instance, number, &found, NULL))
		return 0;
	return found.ifindex;
}

int explain_ask(struct explain *e, const struct explain_question *q, struct explain_answer *ret,
		struct err *err)
{
	struct explain_answer answer = {.supposed = !e->test || q->over || q->established ||
						    q->unroutable};
	struct policy_test ask = {
		.iface = e->classes[q->iface & (WEIR_IFACES - 1)],
		.over = q->over,
		.established = q->established,
		.unroutable = q->unroutable,
		.live = !answer.supposed,
		.ifindex = answer.supposed ? 0 : device_of(e, q->iface),
	};
	int code;

	if (q->length < 14)
		return err_input(err, "a frame of %zu %s is too short (minimum 14)", q->length,
				 num_plural(q->length, "byte", "bytes"));
	code = test_program_run(e->test ? e->test : e->c->test, q->frame, q->length, &ask,
				&answer.result, err);
	if (code)
		return code;
	packet_read(q->frame, q->length, &answer.packet);
	if ((code = load_overlay(e, &answer.packet, err)))
		return code;
	answer.overlay = find_overlay(e, &answer);
	*ret = answer;
	return 0;
}

bool explain_holds_on(const struct explain *e, uint32_t iface)
{
	return !e->named || e->classes[iface & (WEIR_IFACES - 1)];
}

int explain_iface(const struct explain *e, const char *name, uint32_t *ret, struct err *err)
{
	const struct resolved *r = e->c->resolved;
	size_t best = 0;
	uint32_t found = 0;

	for (size_t i = 0; name && i < r->n_interfaces; i++) {
		const struct resolved_interface *iface = &r->interfaces[i];
		size_t length = strlen(iface->name) + (strcmp(iface->name, name) ? 0 : 64);

		if (!fnmatch(iface->name, name, FNM_NOESCAPE) && length > best) {
			best = length;
			found = (uint32_t)i;
		}
	}
	if (name && !best)
		return err_input(err, "'%s' is not an interface of the policy", name);
	*ret = found;
	return 0;
}
