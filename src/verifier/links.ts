// Resolves symbolic links of an agent by their text alone: no program of the agent's runs, and the target need not exist
// yet.
import type { FileChange } from "../sandbox/sandbox.ts";

/** The kernel's limit (path_resolution(7)). */
const MOST_LINKS = 40;
/** Links that mean something else for each process: its root and its working directory. */
const OF_A_PROCESS = /^\/proc\/(.*\/)?(root|cwd)$/;

/** The text of each link that was added or modified, by path. */
export function changedLinks(changes: readonly FileChange[]): ReadonlyMap<string, string> {
  return new Map(
    changes.flatMap(({ path, target, change }) =>
      target === undefined || change === "deleted" ? [] : [[path, target]],
    ),
  );
}

/**
 * @param path of a link, absolute; anything else leads nowhere
 * @param folders absolute
 * @returns whether it leads to one of the folders or below, also by way of other links; a link to the root or the working
 *   directory of a process may lead anywhere, so it does
 */
export function leadsInto(
  path: string,
  folders: readonly string[],
  links: ReadonlyMap<string, string>,
): boolean {
  if (!links.has(path)) return false;
  let at = "";
  let followed = 0;
  const rest = namesOf(path).reverse();
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    const next = name === ".." ? at.slice(0, Math.max(0, at.lastIndexOf("/"))) : `${at}/${name}`;
    const target = links.get(next);
    if (target === undefined) at = next;
    else {
      if (++followed > MOST_LINKS) return false; // so says the kernel too
      rest.push(...namesOf(target).reverse());
      if (target.startsWith("/")) at = "";
    }
    if (OF_A_PROCESS.test(at)) return true;
  }
  return folders.some(folder => at === folder || at.startsWith(`${folder}/`));
}

function namesOf(path: string): string[] {
  return path.split("/").filter(name => name !== "" && name !== ".");
}
