/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * faces: how states look in the text report, in Chrome's trace and in the html page: one table of
 * letters, words and colours. States of different kinds of lanes that mean the same share one face.
 *
 * The page's colours are distinguishable with impaired colour vision as well (Okabe and Ito's set
 * and lighter tints of it); the terminal's and catapult's are the nearest ones in their palettes.
 * Colour is never the only distinction: running, waiting and resting also differ in height on the
 * page, and in capital and small letters in text.
 */
#ifndef SAFESCOPED_EXPORT_FACES_H
#define SAFESCOPED_EXPORT_FACES_H

#include "picture/picture.h"

/* In the order of a bar. */
enum face {
	FACE_HASKELL,
	FACE_UNSAFE,
	FACE_SAFE,
	FACE_GC,
	FACE_RTS,
	FACE_OTHER,
	FACE_IN_UNSAFE,
	FACE_IN_SAFE,
	FACE_FOR_CAP,
	FACE_FOR_GC,
	FACE_IN_RTS,
	FACE_IN_OTHER,
	FACE_FOR_PAGE,
	FACE_FOR_CPU,
	FACE_FOR_THREAD,
	FACE_FOR_VALUE,
	FACE_FOR_WORLD,
	FACE_IDLE,
	FACE_DISABLED,
	FACE_UNKNOWN,
	FACES,
	FACE_WAITING = FACE_IN_UNSAFE, /* the first waiting one */
	FACE_RESTING = FACE_IDLE,      /* the first that neither runs nor waits */
};

struct face_look {
	const char *letter, *title;
	unsigned terminal; /* background, one of a terminal's 256 colours; 0: faint text instead */
	const char *page;  /* "#rrggbb" */
	/* a colour name that catapult has known since 2016: it refuses a file with any other; NULL:
	 * a gap */
	const char *chrome;
};

extern const struct face_look face_looks[FACES];

/* FACE_UNKNOWN if `state` is not a state of the kind. */
enum face face__of(enum lane_kind kind, unsigned state);

#endif
