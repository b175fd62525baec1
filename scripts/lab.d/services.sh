# shellcheck shell=bash disable=SC2154 # set by scripts/lab and by the kind
# SPDX-License-Identifier: GPL-2.0-only
# The servers of the far host of a pair: a DNS server with records that tests can change, and a web server.

# start_dns HOST ADDRESS...: an authority for all names; a name without records does not exist.
start_dns() {
	local host=$1 address cname
	local -a options=()
	shift
	for address in "$@"; do
		options+=(--listen-address="$address")
	done
	for cname in "${dns_cnames[@]}"; do
		options+=(--cname="$cname")
	done
	default_records >"$state/hosts"
	in_host "$host" dnsmasq --conf-file=/dev/null --no-resolv --no-hosts --no-poll \
		--bind-interfaces "${options[@]}" --address=/#/ --addn-hosts="$state/hosts" \
		--local-ttl="$dns_ttl" --user=root --group=root --pid-file="$state/dnsmasq.pid" \
		--log-facility="$state/dnsmasq.log"
}

start_http() {
	in_host "$1" /usr/bin/python3 -ES "$lab_dir/httpd.py" "$state/httpd.pid"
}

# Writes the file that 'ip netns exec' uses as /etc/resolv.conf.
set_resolver() {
	local host=$1 address
	shift
	mkdir -p "/etc/netns/$name-$host"
	{
		for address in "$@"; do
			printf 'nameserver %s\n' "$address"
		done
		printf 'search lab\noptions timeout:1 attempts:2\n'
	} >"/etc/netns/$name-$host/resolv.conf"
}

remove_resolver() {
	rm -f "/etc/netns/$name-$1/resolv.conf"
	rmdir --ignore-fail-on-non-empty "/etc/netns/$name-$1" /etc/netns 2>/dev/null || true
}

# A zombie has a directory in /proc, but no command line.
service_state() {
	local pid
	pid=$(cat "$state/$1.pid" 2>/dev/null || true)
	if [[ $pid && $(tr -d '\0' 2>/dev/null <"/proc/$pid/cmdline") ]]; then
		printf 'pid %s' "$pid"
	else
		printf 'NOT RUNNING'
		return 1
	fi
}

# Prints the records as "NAME ADDRESS...", one name per line.
show_records() {
	local cname
	awk 'NF { if (!($2 in all)) order[++n] = $2; all[$2] = all[$2] " " $1 }
		END { for (i = 1; i <= n; i++) printf "%-16s%s\n", order[i], all[order[i]] }' "$state/hosts"
	for cname in "${dns_cnames[@]}"; do
		printf '%-16s cname %s\n' "${cname%%,*}" "${cname#*,}"
	done
}

address_form='^([0-9]{1,3}\.){3}[0-9]{1,3}$|^[0-9a-f:]*:[0-9a-f.:]*$'

# Replaces the addresses of a name; "none" removes the name.
set_record() {
	local record=$1 address
	shift
	[[ $record =~ ^[A-Za-z0-9._-]+$ ]] || die "'$record' is not a host name"
	for address in "$@"; do
		[[ $address == none && $# == 1 ]] || [[ $address =~ $address_form ]] ||
			die "'$address' is not an address"
	done
	awk -v name="$record" '$2 != name' "$state/hosts" >"$state/hosts.new"
	[[ $1 == none ]] || printf "%s $record\n" "$@" >>"$state/hosts.new"
	load_records
}

reset_records() {
	default_records >"$state/hosts.new"
	load_records
}

# dnsmasq reads its records on SIGHUP and logs it: on return, the new records are in use.
load_records() {
	local before try
	before=$(loads_logged)
	mv "$state/hosts.new" "$state/hosts"
	kill -HUP "$(<"$state/dnsmasq.pid")"
	for try in {1..200}; do
		(($(loads_logged) > before)) && return
		sleep 0.005
	done
	die "dnsmasq has not read the new records after $try tries: see $state/dnsmasq.log"
}

loads_logged() {
	grep -c "read $state/hosts " "$state/dnsmasq.log" || true
}

lab_dns() {
	require_up
	lock_labs
	case $#:${1-} in
	0:) show_records ;;
	1:reset) reset_records ;;
	1:*) die "missing address of '$1' ('none' removes the name)" ;;
	*) set_record "$@" ;;
	esac
}
