/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sums: what the selection adds up to. Without a range these are the lanes' accounts, which are exact and
 * the same as in all other formats. Within a range there are only slices: a slice counts as far as it
 * lies in the range, and its samples in the same share.
 */

/* self: by node, by view.weight; cpu and samples: by node, on the CPU only, for functions; of: by lane. */
function emptySums() {
	return {self: new Float64Array(details.n), cpu: new Float64Array(details.n), samples: new Float64Array(details.n),
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

/* Of the processes whose lanes are selected. */
function addAllocated(sums) {
	const wanted = new Set(lanesThatCount().map(function (lane) { return lane.target; }));
	details.allocated.forEach(function (rows, target) {
		for (let k = 0; wanted.has(target) && k < rows.length; k += 2)
			sums.self[rows[k]] += rows[k + 1];
	});
}

/* By the processes whose lanes are selected, by their curves; null: no curve shows it. */
function allocatedIn(from, to) {
	const wanted = new Set(lanesThatCount().map(function (lane) { return lane.target; }));
	let sum = null;
	data.targets.forEach(function (target, no) {
		const curve = wanted.has(no) && (target.curves || []).find(function (c) { return c.unit === "bytes a second"; });
		for (let i = 0; curve && i + 1 < curve.n; i++)
			sum += curve.values[i] * Math.max(Math.min(curve.times[i + 1], to) - Math.max(curve.times[i], from), 0) / 1e9;
	});
	return sum;
}

function anyAllocated() {
	return details.allocated.some(function (rows) { return rows.length; });
}

function addUp() {
	const sums = emptySums();
	if (view.weight === "alloc")
		addAllocated(sums);
	for (const lane of lanesThatCount())
		if (view.range)
			addSlices(sums, lane);
		else
			addAccount(sums, lane);
	return sums;
}

/* ── functions ── */

/* [{frame, self, total, self_samples, total_samples}], those first that used most of the CPU. A function that
 * calls itself counts once. */
function functionsOf(sums) {
	const n = details.frames.length, cpu = sums.cpu, samples = sums.samples;
	const total = Float64Array.from(cpu), total_samples = Float64Array.from(samples);
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
		rows[frame].self += cpu[i];
		rows[frame].self_samples += samples[i];
	}
	return rows.filter(function (r) {
		return details.frames[r.frame][3] < FRAME_STATE && (r.total > 0 || r.total_samples > 0);
	}).sort(function (a, b) { return b.self - a.self || b.total - a.total; });
}

/* ── calls within a range ── */

/* Safe calls, or unsafe ones, by function and caller: stretches of slices in one, cut at the range's ends. */
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
