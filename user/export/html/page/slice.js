/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slice: what is under the pointer, and all that is known about what was clicked. */

function gcText(gc) {
	return "collection" + (gc[3] === null ? "" : " " + count(gc[3])) + (gc[4] >= 0 ? " of generation " + gc[4] : "") +
		" from " + moment(gc[0], 1) + ", " + duration(gc[1] - gc[0]) + (gc[2] === null ? "" :
		"; before that " + duration(gc[2]) + " of waiting for capabilities" + (gc[6] < 0 ? "" : ", longest for capability " + gc[6]));
}

function gcAt(gcs, ns) {
	const slack = (view.to - view.from) / bandWidth() * 2;
	return gcs.find(function (gc) { return gc[0] - (gc[2] || 0) - slack <= ns && ns <= gc[1] + slack; });
}

function curveAt(curve, ns) {
	const after = firstOf(curve.n, function (i) { return curve.times[i] > ns; });
	return after ? curve.values[after - 1] : 0;
}

function sliceLine(slice) {
	const chunk = slice.chunk, no = chunk.look[slice.i], state = stateOf(slice.lane.kind, look(no, LOOK.state));
	const node = codeOf(look(no, LOOK.node));
	return laneName(slice.lane) + ": " + state[1] + ", " + duration(chunk.start[slice.i + 1] - chunk.start[slice.i]) +
		" from " + moment(chunk.start[slice.i], 1) + (look(no, LOOK.exact) ? "" : " (sampled)") +
		(node ? "\n" + frameName(node) : "");
}

function hover(row, ns) {
	let text = "";
	if (row && row.lane && details.ready) {
		const slice = sliceAt(row.lane, ns);
		text = slice ? sliceLine(slice) : laneName(row.lane) + ": nothing at " + moment(ns, 1);
	} else if (row && row.gcs) {
		const gc = gcAt(row.gcs, ns);
		text = gc ? gcText(gc) : "";
	} else if (row && row.curve) {
		text = row.curve.name + ": " + (ns > row.curve.to ? "not known" : amount(curveAt(row.curve, ns), row.curve.unit)) +
			" at " + moment(ns, 1000);
	} else if (row && row.marks) {
		const slack = (view.to - view.from) / bandWidth() * 8;
		const near = row.marks.find(function (m) { return Math.abs(m[0] - ns) < slack; });
		text = near ? near[1] + " at " + moment(near[0], 1) : "";
	}
	byId("look").textContent = text;
}

function clickRow(row, ns) {
	if (row && row.lane && details.ready)
		chooseSlice(sliceAt(row.lane, ns));
	else if (row && row.gcs && gcAt(row.gcs, ns))
		chooseGc(gcAt(row.gcs, ns));
}

function chooseGc(gc) {
	lookAround(gc[0] - (gc[2] || 0), gc[1]);
	selectRange(gc[0] - (gc[2] || 0), gc[1]);
}

function chooseSlice(slice) {
	view.slice = slice;
	changed("moved");
	showSlice();
}

/* Selects the next slice of the lane, or the previous one. */
function stepSlice(by) {
	const slice = view.slice;
	if (!slice)
		return;
	const at = slice.chunk.start[slice.i + (by > 0 ? 1 : 0)], next = sliceAt(slice.lane, by > 0 ? at : at - 0.5);
	if (!next)
		return;
	chooseSlice(next);
	const from = next.chunk.start[next.i], to = next.chunk.start[next.i + 1];
	if (from < view.from || to > view.to)
		lookAt((from + to) / 2 - (view.to - view.from) / 2, (from + to) / 2 + (view.to - view.from) / 2);
}

function putPair(list, name, text) {
	make("dt", list, name);
	make("dd", list, text);
}

function threadName(target, tso) {
	const lane = data.lanes.find(function (l) { return l.kind === HASKELL && l.target === target && l.id === tso; });
	return lane ? lane.name : "Haskell thread " + tso;
}

function putFlows(list, slice) {
	const start = slice.chunk.start[slice.i], end = slice.chunk.start[slice.i + 1], lane = slice.lane;
	const flow = lane.kind === THREAD && (data.targets[lane.target].flows || []).find(function (f) {
		return f[5] === lane.id && f[0] <= end && f[1] >= start;
	});
	if (flow)
		putPair(list, "safe call", flow[4] + " left capability " + flow[2] + " at " + moment(flow[0], 1) +
			" and came back on capability " + flow[3] + " at " + moment(flow[1], 1));
}

/* The capability of a slice; if it waits for any capability, the one that it got. */
function putCapability(list, lane, no, end) {
	if (look(no, LOOK.cap) >= 0) {
		putPair(list, "capability", String(look(no, LOOK.cap)));
		return;
	}
	if (stateOf(lane.kind, look(no, LOOK.state))[0] !== "cap_wait")
		return;
	/* the thread may have had to wait for a CPU, too, before it ran on */
	for (let tries = 0, next = sliceAt(lane, end); next && tries < 4; tries++) {
		const cap = look(next.chunk.look[next.i], LOOK.cap);
		if (cap >= 0) {
			putPair(list, "capability", cap + ", which it got afterwards");
			return;
		}
		next = sliceAt(lane, next.chunk.start[next.i + 1]);
	}
}

const MOST_OTHERS = 5;
const PREEMPTED = faceOf("p");

/*
 * Which threads of the profiled programs had a CPU while this one waited for one, the longest
 * first.
 */
function putOthers(list, lane, start, end) {
	const others = [];
	for (const other of data.lanes) {
		if (other.kind !== THREAD || other === lane || !other.bins)
			continue;
		const states = data.states[THREAD];
		let ns = 0;
		eachStretch(other, start, end, function (chunk, first, last) {
			for (let i = first; i < last; i++)
				if (chunk.look[i] && states[details.state[chunk.look[i]]][3])
					ns += Math.min(chunk.start[i + 1], end) - Math.max(chunk.start[i], start);
		});
		if (ns)
			others.push({name: laneName(other), ns: ns});
	}
	others.sort(function (a, b) { return b.ns - a.ns; });
	putPair(list, "on a CPU meanwhile", others.length ? others.slice(0, MOST_OTHERS).map(function (o) {
		return o.name + " for " + duration(o.ns);
	}).join(", ") + (others.length > MOST_OTHERS ? ", and " + counted(others.length - MOST_OTHERS, "other", "others") : "") :
		"no profiled thread");
}

function runs(slice) {
	return slice !== null && Boolean(data.states[THREAD][details.state[slice.chunk.look[slice.i]]][3]);
}

/* Whether the lane began to run at exactly this nanosecond. */
function startsAt(lane, ns) {
	const slice = sliceAt(lane, ns);
	return runs(slice) && slice.chunk.start[slice.i] === ns && !runs(sliceAt(lane, ns - 0.5));
}

/*
 * The thread that got the CPU when this one lost it: the kernel's switch between the two has one
 * time, which ends one slice and begins the other.
 */
function putTaker(list, lane, start) {
	const before = sliceAt(lane, start - 0.5), threads = data.lanes.filter(function (l) { return l.kind === THREAD && l.lanes; });
	if (!runs(before)) {
		putPair(list, "preempted by", "nobody: it was woken, and no CPU was free");
		return;
	}
	const taker = threads.find(function (l) { return l !== lane && l.bins && startsAt(l, start); });
	const all = threads.every(function (l) { return l.bins && !l.merged; });
	putPair(list, "preempted by", taker ? laneName(taker) : all ? "no profiled thread" :
		"not known: some threads do not have all of their slices here");
}

function showSlice() {
	const slice = view.slice, body = byId("slice-body");
	byId("slice").hidden = !slice;
	body.textContent = "";
	if (!slice)
		return;
	const lane = slice.lane, chunk = slice.chunk, no = chunk.look[slice.i], list = make("dl", body);
	const start = chunk.start[slice.i], end = chunk.start[slice.i + 1], state = stateOf(lane.kind, look(no, LOOK.state));
	byId("slice-title").textContent = state[1] + ", " + duration(end - start);
	putPair(list, "lane", laneName(lane));
	putPair(list, "from", exactly(start) + " (" + moment(start, 1) + ")");
	putPair(list, "to", exactly(end) + " (" + moment(end, 1) + ")");
	putPair(list, "duration", exactly(end - start));
	putPair(list, "boundaries", look(no, LOOK.exact) ? "events: exact" :
		"samples, or slices that were merged: known to about the time between two samples");
	putPair(list, "samples in it", count(chunk.samples[slice.i]));
	if (lane.kind !== CAPABILITY)
		putCapability(list, lane, no, end);
	if (look(no, LOOK.tid) && lane.kind !== THREAD)
		putPair(list, "OS thread", String(look(no, LOOK.tid)));
	if (look(no, LOOK.tso) && lane.kind !== HASKELL)
		putPair(list, "Haskell thread", threadName(lane.target, look(no, LOOK.tso)));
	putFlows(list, slice);
	if (state[2] === PREEMPTED && lane.kind === THREAD) {
		putTaker(list, lane, start);
		putOthers(list, lane, start, end);
	}
	const nodes = stackOf(look(no, LOOK.node));
	make("h3", body, nodes.length ? "Stack, innermost frame first" : "No stack is known");
	const stack = make("ol", body);
	for (const node of nodes) {
		const frame = details.frames[details.frame[node]];
		make("li", stack, frame[0] + (frame[2] ? "  (" + frame[2] + ")" : frame[1] && frame[1] !== "state" ? "  (" + frame[1] + ")" : ""));
	}
	const close = make("button", body, "close");
	close.type = "button";
	close.onclick = function () { chooseSlice(null); };
}
