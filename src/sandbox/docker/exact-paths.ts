// Which files the engine means by names that are no text. Its JSON has U+FFFD for each byte that is no UTF-8.
import type { DaemonClient } from "../daemon/client.ts";
import { describePaths } from "../daemon/describe-paths.ts";
import type { EngineChange } from "./file-changes.ts";

const REPLACEMENT = "\ufffd";

/**
 * @param listed with the folders above each path, as engines list them
 * @param before paths that were there and may be gone now
 * @returns the same with names as the daemon has them (path-text.ts); more of them where one stands for several
 */
export async function exactPaths(
  client: DaemonClient,
  listed: readonly EngineChange[],
  before: Iterable<string>,
): Promise<readonly EngineChange[]> {
  const unclear = listed.map(({ Path }) => Path).filter(path => path.includes(REPLACEMENT));
  if (unclear.length === 0) return listed;
  const exact = new Map<string, Set<string>>(unclear.map(path => [path, new Set()]));
  for (const path of before) exact.get(path.toWellFormed())?.add(path);
  const namesOf = (path: string): Iterable<string> => exact.get(path) ?? [path];
  for (const [, level] of [...Map.groupBy(unclear, depthOf)].sort(([a], [b]) => a - b)) {
    const folders = new Set(level.flatMap(path => [...namesOf(folderOf(path))]));
    for (const [folder, { names = [] }] of await describePaths(client, [...folders]))
      for (const name of names) {
        const path = `${folder}/${name}`;
        exact.get(path.toWellFormed())?.add(path);
      }
  }
  return listed.flatMap(({ Path, Kind }) => [...namesOf(Path)].map(path => ({ Path: path, Kind })));
}

function depthOf(path: string): number {
  return path.split("/").length;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
