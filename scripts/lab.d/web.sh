# shellcheck shell=bash disable=SC2154 # set by scripts/lab and by the kind
# SPDX-License-Identifier: GPL-2.0-only
# The servers of a lab's backends, on all their addresses:
#
#	tcp 80, 443   nginx, 443 with TLS. /name: name of the backend; /big: 128 MiB, the same on all
#	              backends, with ?rate=100k limited to this rate per second; PUT or POST to
#	              /upload: name, bytes, SHA-256; /even: the same as /big in small pieces, so that a rate
#	              means several packets a second (nginx lets /big pause for two seconds)
#	udp 7         echo
#	udp 443       name of the backend, then the request
#	5201          iperf3, on the VIPs only, because its UDP packets must come from a VIP; on the
#	              backend's address if the balancer translates

# Files for all backends. The big file is kept in the build folder for later labs. Its content does not repeat, so
# that a misplaced block is detected.
prepare_web() {
	big_dir=$build/lab
	if [[ ! -e $big_dir/big ]]; then
		mkdir -p "$big_dir"
		head -c 128M /dev/zero | openssl enc -aes-128-ctr -nosalt -K 00000000000000000000000000000000 \
			-iv 00000000000000000000000000000000 >"$big_dir/big.new" 2>/dev/null
		mv "$big_dir/big.new" "$big_dir/big"
	fi
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
		-subj /CN=weir-lab -keyout "$state/tls.key" -out "$state/tls.pem" 2>/dev/null
}

start_servers() {
	in_host "$1" /usr/bin/python3 -ES "$lab_dir/backend.py" "$1" "$state/$1.sock" \
		"$state/python-$1.pid"
	start_nginx "$1"
	start_iperf "$1" iperf4 "$(server_address 4 "${1#backend}")"
	start_iperf "$1" iperf6 "$(server_address 6 "${1#backend}")"
}

start_nginx() {
	mkdir "$state/$1"
	nginx_config "$1" >"$state/$1/nginx.conf"
	in_host "$1" nginx -p "$state/$1" -e "$state/$1/error.log" -c "$state/$1/nginx.conf"
}

nginx_config() {
	cat <<-END
		user root;
		worker_processes 1;
		worker_rlimit_nofile 20000;
		pid $state/nginx-$1.pid;
		error_log $state/$1/error.log;
		events { worker_connections 8192; }
		http {
			access_log off;
			sendfile on;
			client_max_body_size 0;
			client_body_temp_path $state/$1;
			proxy_temp_path $state/$1;
			fastcgi_temp_path $state/$1;
			uwsgi_temp_path $state/$1;
			scgi_temp_path $state/$1;
			add_header X-Backend $1;
			server {
				listen [::]:80 ipv6only=off backlog=4096;
				listen [::]:443 ssl ipv6only=off backlog=4096;
				ssl_certificate $state/tls.pem;
				ssl_certificate_key $state/tls.key;
				root $big_dir;
				if (\$arg_rate) { set \$limit_rate \$arg_rate; }
				location / { return 404; }
				location = /name { return 200 "$1\n"; }
				location = /big { }
				location = /even { alias $big_dir/big; sendfile_max_chunk 2k; }
				location = /upload {
					proxy_pass http://unix:$state/$1.sock:/;
					proxy_request_buffering off;
				}
			}
		}
	END
}

# iperf3 goes to the background before it listens.
start_iperf() {
	local try
	in_host "$1" iperf3 -s -D -B "$3" -I "$state/$2-$1.pid"
	for try in {1..200}; do
		[[ ! $(in_host "$1" ss -Htln src "[$3]:5201") ]] || return 0
		sleep 0.005
	done
	die "iperf3 on $1 is not listening after $try tries"
}

servers_state() {
	local server sep='' bad=0
	for server in nginx python iperf4 iperf6; do
		printf '%s%s ' "$sep" "$server"
		service_state "$server-$1" || bad=1
		sep=', '
	done
	printf '\n'
	return "$bad"
}
