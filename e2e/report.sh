# What scripts say of the log of a check; to be sourced.

# report_failures LOG, of `go test -v`: all of it, and at the end once more what failed, for those who see only the end.
report_failures() {
  cat "$1"
  echo "What failed:"
  grep -nE '^(FAIL|panic:|fatal error:|WARNING: DATA RACE)|^ *--- FAIL|^#|\[build failed\]' "$1"
  awk '
    $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3; next }
    $1 == "---" && $2 == "FAIL:" {
      print "--- " $3
      for (i = lines[$3] > 80 ? lines[$3] - 80 : 0; i < lines[$3]; i++) print "  " said[$3, i % 80]
    }
    $1 == "---" { next }
    { said[test, lines[test]++ % 80] = $0 }' "$1"
  # Last what the tests themselves say, in a line each: logs of servers may be long.
  awk '
    $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3; next }
    $1 == "---" && $2 == "FAIL:" { print "--- " $3 " says:"; printf "%s", says[$3] }
    $1 == "---" { next }
    /^ +[a-z0-9_]+_test\.go:[0-9]+: / { says[test] = says[test] "  " substr($0, 1, 1500) "\n" }' "$1"
}

# skips LOG, of `go test -v`: a line for each test that was skipped in it: its name and the reason.
skips() {
  awk '
    $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3 }
    /^ +[a-z0-9_]+\.go:[0-9]+: / { said[test] = $0; sub(/^ +[a-z0-9_]+\.go:[0-9]+: /, "", said[test]) }
    $1 == "---" && $2 == "SKIP:" { print $3, said[$3] }' "$1"
}

# unexpected_skips CHECK LOG: those of its skips that e2e/skips.txt does not expect of the check.
unexpected_skips() {
  local test reason check pattern
  while read -r test reason; do
    while read -r check pattern; do
      if [[ ($check == any || $check == "$1") && $reason =~ ^($pattern)$ ]]; then continue 2; fi
    done < <(grep -vE '^(#|$)' e2e/skips.txt)
    echo "$test ${reason:-for no reason}"
  done < <(skips "$2")
}

# report_skips CHECK LOG: every test that was skipped, with its reason. It fails if one is not expected.
report_skips() {
  local skipped unexpected
  skipped=$(skips "$2")
  unexpected=$(unexpected_skips "$1" "$2")
  echo "Skipped here, and why:"
  sed 's/^/  /' <<<"${skipped:-nothing}"
  if [ -n "$unexpected" ]; then
    echo "Skipped, and not expected by e2e/skips.txt:"
    sed -E 's/^/  UNEXPECTED SKIP /' <<<"$unexpected"
    return 1
  fi
}

# failing_tests LOG: a line for each test that failed in it: its name, and the seed that it printed last. Names are those
# of Go, with or without -v, of tests within tests the innermost only; of vitest; and of Playwright; with underscores for
# blanks. A failure that names no test is one of "unknown"; where no seed was printed it is "none".
failing_tests() {
  sed -e 's/\x1b\[[0-9;]*[A-Za-z]//g' -e 's/\r$//' "$1" | awk '
    function fails(name) {
      gsub(/[ \t]+/, "_", name)
      if (!(name in failed)) { failed[name]; names[++count] = name }
      test = name
    }
    function has_inner(name, other) {
      for (other in failed) if (index(other, name "/") == 1) return 1
      return 0
    }
    function seed_of(name) { # or of the test around it
      while (name != "" && !(name in seeds)) sub(/\/?[^\/]*$/, "", name)
      return name == "" ? "none" : seeds[name]
    }
    $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3; next }
    $1 == "---" && $2 == "FAIL:" { fails($3); next }
    /^panic: test timed out after/ { hangs = 1 }
    hangs && /^\t+(Test|Fuzz|Benchmark)[^ ]* \(/ { fails($1); next }
    /^ *FAIL +[^ ]+\.[jt]sx?( |$)/ { sub(/^ *FAIL +/, ""); fails($0); next }
    /^ +[0-9]+\) .*:[0-9]+:[0-9]+ › / { sub(/^ +[0-9]+\) /, ""); sub(/[ ─]+$/, ""); fails($0); next }
    $1 == "---" || $1 == "ok" || $1 == "FAIL" { test = ""; next }
    match(tolower($0), /seed"?(( [a-z]+)* is)?[ :=]+-?[0-9]+/) {
      number = substr($0, RSTART, RLENGTH)
      sub(/.*[^-0-9]/, "", number)
      seeds[test] = number
    }
    END {
      for (i = 1; i <= count; i++) if (!has_inner(names[i])) print names[i], seed_of(names[i])
      if (count == 0) print "unknown", ("" in seeds ? seeds[""] : "none")
    }'
}

# quiet_tests CHECK ARGUMENT...: runs `go test -v` with these arguments, and says a line for each package and report_skips; where a
# test fails all of it, and fails.
quiet_tests() {
  local check=$1 log code=0
  log=$(mktemp)
  shift
  if go test -timeout 45m -v "$@" >"$log" 2>&1; then
    grep -E '^ok' "$log"
    report_skips "$check" "$log" || code=1
  else
    report_failures "$log"
    code=1
  fi
  rm -f "$log"
  return "$code"
}
