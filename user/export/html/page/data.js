/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * data: the document's data, as arrays. The first element is read at once; stacks and accounts when
 * the whole document has arrived; slices when they are drawn or added up for the first time.
 */

const data = JSON.parse(byId("data").textContent);
const KINDS = ["capability", "thread", "haskell"];
const CAPABILITY = 0, THREAD = 1, HASKELL = 2;
const FRAME_HASKELL = 0, FRAME_FOREIGN = 1, FRAME_RTS = 2, FRAME_STATE = 5;
const N_FACES = data.faces.length;

/* The state of a kind of lane: [name, words, face, on the CPU, idle] */
function stateOf(kind, state) {
	return data.states[kind][state] || ["unknown", "unknown", N_FACES - 1, 0, 0];
}

data.lanes.forEach(function (lane, i) {
	lane.no = i;
	lane.chunks = lane.fine = null;
	if (!lane.bins)
		return;
	/*
	 * bins are [times, number of faces, face, share, …]; at: where the faces of each bin begin
	 */
	const at = [];
	for (let k = 0; k < lane.bins.length; k += 2 + 2 * lane.bins[k + 1])
		for (let times = lane.bins[k]; times > 0; times--)
			at.push(k + 1);
	lane.at = Uint32Array.from(at);
	lane.bins = Int32Array.from(lane.bins);
});

/* Points are [time since the previous one, value, …]; to: the time up to which they are known. */
for (const target of data.targets)
	for (const curve of target.curves || []) {
		let ns = 0;
		curve.n = curve.points.length / 2;
		curve.to = curve.to === undefined ? Infinity : curve.to;
		curve.times = new Float64Array(curve.n);
		curve.values = new Float64Array(curve.n);
		for (let i = 0; i < curve.n; i++) {
			curve.times[i] = ns += curve.points[2 * i];
			curve.values[i] = curve.points[2 * i + 1];
		}
	}

function processName(no) {
	return data.targets[no].short;
}

const severalProcesses = data.targets.length > 1;

function laneName(lane) {
	return lane.name + (severalProcesses ? " of " + processName(lane.target) : "");
}

/* ── stacks and accounts ── */

/*
 * Arrays are null until the whole document has arrived. parent, frame, depth: by node; node 0 is
 * the root.
 */
const details = {ready: false, frames: [], n: 1, parent: null, frame: null, depth: null, call: null,
	rows: [], allocated: [], spans: [], looks: null, node: null, state: null};

/*
 * Allocation by time: each span's times, the number of its owner in raw.whose, its node, bytes, and
 * samples.
 */
function readSpans(raw) {
	const n = raw.list.length / 6;
	const spans = {n: n, grain: raw.grain_ns, whose: raw.whose, from: new Float64Array(n), to: new Float64Array(n),
		of: new Uint32Array(n), node: new Uint32Array(n), bytes: new Float64Array(n), samples: new Float64Array(n)};
	let at = 0;
	for (let i = 0; i < n; i++) {
		at += raw.list[6 * i];
		spans.to[i] = at;
		spans.from[i] = at - raw.list[6 * i + 1];
		spans.of[i] = raw.list[6 * i + 2];
		spans.node[i] = raw.list[6 * i + 3];
		spans.bytes[i] = raw.list[6 * i + 4];
		spans.samples[i] = raw.list[6 * i + 5];
	}
	return spans;
}

function readDetails() {
	const element = byId("details"), raw = JSON.parse(element.textContent), n = raw.nodes.length / 2 + 1;
	const path = [0];
	details.frames = raw.frames;
	details.n = n;
	details.parent = new Int32Array(n).fill(-1);
	details.frame = new Uint32Array(n);
	details.depth = new Uint32Array(n);
	/* the foreign function that Haskell code called, if the stack is in one; otherwise 0 */
	details.call = new Uint32Array(n);
	for (let i = 1; i < n; i++) {
		const depth = raw.nodes[2 * i - 2] + 1, frame = raw.nodes[2 * i - 1], parent = path[depth - 1];
		const kind = raw.frames[frame][3];
		details.depth[i] = depth;
		details.frame[i] = frame;
		details.parent[i] = parent;
		path[depth] = i;
		if (kind !== FRAME_HASKELL)
			details.call[i] = details.call[parent] || (kind === FRAME_FOREIGN ? i : 0);
	}
	details.rows = raw.rows;
	details.allocated = raw.allocated;
	details.spans = raw.spans.map(readSpans);
	details.looks = Float64Array.from(raw.looks);
	/* these two by look alone, since they are needed most */
	details.node = new Uint32Array(raw.looks.length / LOOK.size);
	details.state = new Uint8Array(details.node.length);
	for (let i = 0; i < details.node.length; i++) {
		details.node[i] = raw.looks[i * LOOK.size + LOOK.node];
		details.state[i] = raw.looks[i * LOOK.size + LOOK.state];
	}
	details.ready = true;
	element.textContent = "";
}

function frameName(node) {
	return node ? details.frames[details.frame[node]][0] : "the whole";
}

/* The nodes of a node's stack, the leaf first. */
function stackOf(node) {
	const nodes = [];
	for (; node > 0; node = details.parent[node])
		nodes.push(node);
	return nodes;
}

/* The innermost code, without the state that a thread's stack ends with. */
function codeOf(node) {
	while (node > 0 && details.frames[details.frame[node]][3] >= FRAME_STATE)
		node = details.parent[node];
	return Math.max(node, 0);
}

/* ── slices ── */

const LOOK = {state: 0, exact: 1, node: 2, cap: 3, tid: 4, tso: 5, size: 6};

function look(no, what) {
	return details.looks[no * LOOK.size + what];
}

function readChunk(element) {
	const raw = JSON.parse(element.textContent), n = (raw.length - 1) / 3;
	const chunk = {n: n, start: new Float64Array(n + 1), look: new Uint32Array(n), samples: new Uint32Array(n)};
	let at = raw[0];
	for (let i = 0; i < n; i++) {
		chunk.start[i] = at;
		at += raw[3 * i + 1];
		chunk.look[i] = raw[3 * i + 2];
		chunk.samples[i] = raw[3 * i + 3];
	}
	chunk.start[n] = at;
	element.textContent = "";
	return chunk;
}

/* Slices come in several elements, in time order, so that none takes long to read. */
function hasMore(lane) {
	return byId("slices-" + lane.no + "-" + (lane.chunks ? lane.chunks.length : 0));
}

function readMore(lane) {
	const element = hasMore(lane);
	if (!element)
		return false;
	const chunk = readChunk(element);
	(lane.chunks = lane.chunks || []).push(chunk);
	binChunk(lane, chunk);
	return true;
}

function chunksOf(lane) {
	if (!lane.complete && details.ready) {
		while (readMore(lane))
			;
		lane.complete = true;
	}
	return lane.chunks || [];
}

/* The first index below n for which cond is true; n if there is none. */
function firstOf(n, cond) {
	let low = 0, high = n;
	while (low < high) {
		const i = (low + high) >> 1;
		if (cond(i))
			high = i;
		else
			low = i + 1;
	}
	return low;
}

/* Calls back(chunk, first, end) for the slices of a lane within a range. */
function eachStretch(lane, from, to, back) {
	for (const chunk of chunksOf(lane)) {
		if (!chunk.n || chunk.start[chunk.n] <= from || chunk.start[0] >= to)
			continue;
		const first = firstOf(chunk.n, function (i) { return chunk.start[i + 1] > from; });
		const end = firstOf(chunk.n, function (i) { return chunk.start[i] >= to; });
		if (first < end)
			back(chunk, first, end);
	}
}

/* The slice of a lane at a moment: {lane, chunk, i}, or null. */
function sliceAt(lane, ns) {
	let found = null;
	eachStretch(lane, ns, ns + 0.5, function (chunk, first) {
		if (!found && chunk.start[first] <= ns && chunk.look[first])
			found = {lane: lane, chunk: chunk, i: first};
	});
	return found;
}

/* ── searching ── */

/*
 * below: whether a node's stack contains a found frame; self: whether the node itself is one. null
 * if nothing is searched for.
 */
const found = {text: "", below: null, self: null, frames: null};

function search(text) {
	const wanted = text.trim().toLowerCase();
	found.text = wanted;
	found.below = found.self = found.frames = null;
	if (!wanted || !details.ready)
		return;
	found.frames = details.frames.map(function (f) { return f[0].toLowerCase().includes(wanted); });
	found.below = new Uint8Array(details.n);
	found.self = new Uint8Array(details.n);
	for (let i = 1; i < details.n; i++) {
		found.self[i] = found.frames[details.frame[i]] ? 1 : 0;
		found.below[i] = found.self[i] | found.below[details.parent[i]];
	}
}
