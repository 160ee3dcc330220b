/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of the html format's page. Names come from the programs that were profiled: they are
 * put into the document as text (textContent, fillText) and as nothing else.
 */
"use strict";
(function () {
	const data = JSON.parse(document.getElementById("data").textContent);
	const ROW = 18, CHAR = 6.7, FONT = "11px ui-monospace, monospace";
	const KINDS = ["haskell", "foreign", "rts", "gc", "kernel", "state", "mark"];
	/* The colours of states: what runs is green to blue, what waits red to yellow. */
	const STATES = {
		haskell: "#4c9f50", running: "#4c9f50", unsafe_call_cpu: "#c9772b", unsafe_call: "#c9772b",
		safe_call_cpu: "#2f86c5", safe_call: "#2f86c5", gc_work: "#8e6bbf", gc: "#8e6bbf",
		rts: "#64798a", foreign_cpu: "#5aa6a6", haskell_blocked: "#b8c34a",
		unsafe_call_blocked: "#c0392b", safe_call_blocked: "#9cc4e4", cap_wait: "#e0a526",
		gc_wait: "#c9b3e6", rts_blocked: "#aab6bf", foreign_blocked: "#cfe3e3",
		preempted: "#e26a5a", runnable: "#e0a526", blocked_mvar: "#d98880",
		blocked_stm: "#d7a1c4", blocked_blackhole: "#7b241c", blocked_io: "#9cc4e4",
		blocked_delay: "#cfd8dc", blocked_other: "#bdbdbd", disabled: "#777",
	};

	function make(tag, parent, text, className) {
		const element = document.createElement(tag);
		if (text !== undefined)
			element.textContent = text;
		if (className)
			element.className = className;
		parent.appendChild(element);
		return element;
	}

	/* ── numbers ── */

	function three(x) {
		return x >= 100 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toFixed(2);
	}

	function duration(ns) {
		if (ns < 1e3)
			return Math.round(ns) + " ns";
		if (ns < 1e6)
			return three(ns / 1e3) + " µs";
		if (ns < 1e9)
			return three(ns / 1e6) + " ms";
		return three(ns / 1e9) + " s";
	}

	function count(n) {
		return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
	}

	function bytes(n) {
		if (n < 1e3)
			return n + " B";
		if (n < 1e6)
			return three(n / 1e3) + " kB";
		if (n < 1e9)
			return three(n / 1e6) + " MB";
		return three(n / 1e9) + " GB";
	}

	function weight(n) {
		if (data.weight === "alloc")
			return bytes(n);
		return data.weight === "samples" ? count(n) + (n === 1 ? " sample" : " samples") : duration(n);
	}

	function percent(part, whole) {
		return whole ? (100 * part / whole).toFixed(1) + " %" : "–";
	}

	/* ── flame graphs ── */

	function hash(text) {
		let h = 2166136261;
		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 16777619) >>> 0;
		return h;
	}

	function colour(frame) {
		const h = hash(frame[1] || frame[0]), spread = h % 50, light = 62 + (h >>> 8) % 14;
		switch (KINDS[frame[2]]) {
		case "haskell": return "hsl(" + (75 + spread * 1.6) + ",48%," + light + "%)";
		case "foreign": return "hsl(" + (22 + spread * 0.5) + ",75%," + light + "%)";
		case "rts": return "hsl(210,16%," + light + "%)";
		case "gc": return "hsl(268,35%," + light + "%)";
		case "kernel": return "hsl(" + (350 + spread * 0.2) + ",60%," + light + "%)";
		case "state": return "hsl(" + (195 + spread * 0.5) + ",45%," + (light + 12) + "%)";
		default: return "hsl(0,0%,80%)";
		}
	}
	const colours = data.frames.map(colour);

	/* Nodes in the order of the file: a parent comes before its children. The heaviest child is
	 * leftmost. The whole is a root of its own, node 0. */
	function unpack(profile) {
		const raw = profile.nodes, n = raw.length / 3 + 1;
		const t = {n: n, frame: new Uint32Array(n), depth: new Uint32Array(n), parent: new Int32Array(n),
			self: new Float64Array(n), total: new Float64Array(n), x: new Float64Array(n), rows: []};
		const path = [0], children = [[]];
		t.parent[0] = -1;
		for (let i = 1; i < n; i++) {
			const depth = raw[3 * i - 3] + 1;
			t.depth[i] = depth;
			t.frame[i] = raw[3 * i - 2];
			t.self[i] = t.total[i] = raw[3 * i - 1];
			t.parent[i] = path[depth - 1];
			path[depth] = i;
			children.push([]);
			children[t.parent[i]].push(i);
		}
		for (let i = n - 1; i > 0; i--)
			t.total[t.parent[i]] += t.total[i];
		for (let i = 0; i < n; i++) {
			let x = t.x[i];
			children[i].sort(function (a, b) { return t.total[b] - t.total[a] || a - b; });
			for (const child of children[i]) {
				t.x[child] = x;
				x += t.total[child];
			}
			(t.rows[t.depth[i]] = t.rows[t.depth[i]] || []).push(i);
		}
		return t;
	}

	const trees = [];
	const state = {tree: null, zoom: 0, found: null, canvas: null, look: null};

	function title(i) {
		return i ? data.frames[state.tree.frame[i]][0] : "the whole";
	}

	function place(i, width) {
		const t = state.tree, from = t.x[state.zoom], whole = t.total[state.zoom];
		let left = t.x[i] - from, right = left + t.total[i];
		/* what the zoomed frame is called by fills the width */
		left = Math.max(left, 0);
		right = Math.min(right, whole);
		return right > left ? [left / whole * width, right / whole * width] : null;
	}

	function draw() {
		const t = state.tree, box = state.canvas.parentNode, scale = window.devicePixelRatio || 1;
		const width = Math.max(box.clientWidth, 300), g = state.canvas.getContext("2d");
		let deepest = 0;
		for (let i = 0; i < t.n; i++) {
			const at = t.depth[i] > deepest && place(i, width);
			if (at && at[1] - at[0] >= 0.4)
				deepest = t.depth[i];
		}
		const height = (deepest + 1) * ROW;
		/* browsers refuse canvases that are larger */
		const fit = Math.min(scale, 32000 / height);
		state.canvas.width = width * fit;
		state.canvas.height = height * fit;
		state.canvas.style.width = width + "px";
		state.canvas.style.height = height + "px";
		g.scale(fit, fit);
		g.font = FONT;
		g.textBaseline = "middle";
		for (let i = 0; i < t.n; i++) {
			const at = place(i, width);
			if (!at || at[1] - at[0] < 0.4)
				continue;
			const y = t.depth[i] * ROW, wide = at[1] - at[0];
			g.globalAlpha = state.found && !state.found.marked[i] ? 0.35 : 1;
			g.fillStyle = i ? colours[t.frame[i]] : "#bbb";
			g.fillRect(at[0], y, Math.max(wide - 0.5, 0.4), ROW - 1);
			const room = Math.floor((wide - 6) / CHAR);
			if (room < 3)
				continue;
			const name = title(i);
			g.fillStyle = "#111";
			g.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, at[0] + 3, y + ROW / 2);
		}
		g.globalAlpha = 1;
	}

	function at(event) {
		const box = state.canvas.getBoundingClientRect(), t = state.tree;
		const x = event.clientX - box.left, row = t.rows[Math.floor((event.clientY - box.top) / ROW)];
		for (const i of row || []) {
			const where = place(i, box.width);
			if (where && x >= where[0] && x < where[1])
				return i;
		}
		return -1;
	}

	function describe(i) {
		const t = state.tree;
		if (i < 0) {
			const found = state.found;
			state.look.textContent = found
				? "found: " + weight(found.total) + ", " + percent(found.total, t.total[0])
				: weight(t.total[0]) + " in " + count(t.n - 1) + " frames";
			return;
		}
		const group = data.frames[t.frame[i]][1];
		state.look.textContent = title(i) + (i && group ? "  (" + group + ")" : "") + "\n" +
			weight(t.total[i]) + ", " + percent(t.total[i], t.total[0]) + " of the whole" +
			(t.self[i] ? "; itself " + weight(t.self[i]) + ", " + percent(t.self[i], t.total[0]) : "");
	}

	/* A found frame below a found frame is not counted again. */
	function search(text) {
		const t = state.tree, wanted = text.toLowerCase();
		state.found = null;
		if (wanted) {
			const hits = data.frames.map(function (f) { return f[0].toLowerCase().includes(wanted); });
			const marked = new Uint8Array(t.n), below = new Uint8Array(t.n);
			let total = 0;
			for (let i = 1; i < t.n; i++) {
				below[i] = below[t.parent[i]];
				if (!hits[t.frame[i]])
					continue;
				marked[i] = 1;
				total += below[i] ? 0 : t.total[i];
				below[i] = 1;
			}
			state.found = {marked: marked, total: total};
		}
		describe(-1);
		draw();
	}

	function put_graphs() {
		const bar = make("div", document.body);
		bar.id = "bar";
		const select = make("select", bar), input = make("input", bar), whole = make("button", bar, "whole");
		const weights = {wall: "wall time but idleness", cpu: "time on the CPU", samples: "samples",
			alloc: "bytes allocated"};
		make("span", bar, weights[data.weight] + "; click: zoom", "soft");
		input.type = "search";
		input.placeholder = "find functions";
		state.look = make("div", document.body);
		state.look.id = "look";
		state.look.style.whiteSpace = "pre-wrap";
		const box = make("div", document.body);
		box.id = "graph";
		state.canvas = make("canvas", box);

		function zoom(i) {
			state.zoom = i;
			draw();
		}
		function show(no) {
			trees[no] = trees[no] || unpack(data.profiles[no]);
			state.tree = trees[no];
			state.zoom = 0;
			search(input.value);
		}
		data.profiles.forEach(function (p, i) { make("option", select, p.name).value = i; });
		select.onchange = function () { show(Number(select.value)); };
		input.oninput = function () { search(input.value); };
		whole.onclick = function () { zoom(0); };
		state.canvas.onmousemove = function (event) { describe(at(event)); };
		state.canvas.onmouseleave = function () { describe(-1); };
		state.canvas.onclick = function (event) {
			const i = at(event);
			if (i >= 0 && state.tree.total[i])
				zoom(i);
		};
		window.addEventListener("keydown", function (event) {
			if (event.key === "Escape")
				zoom(0);
		});
		window.addEventListener("resize", draw);
		show(0);
	}

	/* ── tables ── */

	function put_cell(row, value, column, wall) {
		const unit = column[1];
		if (unit === "text")
			return make("td", row, value, "text").title = value;
		if (value === null)
			return make("td", row, "–");
		if (unit === "share")
			return make("td", row, value ? percent(value, wall) : "·").title = duration(value);
		return make("td", row, unit === "ns" ? duration(value) : count(value));
	}

	/* All states of a row in one bar, next to its name. */
	function put_states(row, values, columns, wall) {
		const bar = make("div", make("td", row), undefined, "states");
		columns.forEach(function (column, i) {
			if (!column[2] || !values[i] || !STATES[column[2]])
				return;
			const part = make("span", bar);
			part.style.width = 100 * values[i] / wall + "%";
			part.style.background = STATES[column[2]];
			part.title = column[0] + ": " + percent(values[i], wall);
		});
	}

	function put_rows(body, table, states) {
		body.textContent = "";
		for (const values of table.rows) {
			const row = make("tr", body);
			values.forEach(function (v, i) {
				put_cell(row, v, table.columns[i], values[1]);
				if (states && i === 0)
					put_states(row, values, table.columns, values[1]);
			});
		}
	}

	function put_table(table) {
		const states = table.columns.some(function (c) { return c[2]; });
		make("h3", document.body, table.title);
		const element = make("table", make("div", document.body, undefined, "wide"));
		const head = make("tr", make("thead", element)), body = make("tbody", element);
		let by = -1, down = false;
		table.columns.forEach(function (column, i) {
			make("th", head, column[0], column[1] === "text" ? "text" : "").onclick = function () {
				down = by === i ? !down : column[1] !== "text";
				by = i;
				table.rows.sort(function (a, b) {
					const x = a[i] === null ? -1 : a[i], y = b[i] === null ? -1 : b[i];
					return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
				});
				put_rows(body, table, states);
			};
			if (states && i === 0)
				make("th", head, "", "text");
		});
		put_rows(body, table, states);
		if (table.more)
			make("p", document.body, "… and " + count(table.more) + " more", "soft");
	}

	function put_list(heading, texts) {
		if (!texts.length)
			return;
		make("h3", document.body, heading);
		const list = make("ul", document.body);
		for (const text of texts)
			make("li", list, text);
	}

	/* ── the page ── */

	const names = data.targets.map(function (t) { return t.name; });
	document.title = names.length === 1 ? names[0] : "safescoped";
	make("h1", document.body, names.length === 1 ? names[0] : names.length + " Haskell processes");
	make("p", document.body, "safescoped " + data.version +
		(data.duration_ns ? ", " + duration(data.duration_ns) : "") +
		(data.frequency_hz ? " at " + data.frequency_hz + " Hz" : "") +
		(data.start_unix_ns ? ", " + new Date(data.start_unix_ns / 1e6).toLocaleString() : ""), "soft");
	if (data.profiles.length)
		put_graphs();
	for (const target of data.targets) {
		if (names.length > 1)
			make("h2", document.body, target.name);
		put_list("What stands out", target.findings);
		target.tables.forEach(put_table);
		put_list("Missing", target.missing);
	}
	if (data.more_targets)
		make("p", document.body, "… and " + data.more_targets + " more processes", "soft");
})();
