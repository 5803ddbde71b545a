// Builds the bundle that the package ships, and writes down what it was built from: npm run build [-- FOLDER].
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build, transform, version } from "esbuild";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const STATIC = resolve(process.argv[2] ?? join(HERE, "..", "airflow_flinkcompat", "airflow", "plugin", "static"));
const BUNDLE = "main.umd.js";

const sha256 = (content) => createHash("sha256").update(content).digest("hex");

/** Every file that the bundle is made of, by its path below this folder. */
function sources() {
  const inside = readdirSync(join(HERE, "src"), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath ?? each.path, each.name).slice(HERE.length));
  return [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "build.mjs",
    "openapi.json",
    ".prettierrc.json",
    ...inside,
  ]
    .map((name) => name.replaceAll("\\", "/"))
    .sort();
}

/** The styles as a text, which main.tsx makes a sheet of. */
const styles = {
  name: "styles",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path), { loader: "css", minify: true, target: "es2022" });
      return { contents: code.trim(), loader: "text" };
    }),
};

await build({
  absWorkingDir: HERE,
  entryPoints: ["src/main.tsx"],
  outfile: join(STATIC, BUNDLE),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  plugins: [styles],
  banner: { js: "/*! airflow-flinkcompat, Apache-2.0; jsdiff, BSD-3-Clause: see licenses.txt */" },
});
writeFileSync(
  join(STATIC, "licenses.txt"),
  `diff (jsdiff)\n\n${readFileSync(join(HERE, "node_modules/diff/LICENSE"))}`,
);
const built = {
  esbuild: version,
  bundle: sha256(readFileSync(join(STATIC, BUNDLE))),
  sources: Object.fromEntries(sources().map((name) => [name, sha256(readFileSync(join(HERE, name)))])),
};
writeFileSync(join(STATIC, "build.json"), `${JSON.stringify(built, null, 1)}\n`);
