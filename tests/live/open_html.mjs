// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a page of the html format in a headless Chromium, uses it as a person would, and prints
// what was seen.
//
//     node tests/live/open_html.mjs BROWSER FILE FUNCTION
//
// Standard output gets one JSON object: what the page asked for besides itself, its errors, its
// title, how many elements of each name it has, its tables (title, rows), the profiles, and the line that
// reports of the graph: at first, with FUNCTION searched for, with the pointer on the graph's second
// row, zoomed into that, and of the last profile. Needs the npm package playwright-core in
// $SAFESCOPED_NPM (default: build/npm).

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const [browserPath, file, wanted] = process.argv.slice(2);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npm = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const { chromium } = createRequire(path.join(npm, "package.json"))("playwright-core");

const address = pathToFileURL(path.resolve(file)).href;
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
const seen = { requests: [], errors: [] };
try {
	const page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
	page.on("request", (r) => r.url() === address || seen.requests.push(r.url()));
	page.on("pageerror", (e) => seen.errors.push(String(e)));
	page.on("console", (m) => m.type() === "error" && seen.errors.push(m.text()));
	page.on("dialog", (d) => seen.errors.push(`a dialog: ${d.message()}`) && d.dismiss());
	await page.goto(address);
	const look = () => page.textContent("#look");
	Object.assign(seen, await page.evaluate(() => ({
		title: document.title,
		heading: document.querySelector("h1").textContent,
		elements: [...document.querySelectorAll("*")].reduce(
			(all, e) => ({ ...all, [e.localName]: (all[e.localName] || 0) + 1 }), {}),
		tables: [...document.querySelectorAll("table")].map((t) => ({
			title: t.parentNode.previousElementSibling.textContent,
			columns: [...t.querySelectorAll("th")].map((c) => c.textContent),
			rows: [...t.querySelectorAll("tbody tr")].map((r) => [...r.children].map((c) => c.textContent)),
		})),
		profiles: [...document.querySelectorAll("#bar option")].map((o) => o.textContent),
	})));
	seen.first = await look();
	await page.fill("#bar input", wanted);
	seen.found = await look();
	await page.fill("#bar input", "");
	const graph = await page.locator("canvas").boundingBox();
	const second = { x: graph.x + 10, y: graph.y + 27 };
	await page.mouse.move(second.x, second.y);
	seen.pointed = await look();
	await page.mouse.click(second.x, second.y);
	/* zoomed in, it is as wide as the graph */
	await page.mouse.move(graph.x + graph.width - 30, second.y);
	seen.zoomed = await look();
	await page.selectOption("#bar select", String(seen.profiles.length - 1));
	await page.mouse.move(1, 1);
	seen.last = await look();
} finally {
	await browser.close();
}
console.log(JSON.stringify(seen));
