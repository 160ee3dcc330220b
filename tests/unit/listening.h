/* SPDX-License-Identifier: GPL-2.0-or-later */
/* listening: a socket listening on a free port of this host. */
#ifndef TEST_LISTENING_H
#define TEST_LISTENING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

/* Returns the descriptor; *ret_addr is set to 127.0.0.1 and the port. */
static inline int listening(struct sockaddr_in *ret_addr)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	*ret_addr = addr;
	return fd;
}

#endif
