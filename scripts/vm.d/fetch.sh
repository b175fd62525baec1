# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154 # shared with scripts/vm
#
# Gets a suite's cloud kernel by apt, with sources, lists and archives that are not the machine's own.

readonly suites=(bookworm bookworm-backports bullseye newest arm64 arm64-16k)
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The machine's own Debian mirror: the first address in apt's sources that ends in /debian.
host_mirror() {
	local mirror apt=/etc/apt/sources.list
	mirror=$(cat $apt.d/debian.sources $apt $apt.d/*.list 2>/dev/null |
		sed -nE '/^(deb|URIs:)\s/s|.*\s(https?://\S*/debian)/?(\s.*)?$|\1|p' | head -n1) || :
	echo "${mirror:-http://deb.debian.org/debian}"
}

# machine_of SUITE: Debian's name of the machine that its kernel is for.
machine_of() {
	case $1 in
	arm64*) echo arm64 ;;
	*) echo amd64 ;;
	esac
}

# Where to look for a suite, best first: lines of mirror and apt's name of the suite.
suite_sources() {
	local mirror
	mirror=$(host_mirror)
	case $1 in
	arm64) printf '%s\n' "$mirror bookworm" ;;
	arm64-16k) printf '%s\n' "$mirror trixie" ;;
	newest) printf '%s\n' "$mirror sid" "$mirror forky" "$mirror trixie-backports" ;;
	bullseye) printf '%s\n' "$mirror bullseye" "http://archive.debian.org/debian bullseye" ;;
	*) printf '%s\n' "$mirror $1" ;;
	esac
}

# apt_config DIR MACHINE: the settings that keep apt inside DIR. All others (proxies) are those of the machine, except its
# commands after an update, which are for its own lists.
apt_config() {
	cat <<-EOF
	#clear APT::Update::Post-Invoke;
	#clear APT::Update::Post-Invoke-Success;
	Acquire::Languages "none";
	Acquire::Retries "1";
	Acquire::http::Timeout "20";
	APT::Architecture "$2";
	APT::Architectures "$2";
	APT::Sandbox::User "";
	APT::Update::Error-Mode "any";
	Dir::Etc::sourcelist "$1/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::Etc::preferences "-";
	Dir::Etc::preferencesparts "-";
	Dir::State "$1/state";
	Dir::State::status "/dev/null";
	Dir::Cache "$1/cache";
	EOF
}

# flavour_of SUITE: Debian's name of the kernel, as in linux-image-FLAVOUR.
flavour_of() {
	case $1 in
	arm64-16k) echo arm64-16k ;;
	*) echo "cloud-$(machine_of "$1")" ;;
	esac
}

# kernel_packages DIR FLAVOUR: those that make up the kernel of its sources, which newer releases split.
kernel_packages() {
	apt-cache -c "$1/apt.conf" depends --recurse --no-recommends --no-suggests "linux-image-$2" |
		grep -E "^linux-(image|base|binary|modules)-[0-9].*-$2\$"
}

# kernel_download DIR MIRROR NAME SUITE: leaves the packages of SUITE in DIR, NAME being what apt calls it.
kernel_download() {
	local packages machine
	machine=$(machine_of "$4")
	mkdir -p "$1"/{state/lists,cache/archives}/partial
	apt_config "$1" "$machine" >"$1/apt.conf"
	echo "deb [arch=$machine signed-by=$keyring] $2 $3 main" >"$1/sources.list"
	apt-get -c "$1/apt.conf" -qq update &&
		packages=$(kernel_packages "$1" "$(flavour_of "$4")") &&
		(cd "$1" && xargs apt-get -c apt.conf -qq download <<<"$packages")
}

# kernel_unpack DIR: the packages in DIR become DIR/kernel with vmlinuz, version and the module tree.
kernel_unpack() {
	local deb version
	mkdir -p "$1/kernel/lib"
	for deb in "$1"/*.deb; do
		dpkg-deb -x "$deb" "$1/root" || return
	done
	mv "$1"/root/{,usr/}lib/modules "$1/kernel/lib/" 2>/dev/null || :
	version=$(ls "$1/kernel/lib/modules") || return
	mv "$1/root/boot/vmlinuz-$version" "$1/kernel/vmlinuz" 2>/dev/null ||
		mv "$1/kernel/lib/modules/$version/vmlinuz" "$1/kernel/vmlinuz" || return
	# Unpacked here once, not in the slow machine each time.
	find "$1/kernel/lib/modules" -name '*.ko.xz' -print0 | xargs -0r -P"$(nproc)" -n64 xz -d || return
	busybox depmod -b "$1/kernel" "$version" || return
	echo "$version" >"$1/kernel/version"
}

# kernel_install SUITE: tries its sources in turn. The directory appears whole or not at all.
kernel_install() {
	local mirror name dir=$kernels/.$1
	while read -r mirror name; do
		rm -rf "$dir" && mkdir -p "$dir" || return
		if kernel_download "$dir" "$mirror" "$name" "$1" >"$dir.log" 2>&1 </dev/null &&
			kernel_unpack "$dir" >>"$dir.log" 2>&1; then
			mv "$dir/kernel" "$kernels/$1" || return
			rm -rf "$dir" "$dir.log"
			return 0
		fi
	done < <(suite_sources "$1")
	rm -rf "$dir"
	return 1
}

# kernel_fetch SUITE: sees to it that the kernel is there, or says in one line why it cannot be had.
kernel_fetch() {
	local dir=$kernels/$1 lock why
	[[ ! -e $dir ]] || return 0
	if [[ ! -r $keyring ]]; then
		echo "vm: skipped: no kernel of '$1': apt install debian-archive-keyring" >&2
		return 1
	fi
	mkdir -p "$kernels"
	exec {lock}>"$kernels/.lock"
	flock "$lock"
	if [[ -e $dir ]] || kernel_install "$1"; then
		exec {lock}>&-
		return 0
	fi
	exec {lock}>&-
	why=$(grep -m1 -E '^[EW]:' "$kernels/.$1.log" || tail -n1 "$kernels/.$1.log")
	echo "vm: skipped: no kernel of '$1' from $(host_mirror): ${why#?: }" >&2
	return 1
}
