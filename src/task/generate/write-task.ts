// Writes a generated task as a Harbor folder.
import { chmod, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stringify } from "smol-toml";
import { makeFolders } from "../../files/make-folders.ts";
import { DEMONSTRATION_FILE } from "../demonstration.ts";
import type { GeneratedTask } from "./compose.ts";
import type { Check } from "./goal.ts";
import type { PoolName } from "./pools.ts";

/** `metadata.generator` of generated tasks: no assertion of theirs may hold before anything was done. */
export const GENERATOR = "t1";

/**
 * Name of the stage in their Dockerfiles. It says that nothing but a shell and the usual small programs is needed, so that
 * a sandbox may take this machine's own and needs no image.
 */
export const HOST_STAGE = "t1-host";

const WORKDIR = "/app";
const AGENT_TIMEOUT_SECONDS = 60;
const VERIFIER_TIMEOUT_SECONDS = 30;

/** Writes `<folder>` anew. */
export async function writeTask(
  task: GeneratedTask,
  { pool, name, folder }: { readonly pool: PoolName; readonly name: string; readonly folder: string },
): Promise<void> {
  const texts: [path: string, text: string, executable?: boolean][] = [
    ["task.toml", taskToml(task, pool, name)],
    ["instruction.md", `${task.instruction}\n`],
    ["environment/Dockerfile", dockerfile(task)],
    ["solution/solve.sh", `#!/bin/sh\ncd ${WORKDIR}\n${task.solution.join("\n")}\n`, true],
    ["tests/test.sh", testScript(task.checks), true],
  ];
  if (pool === "demonstrations")
    texts.push([DEMONSTRATION_FILE, `${JSON.stringify({ commands: task.demonstration })}\n`]);
  for (const [path, text, executable = false] of texts)
    await write(join(folder, path), Buffer.from(text), executable);
  for (const [path, { content, executable }] of task.files) {
    await write(join(folder, "environment/files", path), content, executable);
  }
}

async function write(path: string, bytes: Uint8Array, executable: boolean): Promise<void> {
  makeFolders(dirname(path));
  await writeFile(path, bytes);
  if (executable) await chmod(path, 0o755);
}

function taskToml({ kind, families, looks }: GeneratedTask, pool: PoolName, name: string): string {
  return `${stringify({
    schema_version: "1.4",
    task: { name: `t1/${name}`, description: families.join(" and "), keywords: [pool, kind] },
    metadata: { generator: GENERATOR, pool, kind, families, looks },
    agent: { timeout_sec: AGENT_TIMEOUT_SECONDS },
    verifier: { timeout_sec: VERIFIER_TIMEOUT_SECONDS },
    environment: { network_mode: "no-network", workdir: WORKDIR },
  })}\n`;
}

function dockerfile({ files }: GeneratedTask): string {
  const copy = files.size > 0 ? `COPY files/ ${WORKDIR}/\n` : "";
  return `FROM ubuntu:24.04 AS ${HOST_STAGE}\nWORKDIR ${WORKDIR}\n${copy}`;
}

/** Checks conditions one by one and writes CTRF (https://ctrf.io) and reward.txt with nothing but a POSIX shell. */
function testScript(checks: readonly Check[]): string {
  const calls = checks.map(({ name, condition }) => `check ${quote(name)} ${quote(condition)}`);
  return `#!/bin/sh
# One call per assertion: its name, and a condition that holds when it passes.
cd ${WORKDIR} || exit 1
tests= passed=0 failed=0
check() {
  if (eval "$2") >/dev/null 2>&1; then status=passed passed=$((passed + 1)); else status=failed failed=$((failed + 1)); fi
  tests="$tests\${tests:+,}{\\"name\\":\\"$1\\",\\"status\\":\\"$status\\",\\"duration\\":0}"
}
${calls.join("\n")}
printf '{"results":{"tool":{"name":"sh"},"summary":{"tests":%d,"passed":%d,"failed":%d,"skipped":0,"pending":0,"other":0,"start":0,"stop":0},"tests":[%s]}}\\n' \\
  $((passed + failed)) "$passed" "$failed" "$tests" > /logs/verifier/ctrf.json
if [ "$failed" -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
