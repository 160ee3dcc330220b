// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens a page of the html format in a headless Firefox, by its own protocol (WebDriver BiDi), and prints
// what was seen: errors, all tables of the whole session and of what a key selects, whether pixels were
// painted, what is too wide at widths of 1280 and 800 pixels, and how long a step of zooming takes.
//
//     node --experimental-websocket tests/live/open_firefox.mjs BROWSER FILE PROFILE [SCREENSHOT]
//
// PROFILE is an empty folder for Firefox's files.

import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [browserPath, file, profile, shot] = process.argv.slice(2);

// ── the protocol ──

function start() {
	const child = spawn(browserPath, ["--headless", "--no-remote", "--remote-debugging-port", "0", "--profile", profile,
		"--width", "1280", "--height", "900", "about:blank"],
		{ stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: profile } });
	return new Promise((done, failed) => {
		let said = "";
		child.on("exit", () => failed(new Error(`Firefox ended: ${said}`)));
		child.stderr.on("data", (data) => {
			said += data;
			const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
			if (found)
				done({ child, address: `${found[1]}/session` });
		});
	});
}

async function connect(address) {
	const socket = new WebSocket(address), waiting = new Map(), events = [];
	let last = 0;
	await new Promise((done, failed) => {
		socket.onopen = done;
		socket.onerror = failed;
	});
	socket.onmessage = (event) => {
		const message = JSON.parse(event.data);
		if (message.type === "event")
			events.push(message);
		else if (message.type === "error")
			waiting.get(message.id)[1](new Error(message.message));
		else
			waiting.get(message.id)[0](message.result);
	};
	const send = (method, params) => new Promise((done, failed) => {
		waiting.set(++last, [done, failed]);
		socket.send(JSON.stringify({ id: last, method, params }));
	});
	return { send, events, close: () => socket.close() };
}

// ── in the page ──

// What does not fit, a moment after the page has been given its width.
const tooWide = async () => {
	await new Promise((done) => setTimeout(done, 500));
	const root = document.documentElement, wide = root.scrollWidth > root.clientWidth ? ["the page"] : [];
	for (const e of document.querySelectorAll(".wide, .tools, p, li, td, th, h1, h2, h3, dl, .strip, #lanes"))
		if (e.scrollWidth > e.clientWidth + 1)
			wide.push(e.textContent.slice(0, 60));
	return JSON.stringify(wide);
};

const inPage = async () => {
	const later = (ms) => new Promise((done) => setTimeout(done, ms));
	const key = (name) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
	const tables = () => Object.fromEntries([...document.querySelectorAll("#tables table")].map((t) => [t.id,
		[...t.querySelectorAll("tbody tr")].map((r) => [...r.children].map((c) => c.textContent))]));
	const canvas = document.querySelector("#canvas"), seen = { agent: navigator.userAgent };
	for (let i = 0; i < 600 && document.documentElement.dataset.ready !== "all"; i++)
		await later(50);
	seen.ready = document.documentElement.dataset.ready;
	seen.width = innerWidth;
	seen.basis = document.querySelector("#basis").textContent;
	seen.tables = tables();
	seen.painted = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v !== 0);
	seen.steps = [];
	const box = canvas.getBoundingClientRect();
	for (let i = 0; i < 20; i++) {
		const begun = performance.now();
		canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: i < 10 ? -150 : 150, clientX: box.x + 200, clientY: box.y + 9, cancelable: true }));
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
		seen.steps.push(performance.now() - begun);
	}
	key("0");
	key("s");
	await later(500);
	seen.selected = { basis: document.querySelector("#basis").textContent, tables: tables() };
	return JSON.stringify(seen);
};

const { child, address } = await start();
try {
	const session = await connect(address);
	await session.send("session.new", { capabilities: {} });
	await session.send("session.subscribe", { events: ["log.entryAdded", "network.beforeRequestSent"] });
	const evaluate = async (context, program) => {
		const got = await session.send("script.evaluate", { expression: `(${program})()`, target: { context }, awaitPromise: true });
		if (got.type === "exception")
			throw new Error(got.exceptionDetails.text);
		return JSON.parse(got.result.value);
	};
	const context = (await session.send("browsingContext.getTree", {})).contexts[0].context;
	await session.send("browsingContext.setViewport", { context, viewport: { width: 1280, height: 900 } });
	await session.send("browsingContext.navigate", { context, url: pathToFileURL(path.resolve(file)).href, wait: "complete" });
	const seen = await evaluate(context, inPage);
	seen.wide = {};
	for (const width of [1280, 800]) {
		await session.send("browsingContext.setViewport", { context, viewport: { width, height: 900 } });
		seen.wide[width] = await evaluate(context, tooWide);
	}
	seen.errors = session.events.filter((e) => e.method === "log.entryAdded" && e.params.level === "error").map((e) => e.params.text);
	if (shot) {
		const { data } = await session.send("browsingContext.captureScreenshot", { context });
		fs.writeFileSync(shot, Buffer.from(data, "base64"));
	}
	console.log(JSON.stringify(seen));
	session.close();
} finally {
	child.removeAllListeners("exit");
	child.kill();
	await new Promise((done) => child.on("close", done));
}
