/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * axis: above the lanes, the activity of the whole session with the part of it that is in view, and
 * the time axis with findings and marks.
 */

const overview = byId("overview"), ruler = byId("ruler");

/*
 * By bin and face: the number of OS threads that had this face, or of capabilities if there are no
 * threads.
 */
const activity = {n: 0, faces: null, most: 1, what: ""};

function addActivity(lane) {
	for (let b = 0; b < lane.at.length; b++) {
		const at = lane.at[b], n = lane.bins[at];
		for (let k = 0; k < n; k++)
			activity.faces[b * N_FACES + lane.bins[at + 1 + 2 * k]] += lane.bins[at + 2 + 2 * k] / 100;
	}
}

function measureActivity() {
	const drawn = data.lanes.filter(function (lane) { return lane.at; });
	const kind = [THREAD, CAPABILITY, HASKELL].find(function (k) {
		return drawn.some(function (lane) { return lane.kind === k; });
	});
	activity.n = Math.ceil((AXIS[1] - AXIS[0]) / data.bin_ns);
	activity.faces = new Float32Array((activity.n + 1) * N_FACES);
	activity.what = ["capabilities", "OS threads", "Haskell threads"][kind] || "lanes";
	drawn.filter(function (lane) { return lane.kind === kind; }).forEach(addActivity);
	for (let b = 0; b < activity.n; b++) {
		let running = 0;
		for (let f = 0; f < N_FACES; f++)
			running += data.faces[f][3] === 0 ? activity.faces[b * N_FACES + f] : 0;
		activity.most = Math.max(activity.most, running);
	}
	byId("overview-label").textContent = "activity: " + activity.what + " on the CPU, up to " +
		Math.ceil(activity.most - 0.05) + " at once";
}

function shareOf(ns) {
	return (ns - AXIS[0]) / (AXIS[1] - AXIS[0]);
}

/* Painted only once for each width and choice of states. */
const activityImage = {canvas: document.createElement("canvas"), key: ""};

function paintActivity(width, height) {
	const shares = new Float32Array(width * N_FACES), running = Float64Array.from(data.faces, function (f) { return f[3] === 0 ? 1 : 0; });
	const g = sized(activityImage.canvas, width, height);
	for (let x = 0; x < width; x++) {
		const from = Math.floor(x / width * activity.n), to = Math.max(Math.ceil((x + 1) / width * activity.n), from + 1);
		for (let b = from; b < to; b++)
			for (let f = 0; f < N_FACES; f++)
				shares[x * N_FACES + f] += activity.faces[b * N_FACES + f] / (to - from) / activity.most;
	}
	paintStrip(g, shares, 2, width, height - 3, running, ALL_FACES);
}

function paintOverview() {
	const width = bandWidth(), height = 52, g = sized(overview, width, height);
	const key = [width, window.devicePixelRatio, ...view.hidden].join();
	if (activityImage.key !== key)
		paintActivity(width, height);
	activityImage.key = key;
	g.drawImage(activityImage.canvas, 0, 0, width, height);
	const left = shareOf(view.from) * width, right = shareOf(view.to) * width;
	g.fillStyle = theme.soft;
	g.globalAlpha = 0.3;
	g.fillRect(0, 0, left, height);
	g.fillRect(right, 0, width - right, height);
	g.globalAlpha = 1;
	g.strokeStyle = theme.ink;
	g.strokeRect(left + 0.5, 0.5, Math.max(right - left, 2) - 1, height - 1);
	if (view.range) {
		g.fillStyle = theme.mark;
		g.fillRect(shareOf(view.range[0]) * width, height - 4,
			Math.max((shareOf(view.range[1]) - shareOf(view.range[0])) * width, 2), 4);
	}
}

/* {x, numbers, title, go} of what can be clicked on the ruler */
let markers = [];
const MARKER = 16;	/* its width in pixels */

function paintMarkers(g, width) {
	markers = [];
	allFindings().forEach(function (finding, i) {
		if (!finding.at)
			return;
		const x = xOf((finding.at[0] + finding.at[1]) / 2, width);
		if (x < 0 || x > width)
			return;
		/*
		 * several in one place: a click goes to the first one, and all their numbers are
		 * shown
		 */
		const near = markers.find(function (m) { return Math.abs(m.x - x) < MARKER; });
		if (near) {
			near.numbers += ", " + (i + 1);
			near.title += "\n" + finding.text;
		} else {
			markers.push({x: x, numbers: String(i + 1), title: finding.text, go: function () { goTo(finding); }});
		}
	});
	g.fillStyle = theme.mark;
	for (const marker of markers) {
		g.beginPath();
		g.moveTo(marker.x - 6, 1);
		g.lineTo(marker.x + 6, 1);
		g.lineTo(marker.x, 13);
		g.fill();
		g.fillText(marker.numbers, marker.x + 8, 7);
	}
}

function paintRuler() {
	const width = bandWidth(), height = 34, g = sized(ruler, width, height);
	const step = stepOf(view.to - view.from, width);
	g.fillStyle = theme.soft;
	for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
		const x = xOf(t, width);
		g.fillRect(x, height - 8, 1, 8);
		const text = moment(t, step), room = width - x - 4;
		if (g.measureText(text).width <= room)
			g.fillText(text, x + 3, height - 9);
	}
	paintMarkers(g, width);
	if (view.range) {
		g.fillStyle = theme.mark;
		g.globalAlpha = 0.4;
		g.fillRect(xOf(view.range[0], width), height - 4,
			Math.max(xOf(view.range[1], width) - xOf(view.range[0], width), 1), 4);
		g.globalAlpha = 1;
	}
	byId("ruler-label").textContent = duration(view.to - view.from) + " in view; drag to select";
}

function paintTimeline() {
	paintOverview();
	paintRuler();
	paintLanes();
}

/* ── findings ── */

function allFindings() {
	return data.targets.flatMap(function (target, no) {
		return (target.findings || []).map(function (f) { return Object.assign({target: no}, f); });
	}).sort(function (a, b) { return b.ns - a.ns; });
}

function showRow(lane) {
	const row = laneRows.find(function (r) { return r.lane === lane; });
	if (row)
		box.scrollTop = Math.max(0, row.top - box.clientHeight / 2);
}

/* Shows a time span with some of what is around it. */
function lookAround(from, to) {
	const span = Math.max((to - from) * 4, 20000), middle = (from + to) / 2;
	lookAt(middle - span / 2, middle + span / 2);
}

function goTo(finding) {
	const lane = data.lanes[finding.at[2]];
	lookAround(finding.at[0], finding.at[1]);
	selectRange(finding.at[0], finding.at[1]);
	if (lane) {
		showRow(lane);
		chooseSlice(sliceAt(lane, (finding.at[0] + finding.at[1]) / 2));
	}
}

/* ── the mouse ── */

function xIn(canvasElement, event) {
	return event.clientX - canvasElement.getBoundingClientRect().left;
}

/* Drags begin on an element and end wherever the button is released. */
function onDrag(element, begin) {
	element.addEventListener("pointerdown", function (event) {
		if (event.button !== 0)
			return;
		const drag = begin(event);
		let moved = 0;
		element.setPointerCapture(event.pointerId);
		element.onpointermove = function (e) {
			moved = Math.max(moved, Math.abs(e.clientX - event.clientX));
			if (moved > 2)
				drag.move(e);
		};
		element.onpointerup = element.onpointercancel = function (e) {
			element.onpointermove = element.onpointerup = element.onpointercancel = null;
			if (moved <= 2 && e.type === "pointerup" && drag.click)
				drag.click(e);
		};
	});
}

function dragRange(element) {
	return function (event) {
		const width = bandWidth(), from = nsAt(xIn(element, event), width);
		return {
			move: function (e) { selectRange(from, nsAt(xIn(element, e), width)); },
			click: function (e) {
				const x = xIn(element, e);
				const near = markers.find(function (m) { return element === ruler && Math.abs(m.x - x) < 9; });
				if (near)
					near.go();
			},
		};
	};
}

function dragOverview() {
	const width = bandWidth();
	function centre(e) {
		const at = AXIS[0] + xIn(overview, e) / width * (AXIS[1] - AXIS[0]), half = (view.to - view.from) / 2;
		lookAt(at - half, at + half);
	}
	return {move: centre, click: centre};
}

function rowAt(event) {
	const y = event.clientY - lanesCanvas.getBoundingClientRect().top + box.scrollTop;
	return laneRows.find(function (r) { return y >= r.top && y < r.top + r.height; });
}

function dragLanes(event) {
	if (event.shiftKey)
		return dragRange(lanesCanvas)(event);
	const width = bandWidth(), from = view.from, to = view.to, x = event.clientX, top = box.scrollTop, y = event.clientY;
	return {
		move: function (e) {
			const by = (x - e.clientX) / width * (to - from);
			lookAt(from + by, to + by);
			box.scrollTop = top + y - e.clientY;
		},
		click: function (e) { clickRow(rowAt(e), nsAt(xIn(lanesCanvas, e), width)); },
	};
}

function onWheel(event) {
	event.preventDefault();
	const unit = event.deltaMode === 1 ? 30 : 1;
	if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
		pan((event.deltaX || event.deltaY) * unit / bandWidth());
	else
		zoom(Math.exp(event.deltaY * unit / 400), nsAt(xIn(event.currentTarget, event), bandWidth()));
}

function startMouse() {
	onDrag(overview, dragOverview);
	onDrag(ruler, dragRange(ruler));
	onDrag(lanesCanvas, dragLanes);
	for (const element of [ruler, lanesCanvas])
		element.addEventListener("wheel", onWheel, {passive: false});
	lanesCanvas.addEventListener("mousemove", function (e) {
		hover(rowAt(e), nsAt(xIn(lanesCanvas, e), bandWidth()));
	});
	lanesCanvas.addEventListener("mouseleave", function () { hover(null, 0); });
	ruler.addEventListener("mousemove", function (e) {
		const x = xIn(ruler, e), near = markers.find(function (m) { return Math.abs(m.x - x) < 9; });
		byId("look").textContent = near ? near.title : "";
	});
	box.addEventListener("scroll", function () { changed("moved"); });
	window.addEventListener("resize", function () {
		changed("moved");
		changed("selected");
	});
}
