#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs refgen and refmatch over many seeds: every line is answered, and twice the same.
#
# usage: seeds.sh DIR-OF-PROGRAMS [SEEDS [FIRST]]
set -eu

bin=$1
count=${2:-200}
first=${3:-1}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

seed=$first
while [ "$seed" -lt $((first + count)) ]; do
	case $((seed % 8)) in
	0) size="--rules 1 --set-size 4 --packets 500" ;;
	1) size="--rules 300 --set-size 2000 --packets 2000" ;;
	2) size="--rules 60 --set-size 200 --packets 1000 --with hard-joins" ;;
	3) size="--rules 5 --set-size 20 --packets 500 --min-frame 0" ;;
	*) size="--rules 20 --set-size 50 --packets 1000" ;;
	esac
	# shellcheck disable=SC2086
	"$bin/refgen" --seed "$seed" $size --policy "$tmp/p.weir" --frames "$tmp/p.txt" >"$tmp/tally"
	"$bin/refmatch" --trace "$tmp/p.weir" <"$tmp/p.txt" >"$tmp/one"
	"$bin/refmatch" --trace "$tmp/p.weir" <"$tmp/p.txt" | cmp - "$tmp/one"
	if [ "$(wc -l <"$tmp/p.txt")" != "$(wc -l <"$tmp/one")" ]; then
		echo "seed $seed: not every packet has an answer" >&2
		exit 1
	fi
	cat "$tmp/tally"
	rm -f "$tmp"/p.*
	seed=$((seed + 1))
done | awk -v wanted="$count" '
	{ sub(/.*by rules /, ""); share += $1; n++ }
	END { if (n != wanted) exit 1; printf "%d seeds, %.1f %% of the packets decided by rules\n", n, share / n }'
