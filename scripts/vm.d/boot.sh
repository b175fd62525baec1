# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Boots the machine and sees to it that nothing of it stays, whatever happens.

# The first serial port is the kernel's console, and init's for the status; the second is the command's output.
readonly marker='vm: status'

workdir_make() {
	workdir=$(mktemp -d "${TMPDIR:-/tmp}/weir-vm.XXXXXX")
	machine=
	trap machine_clean EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

machine_clean() {
	[[ ! $machine ]] || kill "$machine" 2>/dev/null || :
	wait
	rm -rf "$workdir"
}

# Sets qemu[] to the command line up to the second serial port.
machine_command() {
	local append='console=ttyS0 quiet panic=-1 oops=panic tsc=reliable nokaslr cryptomgr.notests'
	qemu=(qemu-system-x86_64 -accel tcg,thread=single -cpu max,-cx16 -smp 2 -m "$memory" -nodefaults -no-reboot -display none
		-kernel "$kernels/$suite/vmlinuz" -initrd "$workdir/initramfs" -append "$append"
		-serial "file:$workdir/console" -chardev stdio,id=output,signal=off -serial chardev:output)
}

# console_tail N: the last lines that the kernel and init had to say, but for how it always ends.
console_tail() {
	tr -d '\r' <"$workdir/console" | grep -avE "^($marker.*)?$|reboot: Restarting system" |
		tail -n "$1" | sed 's/^/console: /' >&2 || :
}

# Through a pipe, since qemu would leave our own stdout non-blocking; each process dies with its parent.
machine_run() {
	local qemu output status=0
	machine_command
	mkfifo "$workdir/output"
	cat "$workdir/output" &
	output=$!
	setpriv --pdeathsig TERM timeout -k 2 "$timeout" setpriv --pdeathsig KILL "${qemu[@]}" \
		</dev/null >"$workdir/output" 2>"$workdir/errors" &
	machine=$!
	wait "$machine" || status=$?
	machine=
	wait "$output" || :
	machine_status "$status"
}

# machine_status STATUS: of qemu; exits with the command's.
machine_status() {
	local status
	if status=$(grep -a "^$marker" "$workdir/console" | grep -oE '[0-9]+'); then
		((status == 0)) || console_tail 20
		exit "$status"
	fi
	grep . "$workdir/errors" >&2 || :
	console_tail 40
	if (($1 == 124 || $1 == 137)); then
		die "stopped after $timeout s: '${command[*]}' under '$suite'" 124
	fi
	die "the machine went down before '${command[*]}' ended under '$suite'" 125
}

machine_shell() {
	local qemu
	machine_command
	"${qemu[@]}" || :
}
