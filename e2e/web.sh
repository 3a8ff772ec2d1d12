#!/usr/bin/env bash
# Checks the web interface: types, linter, components, size. Where there is no Node.js this is said, loudly and once.
set -eu -o pipefail
cd "$(dirname "$0")/.."

oldest=20
if ! command -v npm >/dev/null || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt $oldest ]; then
  echo "**********************************************************************"
  echo "web: NOTHING WAS TESTED: Node.js $oldest or newer with npm is needed; install it and run e2e/web.sh again"
  echo "**********************************************************************"
  exit 0
fi
make --no-print-directory web/node_modules/.package-lock.json
for check in typecheck lint test; do
  npm --prefix web run --silent "$check"
done
make --no-print-directory web/dist/index.html
npm --prefix web run --silent size
