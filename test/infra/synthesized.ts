// The app's templates with settings of a test's own. Functions are not bundled here: bundles.test.ts does that.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { afterAll } from "vitest";
import { DeploymentConfig } from "../../infra/config.ts";
import { addStacks } from "../../infra/stacks.ts";
import type { SynthesizedTemplate, Templates } from "./deployed-templates.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface Synthesized {
  readonly app: App;
  readonly config: DeploymentConfig;
  readonly templates: Templates;
}

export function synthesize(settings: unknown = {}): Synthesized {
  const outdir = mkdtempSync(join(tmpdir(), "t1-synth-"));
  afterAll(() => rmSync(outdir, { recursive: true, force: true }));
  const { context } = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8"));
  const app = new App({ outdir, context: { ...context, "aws:cdk:bundling-stacks": [] } });
  const config = DeploymentConfig.parse(settings);
  addStacks(app, config);
  const { stacks } = app.synth();
  const templates = Object.fromEntries(
    stacks.map(stack => [
      stack.stackName.slice(config.name.length + 1),
      stack.template as SynthesizedTemplate,
    ]),
  );
  return { app, config, templates };
}
