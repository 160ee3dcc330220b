/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of the html format's page, in the order of source.c: one script. Names come from the
 * programs that were profiled: they are put into the document only as text (textContent, fillText).
 *
 * base: elements and numbers.
 */
"use strict";

function byId(id) {
	return document.getElementById(id);
}

function make(tag, parent, text, className) {
	const element = document.createElement(tag);
	if (text !== undefined)
		element.textContent = text;
	if (className)
		element.className = className;
	parent.appendChild(element);
	return element;
}

/* ── numbers ── */

function three(x) {
	return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
}

function duration(ns) {
	if (ns < 0)
		return "−" + duration(-ns);
	if (ns < 1e3)
		return Math.round(ns) + " ns";
	if (ns < 1e6)
		return three(ns / 1e3) + " µs";
	if (ns < 1e9)
		return three(ns / 1e6) + " ms";
	return three(ns / 1e9) + " s";
}

function bytes(n) {
	if (n < 1e3)
		return Math.round(n) + " B";
	if (n < 1e6)
		return three(n / 1e3) + " kB";
	if (n < 1e9)
		return three(n / 1e6) + " MB";
	return three(n / 1e9) + " GB";
}

function count(n) {
	return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function counted(n, one, many) {
	return count(n) + " " + (n === 1 ? one : many);
}

function percent(part, whole) {
	return whole ? (100 * part / whole).toFixed(1) + " %" : "–";
}

/* A moment of the session, with the precision that `step` requires. */
function moment(ns, step) {
	const digits = step >= 1e9 ? 0 : step >= 1 ? Math.min(9, Math.ceil(9 - Math.log10(step))) : 9;
	return (ns / 1e9).toFixed(digits) + " s";
}

/* In nanoseconds. */
function exactly(ns) {
	return count(ns) + " ns";
}
