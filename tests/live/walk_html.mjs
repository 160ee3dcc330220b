// SPDX-License-Identifier: GPL-2.0-or-later
//
// A walk through a page of tests/programs/Faulty.hs, by somebody who wants to know
//
//   1. which function uses the CPU;
//   2. which foreign call blocks, and from where;
//   3. what held the collections up;
//   4. when the longest pause was, and what ran then;
//   5. which thread waited for which capability;
//   6. what allocates;
//
// and then through a page that compares two builds of tests/programs/Changed.hs, to find
//
//   7. what changed between them.
//
//     node tests/live/walk_html.mjs BROWSER FILE COMPARISON [SCREENSHOTS]
//
// Prints the page's answers as one JSON object.

import path from "node:path";
import { pathToFileURL } from "node:url";

import { load, open, seen, settled, shot, tables, text, visit, wanted } from "./html_page.mjs";

// The cells of a table's row, by the titles of its columns.
const row = (table, i) => Object.fromEntries(table.columns.map((title, k) => [title, table.rows[i][k]]));

async function sortBy(page, id, title) {
	await page.locator(`#${id} thead th`, { hasText: title }).locator("button").first().click();
	await settled(page);
	return (await tables(page))[id];
}

async function back(page) {
	await page.click("#clear");
	await page.click("#zoom-whole");
	await settled(page);
}

async function heldUp(page) {
	const finding = page.locator("#findings-list li", { hasText: "GC waited" }).first();
	const said = await finding.locator("span").textContent();
	await finding.locator("button").click();
	await settled(page);
	await shot(page, "3-held-up");
	return { said, basis: await text(page, "basis"), calls: (await tables(page))["table-unsafe_call-selected"] };
}

async function longestPause(page) {
	const pause = row((await tables(page))["table-gcs-0"], 0);
	await page.locator("#table-gcs-0 tbody tr").first().locator("button").click();
	await settled(page);
	await shot(page, "4-pause");
	return { pause, calls: (await tables(page))["table-unsafe_call-selected"], lanes: (await tables(page))["table-thread-0"] };
}

// The thread that waited most is selected, and no state but the waiting is left; then its longest slice is clicked.
async function waiting(page) {
	const most = row(await sortBy(page, "table-thread-0", "waiting for a capability"), 0);
	await page.locator("#labels button[aria-pressed]", { hasText: most["OS thread"].text }).click();
	for (const button of await page.locator("#legend button").all())
		if (!(await button.textContent()).endsWith("for a capability"))
			await button.click();
	await settled(page);
	await shot(page, "5-waiting");
	const place = await page.evaluate((name) => {
		/* global data, details, eachStretch, laneRows, box, xOf, bandWidth, stateOf, THREAD, AXIS */
		const lane = data.lanes.find((l) => l.name === name && l.kind === THREAD);
		let longest = { ns: 0 };
		eachStretch(lane, AXIS[0], AXIS[1], (chunk, first, end) => {
			for (let i = first; i < end; i++) {
				const ns = chunk.start[i + 1] - chunk.start[i];
				if (chunk.look[i] && stateOf(THREAD, details.state[chunk.look[i]])[0] === "cap_wait" && ns > longest.ns)
					longest = { ns, at: chunk.start[i] + ns / 2 };
			}
		});
		const at = laneRows.find((r) => r.lane === lane), rect = document.querySelector("#canvas").getBoundingClientRect();
		return { x: rect.x + xOf(longest.at, bandWidth()), y: rect.y + at.top - box.scrollTop + 12 };
	}, most["OS thread"].text);
	await page.mouse.click(place.x, place.y);
	await settled(page);
	await shot(page, "5-slice");
	return { most, slice: await page.evaluate(() => document.querySelector("#slice").innerText) };
}

async function allocating(page) {
	await page.selectOption("#weight", "alloc");
	await settled(page);
	const all = await text(page, "flame-look"), graph = await page.locator("#flame-canvas").boundingBox();
	// from the root down, where the graph is widest
	const stack = [];
	for (let y = 9; y < graph.height && stack.length < 40; y += 18) {
		await page.locator("#flame-canvas").hover({ position: { x: 5, y } });
		stack.push(await text(page, "flame-look"));
	}
	await shot(page, "6-allocation");
	const whole = (await tables(page))["table-allocation-0"];
	await page.click("#select-view");
	await settled(page);
	const range = await allocated(page);
	await page.click("#clear");
	const lanes = [];
	for (const name of ["capability 0", "capability 1"]) {
		await page.locator("#labels button[aria-pressed]", { hasText: name }).click();
		await settled(page);
		lanes.push(await allocated(page));
		await page.click("#clear");
	}
	await shot(page, "6-capability");
	await page.locator("#legend button", { hasText: /Haskell$/ }).click();
	await settled(page);
	return { all, stack, whole, range, lanes, without: await allocated(page) };
}

// What is selected.
async function allocated(page) {
	return { basis: await text(page, "basis"), flame: await text(page, "flame-look"), table: (await tables(page))["table-allocation-selected"] };
}

const GRAPH_ROW = 18;

async function comparing(browser) {
	const page = await load(browser, 1280, pathToFileURL(path.resolve(wanted)).href);
	const graph = await page.locator("canvas").boundingBox(), described = new Set();
	for (let y = GRAPH_ROW / 2; y < graph.height; y += GRAPH_ROW)
		for (let x = 5; x < graph.width; x += 30) {
			await page.mouse.move(graph.x + x, graph.y + y);
			described.add(await text(page, "look"));
		}
	await shot(page, "7-changed");
	return { text: await page.textContent("pre"), described: [...described] };
}

await visit(async (browser) => {
	const page = await open(browser, 1280), first = await tables(page);
	seen.functions = first["table-functions-0"];
	seen.call = row(first["table-safe_calls-0"], 0);
	seen.heldUp = await heldUp(page);
	await back(page);
	seen.longest = await longestPause(page);
	await back(page);
	seen.waiting = await waiting(page);
	await back(page);
	seen.allocating = await allocating(page);
	seen.changed = await comparing(browser);
});
