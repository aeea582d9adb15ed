// Folders of a sandbox as tar archives, in and out, by the toolkit inside.
import type { DownloadResult, UploadResult } from "../sandbox.ts";
import type { RunTool } from "./tool-run.ts";
import { TOOLKIT_TAR } from "./toolkit.ts";

const UNPACK = [...TOOLKIT_TAR, "-x", "-o", "--no-overwrite-dir", "-f", "-"];
const PACK = [...TOOLKIT_TAR, "-c", "--sort=name", "-f", "-", "."];
/** Exit code of a command whose folder cannot be entered (spawner/); tar's own are 0, 1 and 2. */
const NO_FOLDER = 126;

/** @param emptied folders that are made anew before */
export async function unpackInto(
  folder: string,
  tar: Uint8Array,
  emptied: readonly string[],
  runTool: RunTool,
): Promise<UploadResult> {
  const { end, said } = await runTool(UNPACK, { cwd: folder, made: [folder], emptied, stdin: tar });
  return end.kind === "exited" && end.exitCode === 0 ? { unpacked: true } : { refused: said };
}

export async function packFolder(
  folder: string,
  limitBytes: number,
  runTool: RunTool,
): Promise<DownloadResult> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  const tooLarge = new AbortController();
  const onStdout = (chunk: Uint8Array): void => {
    sizeBytes += chunk.length;
    if (sizeBytes <= limitBytes) chunks.push(new Uint8Array(chunk));
    else tooLarge.abort(new TooLarge());
  };
  try {
    const { end, said } = await runTool(PACK, { cwd: folder, onStdout, signal: tooLarge.signal });
    if (sizeBytes > limitBytes) return { oversized: true };
    if (end.kind !== "exited") return { refused: said };
    if (end.exitCode === NO_FOLDER) return { missing: true };
    // 1: a file changed while it was read, which is no fault of the archive.
    return end.exitCode <= 1 ? { tar: new Uint8Array(Buffer.concat(chunks)) } : { refused: said };
  } catch (error) {
    if (error instanceof TooLarge) return { oversized: true };
    throw error;
  }
}

class TooLarge extends Error {}
