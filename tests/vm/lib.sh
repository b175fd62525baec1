# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# What the checks in a machine share: steps that must hold, and two hosts on a veth pair.

# must WHAT COMMAND...: the check fails at the first that is not so. What the command said is kept for
# `said` in the step after it.
must() {
	what=$1
	shift
	"$@" >/tmp/must.log 2>&1 || { cat /tmp/must.log; echo "not so: $what"; exit 1; }
	mv /tmp/must.log /tmp/said.log
	echo "$what"
}

said() {
	grep -- "$1" /tmp/said.log
}

# What the last step said, as a part of the output.
show() {
	sed 's/^/  /' /tmp/said.log
}

not() {
	! "$@"
}

# soon COMMAND...: it becomes so; for what another process has to get ready first.
soon() {
	for _ in $(seq 100); do
		! "$@" || return 0
		sleep 0.1
	done
	return 1
}

# reaches [BYTES]: the answer to a ping comes back, so it passes the XDP programs on near. An emulated
# machine on a busy one takes its time.
reaches() {
	ping -q -c1 -W10 -s "${1:-56}" 10.9.0.2
}

# silent [BYTES]: none comes back.
silent() {
	! ping -q -c1 -W1 -s "${1:-56}" 10.9.0.2
}

mtu() {
	ip link set near mtu "$1"
	ip -n peer link set far mtu "$1"
}

# near is here, far with 10.9.0.2 and 10.9.0.99 is in the namespace peer.
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
