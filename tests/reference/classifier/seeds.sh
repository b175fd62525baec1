#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs `generate` over many seeds, also with what it leaves out by default: twice the same each time.
#
# usage: seeds.sh [SEEDS [FIRST]]
set -eu

here=$(dirname "$0")
count=${1:-40}
first=${2:-1}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/one" "$tmp/two"

seed=$first
while [ "$seed" -lt $((first + count)) ]; do
	case $((seed % 8)) in
	0) size="--rules 1 --set-size 4 --packets 500" ;;
	1) size="--rules 300 --set-size 2000 --packets 2000" ;;
	2) size="--rules 60 --set-size 200 --packets 1000 --hard-joins" ;;
	3) size="--rules 5 --set-size 20 --packets 500 --min-frame 0" ;;
	*) size="--rules 20 --set-size 50 --packets 1000" ;;
	esac
	for folder in one two; do
		rm -f "$tmp/$folder"/*
		# shellcheck disable=SC2086
		"$here/generate" --seed "$seed" $size --policy "$tmp/$folder/p.weir" \
			--frames "$tmp/$folder/frames" --answers "$tmp/$folder/answers" >"$tmp/tally"
	done
	diff -rq "$tmp/one" "$tmp/two"
	cat "$tmp/tally"
	seed=$((seed + 1))
done
