// SPDX-License-Identifier: GPL-2.0-only
// Keeps what is wrong with names as a whole, and tells it once.
#include "ctl/agent/names_trouble.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"

#define MOST_MS       60000
#define DOUBLINGS_MAX 10

static const struct {
	const char *meanwhile, *over;
} words[TROUBLES] = {
	[TROUBLE_LIST] = {"the names of before are followed", "the names are listed again"},
	[TROUBLE_QUESTION] = {"all names keep their addresses", "names are asked for again"},
	[TROUBLE_ENTRIES] = {"the entries keep their addresses",
			     "the entries follow their names again"},
	[TROUBLE_POLICY] = {"its names are tried again later",
			    "the policy follows its names again"},
};

void names_troubles_free(struct names_troubles *t)
{
	for (size_t n = 0; n < TROUBLES; n++)
		free(t->at[n].why);
}

void names_trouble_begin(struct names_troubles *t, enum names_trouble which, const char *why)
{
	t->at[which].times++;
	if (t->at[which].why && !strcmp(t->at[which].why, why))
		return;
	log_error("%s; %s", why, words[which].meanwhile);
	free(t->at[which].why);
	t->at[which].why = mem_strdup(why);
}

bool names_trouble_end(struct names_troubles *t, enum names_trouble which)
{
	t->at[which].times = 0;
	if (!t->at[which].why)
		return false;
	log_notice("%s", words[which].over);
	free(TAKE_PTR(t->at[which].why));
	return true;
}

bool names_has_trouble(const struct names_troubles *t, enum names_trouble which)
{
	return t->at[which].why;
}

uint64_t names_trouble_pause_ms(const struct names_troubles *t, enum names_trouble which,
				uint64_t first)
{
	unsigned times = t->at[which].times ? t->at[which].times - 1 : 0;
	uint64_t ms = first << (times < DOUBLINGS_MAX ? times : DOUBLINGS_MAX);

	return ms < MOST_MS ? ms : MOST_MS;
}

void names_troubles_report(const struct names_troubles *t, struct json *problems)
{
	for (size_t n = 0; n < TROUBLES; n++)
		if (t->at[n].why)
			json_append(problems, json_string(t->at[n].why));
}
