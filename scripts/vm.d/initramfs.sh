# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # set by scripts/vm
#
# Builds the machine's file system: busybox, kernel modules, and what the caller wants in it.

# All of it is under $root, the directory that becomes the initramfs.

# add_file SRC DST: a file, or a directory with all that is in it; links given by name are followed.
add_file() {
	local dst=$root$2
	mkdir -p "${dst%/*}"
	if [[ -d $1 ]]; then
		mkdir -p "$dst"
		cp -a "$1/." "$dst/"
	else
		cp -pL "$1" "$dst"
	fi
	needed+=("$dst")
}

# add SRC[:DST], SRC being a path or the name of a program.
add() {
	local src=${1%%:*} dst=''
	[[ $1 != *:* ]] || dst=${1#*:}
	if [[ ! -e $src ]]; then
		{ [[ $src != */* ]] && src=$(PATH=$PATH:/usr/sbin:/sbin type -P "$src"); } ||
			die "cannot add '${1%%:*}': no such file or program"
	fi
	src=$(realpath -s "$src")
	dst=${dst:-$src}
	[[ $dst == /* ]] || die "cannot add '$1': the path inside must be absolute"
	add_file "$src" "$dst"
}

# The command itself: by path, or a program that busybox does not have.
add_command() {
	if [[ $1 == */* ]]; then
		[[ ! -f $1 ]] || add "$1"
	elif ! busybox --list | grep -qxF -- "$1"; then
		add "$1"
	fi
}

# Debian's own interpreter, with its byte code: compiling scapy in the machine takes half a minute.
add_python() {
	local lib name
	lib=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') ||
		die "skipped: packages are missing: apt install python3 python3-scapy python3-pytest" "$skipped"
	add /usr/bin/python3
	mkdir -p "$root$lib"
	tar -C "$lib" -c --exclude=./test --exclude=tests --exclude='config-*' --exclude=./idlelib \
		--exclude=./lib2to3 --exclude=./ensurepip --exclude=./tkinter . | tar -C "$root$lib" -x
	needed+=("$root$lib")
	for name in scapy pytest _pytest pluggy packaging iniconfig attr attrs exceptiongroup tomli; do
		[[ ! -e /usr/lib/python3/dist-packages/$name ]] ||
			add "/usr/lib/python3/dist-packages/$name"
	done
	[[ ! -e /usr/lib/python3/dist-packages/py.py ]] || add /usr/lib/python3/dist-packages/py.py
}

# The shared libraries that the added programs and libraries ask for.
add_libraries() {
	local lib libs
	libs=$(find "${needed[@]}" -type f \( -perm /111 -o -name '*.so*' \) -print0 |
		xargs -0r ldd 2>/dev/null || :)
	! grep -F 'not found' <<<"$libs" >&2 || die "a library is missing on this machine"
	while read -r lib; do
		[[ -e $root$lib ]] || { mkdir -p "$root${lib%/*}" && cp -pL "$lib" "$root$lib"; }
	done < <(grep -oE '(=> )?/[^ ]+ \(0x' <<<"$libs" | grep -oE '/[^ ]+' | sort -u)
}

# module_files TREE NAME...: the files of these modules and of those they depend on.
module_files() {
	awk -v names="${*:2}" '
		BEGIN { gsub("-", "_", names); n = split(names, a, " "); while (n) want[a[n--]] }
		{
			sub(":", "", $1); name = $1; gsub(/.*\/|\.ko$/, "", name); gsub("-", "_", name)
			if (name in want) for (i = 1; i <= NF; i++) print $i
		}' "$1/modules.dep" | sort -u
}

# Modules asked for by name must be there, or be part of the kernel.
require_modules() {
	local name
	for name in "${modules[@]}"; do
		[[ $(module_files "$1" "$name") ]] ||
			tr - _ <"$1/modules.builtin" | grep -q "/${name//-/_}\.ko$" ||
			die "the kernel of '$suite' has no module '$name'"
	done
}

add_modules() {
	local version tree own
	version=$(<"$kernels/$suite/version")
	tree=$kernels/$suite/lib/modules/$version
	own=$(grep -v '^#' "$here/vm.d/modules")
	require_modules "$tree"
	mkdir -p "$root/lib/modules/$version"
	# shellcheck disable=SC2086
	(cd "$tree" && module_files . $own "${modules[@]}" |
		xargs cp --parents -t "$root/lib/modules/$version")
	busybox depmod -b "$root" "$version"
}

add_base() {
	mkdir -p "$root"/{usr/{bin,sbin,lib,lib64,lib/busybox},dev,proc,sys,run,tmp,root,etc,var/lib,vm}
	ln -s usr/bin usr/sbin usr/lib usr/lib64 "$root/"
	chmod 1777 "$root/tmp"
	ln -s ../run "$root/var/run"
	cp "$(command -v busybox)" "$root/usr/bin/busybox"
	busybox --install -s "$root/usr/lib/busybox"
	ln -sf /usr/bin/busybox "$root/usr/sbin/modprobe"
	cp "$here/vm.d/init" "$root/init"
	# For commands; busybox's own shell would take its applets for programs of the same name.
	add_file "$(realpath /bin/sh)" /usr/bin/sh
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	echo '127.0.0.1 localhost' >"$root/etc/hosts"
}

# quote WORD: for any shell.
quote() {
	printf " '%s'" "${1//\'/\'\\\'\'}"
}

# What init reads: the modules to load and the command.
add_orders() {
	local word
	mkdir -p "$root$PWD"
	echo "${modules[*]}" >"$root/vm/modules"
	((${#command[@]})) || return 0
	{
		printf 'cd%s && exec' "$(quote "$PWD")"
		for word in "${command[@]}"; do
			quote "$word"
		done
	} >"$root/vm/command"
}

initramfs_build() {
	local item needed=()
	root=$workdir/root
	mkdir "$root"
	add_base
	add_modules
	for item in "${adds[@]}"; do
		add "$item"
	done
	((${#command[@]} == 0)) || add_command "${command[0]}"
	[[ ! $python ]] || add_python
	((${#needed[@]} == 0)) || add_libraries
	add_orders
	(cd "$root" && find . -print0 | cpio -o -0 -H newc -R 0:0 --quiet) >"$workdir/initramfs"
	rm -rf "$root"
}
