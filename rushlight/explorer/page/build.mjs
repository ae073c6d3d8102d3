// Builds ../page.html: the template with the styles, the script and a policy that allows this one script.

import { createHash } from "node:crypto";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const common = { bundle: true, minify: true, write: false, charset: "ascii", legalComments: "none", logLevel: "warning" };

async function bundled(entry, options) {
  const { outputFiles, metafile } = await build({ ...common, ...options, entryPoints: [entry], metafile: true });
  return { text: outputFiles[0].text, inputs: Object.keys(metafile.inputs) };
}

/** The licences of the packages that are in the bundle, as they ask for: each text once, under the names it is for. */
async function licences(inputs) {
  const found = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean);
  const names = new Map();
  for (const name of [...new Set(found)].sort()) {
    const file = (await readdir(`node_modules/${name}`)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence`);
    const text = (await readFile(`node_modules/${name}/${file}`, "utf8")).trim();
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  const parts = [...names].map(([text, packages]) => `${packages.join(", ")}:\n\n${text}`);
  return `This page includes the following packages.\n\n${parts.join("\n\n\n")}`.replaceAll("--", "==");
}

const script = await bundled("src/main.tsx", { format: "iife", target: "es2022", jsx: "automatic", jsxImportSource: "preact" });
const style = await bundled("src/style.css", {});
const end = /<\/?(script|style)|<!--/i.exec(script.text + style.text);
if (end) throw new Error(`the bundle has ${end[0]}, which would end or change its element`);

const hash = createHash("sha256").update(script.text).digest("base64");
const parts = {
  POLICY: `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`,
  STYLE: style.text,
  SCRIPT: script.text,
  LICENCES: await licences(script.inputs),
};
const template = await readFile("src/template.html", "utf8");
const page = template.replace(/@(POLICY|STYLE|SCRIPT|LICENCES)@/g, (_, name) => parts[name]);
await writeFile("../page.html", page);
console.log(`page.html: ${page.length} bytes`);
