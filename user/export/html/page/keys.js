/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keys: everything that the mouse does on the timeline, by keys. */

const KEYS = [
	["drag on the time axis, or on lanes with Shift", "select a range"],
	["drag on lanes; on the activity", "move along the time axis"],
	["wheel; with Shift", "zoom; move"],
	["click on a lane's name", "select the lane: the graph and the tables show the selected ones"],
	["click on a slice, a collection, a finding's mark", "show it"],
	["click on a state", "hide it, or show it again"],
	["+ −, or w and s with Shift", "zoom in and out"],
	["← →", "move along the time axis"],
	["Shift ← →", "select a range, or move its end"],
	["↑ ↓", "the lane above, the lane below"],
	["Enter", "in a lane: show the slice in the middle of the view"],
	[", .", "the previous slice, the next one"],
	["Space", "on a lane's name: select it"],
	["s", "select what is in view"],
	["z", "zoom to the selection"],
	["0", "the whole session"],
	["/", "find a function"],
	["Escape", "close the slice; then clear the selection"],
	["in the flame graph: arrows, Enter, Escape", "other frames, zoom, the whole graph"],
];

function focusRow(by) {
	let i = focusLane;
	do
		i += by;
	while (laneRows[i] && laneRows[i].label.tagName !== "BUTTON");
	if (!laneRows[i])
		return;
	laneRows[i].label.focus({preventScroll: true});
	const row = laneRows[i];
	if (row.top < box.scrollTop)
		box.scrollTop = row.top;
	else if (row.top + row.height > box.scrollTop + box.clientHeight)
		box.scrollTop = row.top + row.height - box.clientHeight;
}

function growRange(by) {
	const step = (view.to - view.from) / 40 * by, range = view.range;
	if (range)
		selectRange(range[0], Math.max(range[1] + step, range[0] + 1));
	else
		selectRange((view.from + view.to) / 2, (view.from + view.to) / 2 + step);
}

function enter() {
	const row = laneRows[focusLane], middle = (view.from + view.to) / 2;
	if (row && row.lane)
		chooseSlice(sliceAt(row.lane, middle));
	else if (row && row.head)
		foldUnfold(row.head);
}

function leave() {
	if (view.slice)
		chooseSlice(null);
	else if (view.range)
		selectRange(0, 0);
	else
		clearSelection();
}

function zoomToRange() {
	if (view.range)
		lookAt(view.range[0], view.range[1]);
}

const ACTIONS = {
	"+": function () { zoom(0.7); },
	"=": function () { zoom(0.7); },
	"-": function () { zoom(1 / 0.7); },
	"W": function () { zoom(0.7); },
	"S": function () { zoom(1 / 0.7); },
	"0": function () { lookAt(AXIS[0], AXIS[1]); },
	"s": function () { selectRange(view.from, view.to); },
	"z": zoomToRange,
	",": function () { stepSlice(-1); },
	".": function () { stepSlice(1); },
	"/": function () { byId("search").focus(); },
	"Escape": leave,
};
/* Active while the lanes, or one of them, have the focus. */
const LANE_ACTIONS = {
	"ArrowUp": function () { focusRow(-1); },
	"ArrowDown": function () { focusRow(1); },
	"Enter": enter,
};

function onKey(event) {
	const field = ["INPUT", "SELECT"].includes(event.target.tagName), inLanes = box.contains(event.target);
	let action = ACTIONS[event.key];
	if (event.ctrlKey || event.altKey || event.metaKey)
		return;
	if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
		const by = event.key === "ArrowLeft" ? -1 : 1;
		action = function () {
			if (event.shiftKey)
				growRange(by);
			else
				pan(by * 0.1);
		};
	}
	if (field)
		action = event.key === "Escape" ? function () { event.target.blur(); } : undefined;
	else if (inLanes && LANE_ACTIONS[event.key])
		action = LANE_ACTIONS[event.key];
	if (!action)
		return;
	event.preventDefault();
	action();
}

function startKeys() {
	const list = byId("keys");
	for (const [key, what] of KEYS)
		putPair(list, key, what);
	document.addEventListener("keydown", onKey);
	byId("zoom-in").onclick = ACTIONS["+"];
	byId("zoom-out").onclick = ACTIONS["-"];
	byId("zoom-whole").onclick = ACTIONS["0"];
	byId("zoom-range").onclick = zoomToRange;
	byId("select-view").onclick = ACTIONS.s;
	byId("clear").onclick = clearSelection;
	byId("pan-left").onclick = function () { pan(-0.25); };
	byId("pan-right").onclick = function () { pan(0.25); };
}
