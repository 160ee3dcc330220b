/* SPDX-License-Identifier: GPL-2.0-or-later */
/* listen: opens the listening socket for an address from the command line. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "server_priv.h"

#define LOOPBACK "127.0.0.1"
#define BACKLOG	 SERVER_CONNECTIONS
#define UNIX	 "unix:"
/* Unix sockets are bound through their directory's descriptor, whose number may be large. */
#define BY_FD "/proc/self/fd/%d/%s"
#define NAME_MOST                                                                                  \
	(sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/proc/self/fd/2147483647/"))

/* ── addresses ───────────────────────────────────────────────────────────────────────────── */

struct address {
	char host[64], port[6];
};

static bool is_port(const char *s)
{
	return *s && strlen(s) < 6 && !s[strspn(s, "0123456789")] && strtoul(s, NULL, 10) < 65536;
}

/* "HOST:PORT", "[HOST]:PORT", ":PORT", "PORT". */
static bool split(const char *text, struct address *ret)
{
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!is_port(port) || len >= sizeof(ret->host))
		return false;
	snprintf(ret->port, sizeof(ret->port), "%s", port);
	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		/* ambiguous: which colon precedes the port? */
		return false;
	}
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)len, text);
	if (!len || !strcmp(ret->host, "localhost"))
		snprintf(ret->host, sizeof(ret->host), "%s", LOOPBACK);
	return true;
}

/* No name lookups: an unreachable name server would delay the daemon's start. */
static int resolve(const struct address *a, struct addrinfo **ret_info)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				       .ai_socktype = SOCK_STREAM};

	return getaddrinfo(a->host, a->port, &hints, ret_info) ? -EINVAL : 0;
}

/* True for a link-local address that does not name its link, unlike "[fe80::1%eth0]:9464". */
static bool lacks_link(const struct addrinfo *info)
{
	struct sockaddr_in6 v6;

	if (info->ai_family != AF_INET6)
		return false;
	memcpy(&v6, info->ai_addr, sizeof(v6));
	return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) && !v6.sin6_scope_id;
}

static bool is_socket(const char *path)
{
	const char *name = path__base(path);

	return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	       strlen(name) <= NAME_MOST;
}

bool metrics_server__is_address(const char *text)
{
	struct addrinfo *info;
	struct address a;
	bool lacks;

	if (!strncmp(text, UNIX, strlen(UNIX)))
		return is_socket(text + strlen(UNIX));
	if (!split(text, &a) || resolve(&a, &info))
		return false;
	lacks = lacks_link(info);
	freeaddrinfo(info);
	return !lacks;
}

/* The lowest port that needs no capability. */
static unsigned long first_free_port(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "re");
	unsigned long port = IPPORT_RESERVED;
	char text[16];

	if (f && fgets(text, sizeof(text), f))
		port = strtoul(text, NULL, 10);
	if (f)
		fclose(f);
	return port;
}

bool metrics_server__needs_right(const char *text)
{
	unsigned long port;
	struct address a;

	if (!strncmp(text, UNIX, strlen(UNIX)) || !split(text, &a))
		return false;
	port = strtoul(a.port, NULL, 10);
	return port && port < first_free_port();
}

/* ── TCP ─────────────────────────────────────────────────────────────────────────────────── */

static void show(struct listener *l)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char host[64], port[8];
	bool v6;

	if (getsockname(l->fd, (struct sockaddr *)&addr, &len) ||
	    getnameinfo((struct sockaddr *)&addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	v6 = addr.ss_family == AF_INET6;
	snprintf(l->shown, sizeof(l->shown), "http://%s%s%s:%s/metrics", v6 ? "[" : "", host,
		 v6 ? "]" : "", port);
}

static int open_tcp(const char *text, struct listener *l)
{
	struct addrinfo *info;
	struct address a;
	int err = split(text, &a) ? resolve(&a, &info) : -EINVAL, one = 1, zero = 0;

	if (err)
		return err;
	l->fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* SO_REUSEADDR: a restart need not wait for old connections in TIME_WAIT; "[::]" means
	 * all addresses, including IPv4, whatever net.ipv6.bindv6only is */
	if (l->fd < 0 || setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    (info->ai_family == AF_INET6 &&
	     setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero))) ||
	    bind(l->fd, info->ai_addr, info->ai_addrlen))
		err = -errno;
	freeaddrinfo(info);
	if (!err)
		show(l);
	return err;
}

/* ── a socket with a path ────────────────────────────────────────────────────────────────── */

/* Removes the socket of a daemon that was killed: nobody listens on it. */
static void remove_left_over(const struct listener *l, const struct sockaddr_un *addr)
{
	struct stat st;
	int fd;

	if (fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) &&
	    errno == ECONNREFUSED)
		unlinkat(l->dir_fd, l->name, 0);
	fd__close(&fd);
}

/* Notes which file the path leads to: if somebody removes it, the path may become another's. */
static int note_file(struct listener *l)
{
	struct stat st;

	if (fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

static bool is_ours(const struct listener *l)
{
	struct stat st;

	return !fstatat(l->dir_fd, l->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == l->dev &&
	       st.st_ino == l->ino;
}

static int bind_unix(struct listener *l)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	mode_t mask;
	int n, err;

	/* through the directory's descriptor, so that nobody can slip in a symlink */
	n = snprintf(addr.sun_path, sizeof(addr.sun_path), BY_FD, l->dir_fd, l->name);
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	remove_left_over(l, &addr);
	mask = umask(0117);
	err = bind(l->fd, (const struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	umask(mask);
	return err ? err : note_file(l);
}

static int open_unix(const char *path, struct listener *l)
{
	const char *name;
	int err = dir__open_of(path, (uid_t)-1, &l->dir_fd, &name);

	if (err)
		return err;
	if (strlen(name) >= sizeof(l->name))
		return -ENAMETOOLONG;
	snprintf(l->name, sizeof(l->name), "%s", name);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	err = l->fd < 0 ? -errno : bind_unix(l);
	if (err)
		l->name[0] = '\0';
	else
		snprintf(l->shown, sizeof(l->shown), "%s", path);
	return err;
}

/* ── both ────────────────────────────────────────────────────────────────────────────────── */

int listener__open(const char *address, struct listener *ret_listener)
{
	struct listener l = {.fd = -1, .dir_fd = -1};
	bool is_unix = !strncmp(address, UNIX, strlen(UNIX));
	int err = is_unix ? open_unix(address + strlen(UNIX), &l) : open_tcp(address, &l);

	if (!err && listen(l.fd, BACKLOG))
		err = -errno;
	if (err) {
		log_error("--metrics %s: %s%s", address, strerror(-err),
			  err == -EACCES && metrics_server__needs_right(address)
				  ? " (its port needs CAP_NET_BIND_SERVICE)"
				  : "");
		listener__close(&l, true);
		return err;
	}
	*ret_listener = l;
	return 0;
}

void listener__close(struct listener *l, bool remove)
{
	if (remove && l->dir_fd >= 0 && l->name[0] && is_ours(l))
		unlinkat(l->dir_fd, l->name, 0);
	/* the serving process has the socket open until it ends, but the port must be free now */
	if (remove && l->fd >= 0)
		shutdown(l->fd, SHUT_RDWR);
	fd__close(&l->dir_fd);
	fd__close(&l->fd);
}
