# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # set by scripts/vm
#
# Boots the machine and sees to it that nothing of it stays, whatever happens.

# The first serial port is the kernel's console, where init says when the command begins and how it
# ends; the second takes the command's output.

workdir_make() {
	workdir=$(mktemp -d "${TMPDIR:-/tmp}/weir-vm.XXXXXX")
	trap machine_clean EXIT
	trap 'interrupted 130' INT
	trap 'interrupted 143' TERM HUP
}

# A second signal is not to stop the cleaning up.
interrupted() {
	trap '' INT TERM HUP
	exit "$1"
}

machine_clean() {
	jobs -p | xargs -r kill 2>/dev/null || :
	wait
	rm -rf "$workdir"
}

# Sets qemu[]. Debian 12's qemu (7.2) leaves wrong flags behind cmpxchg16b, and an interrupt that comes
# right then does not return: one boot of 6.12 in seven. Both processors in one thread keep it out of
# races when the kernel patches itself. no_timer_check: on a busy machine the timer comes too late for the
# kernel's look at it, and it panics. rcu_expedited: two emulated processors in one thread take 0.2 s to a grace
# period otherwise, and tests wait for thousands.
machine_command() {
	local append online present possible
	IFS=, read -r online present possible <<<"$cpus"
	append="console=${ports%% *} loglevel=5 panic=-1 oops=panic maxcpus=$online"
	append+=' nokaslr cryptomgr.notests rcupdate.rcu_expedited=1'
	# shellcheck disable=SC2054 # the commas are qemu's
	case $arch in
	amd64)
		append+=' tsc=reliable no_timer_check'
		qemu=(qemu-system-x86_64 -cpu max,-cx16)
		;;
	# A processor that faults where an atomic operation is not aligned: of ARMv8.2, before LSE2.
	arm64) qemu=(qemu-system-aarch64 -machine virt,gic-version=3 -cpu neoverse-n1) ;;
	esac
	# shellcheck disable=SC2054 # the commas are qemu's
	qemu+=(-nodefaults -no-reboot -display none
		-accel tcg,thread=single -smp "$present,maxcpus=$possible" -m "$memory"
		-kernel "$kernels/$suite/vmlinuz" -initrd "$workdir/initramfs" -append "$append"
		-serial "file:$workdir/console"
		-chardev stdio,id=output,signal=off)
	case $arch in
	amd64) qemu+=(-serial chardev:output) ;;
	arm64) qemu+=(-device 'pci-serial,chardev=output') ;;
	esac
	nics_command
}

# A card with several queues wants as many at its other end, which of qemu's own only a tap has, so then the hubs
# are bridges in a network namespace for this machine alone. Else qemu has hubs of its own.
nics_command() {
	local nic model queues hub n=0 several=''
	[[ ! "${nics[*]/%/,}" =~ \ ([2-9]|[0-9]{2})\  ]] || several=yes
	for nic in "${nics[@]}"; do
		read -r model queues hub <<<"$nic"
		n=$((n + 1))
		model+=,netdev=n$n,mac=$(printf '52:54:00:00:00:%02x' $n)
		((queues == 1)) || model+=,mq=on,vectors=$((2 * queues + 2))
		qemu+=(-device "$model,romfile=" -netdev)
		if [[ $several ]]; then
			qemu+=("tap,id=n$n,ifname=n$n,queues=$queues,script=no,downscript=no,vhost=off")
		else
			qemu+=("hubport,id=n$n,hubid=$hub")
		fi
	done
	[[ ! $several ]] || enclose_machine
}

# Puts the bridges before the machine's command.
enclose_machine() {
	local enter=(unshare --net)
	((EUID == 0)) || enter+=(--map-root-user)
	if ! [[ -w /dev/net/tun ]] || ! "${enter[@]}" true 2>/dev/null; then
		die "skipped: cards with several queues want /dev/net/tun and a network namespace" "$skipped"
	fi
	qemu=("${enter[@]}" bash "$here/vm.d/bridges.sh" "${nics[@]}" -- "${qemu[@]}")
}

# What the kernel had to say, from where the command began if it did.
console() {
	tr -d '\r' <"$workdir/console" |
		awk '/^vm: begin/ { n = 0; next }
			/^$|^vm: status|reboot: Restarting/ { next }
			{ line[n++] = $0 }
			END { for (i = 0; i < n; i++) print "console: " line[i] }'
}

# Through a pipe, since qemu would leave our own stdout non-blocking; each process dies with its parent.
machine_run() {
	local qemu machine output status=0
	machine_command
	mkfifo "$workdir/output"
	cat "$workdir/output" &
	output=$!
	setpriv --pdeathsig TERM timeout -k 2 "$timeout" setpriv --pdeathsig KILL "${qemu[@]}" \
		</dev/null >"$workdir/output" 2>"$workdir/errors" &
	machine=$!
	wait "$machine" || status=$?
	wait "$output" || :
	machine_status "$status"
}

# machine_status STATUS: of qemu; exits with the command's.
machine_status() {
	local status
	if status=$(grep -a '^vm: status' "$workdir/console" | grep -oE '[0-9]+'); then
		if ((status)) || console | grep -E 'WARNING:|BUG:' >/dev/null; then
			console | tail -n 40 >&2
		fi
		exit "$status"
	fi
	console | tail -n 40 >&2
	if (($1 == 124 || $1 == 137)); then
		die "stopped after $timeout s: '${command[*]}' under '$suite'" 124
	fi
	cat "$workdir/errors" >&2
	die "the machine went down before '${command[*]}' ended under '$suite'" 125
}

machine_shell() {
	local qemu
	machine_command
	"${qemu[@]}" || :
}
