// Keeps what an agent left, so that it can be graded again without the agent: its changed files as an archive, and the
// paths it deleted.
import { z } from "zod";
import type { FileChange, Sandbox } from "../sandbox/sandbox.ts";
import { readTarFiles } from "../sandbox/tar.ts";

export interface KeptFiles {
  /** To unpack at `/` of a sandbox of the same image. */
  readonly tar: Uint8Array;
  readonly deleted: readonly string[];
}

export const KeptIndex = z.strictObject({
  format: z.literal("t1-kept-files-1"),
  deleted: z.array(z.string()),
});

/** Of an archive; a larger one is not kept, which the record says. */
const LIMIT_BYTES = 64 << 20;
const FOLDER = "/tmp/.t1-kept";
const ARCHIVE = "files.tar";
const TIMEOUT_MS = 120_000;

/**
 * By the tools of a clean sandbox that has the changes, before any test ran in it.
 *
 * @param without paths that are not in it
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
  // A name that is no UTF-8 is not found again; everything else is packed all the same.
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
