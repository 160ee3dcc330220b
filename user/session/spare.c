/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spare: descriptors reserved for the end of the session. */
#include <fcntl.h>

#include "session_priv.h"

void spare_fds__open(struct session *s)
{
	while (s->n_spare_fds < SESSION_SPARE_FDS) {
		int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			return;
		s->spare_fds[s->n_spare_fds++] = fd;
	}
}

void spare_fds__close(struct session *s)
{
	while (s->n_spare_fds)
		fd__close(&s->spare_fds[--s->n_spare_fds]);
}
