// The steps of a task, made ready: what is uploaded for each, and what its verifier is made from.
import { realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { InputError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import type { PhaseNetwork } from "../image/images-file.ts";
import type { SandboxSpec } from "../sandbox/sandbox.ts";
import { packFolder } from "../sandbox/tar.ts";
import { readTarEntries, type TarEntry } from "../sandbox/tar-entries.ts";
import { combineHashes, type HashedEntry, hashEntries } from "../task/hash.ts";
import { listFolder } from "../task/list-folder.ts";
import { resolveEnv } from "../task/resolve-env.ts";
import type { Task, TaskStep } from "../task/task.ts";

export interface StepNetworks {
  readonly agent: PhaseNetwork;
  readonly verifier: PhaseNetwork;
}

export interface PreparedStep {
  readonly step: TaskStep;
  /** What a phase's commands get that is more than the sandbox's own nothing. */
  readonly networks: StepNetworks;
  /** Tar archives of the tests, in upload order. */
  readonly tests: readonly Uint8Array[];
  readonly verifierEnv: Readonly<Record<string, string>>;
  /** What a clean verifier is made from: a separate one's own image, or the agent's. */
  readonly verifierSpec: SandboxSpec;
  /** To unpack in the working directory before the agent starts. */
  readonly workdir?: Uint8Array;
}

/** Containers have one network for all their commands: a clean verifier's is not the agent's. Services stay with the agent's. */
function cleanSpec({ services: _, ...spec }: SandboxSpec, { network }: PhaseNetwork): SandboxSpec {
  return spec.image.kind === "docker" ? { ...spec, network } : spec;
}

type SeparatePlace = Extract<TaskStep["verifier"]["place"], { kind: "separate" }>;

/**
 * @param options.specOf makes the sandbox of a separate verifier
 * @throws InputError when the tests are not those that the task's hash was made of
 */
export async function prepareSteps(
  task: Task,
  spec: SandboxSpec,
  {
    specOf,
    networksOf,
  }: {
    readonly specOf: (place: SeparatePlace) => Promise<SandboxSpec>;
    readonly networksOf: (step: TaskStep) => StepNetworks;
  },
): Promise<readonly [PreparedStep, ...PreparedStep[]]> {
  const left = new Set(task.ignored.map(path => join(task.folder, path)));
  const pack = (folder: string): Promise<Uint8Array> => packFolder(folder, path => left.has(path));
  const archives = new Map<string, Uint8Array>();
  const prepareStep = async (step: TaskStep): Promise<PreparedStep> => {
    for (const folder of step.testsFolders)
      if (!archives.has(folder)) archives.set(folder, await pack(folder));
    const { place, env } = step.verifier;
    const networks = networksOf(step);
    return {
      step,
      networks,
      tests: step.testsFolders.flatMap(folder => archives.get(folder) ?? []),
      verifierEnv: resolveEnv(env, process.env, `${task.folder}/task.toml: verifier.env`),
      verifierSpec: cleanSpec(place.kind === "separate" ? await specOf(place) : spec, networks.verifier),
      ...(step.workdirFolder !== undefined && { workdir: await packFolder(step.workdirFolder) }),
    };
  };
  const [first, ...others] = task.steps;
  const steps: [PreparedStep, ...PreparedStep[]] = [await prepareStep(first)];
  for (const step of others) steps.push(await prepareStep(step));
  await assertTests(task, archives);
  return steps;
}

/** What was packed is what was hashed: nobody has changed the tests in between. */
async function assertTests(task: Task, archives: ReadonlyMap<string, Uint8Array>): Promise<void> {
  const records = new Map<string, HashedEntry>();
  for (const [folder, archive] of archives) {
    const at = relative(task.folder, realpathSync(folder));
    for (const entry of readTarEntries(archive)) {
      const record = hashedEntry(`${at}/${entry.path}`, entry);
      if (record !== undefined) records.set(record.path, record);
    }
    // Those that are not uploaded are part of the hash too.
    const isIgnored = (path: string): boolean =>
      task.ignored.some(ignored => path === ignored || path.startsWith(`${ignored}/`));
    const ignored = listFolder(folder).filter(({ path }) =>
      isIgnored(`${relative(task.folder, folder)}/${path}`),
    );
    for (const { path, record } of await hashEntries(folder, ignored)) {
      const full = `${at}/${path}`;
      records.set(full, { path: full, record: record.replace(`\0${path}\0`, `\0${full}\0`) });
    }
  }
  // Tests that an image brings along were not packed here.
  if (task.steps.some(({ verifier: { place } }) => place.kind === "separate" && place.hasTestsInImage))
    return;
  const entries = [...records.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  if (combineHashes(entries) === task.hashes.tests) return;
  throw new InputError({
    what: "the tests changed while they were read",
    where: task.folder,
    expected: `expected hash ${task.hashes.tests}`,
    fix: "leave the pool alone while a run works on it",
  });
}

/** As src/task/hash.ts makes it of a file of this machine. */
function hashedEntry(path: string, { kind, mode, content, target }: TarEntry): HashedEntry | undefined {
  if (kind !== "file" && kind !== "link") return undefined;
  const hash = kind === "link" ? sha256(Buffer.from(target)) : sha256(content);
  const name = kind === "link" ? "link" : (mode & 0o100) !== 0 ? "program" : "file";
  return { path, record: `${name}\0${path}\0${hash}\0` };
}
