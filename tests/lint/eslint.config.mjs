// SPDX-License-Identifier: GPL-2.0-or-later
//
// ESLint's recommended rules: for the page of the html format, whose files are one script, and for the tests'
// modules.

import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

const npm = path.resolve(process.env.SAFESCOPED_NPM || "build/npm");
const js = createRequire(path.join(npm, "package.json"))("@eslint/js");

const names = (kind, list) => Object.fromEntries(list.split(" ").map((name) => [name, kind]));
const browser = names("readonly", "document window getComputedStyle requestAnimationFrame setTimeout clearTimeout");
// In node, or in what is sent to a page.
const both = names("readonly", "console URL TextDecoder TextEncoder setInterval clearInterval performance atob btoa Buffer " +
	"WebSocket WheelEvent KeyboardEvent MessageChannel navigator innerWidth");

export default [
	js.configs.recommended,
	{ rules: { eqeqeq: "error", "no-shadow": "error", "no-var": "error", "prefer-const": "error" } },
	{ files: ["**/*.js"], languageOptions: { sourceType: "script", ecmaVersion: 2022, globals: browser } },
	{ files: ["**/*.mjs"], languageOptions: { sourceType: "module", globals: { ...browser, ...both } } },
];
