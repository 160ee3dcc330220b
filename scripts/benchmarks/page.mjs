// SPDX-License-Identifier: GPL-2.0-or-later
//
// scripts/bench page: how long a page of the html format takes in a headless Chromium.
//
//     node scripts/benchmarks/page.mjs BROWSER FILE.html
//
// Prints JSON: the ms until the first paint and until the page is complete; for each of forty zoom steps, in and
// out, the ms from the input to the painted frame, and for how much of that the page's thread had a CPU: the rest
// is the wait for the screen's next frame, and other programs. Then the same during a search. Needs
// playwright-core in build/npm.

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";

const [browserPath, file] = process.argv.slice(2);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npm = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const { chromium } = createRequire(path.join(npm, "package.json"))("playwright-core");

// One wheel event, and the time until the next frame is ready.
const step = (deltaY) => new Promise((done) => {
	const canvas = document.querySelector("#canvas"), box = canvas.getBoundingClientRect();
	const begun = performance.now();
	canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: box.x + box.width * 0.4, clientY: box.y + 9, cancelable: true }));
	requestAnimationFrame(() => {
		const channel = new MessageChannel();
		channel.port1.onmessage = () => done(performance.now() - begun);
		channel.port2.postMessage(0);
	});
});

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox", "--disable-gpu"] });
try {
	const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
	const begun = Date.now();
	await page.goto(pathToFileURL(path.resolve(file)).href, { waitUntil: "commit" });
	await page.waitForSelector("html[data-ready=all]", { state: "attached", timeout: 120000 });
	const seen = { all: Date.now() - begun, steps: [], cpu: [], searching: [], searchingCpu: [] };
	const inspector = await page.context().newCDPSession(page);
	await inspector.send("Performance.enable", { timeDomain: "threadTicks" });
	const cpu = async () => 1000 * (await inspector.send("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
	seen.paint = await page.evaluate(() => performance.getEntriesByType("paint")[0].startTime);
	const zoom = async (steps, used) => {
		for (let i = 0; i < 40; i++) {
			const before = await cpu();
			steps.push(await page.evaluate(step, i < 20 ? -150 : 150));
			used.push(await cpu() - before);
		}
	};
	await zoom(seen.steps, seen.cpu);
	await page.fill("#search", "f");
	await page.waitForTimeout(1000);
	await zoom(seen.searching, seen.searchingCpu);
	console.log(JSON.stringify(seen));
} finally {
	await browser.close();
}
