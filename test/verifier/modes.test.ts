// Whole attempts on small tasks: the modes of the verifier, several steps, kept files and grading them again.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { regrade } from "../../src/rollout/regrade.ts";
import { admit } from "../../src/run/claim.ts";
import { attemptPrefix, episodePrefix, iterationPrefix, keptIndexKey, planKey } from "../../src/run/keys.ts";
import { RewardRecord } from "../../src/run/records.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { encodeJsonLines, readJson } from "../../src/store/json.ts";
import { putOnce } from "../../src/store/write-once.ts";
import { KeptIndex } from "../../src/verifier/keep-files.ts";
import { TaskStage } from "./play-task.ts";

const TOML = `schema_version = "1.4"
[agent]
timeout_sec = 30
[verifier]
timeout_sec = 5
[environment]
network_mode = "no-network"
workdir = "/app"
`;
const BASE = {
  "instruction.md": "Do it.\n",
  "task.toml": TOML,
  "environment/Dockerfile": "FROM ubuntu:24.04 AS t1-host\nWORKDIR /app\nCOPY a.txt /app/\n",
  "environment/a.txt": "a\n",
};
const script = (condition: string): string =>
  `#!/bin/sh\nif ${condition}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`;

describe("a verifier", () => {
  let provider: SandboxProvider;
  let stage: TaskStage;
  beforeAll(async () => {
    provider = createBubblewrapProvider();
    stage = new TaskStage(provider);
  });
  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });

  it("that is hardened sees the work: new, changed and deleted files, their modes, links and times", async () => {
    const condition =
      "[ -x /opt/pkg/bin/x ] && grep -q port=1 /etc/own.conf && [ ! -e a.txt ] && [ b -ef c ] && [ c -nt old ] && [ -L l ] && [ $PWD = /app ] && [ $HOME = /root ]";
    const task = stage.writeTask({ ...BASE, "tests/test.sh": script(condition) });
    const commands = [
      "mkdir -p /opt/pkg/bin; echo '#!/bin/sh' > /opt/pkg/bin/x; chmod +x /opt/pkg/bin/x",
      "echo port=1 > /etc/own.conf; rm a.txt; touch old; sleep 0.05; echo b > b; ln b c; ln -s nowhere l",
    ];
    const { reward, record } = await stage.play(task, [commands]);
    expect([reward, record.verifier?.mode, record.tampering]).toEqual([1, "hardened", undefined]);
  });

  it("that is shared runs where the agent was, and says what it found there", async () => {
    const task = stage.writeTask({ ...BASE, "tests/test.sh": script("[ -e /etc/ld.so.preload ]") });
    const commands = ["echo /app/x.so > /etc/ld.so.preload"];
    const shared = await stage.play(task, [commands], { mode: "shared", keepFiles: false });
    expect(shared.reward).toBe(1);
    const [found] = shared.record.tampering?.found ?? [];
    expect(found).toEqual({
      kind: "loader_file",
      path: "/etc/ld.so.preload",
      change: "added",
      effect: "present",
    });
    const hardened = await stage.play(task, [commands]);
    expect(hardened.reward).toBe(0);
    expect(hardened.record.tampering?.found[0]?.effect).toBe("left_out");
  });

  it("that is separate gets declared artifacts, at their paths, and nothing else", async () => {
    const toml = TOML.replace(
      "[agent]",
      'artifacts = ["out.txt", {source = "/srv/d", exclude = ["*.log"]}]\n[agent]',
    )
      .replace("[verifier]", '[verifier]\nenvironment_mode = "separate"')
      .concat('[[verifier.collect]]\ncommand = "echo seen > /logs/artifacts/state"\n');
    const condition =
      "grep -q right /app/out.txt && [ -e /srv/d/k ] && [ ! -e /srv/d/x.log ] && [ ! -e /srv/d/l ] && [ ! -e /app/other ] && [ -e /app/a.txt ] && grep -q seen /logs/artifacts/state";
    const task = stage.writeTask({ ...BASE, "task.toml": toml, "tests/test.sh": script(condition) });
    const commands = [
      "echo right > out.txt; echo x > other; rm a.txt; mkdir -p /srv/d; touch /srv/d/k /srv/d/x.log; ln -s /etc /srv/d/l",
    ];
    const { reward, record } = await stage.play(task, [commands]);
    expect([reward, record.verifier?.mode]).toEqual([1, "separate"]);
  });

  it("gets artifacts of one name at their own paths (harbor#1733)", async () => {
    const toml = TOML.replace("[agent]", 'artifacts = ["/srv/a/out.txt", "/srv/b/out.txt"]\n[agent]').replace(
      "[verifier]",
      '[verifier]\nenvironment_mode = "separate"',
    );
    const condition = "grep -qx one /srv/a/out.txt && grep -qx two /srv/b/out.txt";
    const task = stage.writeTask({ ...BASE, "task.toml": toml, "tests/test.sh": script(condition) });
    const commands = ["mkdir -p /srv/a /srv/b; echo one > /srv/a/out.txt; echo two > /srv/b/out.txt"];
    expect((await stage.play(task, [commands])).reward).toBe(1);
  });

  it("reads assertions from the report, not from what the tests printed (cube-harness#444)", async () => {
    const tests = [
      { name: "a", status: "passed" },
      { name: "b", status: "failed" },
    ];
    const noisy = `#!/bin/sh
head -c 80000 /dev/zero | tr '\\0' n
echo "===== 2 passed in 0.01s ====="
echo '${JSON.stringify({ results: { tool: { name: "t" }, tests } })}' > /logs/verifier/ctrf.json
echo 0 > /logs/verifier/reward.txt
`;
    const task = stage.writeTask({ ...BASE, "tests/test.sh": noisy });
    const { record } = await stage.play(task, [["true"]]);
    expect(record.report?.tests.map(({ status }) => status)).toEqual(tests.map(({ status }) => status));
    // Without a report the verifier trusts nothing, whatever the tests printed.
    const silent = stage.writeTask({ ...BASE, "tests/test.sh": '#!/bin/sh\necho "=== 2 passed ==="\n' });
    const { record: without, reward } = await stage.play(silent, [["true"]]);
    expect([reward, without.report?.tests, without.report?.cause]).toEqual([0, [], "no_report"]);
  });

  it("whose tests never start without any agent is a failure, and the agent's doing only where it is", async () => {
    const broken = stage.writeTask({ ...BASE, "tests/test.sh": "#!/bin/sh\nuvx pytest || exit 1\n" });
    const failed = await stage.play(broken, [["true"]]);
    expect(failed.record.failure).toMatchObject({ name: "VerifierBootstrapFailed", retryable: true });
    const needy = stage.writeTask({
      ...BASE,
      "tests/test.sh":
        '#!/bin/sh\n[ -e /app/lock ] && { echo "E: Could not get lock /var/lib/dpkg/lock"; exit 1; }\necho 0 > /logs/verifier/reward.txt\n',
    });
    const { record, reward } = await stage.play(needy, [["touch lock"]]);
    expect([record.failure, record.endReason, record.report?.cause, reward]).toEqual([
      undefined,
      "agent_error",
      "verifier_bootstrap_failed",
      0,
    ]);
  });

  it("B58: grades what is there when time is up, though a pipe hides how the command ended", async () => {
    const toml = TOML.replace("timeout_sec = 30", "timeout_sec = 2");
    const task = stage.writeTask({
      ...BASE,
      "task.toml": toml,
      "tests/test.sh": script("grep -qx partial out.txt"),
    });
    const { record, reward } = await stage.play(task, [["echo partial > out.txt; sleep 60 | tee log"]]);
    expect([record.endReason, record.failure, reward]).toEqual(["time_limit", undefined, 1]);
  });

  it("B58: that crashes before it has said anything is a failure without a reward, in every mode", async () => {
    const crash = "#!/bin/sh\nuvx pytest | tee log\nexit 1\n";
    const task = stage.writeTask({ ...BASE, "tests/test.sh": crash });
    for (const mode of ["hardened", "shared"] as const) {
      const { record, reward } = await stage.play(task, [["true"]], { mode, keepFiles: false });
      expect([record.endReason, record.failure?.name, record.report, reward]).toEqual([
        ...["failure", "VerifierBootstrapFailed"],
        ...[undefined, undefined],
      ]);
    }
  });

  it("B62: is not asked about an agent that never ran: that is a failure, whatever the tests would find", async () => {
    const task = stage.writeTask({
      ...BASE,
      "instruction.md": "word ".repeat(60_000),
      "tests/test.sh": script("true"),
    });
    const { record, reward } = await stage.play(task, [["true"]]);
    expect(record.failure).toMatchObject({ name: "AgentNotStarted", layer: "runner", retryable: false });
    expect([record.report, record.turnCount, reward]).toEqual([undefined, 0, undefined]);
  });

  it("leaves out what .harborignore names, and links of the tests stay links", async () => {
    const task = stage.writeTask({
      ...BASE,
      "tests/test.sh": script(
        "[ ! -e /tests/notes.md ] && [ ! -e /tests/.harborignore ] && [ -e /tests/data ]",
      ),
      "tests/.harborignore": "notes.md\n",
      "tests/notes.md": "secret\n",
      "tests/data": "x\n",
    });
    expect((await stage.play(task, [["true"]])).reward).toBe(1);
    const prepared = await stage.prepare(task);
    writeFileSync(join(task, "tests/data"), "y\n");
    expect((await stage.prepare(task)).task.hashes.tests).not.toBe(prepared.task.hashes.tests);
  });

  const step = (name: string, more = ""): string => `[[steps]]\nname = "${name}"\n${more}`;
  const steps = (strategy: string, gate: string): Record<string, string> => ({
    ...BASE,
    "task.toml": `schema_version = "1.4"\nmulti_step_reward_strategy = "${strategy}"\n${TOML.replace(/^.*\n/, "")}${step("one", `min_reward = ${gate}\n[steps.verifier]\ntimeout_sec = 5\n`)}${step("two")}`,
    "steps/one/instruction.md": "First.\n",
    "steps/one/tests/test.sh": script("[ -e /app/first ] && [ ! -e /app/second ]"),
    "steps/two/instruction.md": "Second.\n",
    "steps/two/workdir/given.txt": "given\n",
    "steps/two/workdir/setup.sh": "cat given.txt > made.txt\n",
    "steps/two/tests/test.sh": script(
      "[ -e /app/first ] && [ -e /app/second ] && grep -q given /app/made.txt",
    ),
  });

  it("grades each step before the next begins, in one sandbox and one conversation", async () => {
    const task = stage.writeTask(steps("mean", "1"));
    const { record, reward, observations } = await stage.play(task, [
      ["touch first"],
      ["ls", "touch second"],
    ]);
    expect(record.failure).toBeUndefined();
    expect(record.steps?.list.map(({ name, report }) => [name, report.outcome])).toEqual([
      ["one", 1],
      ["two", 1],
    ]);
    expect([reward, record.endReason, record.turnCount]).toEqual([1, "completed", 5]);
    expect(observations[2]).toContain("made.txt");
  });

  it("ends at a gate that is not passed, and takes the mean of what ran, or the last", async () => {
    const stopped = await stage.play(stage.writeTask(steps("mean", "1")), [["true"]]);
    expect([stopped.reward, stopped.record.steps?.list.length, stopped.record.turnCount]).toEqual([0, 1, 2]);
    const open = stage.writeTask(steps("mean", "0"));
    expect((await stage.play(open, [["true"], ["touch first second"]])).reward).toBe(0.5);
    const final = stage.writeTask(steps("final", "0"));
    expect((await stage.play(final, [["true"], ["touch first second"]])).reward).toBe(1);
  });

  it("keeps what was left, and grades it again beside the first score", async () => {
    const files = { ...BASE, "tests/test.sh": script("grep -q wrong /app/out.txt") };
    const folder = stage.writeTask(files);
    const commands = ["echo right > out.txt; rm a.txt; echo x > /etc/ld.so.preload; mkdir d; chmod 700 d"];
    const played = await stage.play(folder, [commands], { mode: "hardened", keepFiles: true });
    expect(played.reward).toBe(0);
    expect(played.record.verifier?.kept).toMatchObject({ sizeBytes: expect.any(Number) });

    const { store, record } = played;
    const [run = ""] = await Array.fromAsync(store.folders("runs/"));
    const phase = iterationPrefix(run.replaceAll("/", ""), 0);
    const at = attemptPrefix(episodePrefix(phase, 0), 1);
    expect((await readJson(store, keptIndexKey(at, 0), KeptIndex)).deleted).toEqual(["/app/a.txt"]);
    const name = folder.slice(folder.lastIndexOf("/") + 1);
    const planned = { episode: 0, task: name, taskHash: record.taskHash, repeat: 0, seed: "s" };
    await putOnce(store, planKey(phase), encodeJsonLines([planned]));
    await admit(store, episodePrefix(phase, 0), 1);

    // The tests were wrong, and are repaired.
    writeFileSync(
      join(folder, "tests/test.sh"),
      script("grep -q right /app/out.txt && [ ! -e a.txt ] && [ ! -e /etc/ld.so.preload ] && [ -d d ]"),
    );
    expect(readFileSync(join(folder, "tests/test.sh"), "utf8")).toContain("right");
    const input = {
      phase,
      poolFolder: join(folder, ".."),
      mode: "hardened" as const,
      rewardConfig: { kind: "binary", scale: 20 } as const,
      now: () => new Date(0),
    };
    const services = { store, sandboxes: provider, images: stage.images, onEpisode: () => undefined };
    const [first] = await regrade(input, services);
    const [second] = await regrade(input, services);
    expect([first?.after, second?.after, first?.key === second?.key]).toEqual([1, 1, false]);
    const written = await readJson(store, first?.key ?? "", RewardRecord);
    expect(written).toMatchObject({ reward: { value: 1 }, regraded: { mode: "hardened" } });
  });
});
