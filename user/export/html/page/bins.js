/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bins: how a lane of many slices looks at zoom levels between the whole session, which the file
 * has prepared, and spans short enough to look at each slice. Bins are made while the slices are
 * read, so that no zoom step has to go through hundreds of thousands of slices.
 */

const BINS = 8192, BIN_NS = (AXIS[1] - AXIS[0]) / BINS;
const MANY = 8192;	/* slices; fewer are looked at one by one */
const WIDE = 8;		/* pixels from which a slice is painted by itself */

function newBins(lane) {
	const faces = facesOf(lane);
	return {faces: faces, shares: new Float32Array(BINS * faces.length), wide: []};
}

/* Adds the slices of a chunk; only: those that were found (1) or not (0), -1 for all. */
function addToBins(bins, lane, chunk, only) {
	const n = bins.faces.length, shares = bins.shares;
	const places = data.states[lane.kind].map(function (state) { return bins.faces.indexOf(state[2]); });
	let right = (chunk.start[0] - AXIS[0]) / BIN_NS;
	for (let i = 0; i < chunk.n; i++) {
		const no = chunk.look[i], left = right;
		right = (chunk.start[i + 1] - AXIS[0]) / BIN_NS;
		if (!no || (only >= 0 && found.below[details.node[no]] !== only))
			continue;
		const place = places[details.state[no]], to = Math.min(right, BINS);
		if (place < 0)
			continue;
		for (let b = Math.floor(left); b < to; b++)
			shares[b * n + place] += Math.min(right, b + 1) - Math.max(left, b);
		if (right - left >= WIDE)
			bins.wide.push(no, chunk.start[i], chunk.start[i + 1]);
	}
}

/* Adds a chunk to the lane's bins as it comes in. */
function binChunk(lane, chunk) {
	if (!lane.fine && chunk.n < MANY)
		return;
	lane.fine = lane.fine || newBins(lane);
	addToBins(lane.fine, lane, chunk, -1);
}

/*
 * Returns null if the lane has few slices. Bins for a search are made when they are first needed.
 */
function binsOf(lane, only) {
	const chunks = chunksOf(lane);
	if (only < 0 || !lane.fine)
		return lane.fine;
	if (!lane.searched || lane.searched.text !== found.text) {
		lane.searched = {text: found.text, bins: [newBins(lane), newBins(lane)]};
		for (const chunk of chunks)
			lane.searched.bins.forEach(function (bins, which) { addToBins(bins, lane, chunk, which); });
	}
	return lane.searched.bins[only];
}

/* Adds the bins' shares of each of `width` columns of the view to `columns`, by column and face. */
function addBins(bins, columns, width) {
	const n = bins.faces.length, step = (view.to - view.from) / width / BIN_NS;
	let right = (view.from - AXIS[0]) / BIN_NS;
	for (let x = 0; x < width; x++) {
		const left = right, to = Math.min(left + step, BINS);
		right = left + step;
		for (let b = Math.max(Math.floor(left), 0); b < to; b++) {
			const share = (Math.min(right, b + 1) - Math.max(left, b)) / step;
			for (let k = 0; k < n; k++)
				columns[x * N_FACES + bins.faces[k]] += share * bins.shares[b * n + k];
		}
	}
}
