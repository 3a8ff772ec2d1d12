#!/usr/bin/env bash
# Builds the program of this directory into the file that is named: versitygw's tests of S3, of which three things are replaced. A list takes
# the place of what runs them, so that this program does; errors are compared by their codes and statuses, not by their words, in which a
# server may say more than Amazon does; and storage classes are not compared. Each passage has to be there. The program stays as
# it is while nothing of this has changed.
set -euo pipefail
cd "$(dirname "$0")"
into=$1
if [ -e "$into" ] && [ -z "$(find . -newer "$into" -type f)" ]; then exit 0; fi
module=$(go list -m -f '{{.Dir}}' github.com/versity/versitygw)
if [ -z "$module" ]; then
  go mod download github.com/versity/versitygw
  module=$(go list -m -f '{{.Dir}}' github.com/versity/versitygw)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/versitygw"
cp -r "$module/." "$work/versitygw" # since what is in Go's cache of modules cannot be replaced
chmod -R u+w "$work/versitygw"
cp _list.go "$work/versitygw/tests/integration/concurrency.go"
python3 - "$work/versitygw/tests/integration" <<'PY'
import pathlib
import sys

for name, passage, by in (
    ("utils.go", "if received.Message != apiErr.Description {", "if received.Message == \"\" {"),
    ("utils.go", "if ae.ErrorMessage() != apiErr.Description {", "if ae.ErrorMessage() == \"\" {"),
    ("utils.go", "\treturn compareS3ApiErr(expected, received)", "\treturn nil"),
    ("utils.go", "if obj.StorageClass != list2[i].StorageClass {", "if false {"),
    ("utils.go", "if out.StorageClass != types.StorageClassStandard {", "if false {"),
    ("GetObject.go", "if out.StorageClass != types.StorageClassStandard {", "if false {"),
    ("GetObjectAttributes.go", "if out.StorageClass != types.StorageClassStandard {", "if false {"),
    ("HeadObject.go", "if out.StorageClass != types.StorageClassStandard {", "if false {"),
    ("ListParts.go", "if res.StorageClass != types.StorageClassStandard {", "if false {"),
):
    file = pathlib.Path(sys.argv[1], name)
    text = file.read_text()
    if passage not in text:
        sys.exit(f"build: {file} has no {passage!r}")
    file.write_text(text.replace(passage, by))
PY
cp go.mod go.sum "$work"
go mod edit -replace "github.com/versity/versitygw=$work/versitygw" "$work/go.mod"
go build -modfile "$work/go.mod" -o "$into" .
