/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of the comparison's page: a flame graph as wide as either session, in the colours of what
 * changed beyond noise. Names are put into the document as text (textContent, fillText) and as nothing else.
 */
"use strict";
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const ROW = 18, CHAR = 6.7, FONT = "11px ui-monospace, monospace";
	/* What is below these takes as long as others let it. */
	const SPINS = ["[GC]", "[RTS]"];
	const look = document.getElementById("look");

	function make(tag, parent, text) {
		const element = document.createElement(tag);
		if (text !== undefined)
			element.textContent = text;
		parent.appendChild(element);
		return element;
	}

	function duration(us) {
		const abs = Math.abs(us);
		const three = function (x) { return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2); };
		return (us < 0 ? "−" : "") + (abs < 1e3 ? three(abs) + " µs" : abs < 1e6 ? three(abs / 1e3) + " ms"
			: three(abs / 1e6) + " s");
	}

	function size(bytes) {
		const units = [" B", " kB", " MB", " GB", " TB"], sign = bytes < 0 ? "−" : "";
		let n = Math.abs(bytes), unit = 0;
		for (; n >= 1000 && unit + 1 < units.length; unit++)
			n /= 1000;
		return sign + (n >= 100 || !unit ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)) + units[unit];
	}
	const amount = data.bytes ? size : duration;

	/* Node 0 is the whole; a parent comes before its children. */
	function unpack() {
		const raw = data.nodes, n = raw.length / 4 + 1, path = [0];
		const t = {n: n, depth: [0], parent: [-1], name: [0], a: [0], b: [0], inside: [false], spin_a: [0], spin_b: [0], program: [data.programs[0]], rows: []};
		for (let i = 1; i < n; i++) {
			const depth = raw[4 * i - 4] + 1, parent = path[depth - 1];
			path[depth] = i;
			t.depth[i] = depth;
			t.parent[i] = parent;
			t.name[i] = raw[4 * i - 3];
			t.a[i] = raw[4 * i - 2];
			t.b[i] = raw[4 * i - 1];
			t.inside[i] = t.inside[parent] || SPINS.includes(data.names[t.name[i]]);
			t.spin_a[i] = t.inside[i] ? t.a[i] : 0;
			t.spin_b[i] = t.inside[i] ? t.b[i] : 0;
			t.program[i] = depth > 1 ? t.program[parent]
				: data.programs.find(function (p) { return p.name === data.names[t.name[i]]; }) || data.programs[0];
		}
		for (let i = n - 1; i > 0; i--) {
			t.a[t.parent[i]] += t.a[i];
			t.b[t.parent[i]] += t.b[i];
			t.spin_a[t.parent[i]] += t.spin_a[i];
			t.spin_b[t.parent[i]] += t.spin_b[i];
		}
		for (let i = 0; i < n; i++)
			(t.rows[t.depth[i]] = t.rows[t.depth[i]] || []).push(i);
		return t;
	}

	const t = unpack();
	/* at: the node that the keys have moved to */
	const state = {zoom: 0, at: 0, side: "b", found: null, x: new Float64Array(t.n)};

	function squares(a, b) {
		return (a * a + b * b) / 2;
	}

	/* How far beyond noise the node's difference is, as the text judges functions; 0: it may be noise. */
	function beyond(i) {
		const p = t.program[i], a = t.a[i], b = t.b[i];
		const variance = p.each[0] * (a + p.each[0]) + p.each[1] * (b + p.each[1]) +
			p.varies * p.varies * squares(a - t.spin_a[i], b - t.spin_b[i]) +
			p.spins_varies * p.spins_varies * squares(t.spin_a[i], t.spin_b[i]) + p.unknown * p.unknown * b * b;
		return Math.abs(b - a) > p.limit * Math.sqrt(variance) ? (b - a) / Math.max(a, b) : 0;
	}

	function colour(i) {
		const by = beyond(i), light = 88 - 38 * Math.min(1, Math.abs(by) * 1.5);
		return by > 0 ? "hsl(8,85%," + light + "%)" : by < 0 ? "hsl(215,80%," + light + "%)" : "hsl(0,0%,85%)";
	}
	const colours = t.a.map(function (_, i) { return colour(i); });

	/* Where each node begins, by what the graph's width shows. */
	function arrange() {
		const total = t[state.side], next = Float64Array.from(total, function () { return 0; });
		for (let i = 1; i < t.n; i++) {
			const parent = t.parent[i];
			state.x[i] = state.x[parent] + next[parent];
			next[parent] += total[i];
		}
	}

	function place(i, width) {
		const total = t[state.side], from = state.x[state.zoom], whole = total[state.zoom];
		const left = Math.max(state.x[i] - from, 0), right = Math.min(state.x[i] - from + total[i], whole);
		return right > left ? [left / whole * width, right / whole * width] : null;
	}

	function title(i) {
		return i ? data.names[t.name[i]] : "the whole";
	}

	const bar = document.getElementById("bar"), canvas = make("canvas", document.getElementById("graph"));
	canvas.tabIndex = 0;
	canvas.setAttribute("role", "img");
	canvas.setAttribute("aria-label", "differential flame graph, by arrows, Enter and Escape; the text below has the same");

	function draw() {
		const width = Math.max(canvas.parentNode.clientWidth, 300), g = canvas.getContext("2d");
		let deepest = 0;
		for (let i = 0; i < t.n; i++) {
			const at = t.depth[i] > deepest && place(i, width);
			if (at && at[1] - at[0] >= 0.4)
				deepest = t.depth[i];
		}
		const height = (deepest + 1) * ROW, fit = Math.min(window.devicePixelRatio || 1, 32000 / height);
		canvas.width = width * fit;
		canvas.height = height * fit;
		canvas.style.width = width + "px";
		canvas.style.height = height + "px";
		g.scale(fit, fit);
		g.font = FONT;
		g.textBaseline = "middle";
		for (let i = 0; i < t.n; i++) {
			const at = place(i, width);
			if (!at || at[1] - at[0] < 0.4)
				continue;
			const y = t.depth[i] * ROW, wide = at[1] - at[0], room = Math.floor((wide - 6) / CHAR);
			g.globalAlpha = state.found && !state.found[i] ? 0.3 : 1;
			g.fillStyle = colours[i];
			g.fillRect(at[0], y, Math.max(wide - 0.5, 0.4), ROW - 1);
			if (i === state.at && document.activeElement === canvas) {
				g.globalAlpha = 1;
				g.strokeStyle = "#111";
				g.lineWidth = 2;
				g.strokeRect(at[0] + 1, y + 1, Math.max(wide - 2, 2), ROW - 3);
			}
			if (room < 3)
				continue;
			const name = title(i);
			g.fillStyle = "#111";
			g.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, at[0] + 3, y + ROW / 2);
		}
		g.globalAlpha = 1;
	}

	function describe(i) {
		const a = t.a[i], b = t.b[i], by = beyond(i);
		look.textContent = title(i) + "\nA (for B's work) " + amount(a) + ", B " + amount(b) + ": " +
			(b < a ? "" : "+") + amount(b - a) + (a ? ", " + ((b - a) / a * 100).toFixed(0) + " %" : "") +
			(by ? by > 0 ? ", more" : ", less" : ", may be noise");
	}

	function under(event) {
		const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
		for (const i of t.rows[Math.floor((event.clientY - box.top) / ROW)] || []) {
			const where = place(i, box.width);
			if (where && x >= where[0] && x < where[1])
				return i;
		}
		return -1;
	}

	function zoom(i) {
		state.zoom = state.at = t[state.side][i] ? i : 0;
		describe(state.zoom);
		draw();
	}

	/* Up to what called it, down to the widest that it calls, to its neighbours among those that can be seen. */
	function move(key) {
		const width = canvas.clientWidth, at = state.at, seen = function (i) {
			const where = place(i, width);
			return where && where[1] - where[0] >= 0.4;
		};
		const row = (t.rows[t.depth[at] + (key === "ArrowDown" ? 1 : 0)] || []).filter(seen);
		const below = row.filter(function (i) { return t.parent[i] === at; });
		const widest = below.reduce(function (most, i) {
			return most < 0 || t[state.side][i] > t[state.side][most] ? i : most;
		}, -1);
		const to = key === "ArrowUp" ? t.parent[at] : key === "ArrowDown" ? widest
			: row[row.indexOf(at) + (key === "ArrowLeft" ? -1 : 1)];
		if (!(to >= 0))
			return;
		state.at = to;
		describe(to);
		draw();
	}

	function search(text) {
		const wanted = text.toLowerCase();
		state.found = wanted ? t.name.map(function (n, i) { return i > 0 && data.names[n].toLowerCase().includes(wanted); })
			: null;
		draw();
	}

	const side = make("select", bar), find = make("input", bar), whole = make("button", bar, "whole");
	make("option", side, "width by B").value = "b";
	make("option", side, "width by A").value = "a";
	side.setAttribute("aria-label", "whose times or bytes the widths show");
	find.type = "search";
	find.placeholder = "find functions";
	find.setAttribute("aria-label", "find functions");
	[["more in B", "hsl(8,85%,60%)"], ["less in B", "hsl(215,80%,65%)"], ["may be noise", "hsl(0,0%,85%)"]].forEach(function (k) {
		const key = make("span", bar, k[0]);
		key.className = "key";
		key.style.background = k[1];
	});
	side.onchange = function () {
		state.side = side.value;
		arrange();
		zoom(0);
	};
	find.oninput = function () { search(find.value); };
	whole.onclick = function () { zoom(0); };
	canvas.onmousemove = function (event) {
		const i = under(event);
		describe(i < 0 ? state.zoom : i);
	};
	canvas.onmouseleave = function () { describe(state.zoom); };
	canvas.onclick = function (event) {
		const i = under(event);
		if (i >= 0)
			zoom(i);
	};
	canvas.onfocus = canvas.onblur = draw;
	canvas.onkeydown = function (event) {
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key.startsWith("Arrow"))
			move(event.key);
		else if (event.key === "Enter")
			zoom(state.at);
		else
			return;
		event.preventDefault();
	};
	window.addEventListener("keydown", function (event) {
		if (event.key === "Escape")
			zoom(0);
	});
	window.addEventListener("resize", draw);
	arrange();
	zoom(0);
})();
