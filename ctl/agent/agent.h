// SPDX-License-Identifier: GPL-2.0-only
// The agent, `weir run`: one process and one loop for what happens between two commands.
//
// It is made of parts, a table in parts.c. A part registers its events with the loop, changes an
// instance by the functions that commands call, and keeps nothing that a killed agent would lose.
// Nothing in the loop waits: work that needs the lock of the instance is a task (task.h), what
// takes long is a process of its own (process.h).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/agent/trouble.h"
#include "ctl/base/err.h"
#include "ctl/base/json.h"

struct dns_options;
struct agent_task;
struct event_base;
struct session;

// The source of an apply.
enum applies_source {
	APPLIES_FILE,  // the policy file
	APPLIES_AGAIN, // feeds or databases of the active policy
	APPLIES_API,
	APPLIES_SOURCES
};

struct applies { // since the agent began, the one at its start too
	uint64_t ok, failed;
};

struct agent {
	struct event_base *loop; // filled in by parts_run
	const char *instance;
	const char *command; // its command line, for the lock
	const char *netns;   // -N as given; NULL: not entered
	// the login to be protected; NULL: none started the agent, or from another namespace
	const struct session *session;
	const char *policy;     // the file of `weir run FILE`, or the default one
	bool policy_is_default; // it need not exist
	bool takes_all;         // --force: also if it has lost most of the accepted policy
	bool policy_was_absent; // at the start, so nothing was applied
	const char
		*metrics; // --metrics as given: the address to serve them on; NULL: only the socket
	bool keeps_history;        // not --no-history
	bool keeps_drops;          // --keep-drops
	const char *events_to;     // --events: where they are recorded; NULL: nowhere
	const char *page_group;    // --page-group as given; NULL: root
	struct page_command *page; // `weir page`, which is an agent with nothing but this; or NULL
	const char *hook;          // --hook as given; NULL: not given
	const char *resolver;      // --resolver as given; NULL: not given
	const char *resolver_timeout;
	const struct dns_options *dns; // from both, and the network namespace
	struct trouble refused;        // why the policy file was not applied
	struct applies applies[APPLIES_SOURCES];
	char *warned;        // the warnings of the last apply
	struct heart *heart; // heart.h
	// State of the parts, each its own.
	struct housekeeping *housekeeping;
	struct links_part *links;
	struct commands *commands; // commands.h
	struct agent_health *health;
	struct files *files;
	struct feeds_part *feeds;
	struct api *api;
	struct hooks *hooks; // NULL: no --hook
	struct names_part *names;
	struct places_part *places;
	struct history_part *history;
	struct events_part *events;
	struct event_log *event_log; // NULL: no --events
	struct samples_part *samples;
	struct recount *recount;
	struct nat_part *nat;
	struct page_part *page_door;
	struct record_part *record;
	// To be called when what the policy file is made from has changed; NULL: not yet. applied:
	// its feeds are followed too. Before that, the apply fetches them.
	void (*inputs_changed)(struct agent *a, bool applied);
	struct agent_task *report; // NULL: not while parts start, or after their end
	struct running *running;   // parts.c
};

struct agent_part {
	const char *name;
	// An error ends the agent before it is ready. 0 or -errno with err set.
	int (*start)(struct agent *a, struct err *err);
	// Takes its events from the loop and frees what it has, also after a start that failed.
	// NULL: nothing to do.
	void (*stop)(struct agent *a);
	// SIGHUP: reads again what it has read. NULL: nothing to do. An error is logged and shown
	// by `status`.
	int (*reload)(struct agent *a, struct err *err);
	// Adds fields for `weir status`, and problems, one sentence each. NULL: no report.
	void (*report)(const struct agent *a, struct json *fields, struct json *problems);
};

// The author of its applies of the policy file, also of the one at the start.
#define AGENT_BY_FILE "agent (file)"

extern const struct agent_part agent_policy, agent_housekeeping, agent_links, agent_health_part,
	agent_feeds, agent_files, agent_api, agent_names, agent_places, agent_hooks, agent_history,
	agent_recount, agent_nat, agent_page, agent_record, agent_events, agent_event_log,
	agent_samples;

// To be called with the number of places of entries whenever the names of the instance were listed.
void places_listed(struct agent *a, size_t n);
// To be called when checks have changed the state of backends: the connections of those that are
// down end.
void nat_backends_changed(struct agent *a);
