/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame: the flame graph of the selection. */

const FLAME_ROW = 18, FLAME_CHAR = 6.7;
const flame = {canvas: byId("flame-canvas"), look: byId("flame-look"), total: null, self: null, children: null,
	zoom: 0, at: 0, places: [], colours: [], found: 0};

function weighted(n) {
	if (view.weight === "alloc")
		return bytes(n);
	return view.weight === "samples" ? counted(Math.round(n), "sample", "samples") : duration(n);
}

/* Links each node's children, in the order of the file. */
function linkNodes() {
	flame.first = new Int32Array(details.n).fill(-1);
	flame.next = new Int32Array(details.n).fill(-1);
	for (let i = details.n - 1; i > 0; i--) {
		flame.next[i] = flame.first[details.parent[i]];
		flame.first[details.parent[i]] = i;
	}
	flame.colours = details.frames.map(frameColour);
}

function setFlame(sums) {
	const total = Float64Array.from(sums.self);
	for (let i = details.n - 1; i > 0; i--)
		total[details.parent[i]] += total[i];
	flame.total = total;
	flame.self = sums.self;
	if (!total[flame.zoom])
		flame.zoom = 0;
	flame.at = flame.zoom;
	measureFound();
	describe(-1);
	paintFlame();
}

/* A found frame below another found frame is not counted again. */
function measureFound() {
	flame.found = 0;
	for (let i = 1; found.self && flame.total && i < details.n; i++)
		if (found.self[i] && !found.below[details.parent[i]])
			flame.found += flame.total[i];
}

/* The heaviest child is leftmost. */
function childrenOf(node, least) {
	const list = [];
	for (let i = flame.first[node]; i >= 0; i = flame.next[i])
		if (flame.total[i] > least)
			list.push(i);
	return list.sort(function (a, b) { return flame.total[b] - flame.total[a] || a - b; });
}

/* The positions of visible nodes: [node, left, right, row], parents first. */
function placeNodes(width) {
	const places = [], whole = flame.total[flame.zoom], least = whole / width * 0.4;
	const above = stackOf(flame.zoom).reverse();
	if (flame.zoom)
		above.unshift(0);
	for (const node of above.slice(0, -1))
		places.push([node, 0, width, places.length]);
	const base = places.length;
	const open = whole ? [[flame.zoom, 0, width, base]] : [];
	while (open.length) {
		const place = open.pop();
		let left = place[1];
		places.push(place);
		for (const child of childrenOf(place[0], least)) {
			const right = left + flame.total[child] / whole * width;
			open.push([child, left, right, place[3] + 1]);
			left = right;
		}
	}
	return places;
}

function paintFlame() {
	const width = Math.max(byId("flame-box").clientWidth, 100);
	flame.places = placeNodes(width);
	const deepest = flame.places.reduce(function (most, p) { return Math.max(most, p[3]); }, 0);
	const g = sized(flame.canvas, width, (deepest + 1) * FLAME_ROW);
	g.font = "11px ui-monospace, monospace";
	for (const place of flame.places) {
		const node = place[0], y = place[3] * FLAME_ROW, wide = place[2] - place[1];
		g.globalAlpha = found.below && !found.self[node] ? 0.35 : 1;
		g.fillStyle = node ? flame.colours[details.frame[node]] : "#bbb";
		g.fillRect(place[1], y, Math.max(wide - 0.5, 0.4), FLAME_ROW - 1);
		const room = Math.floor((wide - 6) / FLAME_CHAR), name = frameName(node);
		if (room >= 3) {
			g.fillStyle = "#111";
			g.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, place[1] + 3, y + FLAME_ROW / 2);
		}
		if (node === flame.at && document.activeElement === flame.canvas) {
			g.globalAlpha = 1;
			g.strokeStyle = "#b3006b";
			g.lineWidth = 2;
			g.strokeRect(place[1] + 1, y + 1, Math.max(wide - 2, 2), FLAME_ROW - 3);
		}
	}
	g.globalAlpha = 1;
}

function describe(node) {
	const whole = flame.total ? flame.total[0] : 0;
	if (node < 0) {
		flame.look.textContent = found.text
			? "found: " + weighted(flame.found) + ", " + percent(flame.found, whole)
			: weighted(whole) + " in all; click a frame to zoom";
		return;
	}
	const frame = details.frames[details.frame[node]];
	flame.look.textContent = frameName(node) + (node && frame[1] ? "  (" + (frame[2] || frame[1]) + ")" : "") + "\n" +
		weighted(flame.total[node]) + ", " + percent(flame.total[node], whole) + " of the whole" +
		(flame.self[node] ? "; itself " + weighted(flame.self[node]) + ", " + percent(flame.self[node], whole) : "");
}

function flameAt(event) {
	const rect = flame.canvas.getBoundingClientRect(), x = event.clientX - rect.left;
	const row = Math.floor((event.clientY - rect.top) / FLAME_ROW);
	const place = flame.places.find(function (p) { return p[3] === row && x >= p[1] && x < p[2]; });
	return place ? place[0] : -1;
}

function zoomFlame(node) {
	if (!flame.total || !flame.total[node])
		return;
	flame.zoom = flame.at = node;
	paintFlame();
	describe(node || -1);
}

/* By keys: to the parent, the heaviest child, the siblings. */
function moveFlame(key) {
	const node = flame.at, parent = Math.max(details.parent[node], 0);
	const brothers = node ? childrenOf(parent, 0) : [0], i = brothers.indexOf(node);
	const to = {ArrowUp: parent, ArrowDown: childrenOf(node, 0)[0], ArrowLeft: brothers[i - 1], ArrowRight: brothers[i + 1]}[key];
	if (to === undefined)
		return;
	flame.at = to;
	describe(to);
	paintFlame();
}

function startFlame() {
	const select = byId("weight");
	if (anyAllocated())
		select.querySelector("option[value=alloc]").hidden = false;
	else if (view.weight === "alloc")
		view.weight = "cpu";
	select.value = view.weight;
	select.onchange = function () {
		view.weight = select.value;
		changed("selected");
	};
	byId("flame-whole").onclick = function () { zoomFlame(0); };
	flame.canvas.onmousemove = function (event) { describe(flameAt(event)); };
	flame.canvas.onmouseleave = function () { describe(-1); };
	flame.canvas.onclick = function (event) {
		if (flameAt(event) >= 0)
			zoomFlame(flameAt(event));
	};
	flame.canvas.onfocus = flame.canvas.onblur = paintFlame;
	flame.canvas.onkeydown = function (event) {
		if (event.key.startsWith("Arrow"))
			moveFlame(event.key);
		else if (event.key === "Enter")
			zoomFlame(flame.at);
		else if (event.key === "Escape" && flame.zoom)
			zoomFlame(0);
		else
			return;
		event.preventDefault();
		event.stopPropagation();
	};
}
