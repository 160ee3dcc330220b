/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page: what is shown at once, and what follows when the whole document has arrived. */

function putTitle() {
	const names = data.targets.map(function (t) { return t.name; });
	document.title = names.length === 1 ? names[0] : "safescoped: " + names.length + " processes";
	byId("title").textContent = names.length === 1 ? names[0] : counted(names.length, "Haskell process", "Haskell processes");
	byId("about").textContent = "safescoped " + data.version +
		(data.duration_ns ? ", " + duration(data.duration_ns) : "") +
		(data.frequency_hz ? " at " + data.frequency_hz + " Hz" : "") +
		(data.start_unix_ns ? ", from " + new Date(data.start_unix_ns / 1e6).toLocaleString() : "");
}

/* Options in command lines are not broken at their hyphens. */
function putWords(element, text) {
	for (const part of text.split(/((?:^|(?<=\s))[-+]\S+)/))
		if (/^[-+]/.test(part))
			make("span", element, part, "word");
		else
			element.append(part);
}

function putFindings() {
	const list = allFindings();
	byId("findings").hidden = !list.length;
	list.forEach(function (finding, i) {
		const item = make("li", byId("findings-list"));
		putWords(make("span", item), (severalProcesses ? processName(finding.target) + ": " : "") + finding.text +
			(finding.where && !finding.text.includes(finding.where) ? " (" + finding.where + ")" : "") + " ");
		if (!finding.at)
			return;
		const button = make("button", item, "show");
		button.type = "button";
		button.setAttribute("aria-label", "show finding " + (i + 1) + " on the time axis");
		button.title = "its longest part: " + duration(finding.at[1] - finding.at[0]) + " at " + moment(finding.at[0], 1000);
		button.onclick = function () { goTo(finding); };
	});
}

function facesInUse() {
	const used = new Set();
	for (const lane of data.lanes)
		lane.states.forEach(function (ns, s) {
			if (ns && lane.shown)
				used.add(stateOf(lane.kind, s)[2]);
		});
	return [...used].sort(function (a, b) { return a - b; });
}

/* The legend is also the filter. */
function putLegend() {
	let group = -1;
	for (const face of facesInUse()) {
		const f = data.faces[face];
		if (f[3] !== group)
			make("span", byId("legend"), ["on the CPU:", "waiting:", ""][f[3]], "soft");
		group = f[3];
		const button = make("button", byId("legend")), swatch = make("span", button, f[0], "swatch");
		button.type = "button";
		button.dataset.face = face;
		swatch.style.background = f[2];
		swatch.style.color = INKS[face];
		swatch.setAttribute("aria-hidden", "true");
		make("span", button, f[1]);
		button.setAttribute("aria-pressed", "true");
		button.title = "click to hide it, or to show it again";
		button.onclick = function () { toggleFace(face); };
	}
}

function putDropped() {
	const out = [];
	if (data.merged_ns)
		out.push("slices shorter than " + duration(data.merged_ns) + ", which were merged with their neighbours, in " +
			counted(data.lanes.filter(function (lane) { return lane.merged; }).length, "lane", "lanes"));
	if (data.small_ns)
		out.push("frames of " + duration(data.small_ns) + " in all are shown as [too small to show]");
	const left = {gcs: 0, marks: 0, flows: 0, curves: 0};
	for (const target of data.targets)
		for (const what of Object.keys(target.left_out || {}))
			left[what] += target.left_out[what];
	if (left.gcs)
		out.push(counted(left.gcs, "collection", "collections") + " shorter than those shown");
	if (left.marks)
		out.push(counted(left.marks, "later mark", "later marks"));
	if (left.flows)
		out.push(counted(left.flows, "shorter arrow", "shorter arrows"));
	if (left.curves)
		out.push(counted(left.curves, "curve", "curves"));
	const merged = data.lanes.filter(function (lane) { return lane.lanes && !lane.id && lane.id !== 0 && lane.counted; });
	if (merged.length)
		out.push("only sums of some lanes");
	byId("dropped").textContent = out.length ? "Not drawn here: " + out.join("; ") +
		". Sums include all of it." : "All slices are here; nothing was left out.";
}

/*
 * Bytes are counted between two samples of a capability, and assumed to be spread evenly over that
 * time.
 */
function allocated(sums) {
	return " About " + bytes(sums.n_bytes) + " were allocated in that time, judging by samples" +
		(view.range && sums.grain ? ", to about " + duration(sums.grain) : "") + ".";
}

function putBasis(sums) {
	const names = [...view.lanes].map(function (no) { return laneName(data.lanes[no]); });
	const all = "all " + (data.log_alone ? "lanes" : "OS threads"), process = severalProcesses ? selectedProcess() : -1;
	const lanes = process >= 0 ? all + " of " + processName(process) :
		names.length > 4 ? counted(names.length, "lane", "lanes") : names.join(", ") || all;
	const states = view.hidden.size ? ", without " + [...view.hidden].map(function (f) { return data.faces[f][1]; }).join(", ") : "";
	let text = "The whole session, " + lanes + states + ": the program's accounts, as in the report, to the nanosecond.";
	if (view.range)
		text = duration(view.range[1] - view.range[0]) + " from " + moment(view.range[0], 1) + ", " + lanes + states +
			": " + counted(sums.slices, "slice", "slices") + " and " + counted(sums.n_samples, "sample", "samples") +
			" within it. Times are exact where slices end at events, otherwise as exact as the samples; calls too short " +
			"for a slice of their own are part of the slices around them.";
	if (!nothingIsSelected() && anyAllocated())
		text += allocated(sums);
	byId("basis").textContent = text;
	byId("zoom-range").disabled = !view.range;
	byId("clear").disabled = nothingIsSelected();
}

/* All counted lanes of a process: with several processes, these can be selected together. */
function lanesOfProcess(no) {
	return data.lanes.filter(function (lane) { return lane.counted && lane.target === no; });
}

const SOME_LANES = "some";

function putProcesses() {
	const select = byId("process");
	byId("of-process").hidden = !severalProcesses;
	make("option", select, "all").value = "";
	processesInOrder().forEach(function (no) {
		if (lanesOfProcess(no).length)
			make("option", select, data.targets[no].short).value = no;
	});
	const some = make("option", select, "some lanes");
	some.value = SOME_LANES;
	some.hidden = some.disabled = true;
	select.onchange = function () { selectLanes(select.value ? lanesOfProcess(Number(select.value)) : []); };
}

/* The selected process; -1 if none is, or only some of its lanes. */
function selectedProcess() {
	const no = view.lanes.size ? data.lanes[[...view.lanes][0]].target : -1, lanes = no < 0 ? [] : lanesOfProcess(no);
	const whole = lanes.length === view.lanes.size && lanes.every(function (lane) { return view.lanes.has(lane.no); });
	return whole ? no : -1;
}

function markProcess() {
	const no = selectedProcess();
	byId("process").value = no >= 0 ? no : view.lanes.size ? SOME_LANES : "";
}

function showSelection() {
	markLabels();
	markProcess();
	for (const button of byId("legend").querySelectorAll("button"))
		button.setAttribute("aria-pressed", String(!view.hidden.has(Number(button.dataset.face))));
	if (!details.ready)
		return;
	const sums = addUp();
	putBasis(sums);
	setFlame(sums);
	putTables(sums);
}

/* Slices are read before they are needed, one part at a time. */
function readAhead() {
	const lane = data.lanes.find(function (l) { return l.bins && !l.complete; });
	if (!lane) {
		document.documentElement.dataset.ready = "all";
		return;
	}
	if (!readMore(lane))
		lane.complete = true;
	setTimeout(readAhead, 0);
}

function startDetails() {
	readDetails();
	linkNodes();
	search(byId("search").value);
	startFlame();
	showSelection();
	paintTimeline();
	document.documentElement.dataset.ready = "details";
	setTimeout(readAhead, 0);
}

function startPage() {
	putTitle();
	putFindings();
	putLegend();
	putProcesses();
	putDropped();
	measureActivity();
	arrangeRows();
	startMouse();
	startKeys();
	watchers.moved.push(paintTimeline);
	/* A drag selects many ranges: they are added up only when it pauses. */
	let timer = 0;
	watchers.selected.push(function () {
		clearTimeout(timer);
		timer = setTimeout(showSelection, 60);
	});
	watchers.found.push(function () {
		if (!details.ready)
			return;
		measureFound();
		describe(-1);
		paintFlame();
		showSelection();
	});
	byId("search").oninput = function () {
		search(byId("search").value);
		changed("moved");
		changed("found");
	};
	paintTimeline();
	if (document.readyState === "loading")
		document.addEventListener("DOMContentLoaded", function () { setTimeout(startDetails, 0); });
	else
		setTimeout(startDetails, 0);
}

startPage();
