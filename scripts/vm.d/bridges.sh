#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Makes the hubs of a machine's network cards in the network namespace that it runs in, a bridge for each, and
# becomes the machine: bridges.sh "MODEL QUEUES HUB"... -- COMMAND...

set -euo pipefail

readonly mtu_max=65521 # of a tap

# hub NUMBER: nothing of the bridge's own gets in, and it knows no addresses: all hear all.
hub() {
	! ip link show "hub$1" >/dev/null 2>&1 || return 0
	ip link add "hub$1" type bridge stp_state 0 ageing_time 0 mcast_snooping 0
	ip link set "hub$1" up
}

sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 2>/dev/null || :
n=0
while [[ $1 != -- ]]; do
	read -r _ queues hub <<<"$1"
	n=$((n + 1))
	many=()
	((queues == 1)) || many=(multi_queue)
	ip tuntap add "n$n" mode tap vnet_hdr "${many[@]}"
	hub "$hub"
	ip link set "n$n" mtu $mtu_max master "hub$hub" up
	shift
done
exec "${@:2}"
