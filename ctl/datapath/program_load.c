// SPDX-License-Identifier: GPL-2.0-only
// Loads the programs of a policy with a log of the verifier, whose last line is the reason of a
// refusal.
#include "ctl/datapath/program_load.h"

#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/base/trace.h"
#include "ctl/datapath/confined.h"
#include "ctl/datapath/parts.h"

#define LOG_BYTES (16 << 20)

struct bpf_program *program_of(const struct policy_bpf *skel, enum generation_program program)
{
	struct bpf_program *const programs[GENERATION_PROGRAMS] = {
		[GENERATION_SHORT] = parts_short(skel),
		[GENERATION_GENERAL] = skel->progs.weir_policy,
		[GENERATION_BALANCE] = skel->progs.weir_balance,
		[GENERATION_NAT_ANSWER] = skel->progs.weir_nat_answer,
		[GENERATION_NAT] = skel->progs.weir_nat,
		[GENERATION_NAT_ANY] = skel->progs.weir_nat_any,
		[GENERATION_NAT_ANSWER_ANY] = skel->progs.weir_nat_answer_any,
	};

	return programs[program];
}

// The hint is the last line of the verifier that is not a statistic.
static void add_log(char *log, struct err *err)
{
	char *end;

	while ((end = strrchr(log, '\n'))) {
		*end = '\0';
		if (end[1] && strncmp(end + 1, "processed ", 10) &&
		    strncmp(end + 1, "verification", 12) && strncmp(end + 1, "stack ", 6)) {
			err_hint(err, "%.300s", end + 1);
			return;
		}
	}
}

// libbpf writes it when the kernel refuses a program, and loads no other one after that: one is
// enough.
static void set_log(const struct policy_bpf *skel, char *log, size_t size)
{
	for (enum generation_program p = 0; p < GENERATION_PROGRAMS; p++)
		bpf_program__set_log_buf(program_of(skel, p), log, size);
}

int program_load(struct policy_bpf *skel, const struct markers *markers, bool *ret_short,
		 struct err *err)
{
	CLEANUP_FREE char *log = mem_zalloc(1, LOG_BYTES);
	int code;

	set_log(skel, log, LOG_BYTES);
	trace(load__begin);
	code = markers_load(skel, markers, ret_short, err);
	trace(load__end, code);
	log[LOG_BYTES - 1] = '\0';
	if (code) {
		add_log(log, err);
		confined_explain(err, CONFINED_LOAD);
	}
	// The object must not keep a pointer to the log, which is freed.
	set_log(skel, NULL, 0);
	return code;
}

void program_refusal(const struct err *refusal, program_refused ret)
{
	snprintf(ret, sizeof(program_refused), "%s%s%.250s%s", err_name(refusal->code),
		 refusal->hint[0] ? " (" : "", refusal->hint, refusal->hint[0] ? ")" : "");
}
