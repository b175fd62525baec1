// SPDX-License-Identifier: GPL-2.0-only
// A feed of the policy or of a list: fetched by its `every`, and its text used if it is good.
//
// A new text of a policy's feed becomes the copy on disk, and the active policy is applied again
// with the copies. A new text of a list becomes its content by `weir block --sync` in a process of
// its own, and so does the same text each time if its entries have ends or its lines names. After a
// failure the last good text stays in use. The loop only fetches: a text is read, judged and
// written by copies of the agent.
#pragma once

#include "ctl/agent/process.h"
#include "ctl/agent/reapply.h"
#include "ctl/agent/task.h"
#include "ctl/control/feed_lists.h"
#include "ctl/control/feeds.h"
#include "ctl/net/curl.h"

struct feed_job {
	struct agent *agent;
	struct curl_loop *loop;
	struct reapply *policy;       // the active one
	char *key;                    // name of its copy; for the policy: a URL
	struct feed_list list;        // that follows it; list.list NULL: the policy does
	struct policy_url url;        // its strings are owned
	struct fetch *fetch;          // one of these three at a time
	struct agent_process *worker; // reads or writes `coming`
	struct agent_process *child;  // changes the list
	struct feed coming;           // the fetched text
	struct feed copy;             // without its text
	uint64_t copy_time;           // of its file
	uint64_t plain_time;          // digest of the text without expiries and names; 0: not known
	bool plain;                   // the received text is such
	struct agent_task request;
	uint64_t next_s; // wall clock: of the next request
	uint64_t good_s; // wall clock: of the last good answer, changed or not; 0: none yet
	struct trouble trouble;
	bool wanted; // found in the policy, or among the lists
};

// A feed that is not fetched yet. key: of its copy.
struct feed_job *feed_job_new(struct agent *a, struct curl_loop *loop, struct reapply *policy,
			      const char *key);
void feed_job_free(struct feed_job *job);
// Follows this address by these rules from now on; the same ones change nothing.
void feed_job_follow(struct feed_job *job, const struct policy_url *url);
// For a list, which is taken.
void feed_job_take_list(struct feed_job *job, struct feed_list *list);
// The next request is soon; at_once: instead of one that runs.
void feed_job_fetch_soon(struct feed_job *job, bool at_once);
void feed_job_report(const struct feed_job *job, struct json *feeds, struct json *problems);
