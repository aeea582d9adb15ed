// Keeps the files that an agent changed, as an archive, and the paths it deleted, so that its work can be graded again
// without the agent.
import { z } from "zod";
import type { FileChange, Sandbox } from "../sandbox/sandbox.ts";
import { readTarFiles } from "../sandbox/tar.ts";

export interface KeptFiles {
  /** Archive to unpack at `/` of a sandbox of the same image. */
  readonly tar: Uint8Array;
  readonly deleted: readonly string[];
}

export const KeptIndex = z.strictObject({
  format: z.literal("t1-kept-files-1"),
  deleted: z.array(z.string()),
});

/** Limit of an archive. A larger one is not kept, and the record says so. */
const LIMIT_BYTES = 64 << 20;
const FOLDER = "/tmp/.t1-kept";
const ARCHIVE = "files.tar";
const TIMEOUT_MS = 120_000;

/**
 * Packs with the tools of a clean sandbox that has the changes, before any test ran in it.
 *
 * @param without paths to leave out
 */
export async function keepFiles(
  clean: Sandbox,
  changes: readonly FileChange[],
  without: readonly string[],
): Promise<KeptFiles | { readonly notKept: string }> {
  const isLeftOut = (path: string): boolean =>
    without.some(prefix => path === prefix || path.startsWith(`${prefix}/`));
  const kept = changes.filter(({ path }) => !isLeftOut(path));
  const there = kept.filter(({ change }) => change !== "deleted");
  const made = await clean.upload(new Uint8Array(1024), FOLDER, { emptied: [FOLDER] });
  if ("refused" in made) return { notKept: made.refused };
  // tar does not find a name that is no UTF-8 and packs all others.
  await clean.exec(
    `tar -C / -c --no-recursion --ignore-failed-read --null -T - -f ${FOLDER}/${ARCHIVE} 2>/dev/null`,
    {
      timeoutMs: TIMEOUT_MS,
      cwd: "/",
      stdin: Buffer.from(there.map(({ path }) => `.${path}\0`).join("")),
    },
  );
  const packed = await clean.download(FOLDER, LIMIT_BYTES);
  await clean.exec(`rm -rf ${FOLDER}`, { timeoutMs: TIMEOUT_MS, cwd: "/" });
  if (!("tar" in packed))
    return { notKept: "oversized" in packed ? `more than ${LIMIT_BYTES} bytes` : "not packed" };
  const tar = (await readTarFiles(packed.tar)).get(ARCHIVE);
  if (tar === undefined) return { notKept: "the image has no tar" };
  return {
    tar,
    deleted: kept.filter(({ change }) => change === "deleted").map(({ path }) => path),
  };
}
