// SPDX-License-Identifier: GPL-2.0-or-later
//
// Shared by the visits to a page of the html format: a headless Chromium with the page in it, what is
// displayed, and actions that take more than one step of a mouse.
//
//     node VISIT.mjs BROWSER FILE FUNCTION [SCREENSHOTS]
//
// Needs the npm package playwright-core in $SAFESCOPED_NPM (default: build/npm).

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const [browserPath, file, wantedFunction, shots] = process.argv.slice(2);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npm = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const { chromium } = createRequire(path.join(npm, "package.json"))("playwright-core");
const address = pathToFileURL(path.resolve(file)).href;

export const wanted = wantedFunction;

// What the page requested besides itself, and its errors; visits add what they saw.
export const seen = { requests: [], errors: [] };

// ── what is displayed ──

export const tables = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll("#tables table")].map((t) => [t.id, {
	title: t.querySelector("caption").textContent,
	columns: [...t.querySelectorAll("thead th")].map((c) => c.textContent),
	rows: [...t.querySelectorAll("tbody tr")].map((r) => [...r.children].map((c) => ({ text: c.textContent, title: c.title }))),
	found: t.querySelectorAll("tbody tr.hit").length,
}])));

export const text = (page, id) => page.textContent(`#${id}`);

// What is cut off, or too wide for its place.
export const overflows = (page) => page.evaluate(() => {
	const wide = [];
	const look = (e) => {
		if (e.scrollWidth > e.clientWidth + 1)
			wide.push(`${e.localName}#${e.id}.${e.className}: ${e.scrollWidth} of ${e.clientWidth}: ${e.textContent.slice(0, 60)}`);
	};
	look(document.documentElement);
	document.querySelectorAll(".wide, td, th, li, p, h1, h2, h3, dl, .tools, #tools button, #legend button, #lanes, .strip").forEach(look);
	return wide;
});

// Waits until a change has been drawn and added up.
export async function settled(page) {
	await page.waitForTimeout(100);
	await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
}

export async function shot(page, name) {
	if (shots)
		await page.screenshot({ path: path.join(shots, `${name}.png`) });
}

// A page of ours.
export async function load(browser, width, from) {
	const page = await browser.newPage({ viewport: { width, height: 900 } });
	page.on("request", (r) => r.url() === from || seen.requests.push(r.url()));
	page.on("pageerror", (e) => seen.errors.push(String(e)));
	page.on("console", (m) => m.type() === "error" && seen.errors.push(m.text()));
	page.on("dialog", (d) => seen.errors.push(`a dialog: ${d.message()}`) && d.dismiss());
	await page.goto(from);
	return page;
}

export async function open(browser, width) {
	const page = await load(browser, width, address);
	await page.waitForSelector("html[data-ready=all]", { state: "attached" });
	await settled(page);
	return page;
}

export async function drag(page, id, from, to) {
	const box = await page.locator(`#${id}`).boundingBox();
	await page.mouse.move(box.x + box.width * from, box.y + box.height / 2);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * (from + to) / 2, box.y + box.height / 2);
	await page.mouse.move(box.x + box.width * to, box.y + box.height / 2);
	await page.mouse.up();
	await settled(page);
}

// Runs a visit in a browser of its own, and prints what was seen as one JSON object.
export async function visit(go) {
	const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
	try {
		await go(browser);
	} finally {
		await browser.close();
	}
	console.log(JSON.stringify(seen));
}
