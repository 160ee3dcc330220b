/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view: what is in view and what is selected, and who is notified of changes. */

const view = {
	from: data.axis[0], to: Math.max(data.axis[1], data.axis[0] + 1000),
	range: null,		/* the selected [from, to]; null: the whole session */
	lanes: new Set(),	/* numbers of the selected lanes; none: all that count */
	hidden: new Set(),	/* faces that are neither shown nor counted */
	slice: null,		/* the one that was clicked: {lane, chunk, i} */
	weight: data.weight,
};
const AXIS = [view.from, view.to];
const NARROWEST = 200;	/* ns on the screen */

const watchers = {moved: [], selected: [], found: []};
const pending = new Set();

/*
 * "moved": another part of the axis is in view; "selected": the selection has changed; "found":
 * something else is searched for. Watchers run once, before the next frame is drawn.
 */
function changed(what) {
	if (!pending.size)
		requestAnimationFrame(function () {
			const now = [...pending];
			pending.clear();
			for (const each of now)
				for (const watcher of watchers[each])
					watcher();
		});
	pending.add(what);
}

function lookAt(from, to) {
	const span = Math.min(Math.max(to - from, NARROWEST), AXIS[1] - AXIS[0]);
	from = Math.min(Math.max(from, AXIS[0]), AXIS[1] - span);
	if (from === view.from && from + span === view.to)
		return;
	view.from = from;
	view.to = from + span;
	changed("moved");
}

/* Zooms by a factor (below 1: in) around a moment that stays in place. */
function zoom(factor, around) {
	const at = around === undefined ? (view.from + view.to) / 2 : around;
	const span = Math.min(Math.max((view.to - view.from) * factor, NARROWEST), AXIS[1] - AXIS[0]);
	const share = (at - view.from) / (view.to - view.from);
	lookAt(at - share * span, at - share * span + span);
}

function pan(share) {
	const by = (view.to - view.from) * share;
	lookAt(view.from + by, view.to + by);
}

function selectRange(from, to) {
	const range = [Math.max(Math.min(from, to), AXIS[0]), Math.min(Math.max(from, to), AXIS[1])];
	view.range = range[1] > range[0] ? range : null;
	changed("moved");
	changed("selected");
}

function toggleLane(lane) {
	if (!view.lanes.delete(lane.no))
		view.lanes.add(lane.no);
	changed("moved");
	changed("selected");
}

function selectLanes(lanes) {
	view.lanes = new Set(lanes.map(function (lane) { return lane.no; }));
	changed("moved");
	changed("selected");
}

function toggleFace(face) {
	if (!view.hidden.delete(face))
		view.hidden.add(face);
	changed("moved");
	changed("selected");
}

function clearSelection() {
	view.range = null;
	view.lanes.clear();
	view.hidden.clear();
	view.slice = null;
	showSlice();
	changed("moved");
	changed("selected");
}

function nothingIsSelected() {
	return !view.range && !view.lanes.size && !view.hidden.size;
}
