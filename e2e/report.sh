# What scripts that run `go test -v` into a log say of it; to be sourced.

# report_failures LOG: all of it, and at the end once more what failed, for those who see only the end.
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
}

# report_skips LOG: every test that was skipped, with its reason.
report_skips() {
  echo "Skipped here, and why:"
  awk '
    $1 == "===" && ($2 == "RUN" || $2 == "NAME" || $2 == "CONT") { test = $3 }
    /^ +[a-z_]+\.go:[0-9]+: / { said[test] = $0 }
    $1 == "---" && $2 == "SKIP:" { print "  " $3 ":" said[$3]; any = 1 }
    END { if (!any) print "  nothing" }' "$1"
}
