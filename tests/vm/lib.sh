# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# Shared by the checks in a machine: steps that must succeed, and two hosts on a veth pair.

# must WHAT COMMAND...: the check ends at the first step that fails. The output of the command is kept for
# `said` in the next step.
must() {
	what=$1
	shift
	"$@" >/tmp/must.log 2>&1 || { cat /tmp/must.log; echo "failed: $what"; exit 1; }
	mv /tmp/must.log /tmp/said.log
	echo "$what"
}

said() {
	grep -- "$1" /tmp/said.log
}

# Prints the output of the last step.
show() {
	sed 's/^/  /' /tmp/said.log
}

not() {
	! "$@"
}

# soon COMMAND...: repeats the command until it succeeds, for 30 s and more: an emulated machine on a busy host is slow.
soon() {
	for _ in $(seq 300); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# reaches [BYTES]: a ping is answered, so the answer passes the XDP programs on near. An emulated
# machine on a busy host is slow.
reaches() {
	ping -q -c1 -W10 -s "${1:-56}" 10.9.0.2
}

# silent [BYTES]: a ping is not answered.
silent() {
	! ping -q -c1 -W1 -s "${1:-56}" 10.9.0.2
}

mtu() {
	ip link set near mtu "$1"
	ip -n peer link set far mtu "$1"
}

# near is in this namespace, far with 10.9.0.2 and 10.9.0.99 in the namespace peer.
two_hosts() {
	ip netns add peer
	ip link add near mtu 9000 type veth peer name far mtu 9000 netns peer
	ip address add 10.9.0.1/24 dev near
	ip link set near up
	ip -n peer address add 10.9.0.2/24 dev far
	ip -n peer address add 10.9.0.99/24 dev far
	ip -n peer link set far up
	reaches 56 >/dev/null
}
