#!/usr/bin/env bash
# Fetches one version of a Debian package, checks it and unpacks it without installing it.
#
#   scripts/fetch-deb.sh PACKAGE VERSION SHA256 DIR
#
# Does nothing where DIR has it already. A file PACKAGE_VERSION_all.deb beside DIR is used in place of a download.
set -euo pipefail
[ $# = 4 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
package=$1 version=$2 sha256=$3 target=$4

[ ! -e "$target/.$package-$version" ] || exit 0
beside=$(dirname "$target") deb=${package}_${version//:/%3a}_all.deb
mkdir -p "$target"
# Who comes second finds it done.
exec 9> "$target/.lock"
flock 9
[ ! -e "$target/.$package-$version" ] || exit 0
printf '== fetching %s %s\n' "$package" "$version" >&2
download() { (cd "$beside" && apt-get download -qq "$package=$version"); }
if [ ! -e "$beside/$deb" ] && ! download 2>/dev/null \
    && ! { { [ "$(id -u)" != 0 ] || apt-get update -qq; } && download; }; then
  echo "fetch-deb.sh: cannot fetch $package $version; check apt's sources, or put $deb into $beside" >&2
  exit 69
fi
echo "$sha256  $beside/$deb" | sha256sum --check --status \
  || { echo "$beside/$deb: checksum differs from $sha256; delete it and run again" >&2; exit 65; }
dpkg-deb -x "$beside/$deb" "$target"
touch "$target/.$package-$version"
