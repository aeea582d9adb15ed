// Files and folders that a person gives us: configs, tasks, models, images files. Whatever keeps us from reading one is
// for that person to mend, so it is an InputError that names the file and what to do. Rooms that read such files read
// them here (test/structure/user-files.test.ts).
import { createReadStream, type Dirent, readdirSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { userInfo } from "node:os";
import { InputError } from "../failure/errors.ts";
import { type ByteSource, PIECE_BYTES } from "./content.ts";
import { attributeFileError } from "./file-errors.ts";

/** How messages speak of a file. */
export interface UserFile {
  /** As in "cannot read the config". */
  readonly what: string;
  /** As in "expected a YAML file". */
  readonly expected: string;
  /** What to do when nothing is there; "check the path" when left out. */
  readonly ifMissing?: string;
}

/** No text that a person writes is longer; what is longer is another file, named by mistake. */
const TEXT_LIMIT_BYTES = 64 * 1024 * 1024;

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const unreadable = (): { readonly got: string; readonly fix: string } => ({
  got: `one that the user ${userInfo().username} may not read`,
  fix: "allow it (chmod a+r; for a folder and the folders above, chmod a+rx), or run t1 as its owner",
});

const MEANING: Readonly<Record<string, () => { readonly got: string; readonly fix?: string }>> = {
  ENOENT: () => ({ got: "nothing" }),
  ENOTDIR: () => ({ got: "a path that goes through a file" }),
  EISDIR: () => ({ got: "a folder", fix: "name a file" }),
  EACCES: unreadable,
  EPERM: unreadable,
  ELOOP: () => ({ got: "links that lead in a circle", fix: "remove the link" }),
  ENAMETOOLONG: () => ({ got: "a name longer than any file's" }),
  ERR_FS_FILE_TOO_LARGE: () => ({ got: "a file of 2 GiB or more", fix: "name another file" }),
};

/** @throws InputError when the file cannot be read */
export function readUserFile(file: string, about: UserFile): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw attributeUserFileError(error, file, about);
  }
}

/** As `readUserFile`, without keeping this thread. */
export async function readUserFileAsync(file: string, about: UserFile): Promise<Buffer> {
  return readFile(file).catch(error => {
    throw attributeUserFileError(error, file, about);
  });
}

/** A file of any size, to be read piece by piece. @throws InputError when it cannot be read */
export function userFileSource(file: string, about: UserFile): ByteSource {
  try {
    return { sizeBytes: statSync(file).size, pieces: () => userFilePieces(file, about) };
  } catch (error) {
    throw attributeUserFileError(error, file, about);
  }
}

async function* userFilePieces(file: string, about: UserFile): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(file, { highWaterMark: PIECE_BYTES });
  } catch (error) {
    throw attributeUserFileError(error, file, about);
  }
}

/** The text as it is: no newline is converted. @throws InputError when the file cannot be read, or is no UTF-8 text */
export function readUserText(file: string, about: UserFile): string {
  return decodeUserText(readUserFile(file, about), file, about);
}

/** @throws InputError when the bytes are no UTF-8 text */
export function decodeUserText(bytes: Uint8Array, file: string, { what, expected }: UserFile): string {
  const problem = (got: string, fix: string, cause?: unknown): InputError =>
    new InputError(
      { what: `cannot read ${what}`, where: file, expected: `expected ${expected}, got ${got}`, fix },
      { cause },
    );
  if (bytes.length > TEXT_LIMIT_BYTES)
    throw problem(`${bytes.length} bytes, too many for a text`, "name another file");
  try {
    return DECODER.decode(bytes);
  } catch (cause) {
    throw problem(
      `${bytes.length} bytes that are not UTF-8`,
      "save it as UTF-8, or name another file",
      cause,
    );
  }
}

/** Entries of a folder, in the order of the file system. @throws InputError when it cannot be listed */
export function listUserFolder(folder: string, about: UserFile): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    throw attributeUserFileError(error, folder, about);
  }
}

/**
 * @returns InputError for what a person can mend, Failure StoreUnavailable for other errors of the file system (a disk
 *   that fails, too many open files), everything else as it is
 */
export function attributeUserFileError(error: unknown, path: string, about: UserFile): unknown {
  const meaning = error instanceof Error && "code" in error ? MEANING[String(error.code)]?.() : undefined;
  if (meaning === undefined) return attributeFileError(error, "read", path);
  const fix = meaning.fix ?? about.ifMissing ?? "check the path";
  return new InputError(
    {
      what: `cannot read ${about.what}`,
      where: path,
      expected: `expected ${about.expected}, got ${meaning.got}`,
      fix,
    },
    { cause: error },
  );
}
