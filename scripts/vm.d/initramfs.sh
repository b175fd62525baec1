# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # set by scripts/vm
#
# Builds the machine's file system: busybox, kernel modules, and what the caller wants in it.

# All of it is under $root, the directory that becomes the initramfs. Links in there are those of the machine:
# followed here, an absolute one leads to this machine's own files. So what is written once the caller's things
# are in goes where place() says.

# place PATH: sets where to the path under $root that PATH has in the machine, all links on it followed as they
# are there. PATH need not exist.
place() {
	local rest=$1/ inside='' part links=0
	while [[ $rest ]]; do
		part=${rest%%/*} rest=${rest#*/}
		case $part in
		'' | .) ;;
		..) inside=${inside%/*} ;;
		*) inside+=/$part ;;
		esac
		[[ $inside && -L $root$inside ]] || continue
		((++links <= 40)) || die "cannot add '$1': too many levels of links"
		rest=$(readlink "$root$inside")/$rest
		if [[ $rest == /* ]]; then inside=''; else inside=${inside%/*}; fi
	done
	where=$root$inside
}

# place_directory PATH: the same, and the directory is made.
place_directory() {
	place "$1"
	mkdir -p "$where" || die "cannot make the directory '$1'"
}

# place_file PATH: sets where to the path under $root for a file, in a directory that is made. A link that is
# there goes, since the file is to take its place.
place_file() {
	local name=${1##*/}
	[[ $name && $name != . && $name != .. ]] || die "cannot add '$1': not the path of a file"
	place_directory "${1%/*}"
	where+=/$name
	[[ ! -L $where ]] || rm "$where"
}

# add_file SRC DST: a file, or a directory with all that is in it; links given by name are followed.
add_file() {
	local where
	if [[ -d $1 ]]; then
		place_directory "$2"
		cp -a --remove-destination "$1/." "$where/" || die "cannot add '$1' as '$2'"
	else
		place_file "$2"
		cp -pLT --remove-destination "$1" "$where" || die "cannot add '$1' as '$2'"
	fi
	needed+=("$where")
}

# own_file NAME: the path of a program that runs in the machine.
own_file() {
	if [[ ! $sysroot ]]; then
		PATH=$PATH:/usr/sbin:/sbin type -P "$1"
	else
		find "$sysroot"/{usr/,}{s,}bin -type f -name "${1/#sh/dash}" | grep -m1 .
	fi
}

# add SRC[:DST], SRC being a path or the name of a program.
add() {
	local src=${1%%:*} dst=''
	[[ $1 != *:* ]] || dst=${1#*:}
	if [[ ! -e $src ]]; then
		[[ ! $sysroot || $dst ]] || dst=/usr/bin/$src
		{ [[ $src != */* ]] && src=$(own_file "$src" 2>/dev/null); } ||
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
	local lib name where
	lib=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))') ||
		die "skipped: packages are missing: apt install python3 python3-scapy python3-pytest" "$skipped"
	add /usr/bin/python3
	place_directory "$lib"
	tar -C "$lib" -c --exclude=./test --exclude=tests --exclude='config-*' --exclude=./idlelib \
		--exclude=./lib2to3 --exclude=./ensurepip --exclude=./tkinter . | tar -C "$where" -x
	needed+=("$where")
	for name in scapy pytest _pytest pluggy packaging iniconfig attr attrs exceptiongroup tomli; do
		[[ ! -e /usr/lib/python3/dist-packages/$name ]] ||
			add "/usr/lib/python3/dist-packages/$name"
	done
	[[ ! -e /usr/lib/python3/dist-packages/py.py ]] || add /usr/lib/python3/dist-packages/py.py
}

# The libraries that FILE... ask for, of another machine, whose loader cannot run here.
foreign_libraries() {
	local file name at
	while IFS= read -r -d '' file; do
		for name in $(readelf -dl "$file" 2>/dev/null |
			sed -nE 's/.*Shared library: \[(.*)\]/\1/p; s/.*interpreter: .*\/(.*)\]/\1/p'); do
			[[ ! -e $root/usr/lib/$name ]] || continue
			at=$(find "$sysroot"/{usr/,}lib -name "$name" | grep -m1 .) ||
				die "a library of '${file#"$root"}' is missing in $sysroot: $name"
			add_file "$at" "/usr/lib/$name"
			foreign_libraries "$root/usr/lib/$name"
		done
	done < <(find "$@" -type f -print0)
}

# The shared libraries that the added programs and libraries ask for.
add_libraries() {
	local lib libs where
	if [[ $sysroot ]]; then
		foreign_libraries "${needed[@]}"
		return
	fi
	libs=$(find "${needed[@]}" -type f \( -perm /111 -o -name '*.so*' \) -print0 |
		xargs -0r ldd 2>/dev/null || :)
	! grep -F 'not found' <<<"$libs" >&2 || die "a library is missing on this machine"
	while read -r lib; do
		place "$lib"
		[[ -e $where ]] || add_file "$lib" "$lib"
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
	cp "$(own_file busybox)" "$root/usr/bin/busybox"
	busybox --install -s "$root/usr/lib/busybox"
	ln -sf /usr/bin/busybox "$root/usr/sbin/modprobe"
	cp "$here/vm.d/init" "$root/init"
	# For commands; busybox's own shell would take its applets for programs of the same name.
	add_file "$(realpath "$(own_file sh)")" /usr/bin/sh
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
	local word where
	place_directory "$PWD"
	place_file /vm/modules
	echo "${modules[*]}" >"$where"
	place_file /vm/ports
	echo "$ports" >"$where"
	place_file /vm/command
	((${#command[@]})) || return 0
	{
		printf 'cd%s && exec' "$(quote "$PWD")"
		for word in "${command[@]}"; do
			quote "$word"
		done
	} >"$where"
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
