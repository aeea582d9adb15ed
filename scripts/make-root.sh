#!/bin/sh
# Makes a root file system that can stand for an image in bubblewrap sandboxes (docs/images.md), by debootstrap.
# Run it as root or with sudo: debootstrap needs root.
#
#   make-root.sh SUITE FOLDER [MIRROR] [PACKAGE…]      make-root.sh bookworm /roots/debian-12
set -eu

if [ $# -lt 2 ]; then
  echo "usage: $0 SUITE FOLDER [MIRROR] [PACKAGE…], e.g. $0 noble /roots/ubuntu-24.04" >&2
  exit 2
fi
suite=$1 folder=$2
shift 2
case $suite in
  focal | jammy | noble) mirror=http://archive.ubuntu.com/ubuntu components=main,universe script=gutsy ;;
  *) mirror=http://deb.debian.org/debian components=main script=sid ;;
esac
case ${1-} in
  *://*) mirror=$1; shift ;;
esac
packages=ca-certificates
for package; do packages=$packages,$package; done

# A debootstrap may be older than the suite: then the script of its distribution does.
own=/usr/share/debootstrap/scripts/$suite
[ -e "$own" ] || own=/usr/share/debootstrap/scripts/$script
mkdir -p "$(dirname "$folder")"
debootstrap --variant=minbase --components="$components" --include="$packages" "$suite" "$folder" "$mirror" "$own"

# One user is mapped into a sandbox: apt may not try to become another.
echo 'APT::Sandbox::User "root";' > "$folder/etc/apt/apt.conf.d/90one-user"
# Names are looked up as on this machine, and its certificates are believed.
rm -f "$folder/etc/resolv.conf"
cp /etc/resolv.conf "$folder/etc/resolv.conf"
[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"
rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/dev/*
# The user whom sandboxes run as must own all files: whoever called sudo, or for root itself user 1900000000
# (sandbox-user.ts).
uid=${SUDO_UID:-0} gid=${SUDO_GID:-0}
[ "$uid" != 0 ] || uid=1900000000 gid=1900000000
chown -hR "$uid:$gid" "$folder"
