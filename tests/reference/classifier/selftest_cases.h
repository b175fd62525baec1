// SPDX-License-Identifier: GPL-2.0-only
// The fixed cases: policy, packet, and the answer that a person derives from weir-policy(5).
#ifndef REF_SELFTEST_CASES_H
#define REF_SELFTEST_CASES_H

/* policy NULL = the one before; packet NULL = the policy must be refused. */
struct selftest_case {
	const char *topic; /* what the case is about, or a reading of ref.h ("R3") */
	const char *policy;
	const char *packet; /* see packet_text.h */
	const char *answer;
};

extern const struct selftest_case selftest_cases[];

#endif
