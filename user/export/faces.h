/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * faces: how states look, in the text report, in Chrome's trace and in the html page: one table of
 * letters, words and colours. States of different kinds of lanes that mean the same have one face.
 *
 * The page's colours are told apart by people who see fewer colours, too (Okabe and Ito's set and
 * lighter tints of it); the terminal's and catapult's are those of their palettes that are nearest.
 * No colour stands alone: what runs, waits and rests also differs by height on the page, and by
 * capital and small letters in text.
 */
#ifndef SAFESCOPED_EXPORT_FACES_H
#define SAFESCOPED_EXPORT_FACES_H

#include "picture/picture.h"

/* In the order in which a bar shows them. */
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
	FACE_WAITING = FACE_IN_UNSAFE, /* the first that waits */
	FACE_RESTING = FACE_IDLE,      /* the first that neither runs nor waits */
};

struct face_look {
	const char *letter, *title;
	unsigned terminal; /* of a terminal's 256 colours, as the background; 0: faint instead */
	const char *page;  /* "#rrggbb" */
	/* a name that catapult has a colour for, and has had since 2016: it refuses a file with
	 * another one; NULL: a gap */
	const char *chrome;
};

extern const struct face_look face_looks[FACES];

/* FACE_UNKNOWN for what is no state of the kind. */
enum face face__of(enum lane_kind kind, unsigned state);

#endif
