// Carries declared artifacts from the agent's sandbox into a separate verifier, to the same paths. The agent's own tools
// stage them, so the archive is untrusted: only plain files and folders at or below a declared path are taken from it.
import { posix } from "node:path";
import { type Pack, pack } from "tar-stream";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { readTarEntries, type TarEntry } from "../sandbox/tar-entries.ts";

export interface DeclaredArtifact {
  /** Absolute, or relative to the working directory. */
  readonly source: string;
  /** Patterns as `tar --exclude` takes them. */
  readonly exclude: readonly string[];
}

/** Harbor collects this folder without a declaration. */
const ALWAYS = "/logs/artifacts";
const STAGING = "/tmp/.t1-artifacts";
const LIMIT_BYTES = 256 << 20;
const TIMEOUT_MS = 120_000;

export interface CollectedArtifacts {
  /** Archive to unpack at `/`. */
  readonly tar: Uint8Array;
  /** Links, devices and paths that were not declared. */
  readonly refusedCount: number;
}

/** @returns `refused` when the sandbox does not return them, or they are too large */
export async function collectArtifacts(
  sandbox: Sandbox,
  artifacts: readonly DeclaredArtifact[],
  workdir: string,
): Promise<CollectedArtifacts | { readonly refused: string }> {
  const all = [{ source: ALWAYS, exclude: [] }, ...artifacts].map(({ source, exclude }) => ({
    path: posix.resolve(workdir, source),
    exclude,
  }));
  const staged = await sandbox.upload(new Uint8Array(1024), STAGING, { emptied: [STAGING] });
  if ("refused" in staged) return staged;
  for (const [index, { path, exclude }] of all.entries()) {
    const folder = `${STAGING}/${index}`;
    const copy =
      exclude.length === 0
        ? `cp -a -- ${quote(path)} ${folder}/`
        : `tar -c ${exclude.map(pattern => `--exclude=${quote(pattern)}`).join(" ")} -C ${quote(posix.dirname(path))} -- ${quote(posix.basename(path))} | tar -x -C ${folder}`;
    await sandbox.exec(`mkdir ${folder} && ${copy}`, { timeoutMs: TIMEOUT_MS, cwd: "/" });
  }
  await sandbox.killAgents();
  const packed = await sandbox.download(STAGING, LIMIT_BYTES);
  await sandbox.upload(new Uint8Array(1024), STAGING, { emptied: [STAGING] });
  if ("refused" in packed) return packed;
  if (!("tar" in packed))
    return { refused: "oversized" in packed ? "the artifacts are too large" : "none were staged" };
  return repack(
    readTarEntries(packed.tar),
    all.map(({ path }) => path),
  );
}

/** @param sources absolute paths, in the order of the staging folders */
async function repack(entries: readonly TarEntry[], sources: readonly string[]): Promise<CollectedArtifacts> {
  const archive: Pack = pack();
  let refusedCount = 0;
  for (const entry of entries) {
    const [index = "", first, ...rest] = entry.path.split("/");
    if (first === undefined) continue;
    const source = sources[Number(index)];
    const names = [first, ...rest];
    const isPlain = names.every(name => name !== "" && name !== "." && name !== "..");
    const isWanted = entry.kind === "file" || entry.kind === "folder";
    if (source === undefined || first !== posix.basename(source) || !isPlain || !isWanted || entry.isSparse) {
      refusedCount += 1;
      continue;
    }
    const name = posix.join(posix.dirname(source), ...names).slice(1);
    const header = { mode: entry.mode, mtime: new Date(entry.mtime * 1000) };
    if (entry.kind === "folder") archive.entry({ name: `${name}/`, type: "directory", ...header });
    else archive.entry({ name, ...header }, Buffer.from(entry.content));
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  return { tar: new Uint8Array(Buffer.concat(chunks)), refusedCount };
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
