/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay_windows: a replay in windows. A live session asks the kernel at each cut what its threads
 * are just doing; a capture says it with the records of what they did, which come later. So these
 * are looked for first, in a pass of its own. Part of the capture room.
 */
#ifndef SAFESCOPED_CAPTURE_REPLAY_WINDOWS_H
#define SAFESCOPED_CAPTURE_REPLAY_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

struct crossing;
struct intake_input;
struct picture;
struct timeline;

struct replay_windows {
	uint64_t every_ns;			     /* 0: there are none */
	uint64_t next_ns;			     /* the next cut */
	int (*take)(void *ctx, struct picture *pic); /* whose the picture is then */
	void *ctx;
	int stopped; /* by an error that ends the replay */
	/* what goes on at a cut, by its start */
	uint64_t end_ns; /* of the session; 0: not known */
	struct crossing **v;
	size_t n, cap, bytes, first;
};

void replay_windows__free(struct replay_windows *w);
/* One input of the first pass. -ENOMEM. */
int replay_windows__look(struct replay_windows *w, const struct intake_input *input);
/* After the first pass. */
void replay_windows__looked(struct replay_windows *w);
/*
 * Makes the windows that end before `ns`. -EBADMSG, and none is made: they would be so many that
 * `ns` cannot be true.
 */
int replay_windows__until(struct replay_windows *w, struct timeline *tl, uint64_t ns);

#endif
