// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a page of the html format in a headless Chromium, uses it as a person would, and prints
// what was seen.
//
//     node tests/live/open_html.mjs BROWSER FILE FUNCTION [SCREENSHOTS]
//
// Standard output gets one JSON object: what the page requested besides itself, its errors, and what
// it shows: at first, with FUNCTION searched for, with a frame of the flame graph zoomed into, with a
// finding shown, with everything, a half, a lane or all but one state selected, by keys alone; and what
// does not fit at widths of 1280 and 800 pixels. Numbers are taken from what is displayed and from its
// tooltips. Screenshots go into the folder SCREENSHOTS.

import { drag, open, overflows, seen, settled, shot, tables, text, visit, wanted } from "./html_page.mjs";

seen.overflows = {};

async function first(page) {
	Object.assign(seen, await page.evaluate(() => ({
		title: document.title,
		heading: document.querySelector("h1").textContent,
		elements: [...document.querySelectorAll("*")].reduce(
			(all, e) => ({ ...all, [e.localName]: (all[e.localName] || 0) + 1 }), {}),
		findings: [...document.querySelectorAll("#findings-list li > span")].map((e) => e.textContent.trim()),
		lanes: [...document.querySelectorAll("#labels button[aria-pressed]")].map((e) => e.textContent),
		heads: [...document.querySelectorAll("#labels button[aria-expanded]")].map((e) => e.textContent),
		states: [...document.querySelectorAll("#legend button span:last-child")].map((e) => e.textContent),
	})));
	seen.basis = await text(page, "basis");
	seen.dropped = await text(page, "dropped");
	seen.tables = await tables(page);
	seen.flame = await text(page, "flame-look");
	await shot(page, "first");
}

async function searching(page) {
	await page.fill("#search", wanted);
	await settled(page);
	seen.found = { flame: await text(page, "flame-look"), tables: await tables(page) };
	await shot(page, "found");
	await page.fill("#search", "");
	await settled(page);
}

async function flameGraph(page) {
	const graph = await page.locator("#flame-canvas").boundingBox();
	const second = { x: graph.x + 10, y: graph.y + 27 };
	await page.locator("#flame-canvas").scrollIntoViewIfNeeded();
	const at = await page.locator("#flame-canvas").boundingBox();
	second.x = at.x + 10;
	second.y = at.y + 27;
	await page.mouse.move(second.x, second.y);
	seen.pointed = await text(page, "flame-look");
	await page.mouse.click(second.x, second.y);
	// zoomed in, it is as wide as the graph
	await page.mouse.move(at.x + at.width - 30, second.y);
	seen.zoomed = await text(page, "flame-look");
	await shot(page, "zoomed");
	await page.click("#flame-whole");
	await page.selectOption("#weight", "wall");
	await page.mouse.move(1, 1);
	await settled(page);
	seen.wall = await text(page, "flame-look");
	await page.selectOption("#weight", "samples");
	await settled(page);
	seen.samples = await text(page, "flame-look");
	await page.selectOption("#weight", "cpu");
	await settled(page);
}

async function selecting(page) {
	await page.click("#select-view");
	await settled(page);
	seen.everything = { basis: await text(page, "basis"), tables: await tables(page) };
	await page.click("#clear");
	await page.locator("#ruler").scrollIntoViewIfNeeded();
	await drag(page, "ruler", 0.25, 0.75);
	seen.half = { basis: await text(page, "basis"), tables: await tables(page), flame: await text(page, "flame-look") };
	await shot(page, "half");
	await page.click("#zoom-range");
	await settled(page);
	seen.half.label = await text(page, "ruler-label");
	await shot(page, "half-zoomed");
	await page.click("#clear");
	await page.click("#zoom-whole");
	await page.click("#labels button[aria-pressed]");
	await settled(page);
	seen.lane = { basis: await text(page, "basis"), tables: await tables(page), pressed: await page.getAttribute("#labels button[aria-pressed]", "aria-pressed") };
	await page.click("#clear");
	await page.click("#legend button");
	await settled(page);
	seen.without = { basis: await text(page, "basis"), tables: await tables(page) };
	await shot(page, "without");
	await page.click("#clear");
	await settled(page);
	seen.cleared = { basis: await text(page, "basis"), tables: await tables(page) };
}

async function showing(page) {
	const button = page.locator("#findings-list button").first();
	if (!await button.count())
		return;
	await button.click();
	await settled(page);
	seen.shown = { basis: await text(page, "basis"), title: await button.getAttribute("title") };
	await shot(page, "finding");
	await page.click("#clear");
	await page.click("#zoom-whole");
}

// No mouse.
async function byKeys(page) {
	await page.locator("#zoom-whole").focus();
	await page.keyboard.press("Tab");
	for (let i = 0; i < 40 && await page.evaluate(() => document.activeElement.id) !== "lanes"; i++)
		await page.keyboard.press("Tab");
	seen.keys = { focus: await page.evaluate(() => document.activeElement.id) };
	seen.keys.outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
	await page.keyboard.press("ArrowDown");
	seen.keys.lane = await page.evaluate(() => document.activeElement.textContent);
	await page.keyboard.press("Enter");
	await settled(page);
	seen.keys.slice = await page.evaluate(() => document.querySelector("#slice").hidden ? "" : document.querySelector("#slice").innerText);
	await shot(page, "slice");
	await page.keyboard.press(".");
	await settled(page);
	seen.keys.next = await page.evaluate(() => document.querySelector("#slice").hidden ? "" : document.querySelector("#slice").innerText);
	await page.keyboard.press("Escape");
	await page.keyboard.press("+");
	await page.keyboard.press("+");
	await settled(page);
	seen.keys.label = await text(page, "ruler-label");
	// one more Tab leaves them, however many there are
	seen.keys.stops = await page.locator("#labels button:not([tabindex='-1'])").count();
	await page.keyboard.press("s");
	await settled(page);
	seen.keys.basis = await text(page, "basis");
	await page.keyboard.press("Escape");
	await page.keyboard.press("0");
	await settled(page);
	seen.keys.whole = await text(page, "basis");
	await page.keyboard.press("Enter");
	await page.keyboard.press("s");
	await settled(page);
	await page.click("#clear");
	seen.keys.left = await page.evaluate(() => !document.querySelector("#slice").hidden);
}

await visit(async (browser) => {
	const page = await open(browser, 1280);
	await first(page);
	seen.overflows[1280] = await overflows(page);
	await searching(page);
	await flameGraph(page);
	await selecting(page);
	await showing(page);
	await byKeys(page);
	await page.emulateMedia({ colorScheme: "dark" });
	await settled(page);
	await shot(page, "dark");
	/* global theme */
	seen.inks = [await page.evaluate(() => theme.ink)];
	for (const event of ["beforeprint", "afterprint"])
		seen.inks.push(await page.evaluate((name) => window.dispatchEvent(new window.Event(name)) && theme.ink, event));
	await page.emulateMedia({ colorScheme: "light", media: "print" });
	await settled(page);
	await shot(page, "print");
	await page.close();
	const narrow = await open(browser, 800);
	seen.overflows[800] = await overflows(narrow);
	await shot(narrow, "narrow");
	await narrow.click("#select-view");
	await settled(narrow);
	seen.overflows["800, selected"] = await overflows(narrow);
});
