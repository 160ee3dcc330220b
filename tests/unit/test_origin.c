/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which files may be probed, according to texts of mountinfo files. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/origin.h"

static const char host[] =
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	"27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,errors=remount-ro\n"
	"30 27 0:40 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw\n"
	"31 27 0:41 / /home/u/far rw,nosuid,nodev - fuse.sshfs u@far:/ rw,user_id=1000\n"
	"32 27 0:42 / /var/lib/docker/overlay2/a/merged rw - overlay overlay "
	"rw,lowerdir=/var/lib/docker/overlay2/l/B:/var/lib/docker/overlay2/l/"
	"C,upperdir=/var/lib/docker/overlay2/a/diff,workdir=/var/lib/docker/overlay2/a/work\n"
	"33 27 0:43 / /mnt/mixed rw - overlay overlay rw,lowerdir=/home/u/far/x:/usr\n"
	"34 27 0:44 / /mnt/relative rw - overlay overlay rw,lowerdir=l/A:/usr\n"
	"35 27 0:45 / /mnt/escaped rw - overlay overlay rw,lowerdir=/a\\134:b:/usr\n"
	"36 27 0:46 / /mnt/nested rw - overlay overlay "
	"rw,lowerdir+=/var/lib/docker/overlay2/a/merged/x,lowerdir+=/usr\n"
	"37 27 0:47 / /mnt/bare rw - overlay overlay rw\n"
	"38 27 0:48 / /net rw - nfs4 server:/ rw\n"
	"39 27 7:9999 / /mnt/loop rw,nosuid - ext4 /dev/loop9999 rw\n"
	"40 27 254:0 /srv /srv rw,nosuid - ext4 /dev/vda rw\n"
	"41 27 0:49 / /home/u/farther rw - xfs /dev/vdb rw\n"
	"42 27 0:50 / /mnt/beside rw - overlay overlay rw,lowerdir=/home/u/farther/x:/usr\n";

static void reach_is(const char *mounts, uint64_t id, enum origin_reach want, const char *fs)
{
	struct origin got;

	memset(&got, 0xff, sizeof(got));
	origin__of_mount(mounts, id, host, &got);
	assert_int_equal(got.reach, want);
	assert_string_equal(got.fs, fs);
	assert_int_equal(got.overlay, !strcmp(fs, "overlay"));
}

static void by_type(void **state)
{
	(void)state;
	reach_is(host, 27, ORIGIN_OWNED, "ext4");
	reach_is(host, 22, ORIGIN_FOREIGN, "proc");
	reach_is(host, 31, ORIGIN_FOREIGN, "fuse.sshfs");
	reach_is(host, 38, ORIGIN_FOREIGN, "nfs4");
	reach_is(host, 99, ORIGIN_FOREIGN, "");
}

/*
 * File systems that users bring are mounted nosuid; one mount without it is enough to be trusted.
 */
static void by_flags(void **state)
{
	(void)state;
	reach_is(host, 30, ORIGIN_LOCAL, "tmpfs");
	reach_is(host, 40, ORIGIN_OWNED, "ext4");
	reach_is(host, 39, ORIGIN_FOREIGN, "ext4"); /* what backs the loop device is unknown */
}

static void overlays(void **state)
{
	(void)state;
	reach_is(host, 32, ORIGIN_OWNED, "overlay");
	reach_is(host, 33, ORIGIN_FOREIGN, "overlay");
	reach_is(host, 34, ORIGIN_FOREIGN, "overlay");
	reach_is(host, 35, ORIGIN_FOREIGN, "overlay");
	reach_is(host, 36, ORIGIN_OWNED, "overlay");
	reach_is(host, 37, ORIGIN_FOREIGN, "overlay");
	/* /home/u/far is not a prefix directory of /home/u/farther */
	reach_is(host, 42, ORIGIN_OWNED, "overlay");
}

/* A process with mounts of its own: what it mounted itself is not mounted on the host. */
static void own_mounts(void **state)
{
	static const char own[] =
		"500 499 254:0 / / rw - ext4 /dev/vda rw\n"
		"501 500 0:70 / /tmp rw - tmpfs tmpfs rw\n"
		"502 500 0:71 / /usr/lib rw - overlay overlay rw,lowerdir=/usr/lib:/empty\n"
		"503 500 0:42 / /x rw - overlay overlay rw,lowerdir=/home/u/far\n"
		"504 500 0:72 / /y rw - fuse /dev/fuse rw\n"
		"505 500";

	(void)state;
	reach_is(own, 500, ORIGIN_OWNED, "ext4");
	reach_is(own, 501, ORIGIN_LOCAL, "tmpfs");
	reach_is(own, 502, ORIGIN_FOREIGN, "overlay");
	reach_is(own, 503, ORIGIN_FOREIGN, "overlay");
	reach_is(own, 504, ORIGIN_FOREIGN, "fuse");
	reach_is(own, 505, ORIGIN_FOREIGN, "");
	reach_is("", 500, ORIGIN_FOREIGN, "");
}

/* A file that others may write, or that another user owns, is probed for one process only. */
static void by_owner(void **state)
{
	char path[] = "/var/tmp/test_origin.XXXXXX";
	int fd = mkstemp(path);
	struct origin o, other;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	origin__of(0, fd, geteuid(), &o);
	if (o.reach != ORIGIN_OWNED)
		skip(); /* /var/tmp is no local file system of the host's, or nosuid */
	assert_int_equal(fchmod(fd, 0666), 0);
	origin__of(0, fd, geteuid(), &o);
	assert_int_equal(o.reach, ORIGIN_LOCAL);
	assert_int_equal(fchmod(fd, 0644), 0);
	origin__of(0, fd, 12345, &other);
	assert_int_equal(other.reach, geteuid() ? ORIGIN_LOCAL : ORIGIN_OWNED);
	close(fd);
	origin__of(0, fd, geteuid(), &o);
	assert_int_equal(o.reach, ORIGIN_FOREIGN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_type),  cmocka_unit_test(by_flags),
		cmocka_unit_test(overlays), cmocka_unit_test(own_mounts),
		cmocka_unit_test(by_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
