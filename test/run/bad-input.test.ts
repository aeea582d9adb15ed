// Bad input says what, where and what to do, with exit code 2, and loses nothing.
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { sha256 } from "../../src/files/sha256.ts";
import { readClosed } from "../../src/rollout/close.ts";
import {
  attemptPrefix,
  episodeKey,
  episodePrefix,
  evaluationPrefix,
  iterationPrefix,
  policyPrefix,
} from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { decodeSafetensors } from "../../src/safetensors/format.ts";
import { readJson } from "../../src/store/json.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, type TinyRun, t1, t1Through } from "./tiny-run.ts";

const ROOT = process.getuid?.() === 0;

const SMALL = { tasks: 2, iterations: 1, settings: "rollout:\n  episodes: 2\n" };

describe("bad input", () => {
  let tiny: TinyRun;
  let finished: Promise<TinyRun> | undefined;
  beforeEach(async () => {
    tiny = await makeTinyRun(SMALL);
  });
  afterEach(() => rmSync(tiny.folder, { recursive: true, force: true }));
  afterAll(async () => {
    if (finished !== undefined) rmSync((await finished).folder, { recursive: true, force: true });
  });

  /** A run that is done, for a test to damage: played once, since playing is what takes time. */
  async function copyFinishedRun(): Promise<void> {
    finished ??= playFinishedRun();
    cpSync((await finished).store, tiny.store, { recursive: true });
  }

  const start = (...more: string[]) =>
    t1("run", "start", tiny.config, "--name", "r", "--local", tiny.store, ...more);
  const firstTask = (): string => join(tiny.pool, readdirSync(tiny.pool)[0]);

  it("an unknown key in the config: the line, and what was probably meant", async () => {
    appendFileSync(tiny.config, "samplng:\n  temperature: 1\n");
    const { code, stderr } = await start();
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/run\.yaml:\d+: samplng: unknown key; did you mean sampling\?/),
    ]);
    expect(stderr).not.toContain("    at ");
  });

  it("a config, a pool or a model that is not there", async () => {
    expect(await t1("run", "start", "nowhere.yaml", "--name", "r", "--local", tiny.store)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "cannot read the config: nowhere.yaml: expected a YAML file, got nothing",
      ),
    });
    rmSync(tiny.pool, { recursive: true });
    expect(await start()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/cannot read the pool of tasks: .*\n {2}fix: t1 tasks generate/),
    });
  });

  it.each([
    [
      "a template that is no Jinja",
      "chat_template.jinja",
      "{% if",
      /the chat template cannot be used: \S+\/chat_template\.jinja: /,
    ],
    [
      "a template in another encoding",
      "chat_template.jinja",
      "\xff\xfe\0",
      /cannot read the chat template: \S+jinja: .* not UTF-8/,
    ],
    [
      "a tokenizer of another kind",
      "tokenizer.json",
      '{"model":{"type":"none","vocab":{}}}',
      /not a tokenizer: \S+\/tokenizer\.json: /,
    ],
    [
      "a tokenizer's config that is a list",
      "tokenizer_config.json",
      "[]",
      /not a tokenizer's config: \S+\/tokenizer_config\.json: /,
    ],
    ["a cut config of the model", "config.json", '{"model_type":', /not JSON: \S+\/config\.json/],
    ["weights that are text", "model.safetensors", "version https://git-lfs", /model\.safetensors/],
  ])("%s: the file and no stack, and no run is begun", async (_, name, content, message) => {
    const model = join(tiny.folder, "model");
    if (name.endsWith("jinja")) {
      const file = join(model, "tokenizer_config.json");
      const { chat_template: _, ...others } = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify(others));
    }
    writeFileSync(join(model, name), content, "latin1");
    const { code, stderr } = await start();
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    expect(stderr).not.toContain("    at ");
    expect(existsSync(tiny.store)).toBe(false);
  });

  it("a weight that is no number: which parameter, before anything is played", async () => {
    const file = join(tiny.folder, "model/model.safetensors");
    const bytes = readFileSync(file);
    bytes.writeUInt16LE(0x7fc0, bytes.length - 2); // NaN in bfloat16
    writeFileSync(file, bytes);
    expect(await start()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/parameter \S+ holds NaN: .*\n {2}fix: /),
    });
    expect(existsSync(tiny.store)).toBe(false);
  });

  it.each([
    [["run", "start", "x.yaml", "--name", "r", "--budget-usd", "3"], "'--budget-usd <usd>' needs --stack"],
    [["run", "stop", "r", "--now"], "'--now' needs --stack"],
    [["run", "watch", "r", "--every", "3"], "'--every <seconds>' needs --stack"],
    [["run", "resume", "r", "--stack", "s", "--processes"], "'--processes' is of runs on this machine"],
  ])("an option that nothing would heed: %j", async (words, message) => {
    expect(await t1(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });

  it("a broken task.toml and a task without tests: both, with the line; after their repair the name is free", async () => {
    const file = join(firstTask(), "task.toml");
    const whole = readFileSync(file, "utf8");
    writeFileSync(file, whole.replace("timeout_sec = 60", 'timeout_sec = "soon"'));
    const tests = join(tiny.pool, readdirSync(tiny.pool)[1], "tests");
    renameSync(tests, `${tests}-aside`);
    const { code, stderr } = await start();
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /2 of 2 tasks of the pool cannot be used: [\s\S]*task\.toml:\d+[\s\S]*tests\/test\.sh/,
      ),
    ]);
    expect(existsSync(tiny.store)).toBe(false);
    writeFileSync(file, whole);
    renameSync(`${tests}-aside`, tests);
    expect((await start()).code).toBe(0);
    await checkFinishedRun(await openStore(tiny.store), "r");
  });

  it.each([
    [
      "a context that no prompt fits",
      "agent.contextTokens=20",
      /leaves no room for an answer: .*agent\.contextTokens = 20/,
    ],
    [
      "a context longer than the model's",
      "agent.contextTokens=100000",
      /longer than the model can be run with/,
    ],
    [
      "a pool of evaluations that is not there",
      "evaluation={pool: nowhere, every: 1}",
      /cannot read the pool of tasks: .*nowhere/,
    ],
    ["a policy of a run that is not there", "policy={run: none}", /no such run: none/],
  ])("%s: config check and start say the same, and nothing is left", async (_, setting, message) => {
    const checked = await t1("config", "check", tiny.config, "--set", setting, "--local", tiny.store);
    const { code, stderr } = await start("--set", setting);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    expect(checked).toMatchObject({ code: 2, stderr });
    expect(existsSync(tiny.store)).toBe(false);
  });

  it("a task whose base image nothing stands for, or whose base belongs to somebody else", async () => {
    const dockerfile = join(firstTask(), "environment/Dockerfile");
    writeFileSync(dockerfile, "FROM debian:12\nRUN true\n");
    expect(await start()).toMatchObject({ code: 2, stderr: expect.stringMatching(/debian:12/) });
    const images = join(tiny.folder, "images.yaml");
    // Nobody's sandboxes are root outside, not even root's.
    writeFileSync(images, 'bases: { "debian:12": { folder: /usr } }\n');
    expect(await start("--images", images)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/the image belongs to user 0/),
    });
    expect(existsSync(tiny.store)).toBe(false);
  });

  it("tests that hang, and tests that collect nothing, are graded 0 with their cause and are no failure", async () => {
    const [hanging, empty] = readdirSync(tiny.pool).map(name => join(tiny.pool, name));
    writeFileSync(join(hanging, "tests/test.sh"), "#!/bin/sh\nsleep 60\n");
    writeFileSync(
      join(hanging, "task.toml"),
      readFileSync(join(hanging, "task.toml"), "utf8").replace("timeout_sec = 30", "timeout_sec = 0.5"),
    );
    writeFileSync(
      join(empty, "tests/test.sh"),
      '#!/bin/sh\necho \'{"results":{"tests":[]}}\' > /logs/verifier/ctrf.json\necho 1 > /logs/verifier/reward.txt\n',
    );
    expect((await start()).code).toBe(0);
    const store = await openStore(tiny.store);
    const phase = iterationPrefix("r", 0);
    const closed = await readClosed(store, phase);
    expect(closed.failed).toEqual([]);
    const causes = new Map<string, unknown>();
    for (const { episode, attempt, task, reward } of closed.episodes) {
      const record = await readJson(
        store,
        episodeKey(attemptPrefix(episodePrefix(phase, episode), attempt)),
        EpisodeRecord,
      );
      causes.set(task, [record.report?.cause, reward]);
    }
    const [first, second] = readdirSync(tiny.pool);
    expect(causes.get(first)).toEqual(["verifier_timeout", 0]);
    expect(causes.get(second)).toEqual(["collection_error", 0]);
  });

  it("a corrupt checkpoint: the file and both hashes, before anything is played by it", async () => {
    await copyFinishedRun();
    truncateSync(join(tiny.store, policyPrefix("r", 1), "model.safetensors"), 1000);
    const before = filesOf(tiny.store);
    const evaluate = (...words: string[]) =>
      t1("evaluate", "r", "--pool", tiny.pool, "--episodes", "1", "--local", tiny.store, ...words);
    const corrupt =
      /corrupt checkpoint: runs\/r\/policies\/000001\/model\.safetensors: expected \d+ bytes with SHA-256 \w{64}, got 1000 bytes with SHA-256 \w{64}\n {2}fix: restore/;
    expect(await evaluate()).toMatchObject({ code: 2, stderr: expect.stringMatching(corrupt) });
    expect(await evaluate("--policy", "7")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no such version of the policy: .*000007\/: .*versions 0, 1\n {2}fix: /),
    });
    expect(filesOf(tiny.store)).toEqual(before);
    const fork = ["--set", "policy={run: r}"];
    expect(
      await t1("run", "start", tiny.config, "--name", "fork", "--local", tiny.store, ...fork),
    ).toMatchObject({ code: 2, stderr: expect.stringMatching(corrupt) });
    // A resume that does not need the corrupt part succeeds with the finished episodes.
    expect((await t1("run", "resume", "r", "--local", tiny.store)).code).toBe(0);
  });

  it.each(["policies", "engine"])("corrupt %s of the version that a run goes on from", async kind => {
    await copyFinishedRun();
    // One more iteration to go.
    const run = join(tiny.store, "runs/r/run.json");
    writeFileSync(run, readFileSync(run, "utf8").replace('"iterations": 1', '"iterations": 2'));
    const folder = join(tiny.store, "runs/r", kind, "000001");
    const file = readdirSync(folder).find(name => name.endsWith(".safetensors")) ?? "";
    const bytes = readFileSync(join(folder, file));
    bytes[bytes.length - 3] ^= 1;
    writeFileSync(join(folder, file), bytes);
    const before = filesOf(tiny.store);
    expect(await t1("run", "resume", "r", "--local", tiny.store)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`corrupt checkpoint: runs/r/${kind}/000001/${file}`),
    });
    expect(filesOf(tiny.store)).toEqual(before);
  });

  it("a trajectory that was changed after its iteration was closed stops training before any weight changes", async () => {
    await copyFinishedRun();
    const { arrays, untrain } = await closedTrajectory();
    const bytes = readFileSync(arrays);
    bytes[bytes.length - 200] ^= 1;
    writeFileSync(arrays, bytes);
    await untrain();
    const { code, stderr } = await t1("run", "resume", "r", "--local", tiny.store);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("a trajectory changed after its iteration was closed"),
    ]);
    expect(readdirSync(join(tiny.store, "runs/r/policies"))).toEqual(["000000"]);
  });

  it.each(["tokens", "log_probs", "routes"])(
    "one flipped bit of %s whose hash was made to fit is caught by the sampler's receipt",
    async tensor => {
      await copyFinishedRun();
      const { arrays, closed, untrain } = await closedTrajectory();
      const before = readFileSync(arrays);
      const file = decodeSafetensors(before, arrays);
      const data = file.tensors.get(`chunk.0.${tensor}`);
      const mask = file.tensors.get("chunk.0.mask");
      if (data === undefined || mask === undefined) throw new Error("no chunk");
      // The first sampled token; of its four bytes the lowest, so that the number stays a plausible one.
      const place = tensor === "routes" ? 0 : 4 * mask.bytes.indexOf(1);
      const old = sha256(before);
      data.bytes[place] ^= 1;
      if (tensor === "routes") swapDistinct(data.bytes);
      writeFileSync(arrays, before);
      writeFileSync(closed, readFileSync(closed, "utf8").replace(old, sha256(before)));
      await untrain();
      const { code, stderr } = await t1("run", "resume", "r", "--local", tiny.store);
      expect([code, stderr]).toEqual([70, expect.stringContaining("receipt does not match")]);
      expect(readdirSync(join(tiny.store, "runs/r/policies"))).toEqual(["000000"]);
    },
  );

  it("records that were swapped, lost or cut off: which object, and nothing is told of another episode", async () => {
    await copyFinishedRun();
    const phase = iterationPrefix("r", 0);
    const [one, other] = [0, 1].map(episode =>
      join(tiny.store, episodePrefix(phase, episode), "attempt-000001"),
    );
    const exported = () => t1("episode", "export", "r", "0", "--local", tiny.store);
    const swap = (file: string): void => {
      const [mine, theirs] = [join(one, file), join(other, file)];
      renameSync(mine, `${mine}.aside`);
      renameSync(theirs, mine);
      renameSync(`${mine}.aside`, theirs);
    };
    const transcript = join(one, "transcript.jsonl");
    const whole = readFileSync(transcript);
    writeFileSync(transcript, "");
    expect(await exported()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not the whole transcript .*transcript\.jsonl: expected \d turns, got 0/),
    });
    writeFileSync(transcript, whole);
    swap("arrays.safetensors");
    expect(await exported()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not the trajectory of the episode: .*000000.*arrays\.safetensors/),
    });
    rmSync(join(one, "arrays.safetensors"));
    expect(await exported()).toMatchObject({ code: 2, stderr: expect.stringContaining("no such object") });
    swap("episode.json");
    expect(await exported()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /another episode: .*000000.*expected episode 0, attempt 1, got episode 1/,
      ),
    });
    writeFileSync(join(tiny.store, phase, "plan.jsonl"), "");
    expect(await t1("regrade", "r", "--local", tiny.store)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`corrupt plan: ${phase}plan.jsonl`),
    });
  });

  it("an evaluation of another policy, and a summary that is none of its", async () => {
    await copyFinishedRun();
    const evaluate = () => t1("evaluate", "r", "--pool", tiny.pool, "--episodes", "1", "--local", tiny.store);
    const evaluated = await evaluate();
    expect(evaluated.code, evaluated.stderr).toBe(0);
    const [before, after] = ["pool-v000000-x1", "pool-v000001-x1"].map(name =>
      join(tiny.store, evaluationPrefix("r", name)),
    );
    writeFileSync(join(before, "summary.json"), "");
    expect(await evaluate()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not the summary .*v000000-x1\/summary\.json.*\n.*delete it/),
    });
    rmSync(join(before, "summary.json"));
    cpSync(join(before, "closed.json"), join(after, "closed.json"));
    expect(await evaluate()).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/another policy: .*v000001-x1\/closed\.json: expected version 1, got 0/),
    });
  });

  it("a store that cannot be written", async () => {
    const file = join(tiny.folder, "file");
    writeFileSync(file, "");
    expect(await t1("run", "start", tiny.config, "--name", "r", "--local", file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(file),
    });
  });

  it.skipIf(!ROOT)(
    `a full disk: what is full; with room the run goes on${ROOT ? "" : " (skipped: a small file system needs root)"}`,
    async () => {
      const disk = join(tiny.folder, "disk");
      mkdirSync(disk);
      execFileSync("sh", ["-c", `mount -t tmpfs -o size=400k tmpfs ${disk}`]);
      try {
        const run = (...words: string[]) => t1("run", ...words, "--local", join(disk, "store"));
        const full = await run("start", tiny.config, "--name", "r");
        expect([full.code, full.stderr]).toEqual([
          75,
          expect.stringMatching(/StoreUnavailable.*(disk|space)/i),
        ]);
        execFileSync("sh", ["-c", `mount -o remount,size=64m ${disk}`]);
        const more = await run("start", tiny.config, "--name", "r", "--continue");
        expect(more.code, more.stderr).toBe(0);
        await checkFinishedRun(await openStore(join(disk, "store")), "r");
      } finally {
        execFileSync("sh", ["-c", `umount ${disk}`]);
      }
    },
  );

  it("a machine without bubblewrap: which program, and how to get it", async () => {
    const { code, stderr } = await onMachine("mount --bind /dev/null /usr/bin/bwrap");
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/missing here: bwrap[\s\S]*apt-get install bubblewrap/),
    ]);
  });

  it("a machine that forbids user namespaces: what would allow them; no command runs unisolated", async () => {
    const { code, stderr } = await onMachine("echo 0 > /proc/sys/user/max_user_namespaces");
    expect([code, stderr]).toEqual([2, expect.stringMatching(/does not let bubblewrap isolate[\s\S]*fix: /)]);
    expect(existsSync(tiny.store)).toBe(false);
  });

  /** A trajectory of the closed iteration, and a way to let the runner have died before it trained. */
  async function closedTrajectory() {
    const store = await openStore(tiny.store);
    const phase = iterationPrefix("r", 0);
    const [{ episode, attempt }] = (await readClosed(store, phase)).episodes;
    const untrain = async (): Promise<void> => {
      for (const kind of ["policies", "engine"])
        rmSync(join(tiny.store, "runs/r", kind, "000001"), { recursive: true });
      for (const file of ["metrics.json", "audit.json"]) rmSync(join(tiny.store, phase, file));
      const state = join(tiny.store, "runs/r/state.json");
      writeFileSync(
        state,
        readFileSync(state, "utf8").replace('"policyPublished": 1', '"policyPublished": 0'),
      );
    };
    const arrays = join(
      tiny.store,
      attemptPrefix(episodePrefix(phase, episode), attempt),
      "arrays.safetensors",
    );
    return { arrays, closed: join(tiny.store, phase, "closed.json"), untrain };
  }

  /** Starts the run on a machine that was changed by a command, in namespaces of its own. */
  function onMachine(change: string) {
    const words = ["run", "start", tiny.config, "--name", "r", "--local", tiny.store];
    // The user is root in there, and root's own folder for sandboxes may lie in the usual place.
    const script = `${change} && TMPDIR='${tiny.folder}' exec "$@"`;
    return t1Through(["unshare", "-Urm", "sh", "-c", script, "sh"], ...words);
  }
});

/** Files of a store, except the lease, which every command takes, and the store's own bookkeeping. */
function filesOf(store: string): readonly string[] {
  return readdirSync(store, { recursive: true, encoding: "utf8" })
    .filter(name => !/owner\.json|^\.t1-store/.test(name))
    .sort();
}

async function playFinishedRun(): Promise<TinyRun> {
  const run = await makeTinyRun(SMALL);
  const { code, stderr } = await t1("run", "start", run.config, "--name", "r", "--local", run.store);
  expect(code, stderr).toBe(0);
  return run;
}

/** Keeps the first row of routes a valid one after its first id was flipped: two different experts. */
function swapDistinct(ids: Uint8Array): void {
  if (ids[0] === ids[1]) ids[1] ^= 2;
}
