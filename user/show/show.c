/* SPDX-License-Identifier: GPL-2.0-or-later */
/* show: the daemon's side. */
#include "show.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/pass.h"
#include "confine/confine.h"
#include "output/output.h"
#include "show_priv.h"

struct show {
	struct confine_peer *peer;
	struct show_start start;
	uint16_t port;
	char address[96];
};

/* ── opening ─────────────────────────────────────────────────────────────────────────────── */

static int make_path(char *path, size_t size)
{
	unsigned char bits[(SHOW_TOKEN_SIZE - 1) / 2];
	int at = snprintf(path, size, "/");

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return -EIO;
	for (size_t i = 0; i < sizeof(bits); i++)
		at += snprintf(path + at, size - (size_t)at, "%02x", bits[i]);
	snprintf(path + at, size - (size_t)at, "/");
	return 0;
}

static int listen_anywhere(struct show *s)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	s->start.listen_fd = fd;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, SHOW_CONNECTIONS) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return -errno;
	s->port = ntohs(addr.sin_port);
	snprintf(s->address, sizeof(s->address), "http://127.0.0.1:%u%s", s->port, s->start.path);
	return 0;
}

static int start(struct show *s)
{
	const struct confine how = {.name = "safescoped:page",
				    .memory = 2 * SHOW_MAX_PAGE + (64U << 20),
				    .cpu_s = CONFINE_NO_END,
				    .keep = CONFINE_LISTEN,
				    .user = CONFINE_NOBODY,
				    .nice = 19,
				    .more_fds = SHOW_CONNECTIONS + 16,
				    .fds = &s->start.listen_fd,
				    .n_fds = 1};

	return confine_peer__start(&how, show_serve__run, &s->start, &s->peer);
}

int show__open(struct show **ret_show)
{
	struct show *s = calloc(1, sizeof(*s));
	int err = s ? 0 : -ENOMEM;

	if (s)
		s->start.listen_fd = -1;
	if (!err)
		err = make_path(s->start.path, sizeof(s->start.path));
	if (!err)
		err = listen_anywhere(s);
	if (!err)
		err = start(s);
	if (err) {
		log_error("--open: cannot serve the page: %s", strerror(-err));
		show__free(s);
		return err;
	}
	/* the serving process has it */
	fd__close(&s->start.listen_fd);
	*ret_show = s;
	return 0;
}

void show__free(struct show *s)
{
	if (!s)
		return;
	confine_peer__free(s->peer);
	fd__close(&s->start.listen_fd);
	free(s);
}

/* ── the page ────────────────────────────────────────────────────────────────────────────── */

/* Copies the file, since its owner may change it later. */
static int copy(int from, int to, uint64_t *ret_size)
{
	static char bytes[1 << 16];
	uint64_t size = 0;

	for (;;) {
		ssize_t n = read(from, bytes, sizeof(bytes));
		int err;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		size += (uint64_t)n;
		err = size > SHOW_MAX_PAGE ? -EFBIG : pass__write(to, bytes, (size_t)n);
		if (err)
			return err;
	}
	*ret_size = size;
	return size ? 0 : -EINVAL;
}

/* Opens the file by the rules it was written by: through no links but root's, this process's and
 * the files' owner's. */
static int open_file(const char *path, int *ret_fd)
{
	const char *name;
	struct stat st;
	uid_t owner;
	gid_t group;
	int dir, fd, err = output__owner(&owner, &group);

	if (!err)
		err = dir__open_of(path, owner, &dir, &name);
	if (err)
		return err;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	err = fd < 0 || fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	fd__close(&dir);
	if (err)
		fd__close(&fd);
	else
		*ret_fd = fd;
	return err;
}

static int copy_file(const char *path, int to, uint64_t *ret_size)
{
	int fd, err = open_file(path, &fd);

	if (err)
		return err;
	err = copy(fd, to, ret_size);
	fd__close(&fd);
	return err;
}

static int send_page(struct show *s, int fd, uint64_t size)
{
	struct show_message msg = {.size = size};

	return confine_peer__send(s->peer, &msg, sizeof(msg), fd, 0);
}

int show__page(struct show *s, const char *path)
{
	int fd = -1, err = pass__memory("page", &fd);
	uint64_t size = 0;

	if (!err)
		err = copy_file(path, fd, &size);
	if (!err)
		err = pass__seal(fd);
	if (!err)
		err = send_page(s, fd, size);
	fd__close(&fd);
	if (err)
		log_error("--open: %s: cannot be served: %s", path, strerror(-err));
	return err;
}

/* ── until it is enough ──────────────────────────────────────────────────────────────────── */

static void print_address(const struct show *s)
{
	char host[256] = "HOST";

	if (gethostname(host, sizeof(host) - 1))
		snprintf(host, sizeof(host), "HOST");
	/* this is requested data, not a message, so -q does not suppress it */
	fprintf(stderr,
		"%s\n  from another host: ssh -N -L %u:127.0.0.1:%u %s, then open the same address "
		"there\n  serving until Ctrl-C\n",
		s->address, s->port, s->port, host);
	fflush(stderr);
}

int show__wait(struct show *s, const char *path)
{
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct signal_taken taken;
	int err = signals__open(&fds[0].fd);

	if (err)
		return err;
	fds[1].fd = confine_peer__fd(s->peer);
	print_address(s);
	show__open_browser(path);
	for (;;) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR) {
			err = -errno;
			break;
		}
		if (fds[0].revents && signals__take(fds[0].fd, &taken))
			break;
		if (fds[1].revents) {
			log_error("--open: the process that serves the page has ended");
			err = -EPIPE;
			break;
		}
	}
	fd__close(&fds[0].fd);
	return err;
}
