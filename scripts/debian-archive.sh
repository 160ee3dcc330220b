# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# For other scripts to source: where a Debian archive is, what signs it, how to get there.
# DEBIAN_MIRROR (URL) and DEBIAN_KEYRING (file) come before what this machine's apt has.

# The first Debian archive that this machine's own packages come from.
mirror() {
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		printf '%s\n' "$DEBIAN_MIRROR"
		return
	fi
	# shellcheck disable=SC2016 # apt's own names
	apt-get indextargets 'Created-By: Packages' 'Component: main' --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 2>/dev/null |
		sed -n 's/^Debian Debian //p' | head -n 1
}

keyring() {
	for k in "${DEBIAN_KEYRING:-}" /usr/share/keyrings/debian-archive-keyring.gpg \
		/usr/share/keyrings/debian-archive-keyring.pgp; do
		[ -z "$k" ] || [ ! -e "$k" ] || {
			printf '%s\n' "$k"
			return
		}
	done
}

# A proxy that only apt knows of.
proxy() {
	eval "$(apt-config shell P Acquire::http::Proxy 2>/dev/null)"
	printf '%s\n' "${P:-${http_proxy:-}}"
}
