// Whole tasks in containers, by the command a person uses: users, limits, networks by phase, services.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { t1 } from "../run/tiny-run.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
const IMAGE = "t1-test/task:1";

/** @param right a condition of sh */
const tests = (right: string): string =>
  `if ${right}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`;

describe.skipIf(noDocker !== undefined)(`tasks on docker${why}`, { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-docker-tasks-"));
  beforeAll(async () => {
    await importImage(IMAGE, { changes: ["WORKDIR /app"] });
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let count = 0;

  function writeTask(toml: string, files: Readonly<Record<string, string>>): string {
    const task = join(folder, `task-${count++}`);
    const all = {
      "task.toml": `schema_version = "1.4"\n${toml}`,
      "instruction.md": "do it\n",
      "environment/Dockerfile": `FROM ${IMAGE}\n`,
      ...files,
    };
    for (const [path, text] of Object.entries(all)) {
      mkdirSync(dirname(join(task, path)), { recursive: true });
      writeFileSync(join(task, path), text);
    }
    return task;
  }
  const NO_NETWORK = '[environment]\nnetwork_mode = "no-network"\n';
  const check = (task: string, ...more: string[]) =>
    t1("tasks", "check", task, "--sandboxes", "docker", "--report", join(folder, "report.jsonl"), ...more);

  test("run their agent as its user and their tests as root, within their limits", async () => {
    const task = writeTask(`${NO_NETWORK}memory_mb = 64\ncpus = 1\n[agent]\nuser = "worker"\n`, {
      "environment/Dockerfile": `FROM ${IMAGE}\nRUN chmod 1777 /tmp\n`,
      "solution/solve.sh": "id -un > /tmp/out\n",
      "tests/test.sh": tests(
        '[ "$(cat /tmp/out)-$(id -un)" = worker-root ] && [ "$(cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)" = 67108864 ]',
      ),
    });
    expect(await check(task)).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 1") });
  });

  test("run tests as their own user, who can report", async () => {
    const task = writeTask(`${NO_NETWORK}[verifier]\nuser = 1000\n`, {
      "solution/solve.sh": "id -un > /tmp/out\n",
      "tests/test.sh": tests('[ "$(cat /tmp/out)-$(id -un)" = root-worker ]'),
    });
    expect(await check(task)).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 1") });
  });

  test("give tests a network that their agent does not have, unless both share a container", async () => {
    const task = writeTask("", {
      "solution/solve.sh": "ls /sys/class/net | grep -cv '^lo$' > /app/out\n",
      "tests/test.sh": tests('[ "$(cat /app/out)" = 0 ] && ls /sys/class/net | grep -qv "^lo$"'),
    });
    const images = join(folder, "images.yaml");
    writeFileSync(images, "agent: { network: none }\nverifier: { network: host }\n");
    expect(await check(task, "--images", images)).toMatchObject({ code: 0 });
    expect(await check(task, "--images", images, "--mode", "shared")).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("not the same network: none and host"),
    });
  });

  test("have their services, and the tests see what the agent made of them", async () => {
    const task = writeTask(NO_NETWORK, {
      "environment/docker-compose.yaml": `services:
  main:
    depends_on: { counter: { condition: service_healthy } }
    environment: ["WHO=\${NOBODY:-me}"]
  counter:
    build: ./counter
    healthcheck: { test: test -e /tmp/up, interval: 100ms }
`,
      "environment/counter/Dockerfile": `FROM ${IMAGE}\nCOPY count /bin/\nCMD ["sh", "-c", "touch /tmp/up; nc -ll -p 5000 -e sh /bin/count"]\n`,
      "environment/counter/count": "echo x >> /tmp/n; wc -l < /tmp/n\n",
      "solution/solve.sh": 'echo "$WHO $(echo | nc counter 5000)" > /app/out\n',
      "tests/test.sh": tests('[ "$(cat /app/out) $(echo | nc counter 5000)" = "me 1 2" ]'),
    });
    expect(await check(task)).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 1") });
    const tried = await t1("tasks", "try", task, "--sandboxes", "docker", "--agent", "oracle");
    expect(tried).toMatchObject({ code: 0, stdout: expect.stringContaining("reward 1: solved") });
    expect(await t1("tasks", "try", task, "--agent", "oracle")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("runs several containers (environment/docker-compose.yaml)"),
    });
  });

  test("say which engine is missing, and how to name one", async () => {
    const { DOCKER_HOST } = process.env;
    process.env.DOCKER_HOST = `unix://${folder}/none.sock`;
    try {
      expect(await check(writeTask(NO_NETWORK, { "tests/test.sh": "" }))).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/no container engine answers: .*none\.sock.*\n.*podman system service/),
      });
    } finally {
      if (DOCKER_HOST === undefined) delete process.env.DOCKER_HOST;
      else process.env.DOCKER_HOST = DOCKER_HOST;
    }
  });
});
