// SPDX-License-Identifier: GPL-2.0-only
// What the items of lists are: a domain for each kind of list.
#pragma once

#include "ctl/policy/eval.h"

extern const struct domain domain_define, domain_address, domain_proto, domain_type, domain_code,
	domain_vlan, domain_dscp, domain_ethertype, domain_on, domain_port;
