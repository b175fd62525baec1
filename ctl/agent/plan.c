// SPDX-License-Identifier: GPL-2.0-only
// Time, messages and random numbers of the agent's plans.
#include "ctl/agent/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "ctl/base/text.h"
#include "ctl/base/time.h"

struct plan_now plan_now(void)
{
	return (struct plan_now){.ms = time_ms(CLOCK_MONOTONIC), .wall_s = (uint64_t)time(NULL)};
}

void plan_say(struct plan_messages *to, void (*log)(const char *fmt, ...), const char *fmt, ...)
{
	struct text text = {0};
	va_list ap;

	va_start(ap, fmt);
	text_vaddf(&text, fmt, ap);
	va_end(ap);
	vec_push(to, ((struct plan_message){log, text_take(&text)}));
}

void plan_log(struct plan_messages *from)
{
	vec_each (from, message) {
		message->log("%s", message->text);
		free(message->text);
	}
	from->n = 0;
}

void plan_messages_free(struct plan_messages *m)
{
	vec_each (m, message)
		free(message->text);
	vec_free(m);
}

int plan_random(uint64_t *ret, struct err *err)
{
	if (getrandom(ret, sizeof(*ret), 0) != sizeof(*ret))
		return err_system(err, errno, "cannot get random numbers");
	*ret |= 1;
	return 0;
}

uint64_t plan_random_below(uint64_t *state, uint64_t bound)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return bound ? *state % bound : 0;
}
