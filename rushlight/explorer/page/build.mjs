// Builds ../page.html: the template with the styles, the script and a policy that allows this one script.

import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const common = { bundle: true, minify: true, write: false, charset: "ascii", legalComments: "none", logLevel: "warning" };

async function bundled(entry, options) {
  const { outputFiles } = await build({ ...common, ...options, entryPoints: [entry] });
  return outputFiles[0].text;
}

const script = await bundled("src/main.tsx", { format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" });
const style = await bundled("src/style.css", {});
const end = /<\/(script|style)|<!--/i.exec(script + style);
if (end) throw new Error(`the bundle has ${end[0]}, which would end or change its element`);

const hash = createHash("sha256").update(script).digest("base64");
const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`;
const parts = { POLICY: policy, STYLE: style, SCRIPT: script };
const template = await readFile("src/template.html", "utf8");
const page = template.replace(/@(POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]);
await writeFile("../page.html", page);
console.log(`page.html: ${page.length} bytes`);
