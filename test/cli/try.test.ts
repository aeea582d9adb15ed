// `t1 tasks try` as a person sees it: behind a real terminal.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { t1 } from "../run/tiny-run.ts";
import { openBehindTerminal } from "./behind-terminal.ts";

const SETTINGS = '[environment]\nnetwork_mode = "no-network"\n';
const DOCKERFILE = "FROM ubuntu:24.04 AS t1-host\nWORKDIR /app\n";
/** @returns a script that reports whether a file holds a word */
const tests = (file: string): string => `if grep -qx right ${file}; then s=passed r=1; else s=failed r=0; fi
echo '{"results":{"tool":{"name":"sh"},"tests":[{"name":"${file} is right","status":"'$s'"}]}}' > /logs/verifier/ctrf.json
echo $r > /logs/verifier/reward.txt
`;

const ONE_STEP = {
  "task.toml": `schema_version = "1.4"\n${SETTINGS}`,
  "instruction.md": "Write the word into out.txt.\n",
  "environment/Dockerfile": DOCKERFILE,
  // Names no shell, and needs bash.
  "tests/test.sh": `[[ -d /app ]] || exit 1\n${tests("out.txt")}`,
  "solution/solve.sh": `words=(wrong right)\necho $\{words[1]} > out.txt\n`,
};
const TWO_STEPS = {
  "task.toml": `schema_version = "1.4"\n${SETTINGS}${["first", "second"].map(name => `[[steps]]\nname = "${name}"\nmin_reward = 1\n`).join("")}`,
  "environment/Dockerfile": DOCKERFILE,
  ...Object.fromEntries(
    ["first", "second"].flatMap(name => [
      [`steps/${name}/instruction.md`, `Do the ${name}.\n`],
      [`steps/${name}/tests/test.sh`, tests(`${name}.txt`)],
      [`steps/${name}/solution/solve.sh`, `echo right > ${name}.txt\n`],
    ]),
  ),
};

describe("t1 tasks try", () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-try-"));
  const [oneStep, twoSteps] = [join(folder, "one"), join(folder, "two")];
  beforeAll(() => {
    for (const [task, files] of [
      [oneStep, ONE_STEP],
      [twoSteps, TWO_STEPS],
    ] as const)
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(task, path)), { recursive: true });
        writeFileSync(join(task, path), text);
      }
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function open(...words: readonly string[]) {
    const { pty, until, ended } = openBehindTerminal(["tasks", "try", ...words]);
    return { pty, until, ended, type: (text: string) => pty.write(text) };
  }

  test("tells the task, passes every key and the size of the window in, and grades what was done", async () => {
    const { pty, until, ended, type } = open(oneStep);
    await until("Write the word into out.txt.");
    await until("exit or Ctrl-D leaves it and grades");
    type("stty size\r");
    await until("30 90");
    pty.resize(100, 40);
    type("until [ \"$(stty size)\" = '40 100' ]; do sleep 0.1; done; echo wide$((1+1))\r");
    await until("wide2");
    type("sleep 1000\r");
    await until("sleep 1000");
    await sleep(300);
    type("\x03");
    type("echo interrupted: $?\r");
    await until("interrupted: 130");
    // A program that asks where the cursor is gets one answer, from the sandbox's own terminal.
    // biome-ignore lint/suspicious/noTemplateCurlyInString: for a shell
    type("IFS= read -rsd R -p $'\\e[6n' a; read -rst 0.5 -n1 b; echo \"answers:${#a}:$b.\"\r");
    await until("answers:");
    await until(":.");
    type("echo right > out.txt\r");
    type("\x04");
    await until("out.txt is right  passed");
    await until("reward 1: solved");
    expect(await ended).toBe(0);
  });

  test("goes from step to step, and ends at the first gate that is not passed", async () => {
    const { until, ended, type } = open(twoSteps);
    await until("step 1/2 (first)");
    await until("Do the first.");
    await until("leaves it and grades");
    type("echo right > first.txt; exit\r");
    await until("Do the second.");
    await until("leaves it and grades");
    type("exit\r");
    await until("second.txt is right  failed");
    await until("not solved");
    expect(await ended).toBe(1);
  });

  test("lets the solution or nobody play, from any step on", async () => {
    const [solved, nothing, last] = await Promise.all([
      t1("tasks", "try", oneStep, "--agent", "oracle", "--json"),
      t1("tasks", "try", oneStep, "--agent", "nop"),
      t1("tasks", "try", twoSteps, "--agent", "oracle", "--step", "second", "--json"),
    ]);
    expect([solved.code, JSON.parse(solved.stdout)]).toMatchObject([
      0,
      { agent: "oracle", resolved: true, reward: 1, steps: [{ tests: [{ status: "passed" }] }] },
    ]);
    expect(nothing).toMatchObject({ code: 1, stdout: expect.stringContaining("reward 0: not solved") });
    expect([last.code, JSON.parse(last.stdout).steps]).toMatchObject([0, [{ name: "second", outcome: 1 }]]);
  });

  test("says what it cannot do", async () => {
    expect(await t1("tasks", "try", oneStep)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/there is no terminal.*--agent oracle/s),
    });
    expect(await t1("tasks", "try", twoSteps, "--agent", "nop", "--step", "3")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no such step: 3"),
    });
  });
});
