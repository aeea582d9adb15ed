// Every attack, played through a whole attempt in sandboxes of one provider.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ImageBuilder } from "../../src/image/image-builder.ts";
import type { PreparedTask } from "../../src/rollout/prepare.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { TaskStage } from "../verifier/play-task.ts";
import { ATTACKS } from "./attacks.ts";

/** A provider may have to make its image first. */
const OPENING_MS = 120_000;

const task = (base: string): Readonly<Record<string, string>> => ({
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
memory_mb = 512
`,
  "environment/Dockerfile": `FROM ${base}\nWORKDIR /app\nENV PATH=/app/bin:/usr/bin:/bin\nCOPY readme.txt /app/\n`,
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
});

export interface RedTeamSubject {
  readonly provider: SandboxProvider;
  /** Builder of the provider's images; without one, the builder for bubblewrap. */
  readonly builder?: ImageBuilder;
  /** Image of the task's FROM line: it has a shell, perl and the usual small programs. */
  readonly base: string;
}

/** An attack that a provider cannot withstand in full, and why. It has to fail there, so that the list does not outlive its reasons. */
export interface RedTeamException {
  readonly attack: string;
  readonly reason: string;
}

/** @param open makes the provider once for all attacks */
export function redTeam(
  open: () => Promise<RedTeamSubject>,
  { except }: { readonly except: readonly RedTeamException[] },
): void {
  let provider: SandboxProvider;
  let stage: TaskStage;
  let prepared: PreparedTask;
  beforeAll(async () => {
    const subject = await open();
    provider = subject.provider;
    stage = new TaskStage(provider, subject.builder);
    prepared = await stage.prepare(stage.writeTask(task(subject.base)));
  }, OPENING_MS);
  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  }, OPENING_MS);

  for (const { name, commands, reward, evidence = [], mode = "hardened", sees, neverSees } of ATTACKS) {
    const exception = except.find(({ attack }) => attack === name);
    const why = exception === undefined ? "" : ` (not here: ${exception.reason})`;
    const attack = exception === undefined ? test.concurrent : test.concurrent.fails;
    attack(`${name}: earns ${reward}${why}`, { timeout: 120_000 }, async ({ expect: check }) => {
      const played = await stage.play(prepared, [commands], { mode, keepFiles: false });
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

  test("an exception names an attack", () =>
    expect(except.filter(({ attack }) => !ATTACKS.some(({ name }) => name === attack))).toEqual([]));
}
