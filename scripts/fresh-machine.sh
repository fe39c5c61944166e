#!/usr/bin/env bash
# The README's two commands as on a fresh machine: a minimal Debian 12 in ROOT (debootstrap), a clone of this tree's HEAD, a chroot.
#
#   scripts/fresh-machine.sh ROOT [COMMAND...]      (default: scripts/quickstart.sh --short, then scripts/test.sh)
#
# Needs root, the package debootstrap and about 16 GB. ROOT is kept: run again, it takes the new HEAD and what is installed already. A proxy,
# PIP_CERT and the mirror come from this machine's environment (MM_DEBIAN_MIRROR overrides the mirror).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$1; shift
[ "$(id -u)" = 0 ] || { echo "fresh-machine.sh: chroot needs root" >&2; exit 77; }
command -v debootstrap >/dev/null || { echo "fresh-machine.sh: apt-get install debootstrap" >&2; exit 69; }
[ $# -gt 0 ] || set -- sh -c 'scripts/quickstart.sh --short && scripts/test.sh'

if [ ! -e "$root/.complete" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates,git bookworm "$root" ${MM_DEBIAN_MIRROR:+"$MM_DEBIAN_MIRROR"} >&2
  touch "$root/.complete"
fi
root=$(realpath "$root")
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
[ -z "${PIP_CERT:-}" ] || { mkdir -p "$root$(dirname "$PIP_CERT")"; cp -L "$PIP_CERT" "$root$PIP_CERT"; }

mounted=()
unmount() { for at in "${mounted[@]}"; do umount -l "$root/$at" || true; done; }
trap unmount EXIT
mount -t proc proc "$root/proc" && mounted+=(proc)
for at in dev sys; do mount --rbind "/$at" "$root/$at" && mount --make-rslave "$root/$at" && mounted+=("$at"); done

tree=$root/root/mmkit
if [ -d "$tree" ]; then git -C "$tree" fetch -q "$PWD" HEAD && git -C "$tree" checkout -q --detach FETCH_HEAD; else git clone -q . "$tree"; fi
started=$(date +%s)
status=0
env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  ${PIP_CERT:+PIP_CERT="$PIP_CERT"} ${https_proxy:+https_proxy="$https_proxy"} ${http_proxy:+http_proxy="$http_proxy"} \
  chroot "$root" sh -c 'cd /root/mmkit && exec "$@"' sh "$@" </dev/null || status=$?
echo "== exit $status after $(($(date +%s) - started)) s on a fresh Debian $(cat "$root/etc/debian_version")"
exit "$status"
