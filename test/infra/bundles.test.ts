// The bundles of functions are small and hold nothing that a function cannot use.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type BuildResult, build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { BUNDLE_OPTIONS } from "../../infra/constructs/stage-function.ts";

const LAMBDAS = join(import.meta.dirname, "../../lambdas");
const names = readdirSync(LAMBDAS, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name);

describe("functions", () => {
  it("are the ten that the deployment knows", () => {
    expect(names.sort()).toEqual([
      "close",
      "next-step",
      "plan",
      "preflight",
      "prepare",
      "publish",
      "score",
      "stop-recorder",
      "summarise",
      "sweep",
    ]);
  });

  /** All at once: what many of them hold is then read and compiled once. Each is bundled as if it were alone. */
  let bundles: BuildResult<{ write: false; metafile: true }>;
  beforeAll(async () => {
    bundles = await build({
      ...BUNDLE_OPTIONS,
      entryPoints: names.map(name => ({ in: join(LAMBDAS, name, "handler.ts"), out: name })),
      outdir: LAMBDAS,
      write: false,
      metafile: true,
    });
  }, 60_000);

  it.each(names)("%s is below 1 MB", name => {
    const bundle = bundles.outputFiles.find(({ path }) => path === join(LAMBDAS, `${name}.js`));
    expect(bundle?.contents.length).toBeLessThan(1_000_000);
    expect(bundle?.text).toContain("handler");
  });

  it("hold no native module", () => {
    const inputs = Object.keys(bundles.metafile.inputs);
    expect(inputs.filter(input => /onnxruntime|node-pty|\.node$/.test(input))).toEqual([]);
  });
});
