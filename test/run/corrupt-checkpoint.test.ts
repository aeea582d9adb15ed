// The trainer finds a corrupt checkpoint while a state machine is in progress, after every check before it passed.
import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { withLocalRun } from "../../src/cli/local-runner.ts";
import { policyPrefix } from "../../src/run/keys.ts";
import type { StateName } from "../../src/stages/states.ts";
import { openStore } from "../../src/store/open-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

const REFUSED: StateName = "ShardRefused";
const OTHER_MARKET: StateName = "PlayOnDemand";

let tiny: TinyRun;
beforeAll(async () => {
  tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout:\n  episodes: 4\n" });
  const { code, stderr } = await t1("run", "start", tiny.config, "--name", "r", "--local", tiny.store);
  expect(code, stderr).toBe(0);
  truncateSync(join(tiny.store, policyPrefix("r", 1), "model.safetensors"), 1000);
}, 120_000);
afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

it.each([
  ["in-process", "in-process"],
  ["in-process", "served"],
  ["processes", "in-process"],
] as const)("ends the machine at once, with drivers as %s and a sampler %s", async (tasks, sampler) => {
  const store = await openStore(tiny.store);
  const evaluation = `broken-${tasks}-${sampler}`;
  const options = { sandboxes: "bubblewrap", imagesFile: undefined, tasks, sampler } as const;
  let session = "";
  const evaluated = withLocalRun(
    store,
    "r",
    "evaluation",
    { ...options, onEvent: () => {}, onSynthesis: () => {} },
    async () => {},
    async run => {
      session = run.session;
      const pool = { folder: tiny.pool, episodes: 1 };
      await run.evaluate(`r-${session}-policy`, { run: "r", evaluation, version: 1, pool });
    },
  );
  await expect(evaluated).rejects.toMatchObject({
    name: "InputError",
    message: expect.stringMatching(
      /corrupt checkpoint: runs\/r\/policies\/000001\/model\.safetensors: expected/,
    ),
  });
  // No attempt was recorded as a failure of the infrastructure, and no shard was played in the other market.
  const of = join(tiny.store, "runs/r/evaluations", evaluation);
  const files = readdirSync(of, { recursive: true, encoding: "utf8" });
  expect(files.filter(name => name.endsWith("claim.json"))).not.toEqual([]);
  expect(files.filter(name => name.endsWith("episode.json"))).toEqual([]);
  const journals = join(tiny.store, "runs/r/executions", session);
  const history = readdirSync(journals)
    .map(name => readFileSync(join(journals, name), "utf8"))
    .join("");
  expect(history).toContain(REFUSED);
  expect(history).not.toMatch(new RegExp(`"TaskStateEntered"[^\\n]*${OTHER_MARKET}`));
});
