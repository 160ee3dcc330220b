/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lanes: the rows of the timeline and how each is drawn; only those on the screen are. */

const ROW = 20, CURVE = 36, HEAD = 22;
const OWN_ROWS = 12;		/* of a kind; the rest is folded away at first */
const OPEN_PROCESSES = 4;	/* that are unfolded at first */

const box = byId("lanes"), lanesCanvas = byId("canvas"), labels = byId("labels");
const folded = new Map();	/* by a head's key: whether it is folded */
let laneRows = [];			/* {top, height, paint, …} of rows not folded away */
let focusLane = -1;		/* index of the row that the keys move */

/* ── which rows there are ── */

function addRow(row) {
	const last = laneRows[laneRows.length - 1];
	row.top = last ? last.top + last.height : 0;
	laneRows.push(row);
}

/* Adds the head of a group; returns whether the group is unfolded. */
function addHead(key, title, closed) {
	if (!folded.has(key))
		folded.set(key, closed);
	addRow({height: HEAD, head: key, title: title});
	return !folded.get(key);
}

function addLaneRows(key, lanes, what) {
	const own = lanes.length <= OWN_ROWS + 2 ? lanes.length : OWN_ROWS;
	lanes.slice(0, own).forEach(function (lane) { addRow({height: ROW, lane: lane}); });
	if (own < lanes.length && addHead(key, count(lanes.length - own) + " more " + what, true))
		lanes.slice(own).forEach(function (lane) { addRow({height: ROW, lane: lane}); });
}

function lanesOf(no, kind, housekeeping) {
	return data.lanes.filter(function (lane) {
		return lane.shown && lane.kind === kind && (no < 0 || lane.target === no) &&
			Boolean(lane.housekeeping) === housekeeping;
	});
}

/* The busiest processes come first. */
function processesInOrder() {
	const order = new Set(data.lanes.filter(function (l) { return l.kind === THREAD; })
		.map(function (l) { return l.target; }));
	data.targets.forEach(function (target, no) { order.add(no); });
	return [...order];
}

function addProcess(no, rank) {
	const target = data.targets[no];
	if (severalProcesses && !addHead("process " + no, target.name, rank >= OPEN_PROCESSES))
		return;
	if (target.gcs && target.gcs.length)
		addRow({height: ROW, gcs: target.gcs, target: no, title: "collections"});
	if (target.marks && target.marks.length)
		addRow({height: ROW, marks: target.marks, target: no, title: "the program's marks"});
	addLaneRows("caps " + no, lanesOf(no, CAPABILITY, false), "capabilities");
	addLaneRows("threads " + no, lanesOf(no, THREAD, false), "OS threads");
	addLaneRows("haskell " + no, lanesOf(no, HASKELL, false), "Haskell threads");
	for (const curve of target.curves || [])
		addRow({height: CURVE, curve: curve, target: no});
}

function arrangeRows() {
	const quiet = lanesOf(-1, THREAD, true);
	laneRows = [];
	processesInOrder().forEach(addProcess);
	if (quiet.length && addHead("housekeeping", "housekeeping: " + counted(quiet.length, "OS thread", "OS threads") +
		" that mostly wait for work", true))
		quiet.forEach(function (lane) { addRow({height: ROW, lane: lane, named: true}); });
	putLabels();
}

/* ── labels ── */

function foldUnfold(key) {
	folded.set(key, !folded.get(key));
	arrangeRows();
	changed("moved");
	const head = laneRows.findIndex(function (r) { return r.head === key; });
	if (head >= 0 && laneRows[head].label)
		laneRows[head].label.focus();
}

function putLabel(row, i) {
	if (row.head) {
		row.label = make("button", labels, (folded.get(row.head) ? "▸ " : "▾ ") + row.title,
			/^(process|housekeeping)/.test(row.head) ? "head" : "head sub");
		row.label.setAttribute("aria-expanded", String(!folded.get(row.head)));
		row.label.onclick = function () { foldUnfold(row.head); };
	} else if (row.lane) {
		row.label = make("button", labels, row.named ? laneName(row.lane) : row.lane.name);
		row.label.setAttribute("aria-pressed", String(view.lanes.has(row.lane.no)));
		row.label.onclick = function () { toggleLane(row.lane); };
	} else {
		row.label = make("div", labels, row.curve ? row.curve.name : row.title, "curve");
		if (row.curve)
			make("div", row.label, "up to " + amount(row.curve.max, row.curve.unit));
	}
	row.label.title = (row.lane ? laneName(row.lane) + ": " + duration(row.lane.wall) + "; click to select it" :
		row.label.textContent);
	row.label.style.top = row.top + "px";
	row.label.style.height = row.height + "px";
	if (row.label.tagName === "BUTTON") {
		row.label.type = "button";
		row.label.tabIndex = -1;
		row.label.onfocus = function () {
			focusLane = i;
			putTabStop();
		};
	}
}

/*
 * Tab goes to one of the labels, and from there to what is below the lanes; arrows go to the
 * others.
 */
function putTabStop() {
	const row = laneRows[focusLane] || laneRows.find(function (r) { return r.label.tagName === "BUTTON"; });
	for (const label of labels.querySelectorAll("button[tabindex='0']"))
		label.tabIndex = -1;
	if (row)
		row.label.tabIndex = 0;
}

function putLabels() {
	const last = laneRows[laneRows.length - 1];
	labels.textContent = "";
	byId("rows").style.height = (last ? last.top + last.height : ROW) + "px";
	laneRows.forEach(putLabel);
	putTabStop();
}

function markLabels() {
	for (const row of laneRows)
		if (row.lane)
			row.label.setAttribute("aria-pressed", String(view.lanes.has(row.lane.no)));
}

function amount(n, unit) {
	return /^bytes/.test(unit) ? bytes(n) + unit.slice("bytes".length) : count(n) + (unit ? " " + unit : "");
}

/* ── slices and bins ── */

/* By pixel and face: the face's share of the pixel. */
let pixelColumns = new Float32Array(0);

function xOf(ns, width) {
	return (ns - view.from) / (view.to - view.from) * width;
}

function nsAt(x, width) {
	return view.from + x / width * (view.to - view.from);
}

/* Paints the columns that bins or slices narrower than a pixel were added to, and clears them. */
function paintColumns(g, lane, y, height, width) {
	paintStrip(g, pixelColumns, y, width, height, HEIGHTS, facesOf(lane));
	pixelColumns.fill(0, 0, width * N_FACES);
}

/* For the whole session: what the file has prepared. */
function paintBins(g, lane, y, height, width) {
	const step = (view.to - view.from) / width;
	for (let x = 0; x < width; x++) {
		const from = Math.floor((view.from + x * step - AXIS[0]) / data.bin_ns);
		const to = Math.max(Math.ceil((view.from + (x + 1) * step - AXIS[0]) / data.bin_ns), from + 1);
		for (let b = Math.max(from, 0); b < to && b < lane.at.length; b++) {
			const at = lane.at[b], n = lane.bins[at];
			for (let k = 0; k < n; k++)
				pixelColumns[x * N_FACES + lane.bins[at + 1 + 2 * k]] += lane.bins[at + 2 + 2 * k] / 100 / (to - from);
		}
	}
	paintColumns(g, lane, y, height, width);
}

function sliceText(lane, no) {
	const node = codeOf(look(no, LOOK.node)), state = stateOf(lane.kind, look(no, LOOK.state));
	if (node)
		return frameName(node);
	return lane.kind === CAPABILITY && look(no, LOOK.tso) ? "Haskell thread " + look(no, LOOK.tso) : state[1];
}

function paintSlice(g, lane, no, left, right, y, height) {
	const face = stateOf(lane.kind, look(no, LOOK.state))[2], high = height * HEIGHTS[face];
	if (!high)
		return;
	g.fillStyle = faceColour(face);
	g.fillRect(left, y + height - high, right - left, high);
	if (right - left < 30)
		return;
	const text = fitted(sliceText(lane, no), right - left);
	g.fillStyle = INKS[face];
	g.fillText(text, left + 3, y + height - high / 2);
	g.fillStyle = theme.paper;
	g.fillRect(right - 0.5, y, 0.5, height);
}

/* Adds a slice that is a few pixels wide, or a part of one. */
function addToColumns(left, right, face, width) {
	const from = Math.max(left, 0), to = Math.min(right, width);
	for (let x = Math.floor(from); x < to; x++)
		pixelColumns[x * N_FACES + face] += Math.min(right, x + 1) - Math.max(left, x);
}

/*
 * Paints slices that are as wide as a name one by one; wide: look, begin and end in pixels of each.
 */
function paintWide(g, lane, wide, y, height, width) {
	const faces = data.states[lane.kind];
	for (let k = 0; k < wide.length; k += 3)
		if (!view.hidden.has(faces[details.state[wide[k]]][2]))
			paintSlice(g, lane, wide[k], Math.max(wide[k + 1], -2), Math.min(wide[k + 2], width + 2), y, height);
}

/* For a lane with many slices. */
function paintFine(g, lane, bins, y, height, width) {
	const wide = [];
	addBins(bins, pixelColumns, width);
	paintColumns(g, lane, y, height, width);
	for (let k = 0; k < bins.wide.length; k += 3) {
		const left = xOf(bins.wide[k + 1], width), right = xOf(bins.wide[k + 2], width);
		if (right - left >= WIDE && right > 0 && left < width)
			wide.push(bins.wide[k], left, right);
	}
	paintWide(g, lane, wide, y, height, width);
}

/*
 * Slices that are wide enough are painted one by one. The others are added to pixelColumns, which
 * are painted first: thousands of rectangles would take longer than the rest of the picture.
 */
function paintSlices(g, lane, y, height, width, only) {
	const scale = width / (view.to - view.from), wide = [], faces = data.states[lane.kind];
	let narrow = false;
	eachStretch(lane, view.from, view.to, function (chunk, from, to) {
		const start = chunk.start, looks = chunk.look;
		let left = (start[from] - view.from) * scale;
		for (let i = from; i < to; i++) {
			const no = looks[i], right = (start[i + 1] - view.from) * scale, begin = left;
			left = right;
			if (!no || (only >= 0 && found.below[details.node[no]] !== only))
				continue;
			if (right - begin >= WIDE) {
				wide.push(no, begin, right);
				continue;
			}
			addToColumns(begin, right, faces[details.state[no]][2], width);
			narrow = true;
		}
	});
	if (narrow)
		paintColumns(g, lane, y, height, width);
	paintWide(g, lane, wide, y, height, width);
}

/*
 * Paints the slices that were found (1), or not (0), or all (-1), by their bins unless these are
 * wider than a pixel.
 */
function paintFound(g, lane, y, height, width, only) {
	const bins = (view.to - view.from) / width >= BIN_NS ? binsOf(lane, only) : null;
	if (bins)
		paintFine(g, lane, bins, y, height, width);
	else
		paintSlices(g, lane, y, height, width, only);
}

function paintLane(g, row, y, width) {
	const lane = row.lane, top = y + 1, height = row.height - 3;
	if (view.lanes.size && !view.lanes.has(lane.no))
		g.globalAlpha = 0.45;
	if (found.below) {
		const alpha = g.globalAlpha;
		g.globalAlpha = alpha * 0.22;
		paintFound(g, lane, top, height, width, 0);
		g.globalAlpha = alpha;
		paintFound(g, lane, top, height, width, 1);
	} else if (lane.at && (!details.ready || (view.to - view.from) / width >= data.bin_ns)) {
		paintBins(g, lane, top, height, width);
	} else {
		paintFound(g, lane, top, height, width, -1);
	}
	g.globalAlpha = 1;
}

/* ── what is no lane ── */

function faceOf(letter) {
	return data.faces.findIndex(function (f) { return f[0] === letter; });
}
const GC = faceOf("G"), GC_WAIT = faceOf("g");

function paintGcs(g, row, y, width) {
	const first = firstOf(row.gcs.length, function (i) { return row.gcs[i][1] >= view.from; });
	let drawn = -1;
	for (let i = first; i < row.gcs.length; i++) {
		const gc = row.gcs[i], asked = gc[0] - (gc[2] || 0);
		if (asked > view.to)
			break;
		const from = xOf(asked, width), start = xOf(gc[0], width), end = xOf(gc[1], width);
		if (end < drawn + 0.5)
			continue;
		drawn = Math.max(end, from + 1);
		g.fillStyle = faceColour(GC_WAIT);
		g.fillRect(from, y + 8, Math.max(start - from, 0), row.height - 10);
		g.fillStyle = faceColour(GC);
		g.fillRect(start, y + 1, Math.max(end - start, 1), row.height - 3);
		if (end - start > 30) {
			g.fillStyle = INKS[GC];
			g.fillText(fitted(gc[4] >= 0 ? "generation " + gc[4] : "GC", end - start), start + 3, y + row.height / 2);
		}
	}
}

function paintMarks(g, row, y, width) {
	let free = -10;
	for (const mark of row.marks) {
		const x = xOf(mark[0], width);
		if (x < -200 || x > width)
			continue;
		g.fillStyle = theme.mark;
		g.fillRect(x, y + 2, 1, row.height - 4);
		if (x > free) {
			const text = mark[1].slice(0, 24);
			g.fillStyle = theme.ink;
			g.fillText(text, x + 3, y + row.height / 2);
			free = x + 6 + text.length * CHAR;
		}
	}
}

/* For each column the mean, and faintly the range between its lowest and highest value. */
function paintCurve(g, row, y, width) {
	const curve = row.curve, max = Math.max(curve.max, 1), bottom = y + row.height - 3, high = (row.height - 6) / max;
	const first = Math.max(firstOf(curve.n, function (i) { return curve.times[i] > view.from; }) - 1, 0);
	const step = (view.to - view.from) / width;
	let i = first, value = curve.times[first] <= view.from ? curve.values[first] : 0, last = -1;
	for (let x = 0; x < width && view.from + x * step < curve.to; x++) {
		const end = view.from + (x + 1) * step;
		let low = value, top = value, at = end - step, sum = 0;
		for (; i < curve.n && curve.times[i] < end; i++) {
			sum += value * Math.max(curve.times[i] - at, 0);
			at = Math.max(curve.times[i], at);
			value = curve.values[i];
			low = Math.min(low, value);
			top = Math.max(top, value);
		}
		const mean = (sum + value * (end - at)) / step, from = last < 0 ? mean : last;
		g.globalAlpha = 0.3;
		g.fillStyle = theme.soft;
		g.fillRect(x, bottom - top * high, 1, (top - low) * high);
		g.globalAlpha = 1;
		g.fillStyle = theme.ink;
		g.fillRect(x, bottom - Math.max(mean, from) * high, 1, Math.max(Math.abs(mean - from) * high, 1));
		last = mean;
	}
}

/*
 * Safe calls that left one capability and came back on another are drawn unless more are in view.
 */
const MOST_ARROWS = 60;

function sayArrows(shown, more) {
	const calls = "safe calls that came back on a different capability from the one they left";
	const text = more ? "Not drawn: " + count(more) + " " + calls + "; zoom in" :
		shown ? "Lines from capability to capability: " + calls : "";
	if (byId("arrows").textContent !== text)
		byId("arrows").textContent = text;
}

function paintArrows(g, top, width) {
	const places = new Map();
	let shown = 0, more = 0;
	for (const row of laneRows)
		if (row.lane && row.lane.kind === CAPABILITY)
			places.set(row.lane.target + "," + row.lane.id, row.top - top + ROW / 2);
	data.targets.forEach(function (target, no) {
		const seen = (target.flows || []).filter(function (f) {
			return f[1] >= view.from && f[0] <= view.to && places.has(no + "," + f[2]) && places.has(no + "," + f[3]);
		});
		if (seen.length > MOST_ARROWS) {
			more += seen.length;
			return;
		}
		shown += seen.length;
		g.strokeStyle = g.fillStyle = theme.mark;
		for (const flow of seen) {
			const x = xOf(flow[1], width), y = places.get(no + "," + flow[3]);
			g.beginPath();
			g.moveTo(xOf(flow[0], width), places.get(no + "," + flow[2]));
			g.lineTo(x, y);
			g.stroke();
			g.fillRect(x - 2, y - 2, 4, 4);
		}
	});
	sayArrows(shown, more);
}

/* ── all of it ── */

function bandWidth() {
	return Math.max(100, Math.floor(box.clientWidth - labels.offsetWidth));
}

/* The selection is left as it is; the rest is shaded. */
function paintRange(g, height, width) {
	if (!view.range)
		return;
	const left = xOf(view.range[0], width), right = xOf(view.range[1], width);
	g.fillStyle = theme.soft;
	g.globalAlpha = 0.28;
	g.fillRect(0, 0, left, height);
	g.fillRect(right, 0, width - right, height);
	g.globalAlpha = 1;
	g.fillStyle = theme.mark;
	g.fillRect(left - 0.5, 0, 1, height);
	g.fillRect(right - 0.5, 0, 1, height);
}

function paintSelectedSlice(g, top, width) {
	const slice = view.slice, row = slice && laneRows.find(function (r) { return r.lane === slice.lane; });
	if (!row)
		return;
	const left = xOf(slice.chunk.start[slice.i], width), right = xOf(slice.chunk.start[slice.i + 1], width);
	g.strokeStyle = theme.mark;
	g.lineWidth = 2;
	g.strokeRect(left - 1, row.top - top, Math.max(right - left, 2) + 2, row.height - 1);
	g.lineWidth = 1;
}

function paintLanes() {
	const width = bandWidth(), height = Math.max(box.clientHeight, ROW), top = box.scrollTop;
	const g = sized(lanesCanvas, width, Math.min(height, byId("rows").offsetHeight));
	if (pixelColumns.length < width * N_FACES)
		pixelColumns = new Float32Array(width * N_FACES);
	for (const row of laneRows) {
		const y = row.top - top;
		if (y > height || y + row.height < 0)
			continue;
		g.fillStyle = theme.back;
		g.fillRect(0, y + row.height - 1, width, 1);
		if (row.lane)
			paintLane(g, row, y, width);
		else if (row.gcs)
			paintGcs(g, row, y, width);
		else if (row.marks)
			paintMarks(g, row, y, width);
		else if (row.curve)
			paintCurve(g, row, y, width);
	}
	paintArrows(g, top, width);
	paintRange(g, height, width);
	paintSelectedSlice(g, top, width);
}
