# shellcheck shell=bash disable=SC2154 # set by scripts/lab and by the kind
# SPDX-License-Identifier: GPL-2.0-only
# Common parts of all kinds of labs: state, hosts (network namespaces), links, clean-up.

lab_dir=$root/scripts/lab.d
run_dir=/run/weir-lab
state=$run_dir/$name
build=${O:-build}
[[ $build == /* ]] || build=$root/$build

die() {
	printf 'lab: %s\n' "$*" >&2
	exit 2
}

netns_of() {
	printf '%s-%s' "$name" "$1"
}

# 'ip netns exec' would remount /sys and hide the objects in /sys/fs/bpf. A server that is started here must not
# inherit the lock.
in_host() {
	local host=$1
	shift
	nsenter --net="/run/netns/$name-$host" -- "$@" 9<&-
}

require_commands() {
	local command
	for command in "$@"; do
		command -v "$command" >/dev/null ||
			die "command '$command' not found: run $root/scripts/setup"
	done
}

# Weir mounts it only on a machine. A lab may be in a container, as in CI, and end with it.
mount_bpffs() {
	mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
}

# Only one command at a time changes labs. The locked directory is removed with the last lab, so check that it is
# still the one that other commands find.
lock_labs() {
	while :; do
		mkdir -p "$run_dir"
		exec 9<"$run_dir"
		flock 9
		[[ $run_dir -ef /proc/self/fd/9 ]] && return
	done
}

# The hosts of the existing lab, which may differ from those of the lab to create.
lab_hosts() {
	cat "$state/members" 2>/dev/null || true
}

# The state directory marks namespaces as part of a lab: created first, removed last.
make_state() {
	local host key
	for host in "${hosts[@]}"; do
		[[ ! -e /run/netns/$name-$host ]] ||
			die "network namespace '$name-$host' exists and does not belong to a lab: use another --name"
	done
	mkdir "$state"
	printf '%s\n' "${hosts[@]}" >"$state/members"
	printf '%s\n' "$mtu" >"$state/mtu"
	for key in "${!options[@]}"; do
		printf '%s %s\n' "$key" "${options[$key]}"
	done >"$state/options"
	printf '%s\n' "$kind" >"$state/kind"
}

# Loads the options of 'up' for later commands.
load_options() {
	local key value
	mtu=$(<"$state/mtu")
	while read -r key value; do
		options["$key"]=$value
	done <"$state/options"
}

# A quiet network in which addresses work at once: the counters of a test count only its own packets.
host_sysctl=(ipv6/conf/{all,default}/{disable_ipv6,accept_dad,accept_ra,router_solicitations}"=0"
	ipv4/conf/{all,default}/rp_filter"=0" "ipv4/ip_forward=0" "ipv6/ip_nonlocal_bind=1")

# add_host HOST [SETTING...]: a setting is PATH=VALUE, relative to /proc/sys/net.
add_host() {
	local host=$1
	shift
	ip netns add "$name-$host"
	# shellcheck disable=SC2016 # expanded by the inner shell
	in_host "$host" sh -c 'cd /proc/sys/net && for s; do echo "${s#*=}" >"${s%%=*}"; done' sh \
		"${host_sysctl[@]}" "$@"
	ip -n "$name-$host" link set lo up
}

# add_link HOST DEVICE MAC HOST DEVICE MAC [MTU]: the devices are set up as XDP requires of veth: packets have
# complete checksums, and VLAN tags are in the frame.
add_link() {
	local link_mtu=${7-$mtu}
	ip link add name "$2" mtu "$link_mtu" address "$3" netns "$name-$1" type veth \
		peer name "$5" mtu "$link_mtu" address "$6" netns "$name-$4"
	prepare_device "$1" "$2"
	prepare_device "$4" "$5"
}

prepare_device() {
	in_host "$1" ethtool -K "$2" tx off txvlan off rxvlan off gro on >/dev/null
	ip -n "$name-$1" link set "$2" up
}

# 'ip -n', not nsenter: ip mounts a bpffs before it loads a program, and with -n it uses a mount namespace of its
# own.
attach_pass() {
	build_pass
	ip -n "$name-$1" link set dev "$2" xdpdrv obj "$pass_object" sec xdp.frags
}

build_pass() {
	local source=$lab_dir/pass.bpf.c
	pass_object=$build/lab/pass.bpf.o
	[[ ! $pass_object -ot $source ]] && return
	require_commands clang
	mkdir -p "$build/lab"
	clang -O2 -g -target bpf -c "$source" -o "$pass_object.$$"
	mv "$pass_object.$$" "$pass_object"
}

# All processes of the lab: those recorded in the state, and those in its namespaces.
lab_pids() {
	local host file pid command
	for host in $(lab_hosts); do
		[[ ! -e /run/netns/$name-$host ]] || ip netns pids "$name-$host"
	done
	for file in "$state"/*.pid; do
		pid=$(cat "$file" 2>/dev/null) || continue
		command=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") || continue
		[[ $command != *"$state/"* ]] || printf '%s\n' "$pid"
	done
}

stop_processes() {
	local signal try pids
	for signal in TERM KILL; do
		for try in {1..25}; do
			pids=$(lab_pids)
			[[ $pids ]] || return 0
			# shellcheck disable=SC2086 # a list of numbers
			((try > 1)) || kill -s "$signal" $pids 2>/dev/null || true
			sleep 0.02
		done
	done
	printf 'lab: still running: %s\n' "${pids//$'\n'/ }" >&2
}

remove_lab() {
	local host
	[[ -d $state ]] || return 0
	stop_processes
	for host in $(lab_hosts); do
		[[ ! -e /run/netns/$name-$host ]] || ip netns del "$name-$host"
		remove_resolver "$host"
	done
	rm -rf "$state"
}

# This also removes the lock, so it must be the last step of a command.
remove_run_dir() {
	[[ ! -d $run_dir ]] || rmdir --ignore-fail-on-non-empty "$run_dir"
}

undo_up() {
	local status=$?
	trap '' INT TERM HUP
	((status > 128)) || printf "lab: cannot create '%s'; everything was removed\n" "$name" >&2
	remove_lab
	remove_run_dir
	exit "$status"
}

lab_up() {
	kind_options
	require_commands ip ethtool nsenter /usr/bin/python3 "${kind_commands[@]}"
	lock_labs
	mount_bpffs
	remove_lab
	trap undo_up EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	trap 'exit 129' HUP
	make_state
	kind_up
	trap '' INT TERM HUP
	trap - EXIT
	printf "lab '%s' is up: %s\n" "$name" "$(kind_summary)"
}

lab_down() {
	local host here
	here=$(ip netns identify $$ 2>/dev/null || true)
	for host in $(lab_hosts); do
		[[ $here != "$name-$host" ]] || die "this shell runs in '$here': leave it first"
	done
	lock_labs
	[[ ! -f $state/kind ]] || require_up
	if [[ ! -d $state ]]; then
		remove_run_dir
		printf "lab '%s' is not up\n" "$name"
		return
	fi
	remove_lab
	remove_run_dir
	printf "lab '%s' is down\n" "$name"
}

require_up() {
	local other
	[[ -f $state/kind ]] || die "lab '$name' is not up: run $0 up $kind --name $name"
	other=$(<"$state/kind")
	[[ $other == "$kind" ]] || die "lab '$name' is of kind '$other', not '$kind'"
	load_options
}

require_host() {
	local -a there
	mapfile -t there < <(lab_hosts)
	[[ " ${there[*]} " == *" ${1-} "* ]] || die "no host '${1-}' in lab '$name': use one of ${there[*]}"
}

lab_exec() {
	local host=${1-}
	require_up
	require_host "$host"
	shift
	(($#)) || set -- "${SHELL:-/bin/sh}"
	if ((with_dns)); then
		exec ip netns exec "$name-$host" "$@"
	fi
	exec nsenter --net="/run/netns/$name-$host" -- "$@"
}

# status_host HOST DEVICE
status_host() {
	printf '%-5s namespace %s-%s, device %s, %s\n' "$1" "$name" "$1" "$2" \
		"$(device_field "$1" "$2" 's/.*link\/ether \([^ ]*\).*/\1/p')"
	printf '      addresses  %s\n' "$(addresses_of "$1" "$2")"
	printf '      xdp        %s\n' "$(programs_on "$1" "$2")"
	printf '      offloads   %s\n' "$(offloads_of "$1" "$2")"
}

# With the names that 'ethtool -K' uses.
offloads_of() {
	in_host "$1" ethtool -k "$2" | awk -F '[: ]+' '
		BEGIN { word["tx-checksumming"] = "tx"; word["generic-receive-offload"] = "gro"
			word["tx-vlan-offload"] = "txvlan"; word["rx-vlan-offload"] = "rxvlan" }
		$1 in word { printf "%s%s %s", sep, word[$1], $2; sep = ", " }'
}

addresses_of() {
	ip -n "$name-$1" -o address show dev "$2" scope global |
		awk '{ printf "%s%s", sep, $4; sep = " " }'
}

device_field() {
	ip -n "$name-$1" -o link show dev "$2" | sed -n "$3"
}

# "native id 12 name lab_pass": the mode is among the flags, the program follows later.
programs_on() {
	local found
	found=$(ip -n "$name-$1" -o -d link show dev "$2" | awk '{
		for (i = 1; i <= NF; i++) {
			if ($i ~ /^xdp/) mode = $i == "xdp" ? "native" : $i == "xdpgeneric" ? "generic" : $i
			if ($i ~ /^prog\/xdp/) printf "%s %s %s %s %s", mode, $(i+1), $(i+2), $(i+3), $(i+4)
		} }')
	printf '%s' "${found:-none}"
}

lab_status() {
	if [[ ! -d $state ]]; then
		printf "lab '%s' is not up\n" "$name"
		exit 1
	fi
	require_up
	printf "lab '%s': %s, mtu %s, up since %s\n" "$name" "$kind" "$(<"$state/mtu")" \
		"$(date -r "$state/kind" '+%F %T')"
	kind_status
}
