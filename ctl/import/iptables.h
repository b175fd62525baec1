// SPDX-License-Identifier: GPL-2.0-only
// The output of iptables-save, made fit for iptables-restore-translate.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"
#include "ctl/import/options.h"

struct iptables_marks { // as VEC(struct import_mark)
	struct import_mark *at;
	size_t n, cap;
};

struct iptables_save {
	struct text text; // the tables filter and nat
	// Matches that the translator does not know, or translates in part, become tests of a mark
	// of the packet, which import_nft replaces.
	struct iptables_marks marks;
	struct import_facts facts; // of the other tables
	uint8_t family;            // that the head names: 4 or 6; 0: there is no head
};

// *ret is zero before. 0, or -EINVAL with err set and the number of the line.
int iptables_prepare(const char *text, size_t len, struct iptables_save *ret, struct err *err);
// Rules that the translator has left as comments ("# -A INPUT …") become rules whose condition is
// not known. Adds to *ret and *marks.
void iptables_complete(const char *nft, size_t len, struct text *ret, struct iptables_marks *marks);
void iptables_free(struct iptables_save *save);
#define CLEANUP_IPTABLES CLEANUP(iptables_free)
