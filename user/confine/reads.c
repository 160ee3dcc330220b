/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reads: the files that children talking to servers may read. */
#include "confine.h"

/*
 * Landlock judges by the file that is finally opened. Files in /etc are symlinks on many systems:
 * these directories are their known targets, and the important files are listed as well, to allow
 * their targets at the time when a process starts.
 */
const char *const confine__names_and_trust[] = {
	"/etc",
	"/etc/hosts",
	"/etc/nsswitch.conf",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/resolv.conf",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
	"/etc/ssl/certs/ca-certificates.crt",
	"/nix/store",
	"/run/NetworkManager",
	"/run/connman",
	"/run/netconfig",
	"/run/resolvconf",
	"/run/systemd/resolve",
	"/usr/local/share/ca-certificates",
	"/usr/share/ca-certificates",
	"/usr/share/zoneinfo",
	NULL,
};
