// What definitions tell containers is what their programs read, and all that these need; each is looked at by a health
// command.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { DRIVER_ENVIRONMENT, FARGATE_ENVIRONMENT } from "../../containers/driver/environment.ts";
import { SAMPLER_ENVIRONMENT } from "../../containers/sampler/environment.ts";
import { TRAINER_ENVIRONMENT } from "../../containers/trainer/environment.ts";
import { containerOf, environmentOf, synthesize } from "./synthesized.ts";

const ROOT = join(import.meta.dirname, "../..");
const { templates } = synthesize();

interface Row {
  readonly name: string;
  readonly stack: string;
  readonly shape: z.ZodRawShape;
  /** What a state machine adds when it starts one, with an example. */
  readonly overrides: Readonly<Record<string, string>>;
}

const ROWS: readonly Row[] = [
  {
    name: "driver",
    stack: "sandboxes",
    shape: { ...DRIVER_ENVIRONMENT, ...FARGATE_ENVIRONMENT },
    overrides: {
      ...{ T1_PHASE: "runs/r/iterations/000000/", T1_EPISODES: "0,1", T1_POLICY_VERSION: "0" },
      T1_MARKET: "FARGATE_SPOT",
    },
  },
  { name: "sampler", stack: "sampler", shape: SAMPLER_ENVIRONMENT, overrides: {} },
  {
    name: "trainer",
    stack: "training",
    shape: TRAINER_ENVIRONMENT,
    overrides: { T1_RUN: "r", T1_ITERATION: "3" },
  },
];

describe.each(ROWS)("the $name", ({ name, stack, shape, overrides }) => {
  it("is told what it reads, and all that it needs", () => {
    const given = { ...overrides, ...environmentOf(templates, stack, name) };
    expect(Object.keys(given).filter(key => !(key in shape))).toEqual([]);
    const parsed = z.object(shape).safeParse(given);
    expect(parsed.error?.issues ?? []).toEqual([]);
  });

  it("has an image that starts this program, and a health command whose file is there", () => {
    const dockerfile = readFileSync(join(ROOT, "containers", name, "Dockerfile"), "utf8");
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "containers/${name}/main.ts"]`);
    const [, health = ""] = /^HEALTHCHECK .*CMD \["node", "(.*)"\]$/m.exec(dockerfile) ?? [];
    expect(readFileSync(join(ROOT, health), "utf8")).not.toBe("");
    const command = containerOf(templates, stack, name).HealthCheck?.Command;
    // Batch has no health checks; there the image's own is for other hosts.
    if (stack !== "training") expect(command).toEqual(["CMD", "node", health]);
  });
});

describe("a heartbeat", () => {
  it("is healthy while it beats, and not when it has stopped or never begun", () => {
    const folder = mkdtempSync(join(tmpdir(), "t1-beat-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const run = (...args: readonly string[]) =>
      spawnSync(process.execPath, args, { env: { ...process.env, TMPDIR: folder } }).status;
    const file = join(ROOT, "containers/heartbeat.ts");
    expect(run(file)).toBe(1);
    expect(run("-e", `import(${JSON.stringify(file)}).then(({ startHeartbeat }) => startHeartbeat())`)).toBe(
      0,
    );
    expect(run(file)).toBe(0);
    utimesSync(join(folder, "t1-heartbeat"), 0, 0);
    expect(run(file)).toBe(1);
  });
});
