// SPDX-License-Identifier: GPL-2.0-or-later
//
// Loads a profile with speedscope's own importer and prints what it made of it.
//
//     node tests/live/import_speedscope.mjs FILE
//
// FILE is whatever speedscope reads: NAME.speedscope.json, NAME.folded, … Standard output gets
// one JSON object:
//
//     { "speedscope": "1.25.0", "name": "…", "active": 0,
//       "profiles": [ { "name", "unit", "totalWeight", "nonIdleWeight", "nsamples", "nframes",
//                       "maxDepth", "frames": [ { "name", "file", "line", "self", "total" } ] } ] }
//
// `frames` are all of a profile's, heaviest total first, in the profile's unit. If the importer
// refuses the file its message goes to standard error and the exit status is 1; if the test itself
// cannot run (no package, no file) it is 2.
//
// The npm package `speedscope` has no library, only its web page. The page's script is run here up
// to the importer: whatever it reads from its browser until then gets an empty answer, and it is
// left before it would draw anything. The import is done entirely by speedscope's own code.
//
// Needs node 18 or newer and the npm package below in $SAFESCOPED_NPM (default: build/npm); it is
// installed there if it is missing.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import vm from "node:vm";

const PACKAGE = "speedscope@1.25.0";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npmDir = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const packageDir = path.join(npmDir, "node_modules/speedscope");

class Refused extends Error {}

function installPackage() {
	if (fs.existsSync(path.join(packageDir, "package.json"))) return;
	fs.mkdirSync(npmDir, { recursive: true });
	execFileSync("npm", ["install", "--prefix", npmDir, "--no-audit", "--no-fund", PACKAGE], {
		stdio: ["ignore", "ignore", "inherit"],
	});
}

// Answers every access with itself: enough of a browser for a script that only looks at it.
function nothing() {
	return new Proxy(function () {}, {
		get(target, key, self) {
			if (key === Symbol.toPrimitive) return () => "";
			if (key === "hash" || key === "protocol" || key === "href") return "";
			if (key === "then") return undefined;
			return key === "prototype" ? target.prototype : self;
		},
		apply: () => nothing(),
		construct: () => nothing(),
		set: () => true,
	});
}

// Runs the page's script up to where the importer's module is about to be used.
async function loadImporter() {
	const release = path.join(packageDir, "dist/release");
	const name = fs.readdirSync(release).find((n) => /^speedscope-.*\.js$/.test(n));
	const enough = new Error("the importer is there");
	let taps = 0;
	const script = fs
		.readFileSync(path.join(release, name), "utf8")
		.replace(
			/async function [\w$]+\([\w$,]+\)\{return\(await ([\w$]+)\)\.importProfilesFromArrayBuffer\(/,
			(use, module) => {
				taps++;
				return `globalThis.__importer=${module};throw globalThis.__enough;${use}`;
			},
		);
	if (taps !== 1) throw new Error(`${PACKAGE}: no place found where its page imports a file`);

	// The page's chatter must not mix with the result.
	const quiet = { log() {}, info() {}, warn() {}, error() {}, assert() {}, time() {}, timeEnd() {} };
	const context = vm.createContext({
		console: quiet,
		TextDecoder,
		TextEncoder,
		URL,
		setTimeout,
		clearTimeout,
		setInterval,
		clearInterval,
		performance,
		atob,
		btoa,
		__enough: enough,
	});
	for (const key of [
		"window",
		"document",
		"navigator",
		"localStorage",
		"matchMedia",
		"requestAnimationFrame",
		"HTMLElement",
		"Node",
	])
		context[key] = nothing();
	vm.runInContext("globalThis.self = globalThis", context);
	try {
		vm.runInContext(script, context, { filename: name });
	} catch (error) {
		if (error !== enough) throw new Error(`${PACKAGE}: its page cannot be run: ${error.message}`, { cause: error });
	}
	return [await context.__importer, context];
}

function describe(profile) {
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
}

async function main(file) {
	const bytes = fs.readFileSync(file);
	installPackage();
	const version = JSON.parse(fs.readFileSync(path.join(packageDir, "package.json"))).version;
	const [importer, context] = await loadImporter();
	// The importer checks its argument's class, so the buffer must come from its own context.
	context.__length = bytes.length;
	const buffer = vm.runInContext("new ArrayBuffer(__length)", context);
	new Uint8Array(buffer).set(bytes);

	let group;
	try {
		group = await importer.importProfilesFromArrayBuffer(path.basename(file), buffer);
	} catch (error) {
		throw new Refused(error.message);
	}
	// What the page would show a user (its two alerts).
	if (!group) throw new Refused("Unrecognized format! See documentation about supported formats.");
	if (!group.profiles.length) throw new Refused("Successfully imported profile, but it's empty!");
	const result = {
		speedscope: version,
		name: group.name,
		active: group.indexToView,
		profiles: Array.from(group.profiles, describe),
	};
	await new Promise((written) => process.stdout.write(JSON.stringify(result) + "\n", written));
}

if (process.argv.length !== 3) {
	process.stderr.write("usage: node import_speedscope.mjs FILE\n");
	process.exit(2);
}
main(process.argv[2])
	.then(() => process.exit(0))
	.catch((error) => {
		process.stderr.write(`${process.argv[2]}: ${error.message}\n`);
		process.exit(error instanceof Refused ? 1 : 2);
	});
