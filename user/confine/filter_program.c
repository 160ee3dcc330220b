/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/read.h"
#include "confine_priv.h"
#include "filter_program.h"

/* It takes milliseconds. */
#define WRITE_CPU_S 5

static int write_program(uint32_t otherwise, filter_rules_fn rules, const void *arg, int fd)
{
	scmp_filter_ctx f = seccomp_init(otherwise);
	int err = f ? rules(f, arg) : -ENOMEM;

	if (!err)
		err = seccomp_export_bpf(f, fd);
	if (f)
		seccomp_release(f);
	return err;
}

/*
 * In a child: libseccomp 2.5.4 crashes, or loops for ever, if an allocation fails while it exports
 * or loads.
 */
static int write_aside(uint32_t otherwise, filter_rules_fn rules, const void *arg, int fd)
{
	const struct rlimit cpu = {.rlim_cur = WRITE_CPU_S, .rlim_max = WRITE_CPU_S};
	int status;
	pid_t pid = confine_fork();

	if (pid < 0)
		return pid;
	if (pid == 0)
		_exit(setrlimit(RLIMIT_CPU, &cpu) || write_program(otherwise, rules, arg, fd));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -ENOMEM : 0;
}

static int read_program(int fd, struct sock_filter **ret_code, size_t *ret_size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	struct sock_filter *code;
	size_t size, got;

	if (end <= 0 || end % (off_t)sizeof(*code) || end / (off_t)sizeof(*code) > BPF_MAXINSNS)
		return -EINVAL;
	size = (size_t)end;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	if (read__at(fd, code, size, 0, &got) || got < size) {
		free(code);
		return -EIO;
	}
	*ret_code = code;
	*ret_size = size;
	return 0;
}

int filter_program__make(uint32_t otherwise, filter_rules_fn rules, const void *arg,
			 struct sock_fprog *ret_program)
{
	int fd = memfd_create("filter", MFD_CLOEXEC), err;
	struct sock_filter *code;
	size_t size;

	if (fd < 0)
		return -errno;
	err = write_aside(otherwise, rules, arg, fd);
	if (!err)
		err = read_program(fd, &code, &size);
	fd__close(&fd);
	if (err)
		return err;
	*ret_program =
		(struct sock_fprog){.len = (unsigned short)(size / sizeof(*code)), .filter = code};
	return 0;
}
