// A fresh sandbox with what another one of the same image left: the order of its steps, and what of the changes it gets.
import { Failure } from "../failure/errors.ts";
import type { Sandbox } from "./sandbox.ts";

interface SuccessorSteps<Made, Found> {
  /** Makes the fresh one, while `find` runs. */
  readonly make: () => Promise<Made>;
  /** Finds what the other one left. */
  readonly find: () => Promise<Found>;
  /** @returns why the fresh one did not take it; undefined when it did */
  readonly carry: (to: Made, found: Found) => Promise<string | undefined>;
}

/**
 * Ends the fresh sandbox when it cannot get what was left.
 *
 * @returns `refused` where that is the doing of what ran in the other one
 */
export async function makeSuccessor<Made extends Sandbox & { end(reason: string): Promise<void> }, Found>({
  make,
  find,
  carry,
}: SuccessorSteps<Made, Found>): Promise<Made | { readonly refused: string }> {
  const [made, found] = await Promise.allSettled([make(), find()]);
  if (made.status === "rejected") throw made.reason;
  try {
    if (found.status === "rejected") throw found.reason;
    const refused = await carry(made.value, found.value);
    if (refused === undefined) return made.value;
    await made.value.end("it did not take the changes");
    return { refused };
  } catch (error) {
    await made.value.end("it did not get the changes");
    if (error instanceof Failure && error.name === "SandboxBroken") return { refused: error.message };
    throw error;
  }
}

/** Which of the changes a successor gets. All paths are absolute. */
export interface CarriedPaths {
  readonly isKept: (path: string) => boolean;
  /** What is removed from the fresh one before anything is unpacked, the deepest first. */
  readonly removed: readonly string[];
}

/**
 * @param cleared paths of the image that are gone, or of another kind now
 * @param without paths that stay as the image has them, with what is below them
 */
export function carriedPaths(cleared: readonly string[], without: readonly string[]): CarriedPaths {
  const cut = without.map(path => path.replace(/(?<=.)\/+$/, ""));
  const isKept = (path: string): boolean => !cut.some(prefix => isAtOrBelow(path.toWellFormed(), prefix));
  return {
    isKept,
    removed: cleared
      // A folder that holds something which stays as the image has it is not removed either.
      .filter(path => isKept(path) && !cut.some(prefix => isAtOrBelow(prefix, path)))
      .sort()
      .reverse(),
  };
}

/** @param prefix without a slash at its end, unless it is the root */
export function isAtOrBelow(path: string, prefix: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}
