// Finds how a sandbox differs from its image: reads its folder of changes as an archive and compares.
import { InputError, InvariantError } from "../../failure/errors.ts";
import { CachedUntilExec } from "../cached-until-exec.ts";
import type { FileChange, SandboxSpec } from "../sandbox.ts";
import { readTarEntries, type TarEntry } from "../tar-entries.ts";
import { broken } from "./broken.ts";
import { type Carried, carriedChanges, compareWithImage } from "./file-changes.ts";
import { type ImageContent, imageContent } from "./image-content.ts";
import type { RunTool } from "./tool-run.ts";
import { TOOLKIT_TAR } from "./toolkit.ts";

/** Keeps fractions of seconds, holes as holes, and the marks of an overlay; stays on one file system. */
const PACK_CHANGES = [
  ...[...TOOLKIT_TAR, "-c", "--anchored", "--no-wildcards", "--sort=name", "--one-file-system", "--sparse"],
  "--format=posix",
  ...[
    "--pax-option=delete=atime,delete=ctime",
    "--xattrs",
    "--xattrs-include=user.overlay.opaque",
    "-f",
    "-",
  ],
];
/** Room for headers in an archive of changes, beside the content. */
const HEADERS_BYTES = 128 << 20;

interface Snapshot {
  readonly entries: readonly TarEntry[];
  readonly image: ImageContent;
}

export class SandboxChanges {
  readonly #runTool: RunTool;
  readonly #snapshot = new CachedUntilExec<Snapshot>();

  constructor(runTool: RunTool) {
    this.#runTool = runTool;
  }

  /** Files known until now may change from here on. */
  begin(): void {
    this.#snapshot.begin();
  }

  /** @param end ends all that runs */
  rest(end: () => Promise<void>): Promise<void> {
    return this.#snapshot.rest(end);
  }

  async sinceImage(spec: SandboxSpec): Promise<readonly FileChange[]> {
    return compareWithImage(...(await this.#compared(spec))).changes;
  }

  /** @param without paths that stay as the image has them */
  async carried(spec: SandboxSpec, without: readonly string[]): Promise<Carried> {
    const compared = compareWithImage(...(await this.#compared(spec)));
    const carried = carriedChanges(compared, without);
    if (carried !== undefined) return carried;
    const [, ...rest] = await this.#compared(spec);
    const unlinked = await this.#take(spec, rest[0], ["--hard-dereference"]);
    const again = carriedChanges(compareWithImage(unlinked, ...rest), without);
    if (again === undefined) throw new InvariantError("an archive without hard links has some");
    return again;
  }

  async #compared(spec: SandboxSpec): Promise<Parameters<typeof compareWithImage>> {
    const { entries, image } = await this.#snapshot.get(() => this.#takeSnapshot(spec));
    return [entries, image, { isWhole: spec.image.kind === "host" }];
  }

  async #takeSnapshot(spec: SandboxSpec): Promise<Snapshot> {
    const image = await imageContent(spec);
    return { entries: await this.#take(spec, image), image };
  }

  async #take(
    { diskBytes }: SandboxSpec,
    { mounts }: ImageContent,
    options: readonly string[] = [],
  ): Promise<readonly TarEntry[]> {
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    const limitBytes = diskBytes + HEADERS_BYTES;
    const tooLarge = new AbortController();
    const onStdout = (chunk: Uint8Array): void => {
      sizeBytes += chunk.length;
      if (sizeBytes <= limitBytes) chunks.push(new Uint8Array(chunk));
      else tooLarge.abort(broken(`its changes take more than ${limitBytes} bytes`));
    };
    // It would look into them before it leaves them out as another file system.
    const excluded = mounts.map(path => `--exclude=./${path}`);
    const argv = [...PACK_CHANGES, ...options, ...excluded, "."];
    // Without a path: the folder of changes.
    const { end, said } = await this.#runTool(argv, { cwd: "", onStdout, signal: tooLarge.signal });
    if (end.kind !== "exited" || end.exitCode > 1) throw broken(`its changes cannot be read: ${said}`);
    try {
      return readTarEntries(Buffer.concat(chunks));
    } catch (error) {
      throw error instanceof InputError ? broken(`its changes cannot be read: ${error.message}`) : error;
    }
  }
}
