#!/usr/bin/env bash
# apt_install.sh PACKAGE…: installs the first of the packages that this system offers.
# Exit 1 where apt, the rights to use it, or every one of the packages is missing.
set -euo pipefail

command -v apt-get >/dev/null || exit 1
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    # Never ask for a password in the middle of a build.
    sudo -n true 2>/dev/null || exit 1
    as_root=(sudo -n)
fi
"${as_root[@]}" apt-get update >&2 || exit 1
for package in "$@"; do
    if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" >&2; then
        exit 0
    fi
done
exit 1
