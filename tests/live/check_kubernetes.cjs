// SPDX-License-Identifier: GPL-2.0-or-later
// Checks Kubernetes objects, as JSON on standard input, against Kubernetes' own schemas:
//   node check_kubernetes.cjs NODE_MODULES <OBJECTS
// Prints what is wrong, one line each, and the kinds that were checked.
"use strict";
const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const from = createRequire(path.join(process.argv[2], "index.js"));
const checked = [];

for (const object of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const models = from(`kubernetes-models/${object.apiVersion}`);
  try {
    new models[object.kind](object).validate();
    checked.push(object.kind);
  } catch (e) {
    console.log(`${object.kind}: ${e.message}`);
    process.exitCode = 1;
  }
}
console.log(checked.join(" "));
