import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { makeTaskFolder } from "../../test/task/folder.ts";
import { HARBOR_CASES } from "../../test/task/harbor-verdicts.ts";
import { loadTask } from "./load.ts";
import type { Task, TaskStep } from "./task.ts";

const MIB = 1024 ** 2;

/** What all settings are when task.toml says nothing. */
const DEFAULT_ENVIRONMENT = {
  os: "linux",
  cpus: undefined,
  memoryBytes: undefined,
  storageBytes: undefined,
  gpus: undefined,
  gpuTypes: undefined,
  tpu: undefined,
  network: { kind: "public" },
  buildTimeoutMs: 600_000,
  workdir: undefined,
  skillsFolder: undefined,
  env: {},
  mcpServers: [],
  healthcheck: undefined,
};

function steps(task: Task): readonly [TaskStep, TaskStep] {
  const [first, second] = task.steps;
  if (second === undefined) throw new Error("the task has fewer than two steps");
  return [first, second];
}

describe("the verdict on a task folder", () => {
  const named = HARBOR_CASES.map((row, index) => ({
    ...row,
    title: `${index} ${JSON.stringify(row.toml)} ${Object.keys(row.files ?? {}).join(" ")}`.slice(0, 120),
  }));

  it.each(named.filter(row => row.weDiffer === undefined))("is Harbor's: $harbor $title", async row => {
    const loading = loadTask(makeTaskFolder(row.toml, row.files));
    if (row.harbor === "accepts") await expect(loading).resolves.toHaveProperty("name");
    else await expect(loading).rejects.toMatchObject(refusal(row.says));
  });

  it.each(named.filter(row => row.weDiffer !== undefined))("differs where $weDiffer: $title", async row => {
    const loading = loadTask(makeTaskFolder(row.toml, row.files));
    if (row.harbor === "refuses") await expect(loading).resolves.toHaveProperty("name");
    else await expect(loading).rejects.toMatchObject(refusal(row.says));
  });

  function refusal(says = "no such text") {
    return { name: "InputError", message: expect.stringContaining(says) };
  }

  it("is a refusal for a folder that is not there", async () => {
    await expect(loadTask("/nowhere/at/all")).rejects.toMatchObject({
      name: "InputError",
      message: "task folder not found: /nowhere/at/all: a folder with a task.toml\n  fix: correct the path",
    });
  });

  it("is a refusal for an instruction that is not UTF-8", async () => {
    const folder = makeTaskFolder("", { "instruction.md": Uint8Array.of(0x64, 0xff) });
    await expect(loadTask(folder)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining("bytes that are not UTF-8"),
    });
  });
});

describe("a task with one step", () => {
  it("has Harbor's defaults, and no resources of its own in any format", async () => {
    for (const toml of [
      "",
      'version = "1.0"',
      'schema_version = "1.1"\n[environment]\n[agent]\n[verifier]',
    ]) {
      const task = await loadTask(makeTaskFolder(toml));
      expect(task.config.environment).toEqual(DEFAULT_ENVIRONMENT);
      expect(task.config).toMatchObject({ solutionEnv: {}, rewardStrategy: "mean" });
      expect(task.steps).toHaveLength(1);
      expect(task.steps[0].agent).toEqual({
        timeoutMs: undefined,
        user: undefined,
        network: { kind: "public" },
      });
      expect(task.steps[0].verifier).toEqual({
        timeoutMs: 600_000,
        user: undefined,
        network: { kind: "public" },
        env: {},
        collect: [],
        place: { kind: "shared" },
      });
      expect(task.warnings).toEqual([]);
    }
  });

  it("takes its name from its folder, or from its package", async () => {
    const folder = makeTaskFolder("");
    expect(await loadTask(`${folder}/../task-folder/.`)).toMatchObject({ name: "task-folder" });
    expect((await loadTask(folder)).folder).toBe(folder);
    expect(await loadTask(makeTaskFolder('task.name = "org/name"'))).toMatchObject({ name: "org/name" });
  });

  it("gives times in milliseconds and sizes in bytes", async () => {
    const task = await loadTask(
      makeTaskFolder(`
        [agent]
        timeout_sec = 1.1
        [verifier]
        timeout_sec = inf
        [environment]
        build_timeout_sec = 90
        cpus = 2.0
        memory = "8G"
        storage_mb = 10
        gpus = 0
        [environment.healthcheck]
        command = "true"
        interval_sec = 0.5
      `),
    );
    expect(task.config.environment).toMatchObject({
      buildTimeoutMs: 90_000,
      cpus: 2,
      memoryBytes: 8192 * MIB,
      storageBytes: 10 * MIB,
      gpus: 0,
      healthcheck: {
        command: "true",
        intervalMs: 500,
        timeoutMs: 30_000,
        startPeriodMs: 0,
        startIntervalMs: 5000,
        retries: 3,
      },
    });
    expect(task.steps[0]).toMatchObject({
      agent: { timeoutMs: 1100 },
      verifier: { timeoutMs: Number.POSITIVE_INFINITY },
    });
  });

  it("reads allow_internet only where no newer key speaks", async () => {
    const networkOf = async (toml: string) =>
      (await loadTask(makeTaskFolder(toml))).config.environment.network;
    expect(await networkOf("environment.allow_internet = false")).toEqual({ kind: "no-network" });
    expect(await networkOf("environment.allow_internet = true")).toEqual({ kind: "public" });
    expect(await networkOf('environment = { allow_internet = false, network_mode = "public" }')).toEqual({
      kind: "public",
    });
    expect(await networkOf("environment = { allow_internet = false, allowed_hosts = [] }")).toEqual({
      kind: "public",
    });
  });

  it("gives a phase its own network, or else that of its environment", async () => {
    const task = await loadTask(
      makeTaskFolder(`
        environment = { network_mode = "allowlist", allowed_hosts = ["Pypi.org.", "10.0.0.0/255.0.0.0"] }
        verifier.network_mode = "public"
      `),
    );
    expect(task.steps[0].agent.network).toEqual({ kind: "allowlist", hosts: ["pypi.org", "10.0.0.0/8"] });
    expect(task.steps[0].verifier.network).toEqual({ kind: "public" });
  });

  it("keeps its metadata as written", async () => {
    const task = await loadTask(
      makeTaskFolder('[metadata]\ntags = ["a"]\nday = 1979-05-27\nbig = 99999999999999999999\nx.y = 1.5'),
    );
    expect(task.metadata).toMatchObject({ tags: ["a"], big: 99999999999999999999n, x: { y: 1.5 } });
    expect(task.metadata.day).toBeInstanceOf(Date);
  });

  it("keeps every byte of its instruction that is not a canary", async () => {
    const instruction = "# BENCHMARK DATA canary GUID 1\r\n\n  first \t\r\n\nlast line   ";
    const task = await loadTask(makeTaskFolder("", { "instruction.md": instruction }));
    expect(task.steps[0].instruction).toBe("  first \t\r\n\nlast line   ");
  });

  it("warns of each key without effect, with its line, in the order of the file", async () => {
    const folder = makeTaskFolder(
      'schema_version = "2.0"\n[environment]\nmemory = 2048\nnodes = 2\n[[environment.mcp_servers]]\nname = "a"\nurl = "u"\nport = 1\n[reward]\nx = 1',
    );
    const file = join(folder, "task.toml");
    expect((await loadTask(folder)).warnings).toEqual([
      `${file}:1: schema_version has no effect: the file is read as 1.4`,
      `${file}:3: environment.memory has no effect: task.toml 1.4 has no such key`,
      `${file}:4: environment.nodes has no effect: task.toml 1.4 has no such key`,
      `${file}:8: environment.mcp_servers[0].port has no effect: task.toml 1.4 has no such key`,
      `${file}:9: reward has no effect: task.toml 1.4 has no such key`,
    ]);
  });

  it("names all faults of its task.toml at once", async () => {
    const folder = makeTaskFolder(
      'nodes = 1\n[agent]\ntimeout_sec = "long"\nuser = 1.5\n[verifier.env]\nA = 1',
    );
    const file = join(folder, "task.toml");
    await expect(loadTask(folder)).rejects.toThrow(
      [
        `task.toml refused: ${file}:3: agent.timeout_sec: expected a number, got "long"`,
        `  also: ${file}:4: agent.user: expected a user name or a numeric user id, got 1.5`,
        `  also: ${file}:6: verifier.env.A: expected text in quotes, got 1`,
        "  fix: correct what is listed; optional keys may also be removed",
      ].join("\n"),
    );
  });

  it("names a fault that shows only once unknown keys are set aside", async () => {
    const folder = makeTaskFolder("[agent]\nunknown = 1\nallowed_hosts = []");
    await expect(loadTask(folder)).rejects.toThrow(`${join(folder, "task.toml")}:3: agent.allowed_hosts`);
  });
});

describe("the source of an environment", () => {
  it("is the compose file before the image, and the image before the Dockerfile", async () => {
    const image = 'environment.docker_image = "img"';
    const compose = { "environment/docker-compose.yaml": "" };
    const bare = { "environment/Dockerfile": null };
    const folder = "environment";
    const dockerfile = "environment/Dockerfile";
    const composeFile = "environment/docker-compose.yaml";
    expect(await sourceOf("")).toEqual({ kind: "dockerfile", folder, dockerfile });
    expect(await sourceOf(image)).toEqual({
      kind: "image",
      image: "img",
      folder,
      dockerfile,
      uploadsFolder: false,
    });
    expect(await sourceOf(image, bare)).toEqual({ kind: "image", image: "img", uploadsFolder: false });
    expect(await sourceOf(image, { ...bare, "environment/data.csv": "1" })).toEqual({
      kind: "image",
      image: "img",
      folder,
      uploadsFolder: true,
    });
    expect(await sourceOf("", compose)).toEqual({ kind: "compose", folder, composeFile, dockerfile });
    expect(await sourceOf(image, { ...compose, ...bare })).toEqual({
      kind: "compose",
      folder,
      composeFile,
      image: "img",
    });
  });

  async function sourceOf(toml: string, files = {}) {
    const task = await loadTask(makeTaskFolder(toml, files));
    const entries = Object.entries(task.environment).map(([key, value]) => [
      key,
      typeof value === "string" && value.startsWith("/") ? relative(task.folder, value) : value,
    ]);
    return JSON.parse(JSON.stringify(Object.fromEntries(entries)));
  }
});

describe("a task with several steps", () => {
  const files = {
    "instruction.md": null,
    "steps/one/instruction.md": "first  \n",
    "steps/one/workdir/setup.sh": "",
    "steps/one/solution/solve.sh": "",
    "steps/two/instruction.md": "second",
    "steps/two/tests/test.sh": "",
    "steps/two/trajectory.json": "{}",
    "solution/solve.sh": "",
  };

  it("merges the settings of task and step as Harbor does", async () => {
    const task = await loadTask(
      makeTaskFolder(
        `
        artifacts = ["/all"]
        multi_step_reward_strategy = "final"
        [agent]
        timeout_sec = 10
        user = "agent"
        network_mode = "no-network"
        [verifier]
        user = 7
        env = { A = "task", B = "task" }
        collect = [{ command = "dump", service = "db" }]
        [[steps]]
        name = "one"
        min_reward = 0.5
        artifacts = [{ source = "/own", exclude = ["*.o"] }]
        healthcheck = { command = "up" }
        [[steps]]
        name = "two"
        min_reward = { reward = 1, speed = "2" }
        agent = { timeout_sec = 20, user = 0, network_mode = "public" }
        verifier = { timeout_sec = 30, user = "root", env = { B = "step" }, collect = [{ command = "more" }] }
      `,
        files,
      ),
    );
    const [one, two] = steps(task);
    expect(task.config.rewardStrategy).toBe("final");
    expect(one).toMatchObject({
      name: "one",
      instruction: "first  \n",
      agent: { timeoutMs: 10_000, user: "agent", network: { kind: "no-network" } },
      verifier: { timeoutMs: 600_000, user: 7, env: { A: "task", B: "task" }, network: { kind: "public" } },
      minReward: { reward: 0.5 },
      healthcheck: { command: "up", retries: 3 },
      artifacts: [{ source: "/all" }, { source: "/own", exclude: ["*.o"] }],
    });
    expect(two).toMatchObject({
      name: "two",
      instruction: "second",
      agent: { timeoutMs: 20_000, user: 0, network: { kind: "public" } },
      verifier: { timeoutMs: 30_000, user: "root", env: { A: "task", B: "step" } },
      minReward: { reward: 1, speed: 2 },
      healthcheck: undefined,
      artifacts: [{ source: "/all" }],
    });
    expect(two.verifier.collect).toEqual([
      { command: "dump", service: "db", timeoutMs: 60_000, user: undefined },
      { command: "more", service: "main", timeoutMs: 60_000, user: undefined },
    ]);
  });

  it("finds the files of each step: shared tests first, the step's own solution before the shared one", async () => {
    const task = await loadTask(makeTaskFolder('steps = [{ name = "one" }, { name = "two" }]', files));
    const [one, two] = steps(task);
    const inTask = (path: string | undefined) =>
      path === undefined ? undefined : relative(task.folder, path);
    expect(one.testsFolders.map(inTask)).toEqual(["tests"]);
    expect(two.testsFolders.map(inTask)).toEqual(["tests", "steps/two/tests"]);
    expect([one, two].map(({ solutionFolder }) => inTask(solutionFolder))).toEqual([
      "steps/one/solution",
      "solution",
    ]);
    expect([one, two].map(({ workdirFolder }) => inTask(workdirFolder))).toEqual([
      "steps/one/workdir",
      undefined,
    ]);
    expect([one, two].map(({ trajectoryFile }) => inTask(trajectoryFile))).toEqual([
      undefined,
      "steps/two/trajectory.json",
    ]);
  });

  it("warns that the task's own verifier timeout reaches no step", async () => {
    const folder = makeTaskFolder('[verifier]\ntimeout_sec = 1200\n[[steps]]\nname = "one"', files);
    const task = await loadTask(folder);
    expect(task.steps[0].verifier.timeoutMs).toBe(600_000);
    expect(task.warnings).toEqual([
      `${join(folder, "task.toml")}:2: verifier.timeout_sec has no effect: each of [[steps]] has its own, 600 by default`,
    ]);
  });
});

describe("a separate verifier", () => {
  it("runs in a fresh copy of the agent's environment when it names no image", async () => {
    const task = await loadTask(
      makeTaskFolder('environment.cpus = 3\nverifier.environment_mode = "separate"'),
    );
    expect(task.steps[0].verifier.place).toMatchObject({
      kind: "separate",
      source: { kind: "dockerfile", folder: join(task.folder, "environment") },
      settings: { cpus: 3 },
      hasTestsInImage: false,
    });
    expect(task.steps[0].testsFolders.map(path => basename(path))).toEqual(["tests"]);
  });

  it("takes its image from the tests folder, and then needs no upload", async () => {
    const task = await loadTask(
      makeTaskFolder('[verifier.environment]\ncpus = 1\nnetwork_mode = "no-network"', {
        "tests/Dockerfile": "FROM y\n",
        "tests/test.sh": null,
      }),
    );
    expect(task.steps[0].verifier).toMatchObject({
      network: { kind: "no-network" },
      place: {
        source: { kind: "dockerfile", dockerfile: join(task.folder, "tests/Dockerfile") },
        settings: { cpus: 1 },
        hasTestsInImage: true,
      },
    });
    expect(task.steps[0].testsFolders).toEqual([]);
  });

  it("of a step comes before that of the task, and may be shared again", async () => {
    const task = await loadTask(
      makeTaskFolder(
        `
        [verifier.environment]
        docker_image = "task-image"
        [[steps]]
        name = "one"
        [steps.verifier.environment]
        docker_image = "step-image"
        [[steps]]
        name = "two"
        verifier.environment_mode = "shared"
      `,
        { "steps/one/instruction.md": "1", "steps/two/instruction.md": "2", "tests/data": "x" },
      ),
    );
    const [one, two] = steps(task);
    expect(one.verifier.place).toMatchObject({
      source: { kind: "image", image: "step-image", uploadsFolder: false },
      hasTestsInImage: true,
    });
    expect(two.verifier.place).toEqual({ kind: "shared" });
  });
});

describe("what is ignored", () => {
  it("is listed once, folders as a whole, and hides nothing outside of tests and solution", async () => {
    const task = await loadTask(
      makeTaskFolder("", {
        "tests/.harborignore": "cache/\n*.log\n!keep.log\n",
        "tests/cache/a": "",
        "tests/cache/b": "",
        "tests/deep/x.log": "",
        "tests/deep/keep.log": "",
        "tests/deep/.harborignore": "only-here",
        "tests/deep/only-here": "",
        "tests/only-here": "",
        "environment/.harborignore": "*",
      }),
    );
    expect(task.ignored).toEqual([
      "tests/.harborignore",
      "tests/cache",
      "tests/deep/.harborignore",
      "tests/deep/only-here",
      "tests/deep/x.log",
    ]);
  });
});

describe("the hashes of a task", () => {
  const files = { "solution/solve.sh": "a", "README.md": "a" };

  it("change in the part that changed, in the whole, and nowhere else", async () => {
    const before = await hashesOf({});
    const changed = async (change: Record<string, string>) => {
      const after = await hashesOf(change);
      return Object.entries(after)
        .filter(([part, hash]) => before[part] !== hash)
        .map(([part]) => part);
    };
    expect(await changed({})).toEqual([]);
    expect(await changed({ "instruction.md": "other" })).toEqual(["instruction", "task"]);
    expect(await changed({ "task.toml": "# other" })).toEqual(["config", "task"]);
    expect(await changed({ "environment/data": "" })).toEqual(["environment", "task"]);
    expect(await changed({ "tests/test.sh": "other" })).toEqual(["tests", "task"]);
    expect(await changed({ "solution/solve.sh": "other" })).toEqual(["solution", "task"]);
    expect(await changed({ "README.md": "other" })).toEqual(["task"]);
  });

  it("cover the steps' own files, with the step they belong to", async () => {
    const toml = 'steps = [{ name = "one" }, { name = "two" }]';
    const instructions = { "steps/one/instruction.md": "1", "steps/two/instruction.md": "2" };
    const inOne = await hashesOf({ "task.toml": toml, ...instructions, "steps/one/tests/data": "x" });
    const inTwo = await hashesOf({ "task.toml": toml, ...instructions, "steps/two/tests/data": "x" });
    expect(inOne.tests).not.toBe(inTwo.tests);
    expect(inOne.instruction).toBe(inTwo.instruction);
  });

  it("follow a part that is a symbolic link to elsewhere in the task", async () => {
    const linked = { "tests/test.sh": null, tests: { link: "shared" } };
    const one = await loadTask(makeTaskFolder("", { ...linked, "shared/test.sh": "1" }));
    const two = await loadTask(makeTaskFolder("", { ...linked, "shared/test.sh": "2" }));
    expect(one.hashes.tests).not.toBe(two.hashes.tests);
    expect(one.hashes.environment).toBe(two.hashes.environment);
  });

  it("do not change between versions", async () => {
    // By Python's hashlib from the definition in hash.ts; a change would make all tasks of stored runs look edited.
    const { task } = (await loadTask(makeTaskFolder("", files))).hashes;
    expect(task).toBe("72314943faa683e36c113d6af6542df036fc0a9d359a6adc9bb42798ad42b401");
  });

  it("cover large files too", async () => {
    const large = (last: number) => {
      const bytes = new Uint8Array((1 << 20) + 1);
      bytes[1 << 20] = last;
      return bytes;
    };
    const one = await loadTask(makeTaskFolder("", { "environment/large": large(1) }));
    const two = await loadTask(makeTaskFolder("", { "environment/large": large(2) }));
    expect(one.hashes.environment).not.toBe(two.hashes.environment);
  });

  async function hashesOf(change: Record<string, string>): Promise<Record<string, string>> {
    const { hashes } = await loadTask(makeTaskFolder("", { ...files, ...change }));
    return { ...hashes };
  }
});

it("reads a folder again and sees what was added", async () => {
  const folder = makeTaskFolder("");
  const before = await loadTask(folder);
  mkdirSync(join(folder, "solution"));
  writeFileSync(join(folder, "solution", "solve.sh"), "");
  const after = await loadTask(folder);
  expect(before.steps[0].solutionFolder).toBeUndefined();
  expect(after.steps[0].solutionFolder).toBe(join(folder, "solution"));
});
