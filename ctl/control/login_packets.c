// SPDX-License-Identifier: GPL-2.0-only
// Makes the packets, and the messages about a login that cannot be tested.
#include "ctl/control/login_packets.h"

#include <errno.h>
#include <netinet/in.h>

#include "ctl/base/mem.h"

#define TCP_ACK 0x10

struct resolved_packet packet_of_answer(const struct addr *from, uint16_t sport,
					const struct addr *to, uint16_t dport, uint8_t proto)
{
	return (struct resolved_packet){
		.ethertype = from->family == 4 ? 0x0800 : 0x86dd,
		.ip = true,
		.proto = proto,
		.from = *from,
		.to = *to,
		.sport = sport,
		.dport = dport,
		.flags = proto == IPPROTO_TCP ? TCP_ACK : 0,
		.ttl = 64,
		.established = true,
	};
}

struct resolved_packet login_packet(const struct session *s, size_t number)
{
	static const uint8_t ttls[] = {64, 50, 120};
	static const uint16_t payloads[] = {0, 100, 1400};
	struct resolved_packet p =
		packet_of_answer(&s->peer, s->peer_port, &s->local, s->local_port, IPPROTO_TCP);

	p.ttl = ttls[number % 3];
	p.length = (p.from.family == 4 ? 40u : 60u) + payloads[number / 3];
	return p;
}

void packet_set_mac(struct resolved_packet *p, uint64_t mac)
{
	p->mac_given = true;
	p->mac = mac;
}

void packet_macs(const struct peer_mac *from, const struct resolved *r, struct mac_classes *ret)
{
	if (peer_mac_is_certain(from))
		vec_push(&ret->of, from->mac);
	else if (r)
		mac_classes_find(r, ret);
	else {
		vec_push(&ret->of, 0);
		ret->cut = true;
	}
}

struct mac_answers packet_no_answers(const struct mac_classes *macs, const struct peer_mac *from)
{
	bool open = macs->cut && !from->tunnel;

	return (struct mac_answers){.pass = open, .drop = open};
}

bool packet_mac_decides(const struct mac_answers *a, const struct peer_mac *from)
{
	return a->pass && a->drop && !from->tunnel;
}

int login_refuse_mac(const struct session *s, const struct peer_mac *from, const char *device,
		     bool quick, struct err *err)
{
	peer_mac_text why;
	addr_text peer;

	err_refused(err, "cannot check that rules with mac pass the login from %s%s%s: %s",
		    addr_format(&s->peer, peer), device ? " on " : "", device ? device : "",
		    peer_mac_why(from, why));
	if (device)
		err_hint(err, "weir attach %s --confirm tries it and reverts by itself", device);
	else if (quick)
		err_hint(err, "--force adds it without the check");
	else
		err_hint(err,
			 "weir apply --confirm tries the policy and reverts by itself; or begin "
			 "with 'always pass from %s'",
			 peer);
	return -EPERM;
}

int login_refuse_unknown(const struct session *s, const char *device, struct err *err)
{
	CLEANUP_FREE char *claim =
		device ? mem_printf("the active policy passes it on '%s'", device)
		       : mem_strdup("the policy passes it");

	if (s->remote)
		err_refused(
			err,
			"cannot tell where this remote login comes from, so cannot check that %s",
			claim);
	else
		err_refused(err, "cannot find your login (%s), so cannot check that %s",
			    err_why(s->error), claim);
	if (device)
		err_hint(err, "weir attach %s --confirm tries it and reverts by itself", device);
	else
		err_hint(err, "weir apply --confirm tries the policy and reverts by itself");
	return -EPERM;
}
