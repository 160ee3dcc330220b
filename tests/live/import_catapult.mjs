// SPDX-License-Identifier: GPL-2.0-or-later
//
// Loads a trace with chrome://tracing's own importer (catapult) and prints what it made of it.
//
//     node tests/live/import_catapult.mjs FILE
//
// Standard output gets one JSON object: its warnings, and the processes with their threads in its order.
// A thread's slices are grouped by row (how many slices enclose a slice) and title: their number, their
// total length, how many have a stack with the title at its leaf, the deepest stack, and whether any is
// coloured by its title and not by a colour's name. Needs the importer that scripts/install-deps puts
// into $SAFESCOPED_NPM (default: build/npm).

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const npm = path.resolve(process.env.SAFESCOPED_NPM || path.join(root, "build/npm"));
const require = createRequire(path.join(npm, "package.json"));

// What the importer expects on the page for which it was made.
Object.assign(globalThis, require("gl-matrix"), {
	window: globalThis,
	JSZip: {},
	mannwhitneyu: {},
	HTMLImportsLoader: { hrefToAbsolutePath: (p) => (p === "/gl-matrix-min.js" ? require.resolve("gl-matrix") : "node:events") },
});
require("traceviewer");
const { tr } = globalThis;

const options = new tr.importer.ImportOptions();
options.showImportWarnings = false;
options.shiftWorldToZero = false;
const model = new tr.Model();
new tr.importer.Import(model, options).importTraces([fs.readFileSync(process.argv[2], "utf8")]);

function add(rows, slices, depth) {
	for (const slice of slices) {
		const row = (rows[depth] ||= {});
		const sum = (row[slice.title] ||= { slices: 0, ns: 0, stacks: 0, stack: [], hashed: false });
		const stack = slice.startStackFrame ? slice.startStackFrame.stackTrace.map((f) => f.title) : [];
		sum.slices += 1;
		sum.ns += Math.round(slice.duration * 1e6);
		sum.stacks += stack[0] === slice.title ? 1 : 0;
		if (stack.length > sum.stack.length)
			sum.stack = stack;
		sum.hashed ||= slice.colorId === tr.b.ColorScheme.getColorIdForGeneralPurposeString(slice.title);
		add(rows, slice.subSlices, depth + 1);
	}
	return rows;
}

const ordered = (things) => Object.values(things).sort((a, b) => a.compareTo(b));
process.stdout.write(`${JSON.stringify({
	warnings: model.importWarnings.map((w) => `${w.type}: ${w.message}`),
	processes: ordered(model.processes).map((p) => ({
		pid: p.pid,
		name: p.name,
		threads: ordered(p.threads).map((t) => ({ tid: t.tid, name: t.name, rows: add({}, t.sliceGroup.topLevelSlices, 0) })),
	})),
})}\n`);
