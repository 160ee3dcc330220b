#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Draws folded stacks with the real flamegraph.pl and checks that it understood every line: none is
# ignored, none is read as differential, and the flame graph's width is the sum of all counts.
#
#     tests/live/import_folded.sh [-d] FILE [SVG]
#
# With -d the file is differential, with two columns.
#
# Prints "N lines, TOTAL in all" and exits 0; 1 with a message if the tool refuses or
# misunderstands the file; 2 if the tool is missing. It is looked for in $FLAMEGRAPH, in PATH and
# where Debian's package libdevel-nytprof-perl has it.
# speedscope's reader of folded stacks is the second opinion: import_speedscope.mjs takes FILE too.
set -eu

differential=
if [ "${1:-}" = -d ]; then
	differential=1
	shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo "usage: $0 [-d] FILE [SVG]" >&2
	exit 2
fi
file=$1

flamegraph=
for place in "${FLAMEGRAPH:-}" "$(command -v flamegraph.pl || :)" \
	/usr/share/perl5/Devel/NYTProf/flamegraph.pl; do
	if [ -n "$place" ] && [ -r "$place" ]; then
		flamegraph=$place
		break
	fi
done
if [ -z "$flamegraph" ]; then
	echo "$0: no flamegraph.pl: install Debian's libdevel-nytprof-perl or set FLAMEGRAPH" >&2
	exit 2
fi
if [ ! -r "$file" ]; then
	echo "$file: not readable" >&2
	exit 2
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
svg=${2:-$tmp/out.svg}

refuse()
{
	echo "$file: $1" >&2
	cat "$tmp/err" >&2
	exit 1
}

# Without --minwidth 0 frames below a tenth of a pixel would be left out.
perl "$flamegraph" --minwidth 0 --hash "$file" >"$svg" 2>"$tmp/err" ||
	refuse "flamegraph.pl failed"
if [ -s "$tmp/err" ]; then
	refuse "flamegraph.pl complained"
fi

# It draws a second number as a difference, without a message.
if [ -z "$differential" ] && grep -qE '[[:space:]][0-9]+(\.[0-9]*)?[[:space:]]+[0-9]+(\.[0-9]*)?$' "$file"; then
	refuse "a line ends in two numbers, which flamegraph.pl takes for a differential profile"
fi
lines=$(wc -l <"$file")
sum=$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$file")
# The bottom frame's title: "all (1,110,000 samples, 100%)".
total=$(sed -n 's/.*<title>all (\([0-9,]*\) [a-z]*, 100%)<\/title>.*/\1/p' "$svg" | tr -d ,)
if [ -z "$total" ]; then
	refuse "the flame graph has no bottom frame"
fi
if [ "$total" != "$sum" ]; then
	refuse "the flame graph adds up to $total, the file to $sum"
fi
echo "$lines lines, $total in all"
