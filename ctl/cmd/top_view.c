// SPDX-License-Identifier: GPL-2.0-only
// Waits for the next reading, a key or a signal, then draws.
#include "ctl/cmd/top_view.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/cmd/stop.h"
#include "ctl/cmd/top_draw.h"
#include "ctl/cmd/top_samples.h"
#include "ctl/control/sampling.h"

#define MS_NS            1000000ull
#define SAMPLES_AGAIN_NS 3000000000ull // after a failure
#define RING_POLLS       10

// The signals are read between two screens, so that none interrupts ncurses.
static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
			      SIGPIPE, SIGTSTP, SIGCONT, SIGWINCH};

struct top_run {
	const struct top_view_options *options;
	struct rates_reader *reading;
	struct screen *screen;
	struct top_model model;
	struct top_ui ui;
	int signals;
	uint64_t first_ns, due_ns; // monotonic
	char time[16];             // of the last reading
	struct err trouble;        // of the last reading
	// Views of samples; these are read only while such a view is shown.
	struct top_samples *samples;
	struct sampled_reading sampled;
	struct err unsampled;
	uint64_t sample_ns; // monotonic; not before
};

static void top_run_free(struct top_run *v)
{
	top_model_free(&v->model);
	top_samples_close(v->samples);
	sampled_reading_free(&v->sampled);
	v->signals = fd_close(v->signals);
}

static sigset_t signal_set(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t n = 0; n < ARRAY_SIZE(signals); n++)
		sigaddset(&set, signals[n]);
	return set;
}

void top_view_block_signals(void)
{
	const sigset_t set = signal_set();

	// ncurses replaces only the default action.
	stop_catch_lost();
	sigprocmask(SIG_BLOCK, &set, NULL);
}

void top_view_unblock_signals(void)
{
	const sigset_t set = signal_set();

	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

// ---- readings -----------------------------------------------------------------------------------

static void note_time(struct top_run *v)
{
	uint64_t now_ns = time_ns(CLOCK_MONOTONIC),
		 then_ns = v->reading->lists[RATES_INTERFACES].now_ns;
	time_t wall_s = (time_t)((time_ns(CLOCK_REALTIME) - (now_ns - then_ns)) / 1000000000);
	struct tm tm;

	strftime(v->time, sizeof(v->time), "%H:%M:%S", localtime_r(&wall_s, &tm));
}

static void take(struct top_run *v)
{
	v->trouble = (struct err){0};
	if (reading_take(v->reading, &v->trouble))
		return;
	v->trouble = (struct err){0};
	top_model_add(&v->model, v->reading->lists);
	note_time(v);
}

// The next of the times that are a multiple of the interval after the first one.
static void plan(struct top_run *v)
{
	uint64_t now_ns = time_ns(CLOCK_MONOTONIC), every_ns = v->options->every_ms * MS_NS;

	v->due_ns = v->first_ns + ((now_ns - v->first_ns) / every_ns + 1) * every_ns;
}

static void take_if_due(struct top_run *v)
{
	if (time_ns(CLOCK_MONOTONIC) < v->due_ns)
		return;
	if (!v->ui.paused)
		take(v);
	plan(v);
}

// ---- samples ------------------------------------------------------------------------------------

static bool wants_samples(const struct top_run *v)
{
	return v->ui.view >= TOP_COUNTED && !v->ui.paused;
}

static void forget_samples(struct top_run *v)
{
	top_samples_close(TAKE_PTR(v->samples));
	v->unsampled = (struct err){0};
	v->sample_ns = 0;
}

static void fail_samples(struct top_run *v, const struct err *why, uint64_t now_ns)
{
	top_samples_close(TAKE_PTR(v->samples));
	v->unsampled = *why;
	v->sample_ns = now_ns + SAMPLES_AGAIN_NS;
}

static int open_samples(struct top_run *v, struct err *err)
{
	struct top_keys keys = {0};

	for (enum top_view view = TOP_COUNTED; view < TOP_VIEWS; view++)
		keys.by[top_views[view].by] = true;
	return v->samples ? 0 : top_samples_open(v->options->ctx, &keys, &v->samples, err);
}

// A failure is tried again after a while.
static void sample_if_due(struct top_run *v)
{
	uint64_t now_ns = time_ns(CLOCK_MONOTONIC), number;
	struct err why = {0};

	if (!wants_samples(v)) {
		forget_samples(v);
		return;
	}
	if (now_ns < v->sample_ns)
		return;
	if (open_samples(v, &why) || top_samples_take(v->samples, &why)) {
		fail_samples(v, &why, now_ns);
		return;
	}
	v->unsampled = (struct err){0};
	number = top_samples_number(v->samples);
	if (top_samples_fd(v->samples) < 0)
		v->sample_ns = now_ns + SAMPLING_POLL_NS;
	// The rows of the ring are computed only once a second, as the agent sends them.
	if (top_samples_fd(v->samples) < 0 && number % RING_POLLS != 1)
		return;
	sampled_reading_free(&v->sampled);
	top_samples_read(v->samples, &v->sampled);
}

// ---- draw ---------------------------------------------------------------------------------------

static void draw(struct top_run *v)
{
	const struct err *unknown = &v->reading->rules_unknown;
	char trouble[sizeof(v->trouble.text) + 64] = "";
	const struct top_about_now about = {
		.instance = v->options->ctx->instance,
		.time = v->time,
		.trouble = trouble,
		.samples = v->sampled.span_us ? &v->sampled : NULL,
	};
	const struct screen_area area = screen_begin(v->screen);

	if (v->trouble.kind)
		snprintf(trouble, sizeof(trouble), "no data since %s: %s", v->time,
			 v->trouble.text);
	else if (v->unsampled.kind)
		snprintf(trouble, sizeof(trouble), "%s", v->unsampled.text);
	else if (unknown->kind)
		snprintf(trouble, sizeof(trouble), "%s", unknown->text);
	top_draw(&area, &v->model, &v->ui, &about);
	screen_show(v->screen);
}

// ---- input --------------------------------------------------------------------------------------

static void read_keys(struct top_run *v)
{
	int key;

	while (!v->ui.ended && (key = screen_key(v->screen)) != SCREEN_NO_KEY)
		top_ui_key(&v->ui, key);
}

static void on_signal(struct top_run *v, uint32_t number)
{
	if (number == SIGTSTP)
		screen_stop(v->screen);
	if (number == SIGTSTP || number == SIGCONT)
		screen_renew(v->screen);
	else if (number != SIGWINCH)
		v->ui.ended = true;
}

static void read_signals(struct top_run *v)
{
	struct signalfd_siginfo got;

	while (read(v->signals, &got, sizeof(got)) == (ssize_t)sizeof(got))
		on_signal(v, got.ssi_signo);
}

static int wait_ms(const struct top_run *v)
{
	uint64_t now_ns = time_ns(CLOCK_MONOTONIC), due_ns = v->due_ns;

	if (v->ui.paused)
		return -1;
	if (wants_samples(v) && (!v->samples || top_samples_fd(v->samples) < 0) &&
	    v->sample_ns < due_ns)
		due_ns = v->sample_ns;
	return now_ns < due_ns ? (int)((due_ns - now_ns + MS_NS - 1) / MS_NS) : 0;
}

static bool is_closed(const struct pollfd *terminal)
{
	return terminal->revents & (POLLHUP | POLLERR | POLLNVAL);
}

static int wait_for_input(struct top_run *v, struct err *err)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = v->signals, .events = POLLIN},
		{.fd = v->samples ? top_samples_fd(v->samples) : -1, .events = POLLIN}};

	if (poll(fds, ARRAY_SIZE(fds), wait_ms(v)) < 0 && errno != EINTR)
		return err_system(err, errno, "cannot wait for a key");
	if (fds[1].revents)
		read_signals(v);
	if (fds[0].revents & POLLIN)
		read_keys(v);
	if (is_closed(&fds[0]))
		v->ui.ended = true;
	return 0;
}

int top_view_run(const struct top_view_options *options, struct rates_reader *reading,
		 struct screen *screen, struct err *err)
{
	CLEANUP(top_run_free)
	struct top_run v = {
		.options = options, .reading = reading, .screen = screen, .signals = -1};
	const sigset_t set = signal_set();
	int code;

	v.model.all = options->all;
	v.ui = top_ui_new();
	v.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (v.signals < 0)
		return err_system(err, errno, "cannot receive signals");
	v.first_ns = time_ns(CLOCK_MONOTONIC);
	note_time(&v);
	plan(&v);
	while (!v.ui.ended) {
		draw(&v);
		if ((code = wait_for_input(&v, err)))
			return code;
		take_if_due(&v);
		sample_if_due(&v);
	}
	return 0;
}
