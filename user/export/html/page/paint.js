/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paint: canvases and colours. What runs is as high as its lane, what waits is lower, what rests is
 * empty: the picture can be read without its colours, too.
 */

const FONT = "11px system-ui, sans-serif";
const CHAR = 6.1;	/* approximate width of a letter */
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function style(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const theme = {};
function readTheme() {
	for (const name of ["ink", "soft", "line", "back", "paper", "mark"])
		theme[name] = style("--" + name);
}
readTheme();
dark.addEventListener("change", function () {
	readTheme();
	changed("moved");
	changed("selected");
});
/* Paper is light, and there is no next frame to wait for. */
function paintFor(paper) {
	document.documentElement.toggleAttribute("data-print", paper);
	readTheme();
	paintTimeline();
	if (flame.total)
		paintFlame();
}
window.addEventListener("beforeprint", function () { paintFor(true); });
window.addEventListener("afterprint", function () { paintFor(false); });

function faceColour(face) {
	return data.faces[face][2];
}

/* Black or white, whichever is more legible on the colour. */
const INKS = data.faces.map(function (face) {
	const v = parseInt(face[2].slice(1), 16);
	const light = (v >> 16) * 0.299 + (v >> 8 & 255) * 0.587 + (v & 255) * 0.114;
	return light > 120 ? "#111" : "#fff";
});

/* The faces' colours as pixels of an image. */
const PIXELS = Uint32Array.from(data.faces, function (face) {
	const v = parseInt(face[2].slice(1), 16), rgba = Uint8Array.of(v >> 16, v >> 8 & 255, v & 255, 255);
	return new Uint32Array(rgba.buffer)[0];
});

/* How high a face is in a lane: it runs, waits, rests. */
const HEIGHTS = Float64Array.from(data.faces, function (face) { return [1, 0.62, 0][face[3]]; });
const ALL_FACES = data.faces.map(function (face, f) { return f; });

/* The faces that occur in a lane, in their order. */
function facesOf(lane) {
	if (!lane.faces) {
		const has = new Set(lane.states.map(function (ns, s) { return ns ? stateOf(lane.kind, s)[2] : -1; }));
		lane.faces = ALL_FACES.filter(function (f) { return has.has(f); });
	}
	return lane.faces;
}

function scaleOf(height) {
	return Math.min(window.devicePixelRatio || 1, 32000 / Math.max(height, 1));
}

/*
 * A strip of `width` columns. For each column `shares` has the share of each face, stacked from the
 * bottom up. Thousands of rectangles would take longer than the rest of the picture.
 */
const strip = {canvas: document.createElement("canvas"), image: null, pixels: null};

function paintStrip(g, shares, y, width, height, heights, faces) {
	const shown = Uint8Array.from(faces.filter(function (f) { return heights[f] && !view.hidden.has(f); }));
	const scale = scaleOf(height), w = Math.round(width * scale), h = Math.max(1, Math.round(height * scale));
	const s = strip.canvas.getContext("2d");
	if (strip.canvas.width !== w || strip.canvas.height !== h || !strip.image) {
		strip.canvas.width = w;
		strip.canvas.height = h;
		strip.image = s.createImageData(w, h);
		strip.pixels = new Uint32Array(strip.image.data.buffer);
	}
	strip.pixels.fill(0);
	for (let x = 0; x < w; x++) {
		const base = Math.min(Math.floor(x / scale), width - 1) * N_FACES;
		let sum = 0, low = h;
		for (let k = 0; k < shown.length && low > 0; k++) {
			const f = shown[k], share = shares[base + f];
			if (!share)
				continue;
			sum += share * heights[f];
			const high = Math.max(Math.round(h - sum * h), 0);
			for (let at = low - 1; at >= high; at--)
				strip.pixels[at * w + x] = PIXELS[f];
			low = Math.min(low, high);
		}
	}
	s.putImageData(strip.image, 0, 0);
	g.drawImage(strip.canvas, 0, y, width, height);
}

/* Clears a canvas of the given size, and returns its context, in CSS pixels. */
function sized(canvas, width, height) {
	const scale = scaleOf(height);
	const w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	const g = canvas.getContext("2d");
	g.setTransform(scale, 0, 0, scale, 0, 0);
	g.clearRect(0, 0, width, height);
	g.font = FONT;
	g.textBaseline = "middle";
	g.globalAlpha = 1;
	return g;
}

/* As much of the text as fits; nothing if that would be too little. */
function fitted(text, width) {
	const room = Math.floor((width - 6) / CHAR);
	return room < 3 ? "" : text.length > room ? text.slice(0, room - 1) + "…" : text;
}

/* A round time step, of which several fit. */
function stepOf(span, width) {
	const least = span / Math.max(width / 90, 1);
	const step = Math.pow(10, Math.floor(Math.log10(Math.max(least, 1))));
	for (const times of [1, 2, 5, 10])
		if (step * times >= least)
			return step * times;
	return step * 10;
}

/* ── frames ── */

function hash(text) {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
	return h;
}

const FRAME_KINDS = ["haskell", "foreign", "rts", "gc", "kernel", "state", "mark"];

function frameColour(frame) {
	const h = hash(frame[1] || frame[0]), spread = h % 50, light = 62 + (h >>> 8) % 14;
	switch (FRAME_KINDS[frame[3]]) {
	case "haskell": return "hsl(" + (140 + spread * 0.8) + ",42%," + light + "%)";
	case "foreign": return "hsl(" + (22 + spread * 0.5) + ",75%," + light + "%)";
	case "rts": return "hsl(210,16%," + light + "%)";
	case "gc": return "hsl(318,35%," + light + "%)";
	case "kernel": return "hsl(" + (48 + spread * 0.2) + ",60%," + light + "%)";
	case "state": return "hsl(" + (195 + spread * 0.5) + ",45%," + (light + 12) + "%)";
	default: return "hsl(0,0%,80%)";
	}
}
