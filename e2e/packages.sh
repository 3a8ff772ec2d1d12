# The packages in packages.txt: which they are, which are missing, and how they are installed; to be sourced. What is
# wanted is named by the program or file that a line begins with, by the script that installs it, or by "all".
packages_list=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/packages.txt

# packages_lines WANTED...: a line for each program or file, with its packages behind it.
packages_lines() {
  local program packages scripts wanted
  while IFS='|' read -r program packages scripts _; do
    for wanted in "$@"; do
      if [[ $wanted == all || $wanted == "$program" || " $scripts " == *" $wanted "* ]]; then
        echo "$program $packages"
        break
      fi
    done
  done < <(sed -e '/^#/d' -e '/^$/d' -e 's/ *| */|/g' "$packages_list")
}

# packages_here PROGRAM: whether a program, or a file, is there.
packages_here() {
  case $1 in
  /*) [ -e "$1" ] ;;
  *) PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null ;;
  esac
}

# packages_of WANTED...: their packages, a line each.
packages_of() { packages_lines "$@" | cut -d ' ' -f 2- | tr ' ' '\n' | sort -u; }

# packages_missing WANTED...: the packages of those that are not there, a line each.
packages_missing() {
  local program packages
  packages_lines "$@" | while read -r program packages; do
    packages_here "$program" || tr ' ' '\n' <<<"$packages"
  done | sort -u
}

# packages_prepare: finds out how to install, and fails with the reason in packages_hindrance where nothing can be.
packages_prepare() {
  packages_as_root=()
  packages_hindrance="there is no apt-get here"
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" -ne 0 ] || return 0
  packages_hindrance="installing takes root"
  sudo -n true 2>/dev/null || return 1
  packages_as_root=(sudo -n)
}

# packages_install PACKAGE...: installs them, after packages_prepare; with new lists of packages if the present ones do not do.
packages_install() { packages_get "$@" || { "${packages_as_root[@]}" apt-get update && packages_get "$@"; }; }

# Packages bring services of their own; who needs a server starts it, so none is started here, and no cluster of PostgreSQL is made.
# Whoever installs something else at the same time is waited for.
packages_get() {
  case " $* " in *" postgresql-"*)
    "${packages_as_root[@]}" sh -c 'mkdir -p /etc/postgresql-common/createcluster.d &&
      echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/restripe.conf' || return
    ;;
  esac
  "${packages_as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"
}
