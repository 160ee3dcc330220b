// SPDX-License-Identifier: GPL-2.0-or-later
//
// Loads a profile with speedscope's own importer and prints what it made of it.
//
//     node tests/live/import_speedscope.mjs FILE
//
// FILE is whatever speedscope reads: FILE.speedscope.json, FILE.folded, … Standard output gets
// one JSON object:
//
//     { "speedscope": "1.25.0", "name": "…", "active": 0,
//       "profiles": [ { "name", "unit", "totalWeight", "nonIdleWeight", "nsamples", "nframes",
//                       "maxDepth", "frames": [ { "name", "file", "line", "self", "total" } ] } ] }
//
// `frames` are all of a profile's, heaviest total first, in the profile's unit. If the importer
// refuses the file its message goes to standard error and the exit status is 1; if the test itself
// cannot run (no browser, no package) it is 2.
//
// speedscope has no library: its importer lives in its web page, so the page of the npm package
// is opened in a headless Chromium and told to load the file, as a user would. The one thing
// changed is that the page's variable with the finished profiles is made visible.
//
// Needs: node 18 or newer, Debian's `chromium` (or $CHROMIUM), and the npm packages below in
// $SAFESCOPED_NPM (default: build/npm); they are installed there if they are not yet.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const PACKAGES = ["speedscope@1.25.0", "playwright-core@1.65.1"];
const DEADLINE_MS = 20000;

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npmDir = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));

class Refused extends Error {}

function packageDir(name) {
	return path.join(npmDir, "node_modules", name);
}

function installPackages() {
	const missing = PACKAGES.filter(
		(p) => !fs.existsSync(path.join(packageDir(p.split("@")[0]), "package.json")),
	);
	if (!missing.length) return;
	fs.mkdirSync(npmDir, { recursive: true });
	execFileSync("npm", ["install", "--prefix", npmDir, "--no-audit", "--no-fund", ...PACKAGES], {
		stdio: ["ignore", "ignore", "inherit"],
		env: { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1" },
	});
}

function findChromium() {
	const places = [
		process.env.CHROMIUM,
		"/usr/bin/chromium",
		"/usr/bin/chromium-browser",
		"/usr/bin/google-chrome",
	];
	const found = places.find((p) => p && fs.existsSync(p));
	if (!found) throw new Error("no Chromium: install Debian's package chromium or set CHROMIUM");
	return found;
}

// The page's script with the atom of the finished profiles made visible as window.__profiles.
function tapped(script) {
	let taps = 0;
	const text = script.replace(/new ([\w$]+)\(null,"profileGroup"\)/g, (atom) => {
		taps++;
		return `(window.__profiles=${atom})`;
	});
	if (taps !== 1) throw new Error(`speedscope's page has changed: ${taps} places to look into`);
	return text;
}

function serve(release, file) {
	const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
	const server = http.createServer((request, response) => {
		const name = decodeURIComponent(new URL(request.url, "http://x").pathname);
		const ext = path.extname(name);
		try {
			let body;
			if (name.startsWith("/profile/")) {
				body = fs.readFileSync(file);
			} else {
				body = fs.readFileSync(path.join(release, path.basename(name)));
				if (/^\/speedscope-.*\.js$/.test(name)) body = tapped(body.toString("utf8"));
			}
			response.writeHead(200, {
				"content-type": types[ext] || "application/octet-stream",
			});
			response.end(body);
		} catch (error) {
			response.writeHead(404);
			response.end(String(error));
		}
	});
	return new Promise((resolve) =>
		server.listen(0, "127.0.0.1", () => resolve([server, server.address().port])),
	);
}

// Runs in the page.
function describe() {
	const group = window.__profiles.get();
	return {
		name: group.name,
		active: group.indexToView,
		profiles: group.profiles.map(({ profile }) => {
			const frames = [];
			let maxDepth = 0;
			let depth = 0;
			profile.forEachFrame((frame) =>
				frames.push({
					name: frame.name,
					file: frame.file ?? null,
					line: frame.line ?? null,
					self: frame.getSelfWeight(),
					total: frame.getTotalWeight(),
				}),
			);
			frames.sort((a, b) => b.total - a.total || b.self - a.self);
			profile.forEachCall(
				() => (maxDepth = Math.max(maxDepth, ++depth)),
				() => depth--,
			);
			return {
				name: profile.getName(),
				unit: profile.getWeightUnit(),
				totalWeight: profile.getTotalWeight(),
				nonIdleWeight: profile.getTotalNonIdleWeight(),
				nsamples: profile.samples.length,
				nframes: frames.length,
				maxDepth,
				frames,
			};
		}),
	};
}

async function load(context, port, file) {
	const page = await context.newPage();
	const refused = new Promise((_, reject) => {
		page.on("dialog", (dialog) => {
			reject(new Refused(dialog.message()));
			dialog.dismiss().catch(() => {});
		});
		page.on("console", (message) => {
			if (message.text().startsWith("Failed to load format"))
				reject(new Refused(message.text()));
		});
		page.on("pageerror", (error) => reject(new Refused(error.message)));
	});
	const loaded = (async () => {
		const url = `/profile/${encodeURIComponent(path.basename(file))}`;
		await page.goto(`http://127.0.0.1:${port}/#profileURL=${encodeURIComponent(url)}`);
		await page.waitForFunction(() => window.__profiles?.get(), null, { polling: 50 });
		return page.evaluate(describe);
	})();
	loaded.catch(() => {});
	return Promise.race([loaded, refused]);
}

async function main(file) {
	if (!fs.statSync(file).isFile()) throw new Error(`${file}: not a file`);
	installPackages();

	const { chromium } = createRequire(path.join(npmDir, "package.json"))("playwright-core");
	const speedscope = packageDir("speedscope");
	const version = JSON.parse(fs.readFileSync(path.join(speedscope, "package.json"))).version;
	const [server, port] = await serve(path.join(speedscope, "dist/release"), file);
	const userData = fs.mkdtempSync(path.join(os.tmpdir(), "safescoped-chromium-"));
	let context;
	try {
		context = await chromium.launchPersistentContext(userData, {
			executablePath: findChromium(),
			headless: true,
			timeout: DEADLINE_MS,
			args: [
				"--headless",
				"--no-sandbox",
				"--disable-gpu",
				"--disable-quic",
				"--no-first-run",
				"--disable-background-networking",
				"--disable-component-update",
				"--disable-sync",
			],
		});
		context.setDefaultTimeout(DEADLINE_MS);
		const profiles = await load(context, port, file);
		process.stdout.write(JSON.stringify({ speedscope: version, ...profiles }) + "\n");
	} finally {
		await context?.close();
		server.close();
		server.closeAllConnections();
		fs.rmSync(userData, { recursive: true, force: true, maxRetries: 5 });
	}
}

if (process.argv.length !== 3) {
	process.stderr.write("usage: node import_speedscope.mjs FILE\n");
	process.exit(2);
}
main(process.argv[2]).catch((error) => {
	process.stderr.write(`${error.message}\n`);
	process.exitCode = error instanceof Refused ? 1 : 2;
});
