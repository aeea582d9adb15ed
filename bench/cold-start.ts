// Measures the cold start of each function of the deployment: the size of its bundle, and the time a fresh Node takes to
// load it, beside a Node that loads nothing. The figures leave out the time that Lambda takes to make its container.
//
//   npx node bench/cold-start.ts
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { BUNDLE_OPTIONS } from "../infra/constructs/stage-function.ts";
import { formatTable } from "../src/cli/table.ts";

const ROUNDS = 15;
const LAMBDAS = join(import.meta.dirname, "../lambdas");

const names = readdirSync(LAMBDAS, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name);
const folder = mkdtempSync(join(tmpdir(), "t1-cold-"));
for (const name of names)
  buildSync({
    ...BUNDLE_OPTIONS,
    entryPoints: [join(LAMBDAS, name, "handler.ts")],
    outfile: join(folder, `${name}.mjs`),
  });

function timeMs(words: readonly string[]): number {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return performance.now() - startedAt;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const times = new Map<string, number[]>(["", ...names].map(name => [name, []]));
for (let round = 0; round < ROUNDS; round++)
  for (const [name, list] of times)
    list.push(
      timeMs(name === "" ? ["-e", "0"] : ["-e", `import(${JSON.stringify(join(folder, `${name}.mjs`))})`]),
    );
const bare = median(times.get("") ?? []);
process.stdout.write(
  formatTable(
    ["function", "bundle kB", "load ms", "of it Node's own"],
    names.map(name => {
      const ms = median(times.get(name) ?? []);
      const kilobytes = statSync(join(folder, `${name}.mjs`)).size / 1000;
      return [name, kilobytes.toFixed(0), ms.toFixed(0), bare.toFixed(0)];
    }),
  ),
);
rmSync(folder, { recursive: true, force: true });
