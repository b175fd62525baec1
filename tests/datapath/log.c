// SPDX-License-Identifier: GPL-2.0-only
// The records of `log`: their order, which are lost, and that a reader never gets a torn one.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/datapath/logs.h"
#include "tests/datapath/balance_rig.h"

#define ENTRIES 16
#define SRC     "198.51.100.2"
#define DST     "192.0.2.1"
// A balance_rig needs a service.
#define POLICY                           \
	"drop from " SRC " log 1000/s\n" \
	"service a { vip 192.0.2.9; port any; proto udp; mode ipip; check none; backend 10.0.0.1 }\n"
#define HEADERS 42 // Ethernet, IPv4, UDP
#define SHOWN   (WEIR_SNAP_DEFAULT - HEADERS)
#define FRAMES  13 // different ones of a writer; does not divide WEIR_LOGS
#define WRITERS 2
#define READERS 2
#define RECORDS 200000 // written by test_torn(), unless WEIR_LOG_RECORDS is set

// A rig whose rule logs each packet.
struct setup {
	struct rig *rig;
	struct balance_rig *policy;
};

static void setup_free(struct setup *s)
{
	balance_rig_free(s->policy);
	rig_free(s->rig);
}
#define CLEANUP_SETUP CLEANUP(setup_free)

static void setup_new(struct setup *s)
{
	s->rig = rig_new(ENTRIES);
	balance_rig_log_all(true);
	s->policy = balance_rig_new(s->rig, POLICY);
	balance_rig_log_all(false);
}

// One packet with a number.
static void send_number(const struct setup *s, uint32_t number)
{
	struct frame f;

	frame_udp(&f, SRC, DST, sizeof(number));
	memcpy(f.at + HEADERS, &number, sizeof(number));
	rig_verdict(s->rig, &f, 1);
}

static void send_numbers(const struct setup *s, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		send_number(s, first + i);
}

static uint64_t lost(const struct setup *s)
{
	CLEANUP_FREE struct counters *now = mem_new(struct counters);
	struct err err = {0};

	if (counters_read(s->rig->instance, now, &err))
		test_die(&err);
	return now->tally[TALLY_LOG_LOST];
}

static struct logs *open_logs(const struct setup *s)
{
	struct logs *l = NULL;
	struct err err = {0};

	if (logs_open(s->rig->instance, LOGS_READ, &l, &err))
		test_die(&err);
	return l;
}

static void free_logs(struct logs **l)
{
	logs_close(*l);
}
#define CLEANUP_LOGS CLEANUP(free_logs)

// ---- order and loss -----------------------------------------------------------------------------

struct numbers {
	uint32_t next; // expected
	uint64_t missed;
	size_t n, wrong;
};

static void note_number(void *ctx, const struct event *event, uint64_t missed)
{
	struct numbers *got = ctx;
	uint32_t number;

	memcpy(&number, event->packet + HEADERS, sizeof(number));
	got->wrong += number != got->next || event->captured != HEADERS + sizeof(number) ||
		      !event->logged || event->reason != REASON_DROP_RULE;
	got->next = number + 1;
	got->missed += missed;
	got->n++;
}

static void expect_numbers(struct test *t, struct logs *l, uint32_t first, size_t n,
			   uint64_t missed)
{
	struct numbers got = {.next = first};

	logs_take(l, note_number, &got);
	CHECK(t, got.n == n && got.missed == missed && !got.wrong,
	      "%zu records, %llu missed, %zu wrong; expected %zu, %llu missed", got.n,
	      (unsigned long long)got.missed, got.wrong, n, (unsigned long long)missed);
}

// As many records as an hour of one a second has, without a reader. Then each of two gets those
// that are kept, and is told how many are not.
static void test_without_reader(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	CLEANUP_LOGS struct logs *first = NULL;
	CLEANUP_LOGS struct logs *second = NULL;

	setup_new(&s);
	send_numbers(&s, 0, 3600);
	CHECK(t, lost(&s) == 3600 - WEIR_LOGS, "%llu lost", (unsigned long long)lost(&s));
	first = open_logs(&s);
	second = open_logs(&s);
	expect_numbers(t, first, 3600 - WEIR_LOGS, WEIR_LOGS, 3600 - WEIR_LOGS);
	expect_numbers(t, second, 3600 - WEIR_LOGS, WEIR_LOGS, 3600 - WEIR_LOGS);
	expect_numbers(t, second, 0, 0, 0);
	send_numbers(&s, 3600, 3);
	expect_numbers(t, first, 3600, 3, 0);
	expect_numbers(t, second, 3600, 3, 0);
}

// A record that a reader has seen is not lost, however slow the other readers are.
static void test_lost(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	CLEANUP_LOGS struct logs *quick = NULL;
	CLEANUP_LOGS struct logs *slow = NULL;

	setup_new(&s);
	quick = open_logs(&s);
	slow = open_logs(&s);
	send_numbers(&s, 0, WEIR_LOGS);
	expect_numbers(t, quick, 0, WEIR_LOGS, 0);
	send_numbers(&s, WEIR_LOGS, WEIR_LOGS);
	CHECK(t, !lost(&s), "%llu lost that were read", (unsigned long long)lost(&s));
	expect_numbers(t, slow, WEIR_LOGS, WEIR_LOGS, WEIR_LOGS);
	send_numbers(&s, 2 * WEIR_LOGS, WEIR_LOGS + 1);
	CHECK(t, lost(&s) == 1, "%llu lost, expected 1", (unsigned long long)lost(&s));
	expect_numbers(t, quick, 2 * WEIR_LOGS + 1, WEIR_LOGS, WEIR_LOGS + 1);
}

// ---- torn records -------------------------------------------------------------------------------

struct writer {
	struct rig *rig;
	pthread_t thread;
	uint32_t number;
	uint64_t packets;
};

struct reader {
	struct logs *logs;
	struct mapping head, records; // mapped by start_edge()
	pthread_t thread;
	bool stop;
	uint64_t whole, missed, torn;
};

static void move_to_cpu(uint32_t number)
{
	size_t online = 1;
	struct err err = {0};
	cpu_set_t one;

	if (percpu_online(&online, &err))
		test_die(&err);
	CPU_ZERO(&one);
	CPU_SET(number % online, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

// Frames whose payload is one byte, which the length depends on.
static size_t payload_of(uint8_t fill)
{
	return SHOWN - 40 + fill % 64u;
}

static void *write_records(void *arg)
{
	struct writer *w = arg;
	CLEANUP_FREE struct frame *frames = mem_zalloc(FRAMES, sizeof(struct frame));

	move_to_cpu(w->number);
	for (uint32_t n = 0; n < FRAMES; n++) {
		uint8_t fill = (uint8_t)(w->number << 7 | n * 5);

		frame_udp(&frames[n], SRC, DST, payload_of(fill));
		memset(frames[n].at + HEADERS, fill, payload_of(fill));
	}
	// One packet a call: for several, the kernel changes its XDP dispatcher, and waits for RCU.
	for (uint64_t n = 0; n < w->packets; n++)
		rig_verdict(w->rig, &frames[n % FRAMES], 1);
	return NULL;
}

static bool is_whole(const struct event *event)
{
	uint8_t fill = event->packet[HEADERS];
	size_t length = HEADERS + payload_of(fill);

	if (event->length != length || !event->logged || event->reason != REASON_DROP_RULE)
		return false;
	if (event->captured != (length < WEIR_SNAP_DEFAULT ? length : WEIR_SNAP_DEFAULT))
		return false;
	for (size_t i = HEADERS; i < event->captured; i++)
		if (event->packet[i] != fill)
			return false;
	return true;
}

static void note_record(void *ctx, const struct event *event, uint64_t missed)
{
	struct reader *r = ctx;

	r->whole++;
	r->missed += missed;
	r->torn += !is_whole(event);
}

static void *read_records(void *arg)
{
	struct reader *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		if (!logs_take(r->logs, note_record, r))
			usleep(200); // leaves the processor to a writer
	return NULL;
}

// The number of records, also of those that no reader got.
static uint64_t written_records(const struct setup *s)
{
	CLEANUP_MAPPING struct mapping head = {0};
	struct err err = {0};

	if (mapping_open(&head, s->rig->instance->loghead, sizeof(struct log_head), &err))
		test_die(&err);
	return ((const struct log_head *)head.at)->next;
}

// Reads the records that are being overwritten or will be next, without a pause.
static void *read_edge(void *arg)
{
	struct reader *r = arg;
	const struct log_head *head = r->head.at;
	struct event event;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		uint64_t next = __atomic_load_n(&head->next, __ATOMIC_ACQUIRE);

		for (uint64_t n = next - WEIR_LOGS - 2;
		     next > WEIR_LOGS + 2 && n + WEIR_LOGS <= next; n++)
			if (log_record_read(r->records.at, n, &event) == LOG_WHOLE)
				note_record(r, &event, 0);
	}
	return NULL;
}

static void start_edge(const struct setup *s, struct reader *r)
{
	const struct instance *i = s->rig->instance;
	struct err err = {0};

	if (mapping_open(&r->head, i->loghead, sizeof(struct log_head), &err) ||
	    mapping_open(&r->records, i->logs, WEIR_LOGS * sizeof(struct log_record), &err))
		test_die(&err);
	pthread_create(&r->thread, NULL, read_edge, r);
}

static void end_edge(struct test *t, struct reader *r)
{
	for (unsigned n = 0; n < 10000 && !__atomic_load_n(&r->whole, __ATOMIC_RELAXED); n++)
		usleep(1000); // on a busy machine it may not have run yet
	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	pthread_join(r->thread, NULL);
	CHECK(t, r->whole, "the reader of the oldest records got none");
	CHECK(t, !r->torn, "%llu of %llu oldest records are torn", (unsigned long long)r->torn,
	      (unsigned long long)r->whole);
	mapping_close(&r->head);
	mapping_close(&r->records);
}

static uint64_t wanted_records(void)
{
	const char *text = getenv("WEIR_LOG_RECORDS");
	uint64_t n = suite_repeats(RECORDS);

	if (text && num_parse_u64(text, strlen(text), 1000, UINT32_MAX, &n)) {
		struct err err = {0};

		err_input(&err, "WEIR_LOG_RECORDS '%s' is not a number of at least 1000", text);
		test_die(&err);
	}
	return n;
}

// A last record reports what was missed before it; a record that its writer gave up is awaited for
// 100 ms.
static void read_rest(struct setup *s, struct reader *r, uint64_t written)
{
	for (unsigned n = 0; n < 1000 && r->whole + r->missed < written; n++) {
		logs_take(r->logs, note_record, r);
		rig_wait(s->rig, rig_after_ms(s->rig, 10));
	}
}

// Two writers on different CPUs overtake two readers again and again, and a third one reads where
// they write: each record is whole, and those that a reader did not get are counted.
static void test_torn(struct test *t)
{
	CLEANUP_SETUP struct setup s;
	uint64_t packets = wanted_records() / WRITERS;
	uint64_t written;
	struct writer writers[WRITERS] = {0};
	struct reader readers[READERS] = {0};
	struct reader edge = {0};
	struct frame last;

	setup_new(&s);
	start_edge(&s, &edge);
	for (uint32_t n = 0; n < READERS; n++) {
		readers[n].logs = open_logs(&s);
		pthread_create(&readers[n].thread, NULL, read_records, &readers[n]);
	}
	for (uint32_t n = 0; n < WRITERS; n++) {
		writers[n] = (struct writer){.rig = s.rig, .number = n, .packets = packets};
		pthread_create(&writers[n].thread, NULL, write_records, &writers[n]);
	}
	for (size_t n = 0; n < WRITERS; n++)
		pthread_join(writers[n].thread, NULL);
	end_edge(t, &edge);
	for (size_t n = 0; n < READERS; n++)
		__atomic_store_n(&readers[n].stop, true, __ATOMIC_RELEASE);
	for (size_t n = 0; n < READERS; n++)
		pthread_join(readers[n].thread, NULL);
	frame_udp(&last, SRC, DST, payload_of(0));
	memset(last.at + HEADERS, 0, payload_of(0));
	rig_verdict(s.rig, &last, 1);
	// Two packets at the same moment in a new jiffy are logged once.
	written = written_records(&s);
	CHECK(t, written > packets * WRITERS / 2, "%llu records", (unsigned long long)written);
	for (size_t n = 0; n < READERS; n++) {
		struct reader *r = &readers[n];

		read_rest(&s, r, written);
		CHECK(t, !r->torn, "reader %zu got %llu torn records", n,
		      (unsigned long long)r->torn);
		CHECK(t, r->whole > 1 && r->whole + r->missed == written,
		      "reader %zu: %llu records and %llu missed of %llu", n,
		      (unsigned long long)r->whole, (unsigned long long)r->missed,
		      (unsigned long long)written);
		logs_close(r->logs);
	}
}

const struct named_test log_tests[] = {
	{"log: without a reader", test_without_reader},
	{"log: lost records", test_lost},
	{"log: torn records", test_torn},
	{NULL, NULL},
};
