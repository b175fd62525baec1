# shellcheck shell=bash disable=SC2034,SC2154 # shared with the other files
# SPDX-License-Identifier: GPL-2.0-only
# The lab 'pair': a host that Weir protects (near) and the Internet (far), connected by a veth pair.
#
#	near, near0                              far, far0
#	10.77.0.1/24 fd77::1/64  <---- veth ---> 10.77.0.2/24 fd77::2/64
#	default route to far                     answers for every address of far_networks
#
# Weir is attached to near0. far has all documentation and benchmark addresses, so names can move among them, and
# a test can use thousands. far silently drops packets for all other addresses (a resolver at 10.99.0.1 never
# answers).

hosts=(near far)
kind_commands=(dnsmasq)
far_networks=(192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 198.18.0.0/15 2001:db8::/32)
dns_addresses=(10.77.0.2 fd77::2)
dns_ttl=2
dns_cnames=("www.blocked.lab,blocked.lab" "chain.lab,www.blocked.lab")

default_records() {
	cat <<-'END'
		203.0.113.10 blocked.lab
		2001:db8:113::10 blocked.lab
		203.0.113.20 other.lab
		2001:db8:113::20 other.lab
		203.0.113.10 shared.lab
		203.0.113.30 shared.lab
		2001:db8:113::10 shared.lab
		2001:db8:113::30 shared.lab
		198.51.100.1 many.lab
		198.51.100.2 many.lab
		198.51.100.3 many.lab
		198.51.100.4 many.lab
		2001:db8:100::1 many.lab
		2001:db8:100::2 many.lab
		2001:db8:100::3 many.lab
		2001:db8:100::4 many.lab
		203.0.113.40 v4only.lab
		2001:db8:113::60 v6only.lab
	END
}

kind_options() {
	:
}

kind_up() {
	add_host near
	add_host far
	add_link near near0 02:77:00:00:00:01 far far0 02:77:00:00:00:02
	attach_pass far far0
	address_near
	address_far
	set_resolver near "${dns_addresses[@]}"
	start_dns far "${dns_addresses[@]}"
	start_http far
}

address_near() {
	ip -n "$name-near" -batch - <<-'END'
		address add 10.77.0.1/24 dev near0
		address add fd77::1/64 dev near0 nodad
		route add default via 10.77.0.2
		route add default via inet6 fd77::2
	END
}

address_far() {
	{
		printf '%s\n' 'address add 10.77.0.2/24 dev far0' 'address add fd77::2/64 dev far0 nodad'
		printf 'route add local %s dev lo\n' "${far_networks[@]}"
	} | ip -n "$name-far" -batch -
}

kind_summary() {
	printf '%s (near0, 10.77.0.1 fd77::1) and %s (far0, 10.77.0.2 fd77::2), DNS at 10.77.0.2' \
		"$(netns_of near)" "$(netns_of far)"
}

kind_status() {
	local bad=0 dns http
	status_host near near0
	status_host far far0
	printf '      also       %s\n' "${far_networks[*]}"
	dns=$(service_state dnsmasq) || bad=1
	http=$(service_state httpd) || bad=1
	printf 'dns   dnsmasq at %s, %s, TTL %s s\n' "${dns_addresses[*]}" "$dns" "$dns_ttl"
	printf 'http  every address of far, port 80, %s\n' "$http"
	printf 'names\n'
	show_records | sed 's/^/      /'
	return "$bad"
}
