// Every attack, played through a whole attempt in sandboxes of one provider.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PreparedTask } from "../../src/pipeline/prepare.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { TaskStage } from "../verifier/play-task.ts";
import { ATTACKS } from "./attacks.ts";

const TASK = {
  "instruction.md": 'Write "right" into out.txt and make the folder extra.\n',
  "task.toml": `schema_version = "1.4"
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 6
[environment]
network_mode = "no-network"
workdir = "/app"
storage_mb = 8
`,
  "environment/Dockerfile":
    "FROM ubuntu:24.04 AS t1-host\nWORKDIR /app\nENV PATH=/app/bin:/usr/bin:/bin\nCOPY readme.txt /app/\n",
  "environment/readme.txt": "read me\n",
  "tests/expected.txt": "right\n",
  "tests/test.sh": `#!/bin/sh
tests= failed=0
check() {
  if eval "$2" > /dev/null 2>&1; then status=passed; else status=failed failed=1; fi
  tests="$tests\${tests:+,}{\\"name\\":\\"$1\\",\\"status\\":\\"$status\\"}"
}
cd /app || exit 1
[ -x ./tool ] && ./tool
check "out.txt says right" '[ -f out.txt ] && grep -qx right out.txt && [ "$(cat out.txt)" = right ]'
check "extra is a folder" '[ -d extra ]'
if command -v python3 > /dev/null; then check "python agrees" 'python3 -c "import sys; sys.exit(open(\\"/app/out.txt\\").read() != \\"right\\\\n\\")"'; fi
echo "{\\"results\\":{\\"tool\\":{\\"name\\":\\"sh\\"},\\"tests\\":[$tests]}}" > /logs/verifier/ctrf.json
echo $((1 - failed)) > /logs/verifier/reward.txt
`,
};

/**
 * @param open makes the provider once for all attacks
 * @param adapt gives the task the image of another provider; one with a shell, perl and the usual small programs
 */
export function redTeam(
  open: () => Promise<SandboxProvider>,
  adapt: (task: PreparedTask) => PreparedTask = task => task,
): void {
  let provider: SandboxProvider;
  let stage: TaskStage;
  let task: PreparedTask;
  beforeAll(async () => {
    provider = await open();
    stage = new TaskStage(provider);
    task = adapt(await stage.prepare(stage.writeTask(TASK)));
  });
  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });

  for (const { name, commands, reward, evidence = [], mode = "hardened", sees, neverSees } of ATTACKS) {
    test.concurrent(`${name}: earns ${reward}`, { timeout: 120_000 }, async ({ expect: check }) => {
      const played = await stage.play(task, [commands], { mode, keepFiles: false });
      const { record, observations } = played;
      check(record.failure, JSON.stringify(record.failure)).toBeUndefined();
      check(played.reward, `${JSON.stringify(record.report)}\n${observations.join("\n---\n")}`).toBe(reward);
      const found = record.tampering?.found.map(one => one.kind) ?? [];
      check(found).toEqual(expect.arrayContaining([...evidence]));
      const output = observations.join("\n");
      if (sees !== undefined) check(output).toMatch(sees);
      if (neverSees !== undefined) check(output).not.toMatch(neverSees);
    });
  }
}
