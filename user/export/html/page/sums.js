/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums: what the selection adds up to. Without a range these are the lanes' accounts, which are
 * exact and the same as in all other formats. Within a range there are only slices: a slice counts
 * for the part that lies in the range, and so do its samples.
 */

/*
 * self: by node, by view.weight. cpu, samples: by node, on the CPU only, for functions. bytes,
 * bytes_samples: by node, allocated bytes and the number of their samples. of: by lane.
 */
function emptySums() {
	return {self: new Float64Array(details.n), cpu: new Float64Array(details.n), samples: new Float64Array(details.n),
		bytes: new Float64Array(details.n), bytes_samples: new Float64Array(details.n), n_bytes: 0, grain: 0,
		of: new Map(), slices: 0, n_samples: 0, exact: !view.range};
}

function lanesThatCount() {
	return data.lanes.filter(function (lane) {
		return view.lanes.size ? view.lanes.has(lane.no) : lane.counted;
	});
}

function laneSums(lane) {
	return {lane: lane, wall: 0, cpu: 0, states: new Float64Array(data.states[lane.kind].length)};
}

function addTo(sums, node, state, onCpu, ns, samples) {
	const wall = state[4] ? 0 : ns, cpu = onCpu ? ns : 0;
	if (view.weight !== "alloc")
		sums.self[node] += view.weight === "cpu" ? cpu : view.weight === "wall" ? wall : samples;
	sums.cpu[node] += cpu;
	sums.samples[node] += onCpu ? samples : 0;
	sums.n_samples += samples;
}

function addAccount(sums, lane) {
	const rows = details.rows[lane.no], of = laneSums(lane);
	for (let k = 0; k < rows.length; k += 4) {
		const state = stateOf(lane.kind, rows[k + 1] >> 1);
		if (view.hidden.has(state[2]))
			continue;
		addTo(sums, rows[k], state, rows[k + 1] & 1, rows[k + 2], rows[k + 3]);
	}
	lane.states.forEach(function (ns, s) {
		if (!view.hidden.has(stateOf(lane.kind, s)[2])) {
			of.states[s] = ns;
			of.wall += ns;
			of.cpu += stateOf(lane.kind, s)[3] ? ns : 0;
		}
	});
	if (!view.hidden.size) {
		of.wall = lane.wall;
		of.cpu = lane.cpu;
	}
	sums.of.set(lane.no, of);
}

function addSlices(sums, lane) {
	const of = laneSums(lane), states = data.states[lane.kind], from = view.range[0], to = view.range[1];
	const shown = states.map(function (s) { return !view.hidden.has(s[2]); });
	eachStretch(lane, from, to, function (chunk, first, end) {
		for (let i = first; i < end; i++) {
			const no = chunk.look[i], s = details.state[no];
			if (!no || !shown[s])
				continue;
			const start = chunk.start[i], stop = chunk.start[i + 1];
			const ns = Math.min(stop, to) - Math.max(start, from);
			addTo(sums, details.node[no], states[s], states[s][3], ns, chunk.samples[i] * ns / (stop - start));
			of.states[s] += ns;
			of.wall += ns;
			of.cpu += states[s][3] ? ns : 0;
			sums.slices++;
		}
	});
	if (of.wall)
		sums.of.set(lane.no, of);
}

/* ── allocation ── */

function addBytes(sums, node, n, samples) {
	sums.bytes[node] += n;
	sums.bytes_samples[node] += samples;
	sums.n_bytes += n;
}

/* By index into raw.whose: whether a capability or thread of that owner is among the lanes. */
function chosenOf(spans, lanes) {
	const ids = [CAPABILITY, THREAD, HASKELL].map(function (kind) {
		return new Set(lanes.filter(function (lane) { return lane.kind === kind && (lane.id || kind === CAPABILITY); })
			.map(function (lane) { return lane.id; }));
	});
	const chosen = new Uint8Array(spans.whose.length / 3);
	for (let i = 0; i < chosen.length; i++)
		chosen[i] = ids.some(function (set, kind) { return set.has(spans.whose[3 * i + kind]); }) ? 1 : 0;
	return chosen;
}

/*
 * A span counts for the part that lies in the range, as it is not known when within it the bytes
 * were allocated. A span without length is at its end.
 */
function addSpans(sums, target, lanes) {
	const spans = details.spans[target], chosen = lanes && chosenOf(spans, lanes);
	for (let i = 0; i < spans.n; i++) {
		const from = spans.from[i], to = spans.to[i];
		let share = 1;
		if (chosen && !chosen[spans.of[i]])
			continue;
		if (view.range)
			share = to > from ? (Math.min(to, view.range[1]) - Math.max(from, view.range[0])) / (to - from) :
				to >= view.range[0] && to <= view.range[1] ? 1 : 0;
		if (share > 0)
			addBytes(sums, spans.node[i], spans.bytes[i] * share, spans.samples[i] * share);
	}
	sums.grain = Math.max(sums.grain, spans.grain);
}

const ALLOCATES = faceOf("H");

/*
 * Haskell code allocates; nothing does in other states. For a whole process, the report's figures.
 */
function addAllocated(sums) {
	if (view.hidden.has(ALLOCATES))
		return;
	details.allocated.forEach(function (rows, target) {
		const lanes = lanesThatCount().filter(function (lane) { return lane.target === target; });
		const all = !view.lanes.size || lanesOfProcess(target).every(function (lane) { return view.lanes.has(lane.no); });
		if (!lanes.length && view.lanes.size)
			return;
		if (view.range || !all)
			addSpans(sums, target, all ? null : lanes);
		else
			for (let k = 0; k < rows.length; k += 3)
				addBytes(sums, rows[k], rows[k + 1], rows[k + 2]);
	});
}

function anyAllocated() {
	return details.allocated.some(function (rows) { return rows.length; });
}

function addUp() {
	const sums = emptySums();
	addAllocated(sums);
	if (view.weight === "alloc")
		sums.self = sums.bytes;
	for (const lane of lanesThatCount())
		if (view.range)
			addSlices(sums, lane);
		else
			addAccount(sums, lane);
	return sums;
}

/* ── functions ── */

/*
 * [{frame, self, total, self_samples, total_samples}] of weights by node, the heaviest first. A
 * function that calls itself counts once. ownOf: the node of a leaf's stack that the leaf's weight
 * counts for.
 */
function functionsOf(weights, samples, ownOf) {
	const n = details.frames.length, total = Float64Array.from(weights), total_samples = Float64Array.from(samples);
	const rows = details.frames.map(function (f, i) {
		return {frame: i, self: 0, total: 0, self_samples: 0, total_samples: 0};
	});
	const open = new Uint32Array(n), path = [];
	for (let i = details.n - 1; i > 0; i--) {
		total[details.parent[i]] += total[i];
		total_samples[details.parent[i]] += total_samples[i];
	}
	for (let i = 1; i < details.n; i++) {
		while (path.length >= details.depth[i])
			open[path.pop()]--;
		const frame = details.frame[i];
		if (!open[frame]) {
			rows[frame].total += total[i];
			rows[frame].total_samples += total_samples[i];
		}
		open[frame]++;
		path.push(frame);
		if (weights[i] || samples[i]) {
			const own = rows[details.frame[ownOf(i)]];
			own.self += weights[i];
			own.self_samples += samples[i];
		}
	}
	return rows.filter(function (r) {
		return details.frames[r.frame][3] < FRAME_STATE && (r.total > 0 || r.total_samples > 0);
	}).sort(function (a, b) { return b.self - a.self || b.total - a.total; });
}

function itself(node) {
	return node;
}

/*
 * The node of the code that allocates: the runtime does so on behalf of others. In a stripped
 * program the runtime's code has no name, but the modules' code has.
 */
function allocatorOf(node) {
	for (let i = node; i > 0; i = details.parent[i]) {
		const frame = details.frames[details.frame[i]], parent = details.parent[i];
		const caller = parent > 0 ? details.frames[details.frame[parent]] : null;
		const unnamed = i === node && frame[0].startsWith("[") && caller && caller[3] === FRAME_HASKELL && !caller[0].startsWith("[");
		if (frame[3] < FRAME_STATE && frame[3] !== FRAME_RTS && !frame[0].startsWith("stg_") && !unnamed)
			return i;
	}
	return node;
}

/* ── calls within a range ── */

/*
 * Safe or unsafe calls, by function and caller: stretches of slices in one call, cut off at the
 * range's ends.
 */
function callsOf(words) {
	const rows = new Map();
	for (const lane of lanesThatCount()) {
		if (lane.kind !== THREAD)
			continue;
		let last = 0, longest = 0;
		eachStretch(lane, view.range[0], view.range[1], function (chunk, first, end) {
			for (let i = first; i < end; i++) {
				const no = chunk.look[i], state = no ? stateOf(THREAD, look(no, LOOK.state)) : null;
				if (!state || !state[0].startsWith(words) || view.hidden.has(state[2])) {
					last = 0;
					continue;
				}
				const node = details.call[codeOf(look(no, LOOK.node))];
				const key = details.frame[node] + "," + (node ? details.frame[details.parent[node]] : 0);
				const ns = Math.min(chunk.start[i + 1], view.range[1]) - Math.max(chunk.start[i], view.range[0]);
				const row = rows.get(key) || {node: node, calls: 0, total: 0, cpu: 0, longest: 0, samples: 0};
				rows.set(key, row);
				if (last !== key) {
					row.calls++;
					longest = 0;
				}
				last = key;
				longest += ns;
				row.total += ns;
				row.cpu += state[3] ? ns : 0;
				row.samples += chunk.samples[i];
				row.longest = Math.max(row.longest, longest);
			}
		});
	}
	return [...rows.values()].sort(function (a, b) { return b.total - a.total; });
}
