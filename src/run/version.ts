// A version of a run: the policy that samplers load, and beside it the state from which the training engine goes on.
// Only the engine knows what lies in its state. It is written first and the policy last, so that the run can resume from
// every version whose policy counts. Each of the two is kept once it has a manifest, even if a training that is repeated
// comes to other bits.
import { InputError, InvariantError } from "../failure/errors.ts";
import { type FileSet, filesBelow } from "../files/content.ts";
import {
  type Contents,
  deleteFolder,
  isWhole,
  openFolder,
  type StoredFolder,
  writeFolder,
} from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { enginePrefix, policiesPrefix, policyPrefix } from "./keys.ts";

export interface Version {
  readonly run: string;
  readonly version: number;
}

/** How an engine's state names the critic, as a model folder of its own, because other runs may start from it. */
const CRITIC_FOLDER = "critic/";

export function hasPolicy(store: ObjectStore, { run, version }: Version): Promise<boolean> {
  return isWhole(store, policyPrefix(run, version));
}

/** @throws InputError that names the versions which are kept, when this one is not */
export async function openPolicy(store: ObjectStore, { run, version }: Version): Promise<StoredFolder> {
  const folder = await openFolder(store, policyPrefix(run, version));
  if (folder !== undefined) return folder;
  const kept = (await Array.fromAsync(store.folders(policiesPrefix(run)))).map(Number);
  throw new InputError({
    what: "no such version of the policy",
    where: `${store.url}/${policyPrefix(run, version)}`,
    expected: `expected a folder with manifest.json; there are versions ${kept.join(", ") || "none"}`,
    fix: "take one of these versions, or restore the folder from a copy; keep.policyEvery says which stay",
  });
}

/** The newest policy up to `version` that was kept. @returns undefined when there is none */
export async function openNewestPolicy(
  store: ObjectStore,
  { run, version }: Version,
): Promise<StoredFolder | undefined> {
  for (let at = version; at >= 0; at--)
    if (await hasPolicy(store, { run, version: at })) return openFolder(store, policyPrefix(run, at));
  return undefined;
}

/** @returns undefined where there is none: version 0 has one only if the run started with a critic */
export function openEngineState(
  store: ObjectStore,
  { run, version }: Version,
): Promise<StoredFolder | undefined> {
  return openFolder(store, enginePrefix(run, version));
}

/** The critic of a version as a model folder. @returns undefined when it has none */
export async function openCritic(store: ObjectStore, version: Version): Promise<FileSet | undefined> {
  const state = await openEngineState(store, version);
  const critic = state && filesBelow(state, CRITIC_FOLDER);
  return critic === undefined || critic.names.length === 0 ? undefined : critic;
}

/** Writes the engine's state, or keeps the one that counts already; then `files` is not read. */
export function writeEngineState(
  store: ObjectStore,
  { run, version }: Version,
  files: Contents,
): Promise<StoredFolder> {
  return writeFolder(store, enginePrefix(run, version), files);
}

/** The files of a critic as they lie in an engine's state. */
export async function* asCritic(files: Contents): Contents {
  for await (const { path, body } of files) yield { path: CRITIC_FOLDER + path, body };
}

/**
 * Writes the policy, or keeps the one that counts already. Comes after everything else of the version, its metrics too.
 *
 * @throws InvariantError when the engine could not go on from this version
 */
export async function writePolicy(
  store: ObjectStore,
  { run, version }: Version,
  files: Contents,
): Promise<StoredFolder> {
  if (version > 0 && !(await isWhole(store, enginePrefix(run, version))))
    throw new InvariantError("a policy would count before the engine's state does", { run, version });
  return writeFolder(store, policyPrefix(run, version), files);
}

/** Reads all of a version. @throws InputError for the first file that is missing or differs from its manifest */
export async function verifyVersion(store: ObjectStore, version: Version): Promise<void> {
  await verifyPolicy(store, version);
  const state = await openEngineState(store, version);
  await state?.verify();
  if (state !== undefined || version.version === 0) return;
  throw new InputError({
    what: "the engine's state is missing",
    where: `${store.url}/${enginePrefix(version.run, version.version)}`,
    expected: "expected a folder with manifest.json",
    fix: "restore the folder from a copy, or start a new run from this version's policy",
  });
}

/** @throws InputError for the first file that is missing or differs from its manifest */
export async function verifyPolicy(store: ObjectStore, version: Version): Promise<void> {
  await (await openPolicy(store, version)).verify();
}

/**
 * Deletes what a run's `keep` setting does not want to stay, once `newest` is published. The newest two versions always
 * stay: the one in use, and the one before it for whoever reads it right now.
 */
export async function pruneVersions(
  store: ObjectStore,
  { run, version: newest }: Version,
  keep: { readonly policyEvery: number; readonly stateEvery: number },
): Promise<void> {
  const old = newest - 2;
  if (old < 0) return;
  if (old % keep.policyEvery !== 0) await deleteFolder(store, policyPrefix(run, old));
  if (old % keep.stateEvery !== 0) await deleteFolder(store, enginePrefix(run, old));
}
