// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page of a comparison in a headless Chromium and uses it as a person would.
//
//     node tests/live/open_diff.mjs BROWSER FILE
//
// Standard output gets one JSON object: what the page requested besides itself, its errors, its text, its
// description of what is under the pointer, all over the graph, and how many of the graph's pixels are red
// and blue; and its description of what each key leads to, without a mouse.
// Needs the npm package playwright-core in $SAFESCOPED_NPM (default: build/npm).

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const [browserPath, file] = process.argv.slice(2);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npm = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const { chromium } = createRequire(path.join(npm, "package.json"))("playwright-core");

const ROW = 18;
const address = pathToFileURL(path.resolve(file)).href;
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
const seen = { requests: [], errors: [], described: [] };
try {
	const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
	page.on("request", (r) => r.url() === address || seen.requests.push(r.url()));
	page.on("pageerror", (e) => seen.errors.push(String(e)));
	page.on("console", (m) => m.type() === "error" && seen.errors.push(m.text()));
	await page.goto(address);
	seen.text = await page.textContent("pre");
	const graph = await page.locator("canvas").boundingBox();
	const described = new Set();
	for (let y = ROW / 2; y < graph.height; y += ROW)
		for (let x = 5; x < graph.width; x += 30) {
			await page.mouse.move(graph.x + x, graph.y + y);
			described.add(await page.textContent("#look"));
		}
	seen.described = [...described];
	Object.assign(seen, await page.evaluate(() => {
		const canvas = document.querySelector("canvas");
		const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
		const count = { red: 0, blue: 0 };
		for (let i = 0; i < pixels.length; i += 4) {
			count.red += pixels[i] > pixels[i + 2] + 40;
			count.blue += pixels[i + 2] > pixels[i] + 40;
		}
		return count;
	}));
	await page.mouse.move(1, 1);
	await page.locator("#bar button").focus();
	seen.keys = [];
	const press = async (key) => {
		await page.keyboard.press(key);
		seen.keys.push([key, await page.textContent("#look"), await page.evaluate(() => document.activeElement.localName)]);
		return seen.keys.at(-1)[1];
	};
	await press("Tab");
	for (let i = 0; i < 20 && !/changed\n/.test(await press("ArrowDown")); i++)
		;
	for (const key of ["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft", "Enter", "ArrowUp", "Escape"])
		await press(key);
} finally {
	await browser.close();
}
process.stdout.write(`${JSON.stringify(seen)}\n`);
