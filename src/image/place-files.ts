// Puts files into the sandbox of an instruction, from the context or from another stage. Paths are resolved inside, where
// links of the image lead nowhere else.
import { posix } from "node:path";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { type Placement, packPlacement } from "./copy-instruction.ts";
import { quoteWord } from "./image-config.ts";
import type { Refuse } from "./refuse.ts";

/** Most bytes that COPY --from carries from one stage to another, in memory. */
export const CARRIED_BYTES = 1 << 30;
const CARRIED = "/.t1-copied";
const TOOL_MS = 300_000;

/** @throws InputError of `refuse` */
export async function place(sandbox: Sandbox, placement: Placement, refuse: Refuse): Promise<void> {
  const { to, isFile } = placement;
  const folder = await folderFor(sandbox, to, isFile);
  const name = isFile && folder !== to ? posix.basename(to) : undefined;
  await unpack(sandbox, await packPlacement(placement, name), folder, refuse);
}

export interface Carried {
  readonly source: string;
  readonly destination: string;
  /** Whether the destination is written as a folder. */
  readonly isFolder: boolean;
  readonly mode: number | undefined;
}

/** Copies a file, or what a folder holds, from one sandbox to another. @throws InputError of `refuse` */
export async function carry(
  from: Sandbox,
  to: Sandbox,
  { source, destination, isFolder, mode }: Carried,
  refuse: Refuse,
): Promise<void> {
  if (/[*?[]/.test(source)) throw refuse(`COPY --from with a pattern (${source})`, "plain paths");
  const path = posix.resolve("/", source);
  const isTree = await holds(from, `[ -d ${quoteWord(path)} ]`);
  const folder = isTree ? destination : await folderFor(to, destination, !isFolder);
  const name = posix.basename(folder === destination ? path : destination);
  const [option, what, where] = isTree
    ? ["-a", `${path}/.`, CARRIED]
    : ["-aL", path, posix.join(CARRIED, name)];
  const chmod = mode === undefined ? "" : ` && chmod -R ${mode.toString(8)} ${quoteWord(where)}`;
  const command = `rm -rf ${CARRIED} && mkdir ${CARRIED} && cp ${option} ${quoteWord(what)} ${quoteWord(where)}${chmod}`;
  const copied = await from.exec(command, { timeoutMs: TOOL_MS, cwd: "/" });
  if (copied.end.kind !== "exited" || copied.end.exitCode !== 0)
    throw refuse(`COPY --from cannot read ${source}: ${capturedText(copied.stderr).trim()}`);
  const packed = await from.download(CARRIED, CARRIED_BYTES);
  if (!("tar" in packed)) throw refuse(`COPY --from cannot carry ${source}: ${Object.keys(packed).join()}`);
  await unpack(to, packed.tar, folder, refuse);
}

async function holds(sandbox: Sandbox, condition: string): Promise<boolean> {
  const { end } = await sandbox.exec(condition, { timeoutMs: TOOL_MS, cwd: "/" });
  return end.kind === "exited" && end.exitCode === 0;
}

/** Where a file goes: into the destination when that is a folder, else beside its new name. */
async function folderFor(sandbox: Sandbox, destination: string, mayBeName: boolean): Promise<string> {
  if (!mayBeName || (await holds(sandbox, `[ -d ${quoteWord(destination)} ]`))) return destination;
  return posix.dirname(destination);
}

async function unpack(sandbox: Sandbox, tar: Uint8Array, folder: string, refuse: Refuse): Promise<void> {
  const uploaded = await sandbox.upload(tar, folder);
  if ("refused" in uploaded) throw refuse(`files cannot be placed in ${folder}: ${uploaded.refused}`);
}
