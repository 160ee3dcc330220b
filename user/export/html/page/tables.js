/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tables: the report's tables for the whole session, or the sums of a selection. */

const MOST_ROWS = 25;
const sortedBy = new Map();	/* by table id: [column, descending] */
const unfolded = new Set();	/* ids of tables that show all of their rows */
/* The numbers of the unfolded processes: at first the two busiest ones. */
const unfoldedProcesses = new Set(processesInOrder().slice(0, 2));

function putCell(row, value, column, wall, isName) {
	const unit = column[1];
	if (unit === "text") {
		const cell = make(isName ? "th" : "td", row, value, "text");
		if (isName)
			cell.scope = "row";
		return;
	}
	const cell = make("td", row, value === null ? "–" : unit === "share" ? (value ? (100 * value / wall).toFixed(1) : "·") :
		unit === "count" ? count(value) : unit === "bytes" ? bytes(value) : unit === "when" ? moment(value, 1000) : duration(value), "number");
	if (unit !== "count" && value !== null)
		cell.title = unit === "bytes" ? count(value) + " bytes" : exactly(value);
}

/* All states of a row in one bar, next to its name. */
function putStates(row, values, columns, wall) {
	const bar = make("div", make("td", row, undefined, "bar"), undefined, "states");
	columns.forEach(function (column, i) {
		if (column[2] === undefined || !values[i] || data.faces[column[2]][3] === 2)
			return;
		const part = make("span", bar);
		part.style.width = 100 * values[i] / wall + "%";
		part.style.background = faceColour(column[2]);
		part.title = column[0] + ": " + percent(values[i], wall);
	});
}

function isFound(table, values) {
	return found.text && table.columns.some(function (c, i) {
		return c[1] === "text" && String(values[i]).toLowerCase().includes(found.text);
	});
}

function putRow(body, table, values, i) {
	const row = make("tr", body);
	if (isFound(table, values))
		row.className = "hit";
	values.slice(0, table.columns.length).forEach(function (v, k) {
		putCell(row, v, table.columns[k], values[1], k === 0);
		if (table.bars && k === 0)
			putStates(row, values, table.columns, values[1]);
	});
	if (!table.go)
		return;
	const button = make("button", make("td", row), "show");
	button.type = "button";
	button.setAttribute("aria-label", "show " + values[0] + " on the time axis");
	button.onclick = function () { table.go(values, i); };
}

function putRows(body, table) {
	const sort = sortedBy.get(table.id), list = table.rows.slice();
	body.textContent = "";
	if (sort)
		list.sort(function (a, b) {
			const x = a[sort[0]] === null ? -1 : a[sort[0]], y = b[sort[0]] === null ? -1 : b[sort[0]];
			return (x < y ? -1 : x > y ? 1 : 0) * (sort[1] ? -1 : 1);
		});
	/* rows that match a search are shown wherever they are in the list */
	let hits = 0;
	list.forEach(function (values, i) {
		if (i < MOST_ROWS || unfolded.has(table.id) || (isFound(table, values) && ++hits <= MOST_ROWS))
			putRow(body, table, values, i);
	});
}

function putHead(head, table, again) {
	table.columns.forEach(function (column, i) {
		const cell = make("th", head, undefined, column[1] === "text" ? "text" : "");
		const sort = sortedBy.get(table.id), button = make("button", cell, column[0]);
		cell.scope = "col";
		button.type = "button";
		if (sort && sort[0] === i)
			cell.setAttribute("aria-sort", sort[1] ? "descending" : "ascending");
		button.onclick = function () {
			sortedBy.set(table.id, [i, sort && sort[0] === i ? !sort[1] : column[1] !== "text"]);
			again(i);
		};
		if (table.bars && i === 0)
			make("th", head, "in all", "bar").scope = "col";
	});
	if (table.go)
		make("th", head, "").scope = "col";
}

/* table: {id, title, columns: [[title, unit, face]], rows, more, bars, go} */
function putTable(parent, table) {
	const place = make("div", parent, undefined, "wide"), element = make("table", place);
	element.id = "table-" + table.id;
	make("caption", element, table.title);
	const head = make("tr", make("thead", element)), body = make("tbody", element);
	function again(focus) {
		head.textContent = "";
		putHead(head, table, again);
		putRows(body, table);
		if (focus !== undefined)
			head.querySelectorAll("button")[focus].focus();
	}
	again();
	/* one after the other, until the table fits */
	for (const how of ["snug", "upright", "tight"])
		if (place.scrollWidth > place.clientWidth)
			place.classList.add(how);
	if (table.rows.length > MOST_ROWS && !unfolded.has(table.id)) {
		const button = make("button", place, "all " + count(table.rows.length) + " rows");
		button.type = "button";
		button.onclick = function () {
			unfolded.add(table.id);
			again();
			button.remove();
		};
	}
	if (table.more)
		make("p", place, "… and " + count(table.more) + " more, listed in the JSON report", "left-out");
}

/* ── what lanes did ── */

const LANE_TITLES = [["What each capability was used for", "capability"], ["Where the time went", "OS thread"],
	["What Haskell threads did", "Haskell thread"]];

function lanesTable(no, kind, sums) {
	const of = data.lanes.filter(function (lane) {
		return lane.target === no && lane.kind === kind && (lane.shown || lane.lanes) && (lane.shown || lane.counted);
	}).map(function (lane) { return sums.get(lane.no); }).filter(Boolean);
	const used = data.states[kind].map(function (state, s) {
		return of.some(function (o) { return o.states[s] > 0; }) ? s : -1;
	}).filter(function (s) { return s >= 0; });
	const columns = [[LANE_TITLES[kind][1], "text"], ["wall", "ns"]];
	if (kind === THREAD)
		columns.push(["CPU", "ns"]);
	for (const s of used)
		columns.push([stateOf(kind, s)[1], "share", stateOf(kind, s)[2]]);
	return of.length ? {id: KINDS[kind] + "-" + no, title: LANE_TITLES[kind][0] + ", in % of the wall time", columns: columns, bars: true,
		rows: of.map(function (o) {
			const row = [o.lane.name, o.wall];
			if (kind === THREAD)
				row.push(o.cpu);
			return row.concat(used.map(function (s) { return o.states[s]; }));
		})} : null;
}

/* The sums of all lanes, including those that do not count because they duplicate others' time. */
function sumsOfAll() {
	const sums = emptySums();
	for (const lane of data.lanes)
		if (!view.lanes.size || view.lanes.has(lane.no))
			if (view.range)
				addSlices(sums, lane);
			else
				addAccount(sums, lane);
	return sums.of;
}

/* ── collections ── */

function gcTable(no) {
	const target = data.targets[no];
	const list = (target.gcs || []).filter(function (gc) {
		return !view.range || (gc[1] > view.range[0] && gc[0] - (gc[2] || 0) < view.range[1]);
	});
	if (!list.length)
		return null;
	/* the shortest may be here only as a sum, which has no times */
	const rest = view.range ? [0, 0] : target.gcs_rest, left = target.left_out.gcs;
	const pause = list.reduce(function (sum, gc) { return sum + gc[1] - gc[0]; }, rest[0]);
	const wait = list.reduce(function (sum, gc) { return sum + (gc[2] || 0); }, rest[1]);
	const more = target.gcs_missed || (view.range && left) ? "at least " : "";
	return {id: "gcs-" + no, title: "Collections: " + more + count(list.length + (view.range ? 0 : left)) + ", paused for " + more + duration(pause) +
		", before that waited " + duration(wait) + "; the longest",
		columns: [["at", "when"], ["took", "ns"], ["generation", "text"], ["waited before", "ns"],
			["longest for capability", "text"], ["which ran Haskell code", "ns"], ["had no CPU", "ns"], ["where", "text"]],
		rows: list.sort(function (a, b) { return b[1] - b[0] + (b[2] || 0) - (a[1] - a[0] + (a[2] || 0)); })
			.slice(0, 2000).map(function (gc) {
				return [gc[0], gc[1] - gc[0], gc[4] < 0 ? "" : String(gc[4]), gc[2], gc[6] < 0 ? "" : String(gc[6]),
					gc[7] || null, gc[8] || null, gc[9] ? frameName(codeOf(gc[9])) : "", gc];
			}),
		go: function (values) { chooseGc(values[8]); }};
}

/* ── the program's own marks ── */

function markTable(no) {
	const list = (data.targets[no].marks || []).filter(function (mark) {
		return !view.range || (mark[0] >= view.range[0] && mark[0] <= view.range[1]);
	});
	if (!list.length)
		return null;
	return {id: "marks-" + no, title: "The program's own marks", columns: [["mark", "text"], ["at", "when"]],
		rows: list.map(function (mark) { return [mark[1], mark[0]]; }),
		go: function (values) {
			const half = (view.to - view.from) / 20;
			lookAround(values[1] - half, values[1] + half);
		}};
}

/* ── functions and calls of a selection ── */

function functionRow(r) {
	const frame = details.frames[r.frame];
	return [frame[0], frame[1], r.self, r.total, r.self_samples, r.total_samples];
}

function functionTable(sums) {
	return {id: "functions-selected", title: "Functions, by samples on the CPU",
		columns: [["function", "text"], ["module", "text"], ["CPU, itself", "ns"], ["CPU, with what it calls", "ns"],
			["samples, itself", "count"], ["samples, with what it calls", "count"]],
		rows: functionsOf(sums.cpu, sums.samples, itself).map(functionRow)};
}

function allocationTable(sums) {
	return {id: "allocation-selected", title: "Allocation, by samples of allocation",
		columns: [["function", "text"], ["module", "text"], ["allocated, itself", "bytes"], ["allocated, with what it calls", "bytes"],
			["samples, itself", "count"], ["samples, with what it calls", "count"]],
		rows: sums.n_bytes ? functionsOf(sums.bytes, sums.bytes_samples, allocatorOf).map(functionRow) : []};
}

function callTable(words, title) {
	return {id: words + "-selected", title: title,
		columns: [["function", "text"], ["called from", "text"], ["calls, or parts of them", "count"], ["total", "ns"],
			["CPU", "ns"], ["blocked", "ns"], ["longest", "ns"], ["samples", "count"]],
		rows: callsOf(words).map(function (r) {
			return [r.node ? frameName(r.node) : "?", r.node ? frameName(Math.max(details.parent[r.node], 0)) : "", r.calls,
				r.total, r.cpu, r.total - r.cpu, r.longest, r.samples];
		})};
}

/* ── all of them ── */

function putList(parent, heading, texts) {
	if (!texts || !texts.length)
		return;
	make("h3", parent, heading);
	const list = make("ul", parent);
	for (const text of texts)
		make("li", list, text);
}

function putSelected(parent, sums) {
	const tables = [functionTable(sums)];
	if (view.range)
		tables.push(callTable("safe_call", "Safe calls"), callTable("unsafe_call", "Unsafe calls"));
	tables.push(allocationTable(sums));
	for (const table of tables)
		if (table.rows.length)
			putTable(parent, table);
}

function putTables(sums) {
	const parent = byId("tables"), all = sumsOfAll(), whole = nothingIsSelected();
	parent.textContent = "";
	if (!whole)
		putSelected(parent, sums);
	processesInOrder().forEach(function (no) {
		const target = data.targets[no];
		const part = make(severalProcesses ? "details" : "section", parent), made = [];
		for (const kind of [THREAD, CAPABILITY, HASKELL])
			made.push(lanesTable(no, kind, all));
		for (const table of target.tables || [])
			if (whole)
				made.push(Object.assign({}, table, {id: table.id + "-" + no}));
		made.push(gcTable(no), markTable(no));
		if (severalProcesses) {
			make("summary", part, target.name, "process");
			part.hidden = !made.some(Boolean);
			part.open = unfoldedProcesses.has(no);
			part.addEventListener("toggle", function () {
				unfoldedProcesses[part.open ? "add" : "delete"](no);
			});
		}
		made.filter(Boolean).forEach(function (table) { putTable(part, table); });
		if (whole)
			putList(part, "Missing", target.missing);
	});
}
