// Definitions set exactly the variables that the containers' programs read and need; each container has a health
// command.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  DRIVER_JOB,
  DRIVER_SETTINGS,
  FARGATE_SETTINGS,
  SAMPLER_SETTINGS,
  TRAINER_JOB,
  TRAINER_SETTINGS,
} from "../../src/stages/jobs.ts";
import { containerOf, deployedTemplates, environmentOf } from "./deployed-templates.ts";

const ROOT = join(import.meta.dirname, "../..");
const templates = await deployedTemplates();

interface Row {
  readonly name: string;
  readonly stack: string;
  /** Schemas of the variables that it reads. */
  readonly reads: readonly {
    readonly names: object;
    readonly fromEnvironment: (environment: Record<string, string>) => unknown;
  }[];
  /** Variables that a state machine adds when it starts the container, with an example each. */
  readonly overrides: Readonly<Record<string, string>>;
}

const ROWS: readonly Row[] = [
  {
    name: "driver",
    stack: "sandboxes",
    reads: [DRIVER_JOB, DRIVER_SETTINGS, FARGATE_SETTINGS],
    overrides: {
      ...{ T1_PHASE: "runs/r/iterations/000000/", T1_EPISODES: "0,1", T1_POLICY_VERSION: "0" },
      T1_MARKET: "FARGATE_SPOT",
    },
  },
  { name: "sampler", stack: "sampler", reads: [SAMPLER_SETTINGS], overrides: {} },
  {
    name: "trainer",
    stack: "training",
    reads: [TRAINER_JOB, TRAINER_SETTINGS],
    overrides: { T1_RUN: "r", T1_ITERATION: "3" },
  },
];

describe.each(ROWS)("the $name", ({ name, stack, reads, overrides }) => {
  it("is told what it reads, and all that it needs", () => {
    const given = { ...overrides, ...environmentOf(templates, stack, name) };
    const names: unknown[] = reads.flatMap(schema => Object.values(schema.names));
    expect(Object.keys(given).filter(key => !names.includes(key))).toEqual([]);
    for (const schema of reads) expect(schema.fromEnvironment(given)).toBeDefined();
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
  const PROGRAM = join(ROOT, "containers/heartbeat.ts");
  const START = `import(${JSON.stringify(PROGRAM)}).then(({ startHeartbeat }) => startHeartbeat())`;
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "t1-beat-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const run = (
    args: readonly string[],
    {
      through = [],
      ...environment
    }: { readonly through?: readonly string[]; readonly T1_HEARTBEAT?: string } = {},
  ) => {
    const [program = "", ...rest] = [...through, process.execPath, ...args];
    const env = { PATH: process.env.PATH, TMPDIR: folder, ...environment };
    return spawnSync(program, rest, { env }).status;
  };
  const image = () => ({ T1_HEARTBEAT: join(folder, "beat") });

  it("is healthy while it beats, and not when it has stopped or never begun", () => {
    expect(run([PROGRAM], image())).toBe(1);
    expect(run(["-e", START], image())).toBe(0);
    expect(run([PROGRAM], image())).toBe(0);
    const [file = ""] = readdirSync(folder);
    utimesSync(join(folder, file), 0, 0);
    expect(run([PROGRAM], image())).toBe(1);
  });

  it("is none of another container's, where they share the folder", () => {
    const other = { ...image(), through: ["unshare", "-Urm"] };
    expect(run(["-e", START], image())).toBe(0);
    expect(run([PROGRAM], other)).toBe(1);
    expect(run(["-e", START], other)).toBe(0);
    expect(readdirSync(folder)).toHaveLength(2);
  });

  it("leaves nothing in the temporary folder of a machine, which other users have too", () => {
    expect(run(["-e", START])).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  it.each(ROWS.filter(({ name }) => name !== "sampler"))(
    "has a place in the image of the $name",
    ({ name }) => {
      const dockerfile = readFileSync(join(ROOT, "containers", name, "Dockerfile"), "utf8");
      expect(dockerfile).toMatch(/^ENV T1_HEARTBEAT=\/tmp\/\S+$/m);
    },
  );
});
