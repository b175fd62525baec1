# shellcheck shell=bash disable=SC2034,SC2154 # shared with the other files
# SPDX-License-Identifier: GPL-2.0-only
# The lab 'balancer': a client, K balancers and N backends, connected by a router that forwards the replies.
#
#	client --------- router ========= balancer1 balancer2 ...
#	10.78.0.2        |                10.78.1.201 ...
#	                 +=============== backend1 backend2 backend3 ...
#	                                  10.78.2.1 ...  and the VIPs on lo
#
# IPv6: fd78::2, fd78:1::201, fd78:2::1. A request takes the path client, router, balancer, router, backend. The
# backend answers the client through the router, from the VIP. Hosts have one device, net0. The router has one
# device per host, named after the host. The VIPs are routes of the router, not addresses: a host that has the
# VIPs and also routes the replies would drop the replies as martian.
#
# ipip, gue: every link is a network of its own for the hosts. The router has 10.78.1.254 or 10.78.2.254 on it.
# Only the MTU limits the length of an encapsulated packet.
# dr: the backends and net0 of the balancers (then 10.78.2.201 ...) are in one segment, the bridge lan0 of the
# router, because in this mode a balancer changes only MAC addresses.
# nat: as dr, but the backends do not have the VIPs, and balancer1 is their gateway. fullnat: as ipip, without the
# VIPs; a balancer has the sources 10.78.3.201 and fd78:3::201 ... on lo.
# --nics 2: net0 of a balancer is a link of its own in every mode. A second device, back0, leads to the backends,
# so packets for backends leave through another device than they arrived on.

kind_commands=(nginx iperf3 openssl ss)
vip4=10.78.80.1
vip6=fd78:80::1
client_networks=(198.18.0.0/15 2001:db8::/32) # the client has all of them
service_ports='7, 80, 443'

# Options, hosts

kind_options() {
	: "${options[mode]=dr}" "${options[backends]=3}" "${options[nodes]=1}" "${options[nics]=1}"
	: "${options[v6]=0}"
	[[ ${options[mode]} == @(dr|ipip|gue|nat|fullnat) ]] ||
		wrong "invalid mode '${options[mode]}': dr, ipip, gue, nat or fullnat"
	check_number backends 64
	check_number nodes 8
	[[ ${options[mode]} != nat || ${options[nodes]} == 1 ]] ||
		wrong "mode nat has one node: it is the gateway of the backends"
	check_number nics 2
	declare -A overhead=([ipip]=40 [gue]=80)
	: "${options[link-mtu]=$((mtu + ${overhead[${options[mode]}]:-0}))}"
	is_mtu "${options[link-mtu]}" || wrong "invalid link MTU '${options[link-mtu]}'"
	hosts=(client router)
	mapfile -t -O 2 hosts < <(balancers && backends)
}

check_number() {
	[[ ${options[$1]} =~ ^[1-9][0-9]?$ && ${options[$1]} -le $2 ]] ||
		wrong "invalid --$1 '${options[$1]}': a number from 1 to $2"
}

balancers() {
	printf 'balancer%d\n' $(seq "${options[nodes]}")
}

backends() {
	printf 'backend%d\n' $(seq "${options[backends]}")
}

has_segment() {
	[[ ${options[mode]} == @(dr|nat) ]]
}

# Do the backends have the addresses of the clients' packets?
translates() {
	[[ ${options[mode]} == @(nat|fullnat) ]]
}

# in_segment HOST DEVICE: is the device connected to lan0?
in_segment() {
	has_segment && [[ ($1 == backend* || $2 == back0 || ${options[nics]} == 1) ]]
}

# The third number of the address of a balancer's net0.
front_net() {
	in_segment balancer net0 && echo 2 || echo 1
}

# Building

kind_up() {
	local i
	add_client_and_router
	! has_segment || add_segment
	for ((i = 1; i <= options[nodes]; i++)); do
		add_balancer "$i"
	done
	prepare_web
	for ((i = 1; i <= options[backends]; i++)); do
		add_backend "$i"
		start_servers "backend$i"
		start_decap "backend$i"
	done
	policy_text >"$state/policy.weir"
	route_to_balancers
}

add_client_and_router() {
	add_host client
	add_host router ipv4/ip_forward=1 ipv6/conf/{all,default}/forwarding=1 \
		ipv{4,6}/fib_multipath_hash_policy=1
	add_link client net0 02:78:00:00:00:02 router client 02:78:00:00:00:01
	ip -n "$name-client" -batch - <<-END
		address add 10.78.0.2/24 dev net0
		address add fd78::2/64 dev net0 nodad
		route add default via 10.78.0.1
		route add default via inet6 fd78::1
		route add local ${client_networks[0]} dev lo
		route add local ${client_networks[1]} dev lo
	END
	ip -n "$name-router" -batch - <<-END
		address add 10.78.0.1/24 dev client
		address add fd78::1/64 dev client nodad
		route add ${client_networks[0]} via 10.78.0.2
		route add ${client_networks[1]} via fd78::2
	END
}

add_segment() {
	ip -n "$name-router" -batch - <<-END
		link add lan0 address 02:78:00:00:00:03 type bridge stp_state 0 mcast_snooping 0
		link set lan0 up
		address add 10.78.2.254/24 dev lan0
		address add fd78:2::254/64 dev lan0 nodad
	END
}

# Packets that a balancer sends by XDP_TX, or from back0, arrive only if the peer has a program.
add_balancer() {
	local host=balancer$1
	if [[ ${options[mode]} == nat ]]; then
		add_host "$host" ipv4/ip_forward=1 ipv6/conf/{all,default}/forwarding=1 \
			ipv4/conf/{all,default}/send_redirects=0
	else
		add_host "$host"
	fi
	add_link "$host" net0 "$(mac_of 01 00 "$1")" router "$host" "$(mac_of 01 01 "$1")" \
		"${options[link-mtu]}"
	attach_pass router "$host"
	connect "$host" net0 "$host" "$(front_net)" $((200 + $1))
	ip -n "$name-$host" route add default via "10.78.$(front_net).254"
	ip -n "$name-$host" route add default via "fd78:$(front_net)::254"
	((options[nics] == 1)) || add_second_nic "$1" "$host"
	[[ ${options[mode]} != fullnat ]] || add_sources "$1" "$host"
}

add_sources() {
	local number=$((200 + $1))
	ip -n "$name-$2" -batch - <<-END
		address add 10.78.3.$number/32 dev lo
		address add fd78:3::$number/128 dev lo nodad
	END
	ip -n "$name-router" -batch - <<-END
		route add 10.78.3.$number via 10.78.$(front_net).$number
		route add fd78:3::$number via fd78:$(front_net)::$number
	END
}

add_second_nic() {
	local host=$2
	add_link "$host" back0 "$(mac_of 01 02 "$1")" router "$host-back" "$(mac_of 01 03 "$1")" \
		"${options[link-mtu]}"
	attach_pass router "$host-back"
	connect "$host" back0 "$host-back" 2 $((200 + $1))
	in_segment "$host" back0 && return
	ip -n "$name-$host" route add 10.78.2.0/24 via 10.78.2.254
	ip -n "$name-$host" route add fd78:2::/64 via fd78:2::254
}

# A backend has the VIPs but does not announce them: it does not answer ARP for them and does not use them as
# source of ARP requests. (IPv6 needs no setting: an address on lo is not announced.) The MTU of its routes limits
# its packets to the MTU of the client.
add_backend() {
	local host=backend$1
	add_host "$host" ipv4/conf/all/arp_ignore=1 ipv4/conf/all/arp_announce=2
	add_link "$host" net0 "$(mac_of 02 00 "$1")" router "$host" "$(mac_of 02 01 "$1")" \
		"${options[link-mtu]}"
	connect "$host" net0 "$host" 2 "$1"
	local gateway=254
	[[ ${options[mode]} != nat ]] || gateway=201
	ip -n "$name-$host" -batch - <<-END
		route add default via 10.78.2.$gateway mtu $mtu
		route add default via inet6 fd78:2::$gateway mtu $mtu
	END
	translates || ip -n "$name-$host" -batch - <<-END
		address add $vip4/32 dev lo
		address add $vip6/128 dev lo nodad
	END
}

# server_address FAMILY NUMBER: the address that clients' packets have at a backend
server_address() {
	case $1:${options[mode]} in
	?:nat | ?:fullnat) backend_address "$1" "$2" ;;
	4:*) echo "$vip4" ;;
	*) echo "$vip6" ;;
	esac
}

mac_of() {
	printf '02:78:%s:00:%s:%02x' "$@"
}

# connect HOST DEVICE PORT NET NUMBER: configures the addresses of the device and of the router's port, or adds the
# port to the segment.
connect() {
	local v4=10.78.$4 v6=fd78:$4:
	if in_segment "$1" "$2"; then
		ip -n "$name-router" link set "$3" master lan0
		ip -n "$name-$1" address add "$v4.$5/24" dev "$2"
		ip -n "$name-$1" address add "$v6:$5/64" dev "$2" nodad
		return
	fi
	ip -n "$name-$1" -batch - <<-END
		address add $v4.$5/32 dev $2
		address add $v6:$5/128 dev $2 nodad
		route add $v4.254 dev $2
		route add $v6:254 dev $2
	END
	ip -n "$name-router" -batch - <<-END
		address add $v4.254/32 dev $3
		address add $v6:254/128 dev $3 nodad
		route add $v4.$5 dev $3
		route add $v6:$5 dev $3
	END
}

# The lab also works without 'weir decap'; 'status' reports it.
start_decap() {
	local weir log=$state/$1/decap.log
	[[ ${options[mode]} == @(ipip|gue) ]] || return 0
	weir=$(realpath -m "${WEIR:-$build/weir}")
	if ! "$weir" help decap >"$log" 2>&1; then
		printf "no 'weir decap': %s\n" "$weir" >"$state/no-decap"
		return
	fi
	"$weir" -N "$name-$1" decap net0 --from "$(tunnel_ends)" >"$log" 2>&1 ||
		die "cannot decapsulate on $1: $(<"$log")"
}

# The sources of the balancers' outer packets, on all devices.
tunnel_ends() {
	local i
	local -a ends
	for ((i = 1; i <= options[nodes]; i++)); do
		ends+=(10.78.{1,2}.$((200 + i)) fd78:{1,2}::$((200 + i)))
	done
	(
		IFS=,
		echo "${ends[*]}"
	)
}

# Routes of the VIPs

route_to_balancers() {
	local -a all
	mapfile -t all < <(balancers)
	route_vips "${all[@]}"
}

# The next hop of the router to a host, as 'via ADDRESS dev DEVICE': IPv4, then IPv6.
nexthop_of() {
	local number=${1//[a-z]/} net=2 device=$1
	[[ $1 != balancer* ]] || number=$((number + 200)) net=$(front_net)
	! in_segment "$1" net0 || device=lan0
	printf 'via 10.78.%s.%s dev %s\nvia fd78:%s::%s dev %s\n' "$net" "$number" "$device" \
		"$net" "$number" "$device"
}

route_vips() {
	local host
	local -a both nexthops4=() nexthops6=()
	for host; do
		[[ $host == @(balancer|backend)* ]] || die "'$host' is neither a balancer nor a backend"
		require_host "$host"
		mapfile -t both < <(nexthop_of "$host")
		nexthops4+=("nexthop ${both[0]}")
		nexthops6+=("nexthop ${both[1]}")
	done
	ip -n "$name-router" -batch - <<-END
		route replace $vip4 ${nexthops4[*]}
		route replace $vip6/128 ${nexthops6[*]}
	END
}

show_routes() {
	ip -n "$name-router" route show "$vip4"
	ip -n "$name-router" -6 route show "$vip6"
}

lab_route() {
	require_up
	lock_labs
	case $#:${1-} in
	0:) show_routes ;;
	1:reset) route_to_balancers ;;
	*) route_vips "$@" ;;
	esac
}

# The policy

policy_text() {
	local family=4
	cat <<-END
		# Policy of the lab '$name', the same for all balancers:
		# weir -N $name-balancer1 -n NAME apply THIS_FILE
		interface net0
		seed "lab"

	END
	if translates; then
		translating_services
	else
		((options[v6])) && family=6
		policy_service web "$service_ports" "$vip4, $vip6" $family
		printf '\n# A client of iperf3 opens two connections, which must go to the same server.\n'
		policy_service iperf 5201 "$vip4, $vip6" $family '	hash     source'
	fi
	printf '\nexpect %s\n' "web tcp from 10.78.0.2 port 40000 to $vip4 port 80"
	printf 'expect web%s\n' "$(! translates || echo 6) tcp from fd78::2 port 40000 to $vip6 port 80"
}

# A service has one family.
translating_services() {
	local source4='' source6=''
	if [[ ${options[mode]} == fullnat ]]; then
		source4='	source   10.78.3.201' source6='	source   fd78:3::201'
	fi
	policy_service web "$service_ports" "$vip4" 4 "$source4"
	policy_service web6 "$service_ports" "$vip6" 6 "$source6"
}

# policy_service NAME PORTS VIPS FAMILY [LINE]: family of the backends
policy_service() {
	local i
	printf 'service %s {\n' "$1"
	printf '\tvip      %s\n\tproto    tcp, udp\n' "$3"
	printf '\tport     %s\n\tmode     %s\n' "$2" "${options[mode]}"
	[[ ! ${5-} ]] || printf '%s\n' "$5"
	for ((i = 1; i <= options[backends]; i++)); do
		printf '\tbackend  %s\n' "$(backend_address "$4" "$i")"
	done
	printf '}\n'
}

backend_address() {
	[[ $1 == 6 ]] && printf 'fd78:2::%s' "$2" || printf '10.78.2.%s' "$2"
}

lab_policy() {
	require_up
	cat "$state/policy.weir"
}

# Output of 'up' and 'status'

kind_summary() {
	printf '%s, %s to %s and %s of %s; policy: %s' "${options[mode]}" "$(netns_of balancer1)" \
		"$vip4" "$vip6" "$(count_of backends)" "$state/policy.weir"
}

count_of() {
	((options[$1] == 1)) && printf '1 %s' "${1%s}" || printf '%d %s' "${options[$1]}" "$1"
}

kind_status() {
	local host bad=0
	printf 'mode      %s; %s, %s, nics %s; namespaces: %s-HOST\n' "${options[mode]}" \
		"$(count_of nodes)" "$(count_of backends)" "${options[nics]}" "$name"
	printf 'VIPs      %s %s, ports %s, 5201 (iperf3); %s\n' "$vip4" "$vip6" \
		"$service_ports" "$(translates && echo 'of no backend' || echo 'on lo of each backend')"
	printf 'clients   %s\n' "10.78.0.2 fd78::2 ${client_networks[*]}"
	printf 'policy    %s\n' "$state/policy.weir"
	printf 'route     %s\n' "$(show_routes | sed '2,$s/^/          /')"
	printf '%-10s %-14s %5s  %-17s  %-38s  %-30s  %s\n' host device mtu mac offloads addresses xdp
	for host in $(lab_hosts); do
		status_devices "$host"
	done
	for host in $(backends); do
		printf '%-10s ' "$host"
		servers_state "$host" || bad=1
		[[ ${options[mode]} != @(ipip|gue) ]] || decap_state "$host" || bad=1
	done
	return "$bad"
}

# Prints nothing if net0 has the program that removes the outer headers.
decap_state() {
	local found
	found=$(programs_on "$1" net0)
	[[ $found == none ]] || return 0
	printf '%-10s NO DECAPSULATION: %s\n' "$1" \
		"$(cat "$state/no-decap" 2>/dev/null || echo 'the program was removed')"
	return 1
}

status_devices() {
	local device
	for device in $(ip -n "$name-$1" -o link show | sed 's/^[0-9]*: \([^@:]*\).*/\1/'); do
		[[ $device != lo ]] || continue
		printf '%-10s %-14s %5s  %s  %-38s  %-30s  %s\n' "$1" "$device" \
			"$(device_field "$1" "$device" 's/.* mtu \([0-9]*\).*/\1/p')" \
			"$(device_field "$1" "$device" 's/.*link\/ether \([^ ]*\).*/\1/p')" \
			"$(offloads_of "$1" "$device")" "$(addresses_of "$1" "$device")" \
			"$(programs_on "$1" "$device")"
	done
}
