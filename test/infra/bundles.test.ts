// What is deployed as functions: small, and free of what a function cannot use.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { describe, expect, it } from "vitest";
import { BUNDLE_OPTIONS } from "../../infra/constructs/stage-function.ts";

const LAMBDAS = join(import.meta.dirname, "../../lambdas");
const names = readdirSync(LAMBDAS, { withFileTypes: true })
  .filter(entry => entry.isDirectory())
  .map(({ name }) => name);

describe("functions", () => {
  it("are the ten that the deployment knows", () => {
    expect(names.sort()).toEqual([
      "close",
      "cost",
      "evaluate",
      "plan",
      "preflight",
      "prepare",
      "publish",
      "score",
      "stop-recorder",
      "sweep",
    ]);
  });

  it.each(names)("%s is below 1 MB and holds no native module", async name => {
    const { outputFiles, metafile } = await build({
      ...BUNDLE_OPTIONS,
      entryPoints: [join(LAMBDAS, name, "handler.ts")],
      outfile: "handler.mjs",
      write: false,
      metafile: true,
    });
    expect(outputFiles[0].contents.length).toBeLessThan(1_000_000);
    const packages = Object.keys(metafile.inputs).filter(input => /onnxruntime|node-pty|\.node$/.test(input));
    expect(packages).toEqual([]);
    const code = outputFiles[0].text;
    expect(code).toContain("handler");
  });
});
