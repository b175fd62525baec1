// SPDX-License-Identifier: GPL-2.0-only
// Plays a history of a service from stdin and prints the backend of each packet, after
// docs/ring.md.
/* history = service { event }
 *
 * service = "service" SIZE IDLE_TCP IDLE_UDP HOLD BUCKETS ( "tuple" | "source" )
 *
 * ( "stay" | "move" ) HZ HEX32
 *
 * event = "backend" ID ADDRESS PORT WEIGHT STATE ( "primary" | "backup" )
 *
 * adds it to the pool or changes it
 *
 * | "remove" ID removes it from the pool; its STATE stays
 *
 * | "state" ID STATE
 *
 * | "ring" new owners from the pool
 *
 * | "hold" HOLD
 *
 * | "time" JIFFIES 64 bits, absolute; 0 at first
 *
 * | "tidy"
 *
 * | "trial" ( "begin" | "confirm" | "back" )
 *
 * | "packet" ( "tcp" | "udp" | "sctp" ) SRC SPORT DST DPORT
 *
 * ( "opens" | "closes" | "other" )
 *
 * | "slots" | "pins"
 *
 * STATE = "up" | "drain" | "down" | "failing"
 *
 * one a line, blanks between words, decimal numbers, HEX32 in lower case; empty lines and lines
 * that begin with # are ignored. IDLE is in jiffies; IDLE_TCP applies to SCTP too. "-" instead of
 * an IDLE: the service has neither TCP nor SCTP, or has no UDP. HOLD is 1 to 16. An ID never gets
 * another ADDRESS or PORT, and has its STATE in the pool or outside. UDP never opens, and only TCP
 * closes. Slots change by `ring`, `trial` and `tidy` only. That a backend is down or drained has an
 * effect on packets at once, that it gets new flows from the next ring on.
 *
 * On trial: `trial begin` makes the new ring from the pool as edited since the last `ring`; the
 * previous ring keeps the pool of that `ring`. `ring` then changes both, only by the states: the
 * pool cannot be edited. `tidy` tidies the active ring. `trial back` restores ring and pool.
 *
 * A packet prints "BACKEND WRITTEN", BACKEND "none" if the slot has no owner, WRITTEN one of
 *
 * - nothing
 *
 * pin LEVEL BACKEND a new pin
 *
 * time the time of a pin, and its level by the kind of packet
 *
 * kept nothing: the pin that was found is young, and its level stays
 *
 * moved a pin whose backend is down now names the owner; time and level by the packet
 *
 * reopened a pin that was given up belongs to another connection: owner, level 0
 *
 * not-stored no place for a new pin
 *
 * "slots" and "pins" print "slots HEX16" or "pins HEX16", SipHash-1-3 with the service's key over
 * all words of the active ring or of the pins, eight bytes each, lower first. With --check the last
 * lines are counters, "NAME N"; `moved`, `stale` and `unstable` must be 0, else the exit status is
 * 1 (2: the input is invalid).
 * */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "model.h"
#include "slots_selftest.h"
#include "words.h"

#define HZ_MAX      10000
#define BUCKETS_MAX (1U << 24)
#define IDLE_MAX    (UINT64_C(1) << 32)

static const char *const words_udp[] = {"stay", "move", NULL};
static const char *const words_trial[] = {"begin", "confirm", "back", NULL};
static const char *const words_proto[] = {"tcp", "udp", "sctp", NULL};
static const char *const words_packet[] = {"other", "opens", "closes", NULL}; /* enum event */
static const uint8_t protos[] = {FLOW_TCP, FLOW_UDP, FLOW_SCTP};

struct play {
	struct line line;
	struct model model;
	struct check *check;                      /* NULL without --check */
	struct backend known[BACKEND_ID_MAX + 1]; /* id 0: never seen */
};

static uint64_t idle_read(const struct line *line, unsigned int i, bool *ret_has)
{
	*ret_has = strcmp(line->word[i], "-") != 0;
	return *ret_has ? word_number(line, i, 1, IDLE_MAX) : 0;
}

static struct settings settings_read(const struct line *line)
{
	struct settings set = {0};

	if (!line_is(line, "service", 10))
		line_fail(line, "'service' comes first");
	set.size = (uint32_t)word_number(line, 1, RING_SIZE_MIN, RING_SIZE_MAX);
	if (!ring_size_valid(set.size))
		line_fail(line, "%u is not prime", set.size);
	set.idle_tcp = idle_read(line, 2, &set.has_tcp);
	set.idle_udp = idle_read(line, 3, &set.has_udp);
	if (!set.has_tcp && !set.has_udp)
		line_fail(line, "a service without protocols");
	set.hold = (unsigned int)word_number(line, 4, 1, 16);
	set.buckets = (uint32_t)word_number(line, 5, 1, BUCKETS_MAX);
	set.by_source = word_choice(line, 6, words_hash);
	set.udp_move = word_choice(line, 7, words_udp);
	set.hz = (unsigned int)word_number(line, 8, 1, HZ_MAX);
	word_key(line, 9, set.key);
	return set;
}

static void state_set(struct play *play, uint16_t id, enum backend_state state)
{
	if (play->check)
		check_state(play->check, id, state);
	play->model.state[id] = state;
}

static void pool_may_change(const struct play *play)
{
	if (play->model.trial)
		line_fail(&play->line, "the pool cannot change on trial");
}

static void event_backend(struct play *play)
{
	struct backend backend = backend_read(&play->line);
	struct backend *known = &play->known[backend.id];

	pool_may_change(play);
	if (known->id && !backend_same_place(known, &backend))
		line_fail(&play->line, "backend %u with another address or port", backend.id);
	*known = backend;
	backends_put(&play->model.edited, &backend, &play->line);
	state_set(play, backend.id, backend.state);
}

static uint16_t known_read(const struct play *play)
{
	uint16_t id = (uint16_t)word_number(&play->line, 1, 1, BACKEND_ID_MAX);

	if (!play->known[id].id)
		line_fail(&play->line, "unknown backend %u", id);
	return id;
}

static void event_trial(struct play *play)
{
	unsigned int what = word_choice(&play->line, 1, words_trial);

	if (play->model.trial != (what != 0))
		line_fail(&play->line, play->model.trial ? "already on trial" : "not on trial");
	if (what == 0)
		model_trial_begin(&play->model);
	else if (what == 1)
		model_trial_confirm(&play->model);
	else
		model_trial_back(&play->model);
	if (play->check)
		check_ring(play->check, what == 2);
}

static void event_ring(struct play *play)
{
	model_ring(&play->model);
	if (play->check)
		check_ring(play->check, false);
}

static void event_tidy(struct play *play)
{
	model_tidy(&play->model);
	if (play->check)
		check_tidied(play->check, play->line.number);
}

static struct flow flow_read(const struct line *line)
{
	struct flow flow;

	memset(&flow, 0, sizeof(flow));
	flow.proto = protos[word_choice(line, 1, words_proto)];
	flow.family = word_address(line, 2, flow.source);
	flow.source_port = (uint16_t)word_number(line, 3, 0, UINT16_MAX);
	if (!flow.family || word_address(line, 4, flow.destination) != flow.family)
		line_fail(line, "not two addresses of one family");
	flow.destination_port = (uint16_t)word_number(line, 5, 0, UINT16_MAX);
	return flow;
}

static void decision_print(const struct decision *decision)
{
	static const char *const plain[] = {
		[WRITTEN_NOTHING] = "-",         [WRITTEN_TIME] = "time",
		[WRITTEN_KEPT] = "kept",         [WRITTEN_MOVED] = "moved",
		[WRITTEN_REOPENED] = "reopened", [WRITTEN_NOT_STORED] = "not-stored",
	};

	if (decision->written == WRITTEN_PIN)
		printf("%u pin %u %u\n", decision->backend, decision->level, decision->backend);
	else if (decision->backend)
		printf("%u %s\n", decision->backend, plain[decision->written]);
	else
		printf("none %s\n", plain[decision->written]);
}

static void event_packet(struct play *play)
{
	const struct line *line = &play->line;
	struct flow flow = flow_read(line);
	enum event event = word_choice(line, 6, words_packet);
	bool udp = flow.proto == FLOW_UDP;
	struct decision decision;

	if (udp ? !play->model.set.has_udp : !play->model.set.has_tcp)
		line_fail(line, "the service does not have this protocol");
	if (udp && event == EVENT_OPENS)
		line_fail(line, "UDP never opens");
	if (flow.proto != FLOW_TCP && event == EVENT_CLOSES)
		line_fail(line, "TCP alone closes");
	decision = model_packet(&play->model, &flow, event);
	decision_print(&decision);
	if (play->check)
		check_packet(play->check, &flow, event, &decision, line->number);
}

static void digest_print(const struct model *model, bool pins)
{
	size_t count = pins ? (size_t)model->pins.buckets * PINS_BUCKET : model->set.size;
	uint8_t *message = memory(count, 8);

	for (size_t i = 0; i < count; i++)
		bytes_lower_first(message + 8 * i,
				  pins ? model->pins.words[i] : slot_word(model->slots[i]), 8);
	printf("%s %016" PRIx64 "\n", pins ? "pins" : "slots",
	       siphash13(model->set.key, message, 8 * count));
	free(message);
}

static void event_pool(struct play *play)
{
	const struct line *line = &play->line;

	if (line_is(line, "backend", 7)) {
		event_backend(play);
	} else if (line_is(line, "remove", 2)) {
		pool_may_change(play);
		backends_remove(&play->model.edited, known_read(play));
	} else if (line_is(line, "state", 3)) {
		state_set(play, known_read(play), word_choice(line, 2, words_state));
	} else {
		line_fail(line, "unknown event '%s'", line->word[0]);
	}
}

static void event_play(struct play *play)
{
	const struct line *line = &play->line;

	if (line_is(line, "packet", 7))
		event_packet(play);
	else if (line_is(line, "time", 2))
		play->model.now = word_number(line, 1, 0, UINT64_MAX);
	else if (line_is(line, "ring", 1))
		event_ring(play);
	else if (line_is(line, "hold", 2))
		play->model.set.hold = (unsigned int)word_number(line, 1, 1, 16);
	else if (line_is(line, "tidy", 1))
		event_tidy(play);
	else if (line_is(line, "trial", 2))
		event_trial(play);
	else if (line_is(line, "slots", 1))
		digest_print(&play->model, false);
	else if (line_is(line, "pins", 1))
		digest_print(&play->model, true);
	else
		event_pool(play);
}

static int history_play(struct play *play, bool check)
{
	struct settings settings;
	bool well = true;

	if (!line_read(stdin, &play->line))
		line_fail(&play->line, "'service' is missing");
	line_cut(&play->line);
	settings = settings_read(&play->line);
	model_init(&play->model, &settings);
	play->check = check ? check_new(&play->model) : NULL;
	while (line_read(stdin, &play->line)) {
		line_cut(&play->line);
		event_play(play);
	}
	if (check)
		well = check_report(play->check);
	check_free(play->check);
	model_free(&play->model);
	line_free(&play->line);
	return well ? 0 : 1;
}

int main(int argc, char **argv)
{
	static struct play play;
	bool check = argc == 2 && !strcmp(argv[1], "--check");

	if (argc == 2 && !strcmp(argv[1], "--selftest"))
		return slots_selftest();
	if (argc != 1 && !check) {
		fputs("usage: refslots [--check | --selftest] < HISTORY\n", stderr);
		return 2;
	}
	return history_play(&play, check);
}
