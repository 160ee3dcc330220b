/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that could not be read for want of time: when they are read again, and for whom. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "process/file.h"
#include "process/image.h"

#define TINY "tests/data/tiny.elf"

/* As if it had not been read, for this reason. */
static void unread(struct image *image, int err, uint64_t again_ns)
{
	elf__free(image->file->elf);
	image->file->elf = image->elf = NULL;
	image->file->elf_err = image->elf_err = err;
	image->file->again_ns = again_ns;
	image->file->again = (struct retry){0};
}

/* What there was no time for when a process mapped it is read for the same process later. */
static void t_read_later(void **state)
{
	struct images images = {.uid = getuid()};
	int fd = open(TINY, O_RDONLY | O_CLOEXEC);
	struct image_place place;
	struct image *image;
	uint64_t bias;
	uint8_t *at;

	(void)state;
	if (geteuid() != 0)
		skip();
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	image = images__at(&images, (uintptr_t)at)->image;
	bias = images__at(&images, (uintptr_t)at)->bias;
	assert_non_null(image->elf);
	assert_false(images__may_come_later(&images));
	/* broken: never; not yet; now */
	unread(image, -ENOEXEC, 0);
	assert_false(images__may_come_later(&images));
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_null(image->elf);
	unread(image, -ETIMEDOUT, 1);
	retry__begin(&image->file->again, time__monotonic_ns(), UINT32_MAX, UINT32_MAX);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_null(image->elf);
	assert_true(images__may_come_later(&images));
	unread(image, -ETIMEDOUT, 1);
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_false(images__may_come_later(&images));
	assert_ptr_equal(images__at(&images, (uintptr_t)at)->image, image);
	assert_non_null(image->elf);
	assert_int_equal(image->elf_err, 0);
	assert_int_equal(images__at(&images, (uintptr_t)at)->bias, bias);
	/* names that were made without it are made anew, be its place the same as without it */
	assert_true(images__take_retaken(&images, &place));
	assert_int_equal(place.start, (uintptr_t)at);
	/* another process had it read */
	image->elf = NULL;
	image->elf_err = -EBUSY;
	assert_true(images__may_come_later(&images));
	assert_int_equal(images__refresh(&images, getpid()), 0);
	assert_ptr_equal(image->elf, image->file->elf);
	assert_int_equal(image->elf_err, 0);
	munmap(at, 4096);
	close(fd);
	images__free(&images);
}

/* That something could not be found in time proves nothing of a file, but it rests for a while. */
static void t_rests(void **state)
{
	struct file_cache *cache;
	struct file *file;

	(void)state;
	assert_int_equal(file_cache__new(&cache), 0);
	assert_int_equal(file__get(cache, 0, open(TINY, O_RDONLY | O_CLOEXEC), "tiny", &file), 0);
	assert_false(file__put_off(file, 0));
	assert_false(file__put_off(file, -ENOENT));
	assert_false(file__put_off(file, -EBUSY));
	assert_false(file__rests(file));
	assert_true(file__put_off(file, -EIO));
	assert_true(file__rests(file));
	file->put_off.until_ns = time__monotonic_ns();
	assert_false(file__rests(file));
	assert_true(file__put_off(file, -ETIMEDOUT));
	assert_true(file__rests(file));
	/* it need not be read again for that; nor does it rest for having been read late */
	assert_false(file__is_due(file));
	file->put_off = (struct retry){0};
	file->again_ns = 1;
	retry__begin(&file->again, time__monotonic_ns(), UINT32_MAX, UINT32_MAX);
	assert_false(file__rests(file));
	assert_non_null(file->elf);
	file__put(file);
	file_cache__free(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t_read_later),
		cmocka_unit_test(t_rests),
	};

	return cmocka_run_group_tests_name("file_again", tests, NULL, NULL);
}
