/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reads: what those read who speak to servers. */
#include "confine.h"

/*
 * The kernel judges by the file that is opened in the end (Landlock). Files of /etc are links on
 * many systems: these folders are where they lead to, as far as is known, and the files that matter
 * are listed as well, for where they lead to as a process starts.
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
