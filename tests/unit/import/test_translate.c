// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/import/translate: rules of nft that accept more packets than their words say.
// The rulesets are the objects of `nft -j list ruleset`, with ' for ".
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/time.h"
#include "ctl/import/import.h"

#define WANTED 4

struct ruleset_case {
	const char *objects;
	const char *want[WANTED]; // lines of the policy, or parts
	size_t translated, widened, omitted;
};

static char *document(const char *objects)
{
	char *json = mem_printf("{'nftables': [%s]}", objects);

	for (char *c = json; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return json;
}

static const struct ruleset_case cases[] = {
	// a rule that only logs is counted, and left out if a condition is lacking
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 22}}, {'log': null}]}}",
	 {"\"in 1\" count proto tcp to any port 22 log\n"},
	 1,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 22}}, {'match': {'op': '==', 'left': {'meta': {'key': 'mark'}}, 'right': 1}}, {'log': null}]}}",
	 {"default pass", "# left to nft: in 1: tcp dport 22 meta mark 1 log\n"},
	 0,
	 0,
	 1},
	// "*" has the family and protocol of its key
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'vmap': {'key': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'data': {'set': [[22, {'accept': null}], ['*', {'drop': null}]]}}}]}}",
	 {"\"in 1 (2)\" drop proto tcp\n", "default pass"},
	 1,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'vmap': {'key': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'data': {'set': [[{'prefix': {'addr': '10.0.0.0', 'len': 8}}, {'accept': null}], ['*', {'drop': null}]]}}}]}}",
	 {"\"IPv6\" pass from ::/0\n"},
	 1,
	 0,
	 0},
	{"{'map': {'family': 'inet', 'name': 'm', 'table': 'f', 'type': 'inet_service', 'map': 'verdict', 'flags': ['interval'], 'elem': [[{'range': [1, 9]}, {'accept': null}], ['*', {'drop': null}]]}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'vmap': {'key': {'payload': {'protocol': 'udp', 'field': 'dport'}}, 'data': '@m'}}]}}",
	 {"\"in 1 (2)\" drop proto udp\n"},
	 1,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'vmap': {'key': {'meta': {'key': 'mark'}}, 'data': {'set': [[1, {'accept': null}], ['*', {'drop': null}]]}}}]}}",
	 {"default pass"},
	 0,
	 1,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'vmap': {'key': {'payload': {'protocol': 'th', 'field': 'dport'}}, 'data': {'set': [[22, {'accept': null}], ['*', {'drop': null}]]}}}]}}",
	 {"default pass", "# left to nft: in 1"},
	 0,
	 0,
	 1},
	// a statement may end the rule
	{"{'set': {'family': 'inet', 'name': 's', 'table': 'f', 'type': 'ipv4_addr', 'size': 9}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'set': {'op': 'add', 'elem': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'set': '@s'}}, {'drop': null}]}}",
	 {"default pass", "# left to nft: in 1: add @s { ip saddr } drop\n"},
	 0,
	 0,
	 1},
	{"{'set': {'family': 'inet', 'name': 's', 'table': 'f', 'type': 'inet_service', 'size': 65535}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'set': {'op': 'update', 'elem': {'payload': {'protocol': 'udp', 'field': 'dport'}}, 'set': '@s'}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	{"{'set': {'family': 'inet', 'name': 's', 'table': 'f', 'type': 'inet_service', 'size': 65535}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'set': {'op': 'add', 'elem': {'payload': {'protocol': 'udp', 'field': 'dport'}}, 'set': '@s'}}, {'accept': null}]}}",
	 {"\"in 1\" pass proto udp\n"},
	 0,
	 1,
	 0},
	{"{'counter': {'family': 'inet', 'name': 'c1', 'table': 'f', 'packets': 0, 'bytes': 0}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'counter': {'map': {'key': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'data': {'set': [['1.2.3.4', 'c1']]}}}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'mangle': {'key': {'meta': {'key': 'mark'}}, 'value': {'map': {'key': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'data': {'set': [[25, 7]]}}}}}, {'drop': null}]}}",
	 {"default pass", "# left to nft: in 1: meta mark set map"},
	 0,
	 0,
	 1},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'mangle': {'key': {'meta': {'key': 'mark'}}, 'value': {'ct': {'key': 'mark'}}}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'mangle': {'key': {'payload': {'protocol': 'ip', 'field': 'dscp'}}, 'value': 'cs1'}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'mangle': {'key': {'meta': {'key': 'mark'}}, 'value': {'|': [{'meta': {'key': 'mark'}}, 16]}}}, {'counter': {'packets': 0, 'bytes': 0}}, {'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 2}}, {'drop': null}]}}",
	 {"\"in 1\" drop proto tcp to any port 2\n"},
	 1,
	 0,
	 0},
	// an answer has a family or a protocol
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 25}}, {'reject': {'type': 'icmp', 'expr': 'admin-prohibited'}}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'accept': null}]}}",
	 {"\"in 1\" reject proto tcp from 0.0.0.0/0 to any port 25\n", "default pass"},
	 2,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'reject': {'type': 'icmpv6', 'expr': 'admin-prohibited'}}]}}",
	 {"\"in 1\" reject from ::/0\n"},
	 1,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'meta': {'key': 'l4proto'}}, 'right': 'tcp'}}, {'reject': {'type': 'tcp reset'}}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'udp', 'field': 'dport'}}, 'right': 53}}, {'accept': null}]}}",
	 {"\"in 2\" pass proto udp to any port 53\n"},
	 2,
	 0,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'reject': {'type': 'icmpx', 'expr': 'admin-prohibited'}}]}}",
	 {"\"in 1\" reject\n"},
	 1,
	 0,
	 0},
	// the answers of a connection whose destination is rewritten
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': 'in', 'left': {'ct': {'key': 'status'}}, 'right': 'dnat'}}, {'accept': null}]}}",
	 {"\"in 1\" pass established\n", "\"in 1 (5)\" pass proto icmp type 3-5, 11-12\n"},
	 0,
	 1,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': 'in', 'left': {'ct': {'key': 'status'}}, 'right': 'dnat'}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	// packets fill a set, or empty it
	{"{'set': {'family': 'inet', 'name': 'ok', 'table': 'f', 'type': 'ipv4_addr', 'size': 100}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 4444}}, {'set': {'op': 'add', 'elem': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'set': '@ok'}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'right': '@ok'}}, {'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 22}}, {'accept': null}]}}",
	 {"\"in 2\" pass proto tcp from 0.0.0.0/0 to any port 22\n"},
	 0,
	 1,
	 1},
	{"{'set': {'family': 'inet', 'name': 'bad', 'table': 'f', 'type': 'ipv4_addr', 'size': 65535, 'elem': ['192.0.2.1']}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 4444}}, {'set': {'op': 'delete', 'elem': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'set': '@bad'}}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'right': '@bad'}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	{"{'set': {'family': 'inet', 'name': 'bad', 'table': 'f', 'type': 'ipv4_addr', 'elem': ['192.0.2.1']}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'right': '@bad'}}, {'drop': null}]}}",
	 {"\"in 1\" drop from @bad\n"},
	 1,
	 0,
	 0},
	// a table that is dormant
	{"{'table': {'family': 'inet', 'name': 'f', 'flags': 'f'}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'chain': {'family': 'inet', 'table': 'g', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}",
	 {"default pass"},
	 0,
	 0,
	 0},
	{"{'table': {'family': 'inet', 'name': 'f', 'flags': ['dormant', 'owner']}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'chain': {'family': 'inet', 'table': 'g', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}",
	 {"default pass"},
	 0,
	 0,
	 0},
	{"{'table': {'family': 'inet', 'name': 'f', 'flags': ['persist', 'owner']}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}",
	 {"default drop"},
	 0,
	 0,
	 0},
	// later packets of a connection that is not of TCP or UDP
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'icmp', 'field': 'type'}}, 'right': 'echo-request'}}, {'limit': {'rate': 1, 'burst': 5, 'per': 'minute'}}, {'accept': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': 'in', 'left': {'ct': {'key': 'state'}}, 'right': 'established'}}, {'accept': null}]}}",
	 {"\"in 1\" pass proto icmp type echo-request\n",
	  "\"in 2 (3)\" pass proto icmp6 type echo-reply, 140\n"},
	 0,
	 2,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'drop'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'icmp', 'field': 'type'}}, 'right': 'echo-request'}}, {'limit': {'rate': 200, 'burst': 5, 'per': 'second'}}, {'accept': null}]}}",
	 {"\"in 1\" pass proto icmp type echo-request\n"},
	 0,
	 1,
	 0},
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': 'in', 'left': {'ct': {'key': 'state'}}, 'right': 'invalid'}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'meta': {'key': 'l4proto'}}, 'right': 'icmp'}}, {'limit': {'rate': 5, 'burst': 5, 'per': 'second', 'inv': true}}, {'drop': null}]}}",
	 {"# left to nft: in 2"},
	 0,
	 0,
	 2},
	{"{'set': {'family': 'inet', 'name': 'y', 'table': 'f', 'type': 'ipv4_addr', 'size': 2}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'udp', 'field': 'dport'}}, 'right': 53}}, {'set': {'op': 'add', 'elem': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'set': '@y', 'stmt': [{'limit': {'rate': 4, 'burst': 5, 'per': 'second', 'inv': true}}]}}, {'drop': null}]}}",
	 {"default pass"},
	 0,
	 0,
	 1},
	// counts and comments
	{"{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': 'in', 'left': {'ct': {'key': 'state'}}, 'right': 'established'}}, {'accept': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'icmp', 'field': 'type'}}, 'right': 'echo-request'}}, {'limit': {'rate': 5, 'burst': 5, 'per': 'second', 'inv': true}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'payload': {'protocol': 'th', 'field': 'dport'}}, 'right': 53}}, {'drop': null}]}}",
	 {"# left to nft: in 2: icmp type echo-request limit rate over 5/second drop\n",
	  "# left to nft: in 3: th dport 53 drop\n"},
	 0,
	 1,
	 2},
	{"{'set': {'family': 'inet', 'name': 'y', 'table': 'f', 'type': 'ipv4_addr', 'size': 65535}}, "
	 "{'chain': {'family': 'inet', 'table': 'f', 'name': 'in', 'type': 'filter', 'hook': 'input', 'policy': 'accept'}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '!=', 'left': {'ct': {'key': 'state'}}, 'right': {'|': ['established', 'related']}}}, {'match': {'op': '==', 'left': {'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': 5}}, {'match': {'op': '==', 'left': {'fib': {'result': 'type', 'flags': ['daddr']}}, 'right': 'local'}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'limit': {'rate': 10, 'burst': 0, 'per': 'second', 'inv': true, 'rate_unit': 'kbytes', 'burst_unit': 'bytes'}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'set': {'op': 'update', 'elem': {'payload': {'protocol': 'ip', 'field': 'saddr'}}, 'set': '@y', 'stmt': [{'limit': {'rate': 4, 'burst': 5, 'per': 'day', 'inv': true}}]}}, {'drop': null}]}}, "
	 "{'rule': {'family': 'inet', 'table': 'f', 'chain': 'in', 'expr': [{'match': {'op': '==', 'left': {'&': [{'payload': {'protocol': 'ip', 'field': 'saddr'}}, '255.0.255.0']}, 'right': '10.0.1.0'}}, {'drop': null}]}}",
	 {"ct state != established | related", "limit rate over 10 kbytes/second drop",
	  "update @y { ip saddr limit rate over 4/day } drop",
	  "ip saddr & 255.0.255.0 == 10.0.1.0 drop"},
	 0,
	 0,
	 4},
};

static void test_rulesets(void **state)
{
	const struct import_options options = {.source = "JSON"};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP_FREE char *json = document(cases[i].objects);
		CLEANUP_TEXT struct text got = {0};
		struct import_counts n = {0};
		struct err err = {0};

		if (import_nft(json, strlen(json), &options, &got, &n, &err))
			fail_msg("%s: %s", json, err.text);
		for (size_t k = 0; k < WANTED && cases[i].want[k]; k++)
			if (!strstr(got.at, cases[i].want[k]))
				fail_msg("%s\n%s:\n%s", json, cases[i].want[k], got.at);
		if (n.translated != cases[i].translated || n.widened != cases[i].widened ||
		    n.omitted != cases[i].omitted)
			fail_msg("%s: %zu, %zu, %zu\n%s", json, n.translated, n.widened, n.omitted,
				 got.at);
	}
}

#define CHAIN(name, type, hook)                                                               \
	"{'chain': {'family': 'inet', 'table': 't', 'name': '" name "', 'type': '" type "', " \
	"'hook': '" hook "', 'policy': 'drop'}}"
#define RULE(chain, expr) \
	"{'rule': {'family': 'inet', 'table': 't', 'chain': '" chain "', 'expr': [" expr "]}}"
#define XT(name)    "{'xt': {'type': 'target', 'name': '" name "'}}"
#define STATE(word) "{'match': {'op': 'in', 'left': {'ct': {'key': 'state'}}, 'right': '" word "'}}"
#define TTL                                                                                \
	"{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': 'ttl'}}, " \
	"'right': 255}}"
#define DSCP                                                                                \
	"{'match': {'op': '==', 'left': {'payload': {'protocol': 'ip', 'field': 'dscp'}}, " \
	"'right': 8}}"

// nft knows no more than the names of such targets.
static void test_targets_of_iptables(void **state)
{
	static const struct {
		const char *target, *condition;
	} effects[] = {{"'xt': {'type': 'target', 'name': 'CT'}", STATE("untracked")},
		       {"'xt': {'type': 'target', 'name': 'CT'}", STATE("related")},
		       {"'xt': {'type': 'target', 'name': 'NOTRACK'}", STATE("untracked")},
		       {"'xt': {'type': 'target', 'name': 'CT'}", STATE("established")},
		       {"'xt': {'type': 'target', 'name': 'TTL'}", TTL},
		       {"'xt': {'type': 'target', 'name': 'TOS'}", DSCP},
		       {"'xt': null", STATE("untracked")},
		       {"'xt': null", TTL}};
	const struct import_options options = {.source = "JSON"};

	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		CLEANUP_FREE char *objects = mem_printf(
			CHAIN("in", "filter", "input") ", " RULE(
				"in",
				"%s, {'accept': null}") ", {'chain': {'family': 'ip', 'table': 'raw', 'name': 'x'}}, {'rule': {'family': 'ip', 'table': 'raw', 'chain': 'x', 'expr': [{%s}]}}",
			effects[i].condition, effects[i].target);
		CLEANUP_FREE char *json = document(objects);
		CLEANUP_TEXT struct text got = {0};
		struct import_counts n = {0};
		struct err err = {0};

		assert_int_equal(import_nft(json, strlen(json), &options, &got, &n, &err), 0);
		assert_int_equal(n.lacking, 1);
	}
}

// Packets that other hooks take away, and connections that Weir does not find.
static void test_refused(void **state)
{
	static const char fw[] =
		CHAIN("fw", "filter", "forward") ", " CHAIN("in", "filter", "input");
	static const struct {
		const char *objects, *message;
		bool forward;
	} bad[] = {
		{CHAIN("pre", "filter", "prerouting") ", " RULE("pre",
								"{'tproxy': {'port': 50080}}"),
		 "rule 1 of chain 'pre' takes packets from the hook forward", true},
		{CHAIN("pre", "filter", "prerouting") ", " RULE("pre", XT("TPROXY")),
		 "rule 1 of chain 'pre' takes packets from the hook forward", true},
		{CHAIN("pre", "filter", "ingress") ", " RULE("pre", "{'fwd': {'dev': 'eth1'}}"),
		 "rule 1 of chain 'pre' takes packets from the hook forward", true},
		{CHAIN("pre", "filter", "ingress") ", " RULE("pre", "{'fwd': {'dev': 'eth1'}}"),
		 "rule 1 of chain 'pre' takes packets from the hook input", false},
		{CHAIN("pre", "filter", "prerouting") ", " RULE("pre", "{'xt': null}"),
		 "rule 1 of chain 'pre' takes packets from the hook forward", true},
		{CHAIN("pre", "filter",
		       "prerouting") ", {'chain': {'family': 'inet', 'table': 't', 'name': "
				     "'own'}}, " RULE("own", "{'xt': null}"),
		 "rule 1 of chain 'own' takes packets from the hook forward", true},
		{RULE("in", XT("DNPT")), "rule 1 of chain 'in': target 'DNPT' may rewrite", false},
		{RULE("in", XT("SNPT")), "rule 1 of chain 'in': target 'SNPT' may rewrite", true},
		{"{'chain': {'family': 'ip', 'table': 'mangle', 'name': 'x'}}, {'rule': {'family': "
		 "'ip', 'table': 'mangle', 'chain': 'x', 'expr': [" XT("ECN") "]}}",
		 "rule 1 of chain 'x': target 'ECN' may rewrite", false},
		{CHAIN("nat", "nat", "postrouting") ", " RULE(
			 "nat", "{'masquerade': null}") ", " RULE("in", "{'ct helper': 'ftp'}"),
		 "helpers of connection tracking with rewritten addresses", false},
		{CHAIN("nat", "nat", "prerouting") ", " RULE(
			 "nat", "{'redirect': {'port': 80}}") ", " RULE("in",
									"{'ct helper': 'ftp'}"),
		 "helpers of connection tracking with rewritten addresses", false},
		{CHAIN("nat", "nat", "prerouting") ", " RULE(
			 "nat", "{'dnat': {'addr': '10.0.0.1'}}") ", " RULE("in",
									    "{'ct helper': 'ftp'}"),
		 "helpers of connection tracking with rewritten addresses", true},
		{CHAIN("nat", "nat", "postrouting") ", " RULE("nat", "{'masquerade': null}") ", " RULE(
			 "in", "{'mangle': {'key': {'ct': {'key': 'zone'}}, 'value': 5}}"),
		 "zones of connection tracking with rewritten sources", false},
		{"{'flowtable': {'family': 'inet', 'table': 't', 'name': 'f'}}, " RULE(
			 "in", "{'mangle': {'key': {'ct': {'key': 'zone'}}, 'value': 5}}"),
		 "zones of connection tracking with a flow table", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct import_options options = {.source = "JSON", .forward = bad[i].forward};
		CLEANUP_FREE char *objects = mem_printf("%s, %s", fw, bad[i].objects);
		CLEANUP_FREE char *json = document(objects);
		CLEANUP_TEXT struct text got = {0};
		struct import_counts n = {0};
		struct err err = {0};

		assert_true(import_nft(json, strlen(json), &options, &got, &n, &err) < 0);
		assert_non_null(strstr(err.text, bad[i].message));
		assert_int_equal(got.len, 0);
	}
}

// Where the ruleset does not say.
static void test_warnings(void **state)
{
	const struct import_options options = {.source = "JSON", .forward = true};
	CLEANUP_FREE char *json = document(CHAIN("fw", "filter", "forward"));
	CLEANUP_TEXT struct text got = {0};
	struct import_counts n = {0};
	struct err err = {0};

	assert_int_equal(import_nft(json, strlen(json), &options, &got, &n, &err), 0);
	assert_non_null(strstr(got.at, "# Addresses of this host: apply again when one changes"));
	assert_non_null(strstr(got.at, "# Not known: routes of type local, and macvlan"));
}

// ---- work ---------------------------------------------------------------------------------------

// Milliseconds of CPU for the document, which is valid.
static uint64_t measure(const struct text *objects)
{
	const struct import_options options = {.source = "JSON"};
	CLEANUP_FREE char *json = document(objects->at);
	CLEANUP_TEXT struct text got = {0};
	struct import_counts n = {0};
	struct err err = {0};
	uint64_t start = time_ms(CLOCK_THREAD_CPUTIME_ID);

	if (import_nft(json, strlen(json), &options, &got, &n, &err))
		fail_msg("%s", err.text);
	return time_ms(CLOCK_THREAD_CPUTIME_ID) - start;
}

// Half of a second on a slow machine; 80 million elements take many.
static void test_set_is_read_once(void **state)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, CHAIN("in", "filter", "input") ", {'set': {'family': 'inet', 'table': 't', "
						    "'name': 's', 'type': 'ipv4_addr', 'elem': [");
	for (unsigned i = 0; i < 20000; i++)
		text_addf(&t, "'10.%u.%u.1', ", i / 250, i % 250);
	text_add(&t, "'bad']}}");
	for (int i = 0; i < 3500; i++)
		text_addf(&t,
			  ", " RULE("in",
				    "{'match': {'op': '==', 'left': {'payload': {'protocol': "
				    "'ip', 'field': 'saddr'}}, 'right': '@s'}}, {'drop': null}"));
	assert_in_range(measure(&t), 0, 2500);
}

static void test_many_chains(void **state)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, CHAIN("in", "filter", "input"));
	for (int i = 0; i < 60000; i++)
		text_addf(&t, ", {'chain': {'family': 'inet', 'table': 't', 'name': 'KUBE-%d'}}",
			  i);
	assert_in_range(measure(&t), 0, 2500);
}

static void test_many_fillers(void **state)
{
	CLEANUP_TEXT struct text t = {0};

	text_add(&t, CHAIN("in", "filter", "input") ", {'set': {'family': 'inet', 'table': 't', "
						    "'name': 's', 'type': 'ipv4_addr'}}");
	for (int i = 0; i < 3800; i++)
		text_add(&t, ", " RULE("in",
				       "{'set': {'op': 'add', 'elem': {'payload': {'protocol': "
				       "'ip', 'field': 'saddr'}}, 'set': '@s', 'stmt': [{'limit': "
				       "{'rate': 5, 'per': 'second', 'burst': 5, 'inv': true}}]}}, "
				       "{'drop': null}"));
	assert_in_range(measure(&t), 0, 2500);
}

// Two names in turn need about the time of as many different ones.
static void test_repeated_names(void **state)
{
	CLEANUP_TEXT struct text twice = {0}, different = {0};
	struct text *texts[] = {&twice, &different};

	for (int k = 0; k < 2; k++) {
		text_add(texts[k], CHAIN("in", "filter", "input"));
		for (int i = 0; i < 3000; i++)
			text_addf(texts[k],
				  ", {'rule': {'family': 'inet', 'table': 't', 'chain': 'in', "
				  "'comment': '%090d', 'expr': [{'match': {'op': '==', 'left': "
				  "{'payload': {'protocol': 'tcp', 'field': 'dport'}}, 'right': "
				  "%d}}, {'drop': null}]}}",
				  k ? i : i % 2, 2 * i + 1);
	}
	assert_in_range(measure(&twice), 0, 3 * measure(&different) + 200);
}

// A set of n addresses, whose ports are `step` apart.
static void put_pairs(struct text *t, unsigned number, unsigned n, unsigned step)
{
	text_addf(t,
		  ", {'set': {'family': 'inet', 'table': 't', 'name': 's%u', 'type': "
		  "['ipv4_addr', 'inet_service'], 'elem': [",
		  number);
	for (unsigned i = 0; i < n; i++)
		text_addf(t, "%s{'concat': ['10.%u.%u.%u', %u]}", i ? ", " : "", number, i >> 8,
			  i & 255, 1 + i * step % 65535);
	text_add(t, "]}}");
}

static void put_user(struct text *t, unsigned number, const char *verdict)
{
	text_addf(t,
		  ", {'rule': {'family': 'inet', 'table': 't', 'chain': 'in', 'expr': [{'match': "
		  "{'op': '==', 'left': {'concat': [{'payload': {'protocol': 'ip', 'field': "
		  "'daddr'}}, {'payload': {'protocol': 'tcp', 'field': 'dport'}}]}, 'right': "
		  "'@s%u'}}, {'%s': null}]}}",
		  number, verdict);
}

struct pair_limit {
	unsigned sets, n, step;
	const char *verdict;
	size_t translated, widened, omitted;
	const char *want;
};

// The limits of a policy (weir-policy(5), LIMITS), and the limit of a set here.
static void test_pair_limits(void **state)
{
	static const struct pair_limit limits[] = {
		{1, 4096, 2, "drop", 1, 0, 0, "\"in 1\" drop proto tcp to @s0\n"},
		{1, 4097, 2, "drop", 0, 0, 1, "# left to nft: in 1"},
		{1, 4096, 2, "accept", 1, 0, 0, "\"in 1\" pass proto tcp to @s0\n"},
		{1, 4097, 2, "accept", 0, 1, 0, "\"in 1\" pass proto tcp to 10.0.0.0-10.0.16.0\n"},
		{1, 8192, 1, "drop", 1, 0, 0, "\"in 1\" drop proto tcp to @s0\n"},
		{1, 8193, 1, "drop", 0, 0, 1, "# left to nft: in 1"},
		{4, 8192, 1, "drop", 4, 0, 0, "\"in 4\" drop proto tcp to @s3\n"},
		{5, 8192, 1, "drop", 4, 0, 1, "# left to nft: in 5"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct import_options options = {.source = "JSON"};
		const struct pair_limit *l = &limits[i];
		CLEANUP_TEXT struct text objects = {0}, got = {0};
		CLEANUP_FREE char *json = NULL;
		struct import_counts n = {0};
		struct err err = {0};

		text_add(&objects, CHAIN("in", "filter", "input"));
		for (unsigned s = 0; s < l->sets; s++)
			put_pairs(&objects, s, l->n, l->step);
		for (unsigned s = 0; s < l->sets; s++)
			put_user(&objects, s, l->verdict);
		json = document(text_get(&objects));
		assert_int_equal(import_nft(json, strlen(json), &options, &got, &n, &err), 0);
		if (!strstr(got.at, l->want))
			fail_msg("%zu: %s", i, l->want);
		assert_int_equal(n.translated, l->translated);
		assert_int_equal(n.widened, l->widened);
		assert_int_equal(n.omitted, l->omitted);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rulesets),         cmocka_unit_test(test_targets_of_iptables),
		cmocka_unit_test(test_refused),          cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_set_is_read_once), cmocka_unit_test(test_many_chains),
		cmocka_unit_test(test_many_fillers),     cmocka_unit_test(test_repeated_names),
		cmocka_unit_test(test_pair_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
