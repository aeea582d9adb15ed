// Asks a daemon what is at paths of its sandbox.
import type { DaemonClient } from "./client.ts";
import type { Described } from "./protocol.ts";

/** So many at a time that question and answer fit into frames. */
const PATHS_AT_ONCE = 2_000;

/** @returns nothing for a path where nothing is */
export async function describePaths(
  client: DaemonClient,
  paths: readonly string[],
): Promise<ReadonlyMap<string, Described>> {
  const described = new Map<string, Described>();
  for (let start = 0; start < paths.length; start += PATHS_AT_ONCE) {
    const some = paths.slice(start, start + PATHS_AT_ONCE);
    const { value } = await client.call({ op: "describe", paths: some });
    if (value.entries.length !== some.length)
      throw client.distrust("describes other paths than it was asked");
    for (const [index, path] of some.entries()) {
      const entry = value.entries[index];
      if (entry) described.set(path, entry);
    }
  }
  return described;
}
