// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a page of several processes that shared one CPU: selects each of them, and shows slices in which a
// thread waited for that CPU.
//
//     node tests/live/several_html.mjs BROWSER FILE "" [SCREENSHOTS]
//
// Prints one JSON object with what was displayed.

import { open, overflows, seen, settled, shot, tables, text, visit } from "./html_page.mjs";

const SLICES = 40;

async function select(page, name) {
	await page.locator("#process").selectOption({ label: name });
	await settled(page);
	return {
		basis: await text(page, "basis"),
		flame: await text(page, "flame-look"),
		tables: await tables(page),
		pressed: await page.locator("#labels button[aria-pressed=true]").allTextContents(),
		overflows: await overflows(page),
	};
}

// The longest ones: [lane, what the page shows]
async function waits(page) {
	return page.evaluate((most) => {
		/* global data, details, AXIS, THREAD, chooseSlice, eachStretch, laneName, stateOf */
		const found = [];
		for (const lane of data.lanes.filter((l) => l.kind === THREAD && l.shown))
			eachStretch(lane, AXIS[0], AXIS[1], (chunk, first, end) => {
				for (let i = first; i < end; i++)
					if (chunk.look[i] && stateOf(THREAD, details.state[chunk.look[i]])[0] === "preempted")
						found.push({ lane, chunk, i });
			});
		const ns = (s) => s.chunk.start[s.i + 1] - s.chunk.start[s.i];
		return found.sort((a, b) => ns(b) - ns(a)).slice(0, most).map((slice) => {
			chooseSlice(slice);
			const names = [...document.querySelectorAll("#slice-body dt")];
			const told = (name) => names.find((e) => e.textContent === name).nextSibling.textContent;
			return [laneName(slice.lane), told("on a CPU meanwhile"), told("preempted by")];
		});
	}, SLICES);
}

await visit(async (browser) => {
	const page = await open(browser, 1280);
	seen.whole = { basis: await text(page, "basis"), flame: await text(page, "flame-look"), tables: await tables(page) };
	seen.offered = await page.locator("#process option:not([disabled])").allTextContents();
	seen.processes = {};
	for (const name of seen.offered.slice(1))
		seen.processes[name] = await select(page, name);
	await shot(page, "process");
	seen.again = await select(page, seen.offered[0]);
	seen.waits = await waits(page);
	await settled(page);
	await shot(page, "waiting");
});
