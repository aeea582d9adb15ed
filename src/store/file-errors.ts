// What an error of the file system means for a store: whether trying again can help, and what a person has to do.
import { Failure, formatErrorText, InputError, InvariantError } from "../failure/errors.ts";
import type { StoreUse } from "./object-store.ts";

interface Meaning {
  readonly what: string;
  readonly fix: string;
  readonly retryable: boolean;
}

const NOT_WRITABLE = { fix: "make the folder writable, or choose another store", retryable: false } as const;
const TOO_MANY_FILES = { fix: "raise the limit of open files (ulimit -n)", retryable: true } as const;

const MEANING: Readonly<Record<string, Meaning>> = {
  ENOSPC: { what: "no space left", fix: "free some space or inodes, or move the store", retryable: false },
  EDQUOT: { what: "quota used up", fix: "delete files or ask for a larger quota", retryable: false },
  EROFS: { what: "read-only file system", ...NOT_WRITABLE },
  EACCES: { what: "permission denied", ...NOT_WRITABLE },
  EPERM: { what: "not permitted", ...NOT_WRITABLE },
  EXDEV: {
    what: "another file system is mounted inside the store",
    fix: "open the store there",
    retryable: false,
  },
  EMFILE: { what: "too many open files of this process", ...TOO_MANY_FILES },
  ENFILE: { what: "too many open files of this machine", ...TOO_MANY_FILES },
  EIO: { what: "input/output error", fix: "check the disk (dmesg)", retryable: true },
  ESTALE: { what: "stale network file", fix: "check the network mount", retryable: true },
  ETIMEDOUT: { what: "the network mount does not answer", fix: "check the network mount", retryable: true },
  ENOENT: {
    what: "the folder vanished",
    fix: "check that its disk is mounted and nobody deletes it",
    retryable: false,
  },
};

const UNKNOWN: Meaning = {
  what: "unexpected error of the file system",
  fix: "see the cause",
  retryable: false,
};

/** Whether an error is one of the file system (or another system call) with one of these codes. */
export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  const code = codeOf(error);
  return code !== undefined && codes.includes(code);
}

/**
 * @param action what was tried, as a noun: "put", "list"
 * @returns `Failure("StoreUnavailable")` for an error of the file system; everything else as it is
 */
export function attributeFileError(error: unknown, action: string, path: string): unknown {
  if (error instanceof InputError || error instanceof Failure || error instanceof InvariantError)
    return error;
  const code = codeOf(error);
  if (code === undefined) return error;
  const meaning = MEANING[code] ?? UNKNOWN;
  const text = formatErrorText({
    what: "store unavailable",
    where: path,
    expected: `${action} failed: ${meaning.what} (${code})`,
    fix: meaning.fix,
  });
  return new Failure("StoreUnavailable", text, { retryable: meaning.retryable, cause: error });
}

/** What an error says that kept a store from being opened. @returns as `attributeFileError` does */
export function attributeOpenError(error: unknown, path: string, use: StoreUse): unknown {
  if (hasCode(error, "ENOTDIR", "EEXIST")) return notAFolder(path, error);
  if (use === "create" && hasCode(error, "ENOENT"))
    return new InputError(
      {
        what: "store cannot be made",
        where: path,
        expected: `expected a place where folders can be made, got ${String(error)}`,
        fix: "choose another folder",
      },
      { cause: error },
    );
  if (use === "read" && hasCode(error, "EACCES", "EPERM"))
    return new InputError(
      {
        what: "store cannot be read",
        where: path,
        expected: `expected a folder that can be read, got ${String(error)}`,
        fix: "make it readable for this user, or choose another folder",
      },
      { cause: error },
    );
  if (hasCode(error, "EACCES", "EPERM", "EROFS", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"))
    return new InputError(
      {
        what: "store cannot be written",
        where: path,
        expected: `expected a folder where files and links can be made, got ${String(error)}`,
        fix: "make it writable for this user, or choose another folder",
      },
      { cause: error },
    );
  return attributeFileError(error, "open", path);
}

/** A link could lead out of the store, and reading a pipe could wait for ever. */
export function notAnObject(path: string): InputError {
  return new InputError({
    what: "not an object of the store",
    where: path,
    expected:
      "expected files and folders, but this is or lies behind a symbolic link, a pipe, a socket or a device",
    fix: "remove it, or open the store at the place where the link leads",
  });
}

export function notAFolder(path: string, cause?: unknown): InputError {
  return new InputError(
    { what: "store is no folder", where: path, expected: "expected a folder, or nothing there yet" },
    { cause },
  );
}

export function noSuchStore(path: string, cause: unknown): InputError {
  return new InputError(
    {
      what: "no such store",
      where: path,
      expected: "expected a folder with runs in it",
      fix: "check the path; t1 run start makes a store",
    },
    { cause },
  );
}

export function tooLong(path: string, maxBytes: number): InputError {
  return new InputError({
    what: "path of the store is too long",
    where: path,
    expected: `expected at most ${maxBytes} bytes, so that keys fit behind it`,
  });
}

export function folderInTheWay(path: string): InputError {
  return new InputError({
    what: "a folder is in the way",
    where: path,
    expected: "expected no objects below the key of an object: in a folder store one name cannot be both",
    fix: "use another key",
  });
}

export function objectInTheWay(path: string): InputError {
  return new InputError({
    what: "an object is in the way",
    where: path,
    expected: "expected a folder: in a folder store nothing can lie below the key of an object",
    fix: "use another key",
  });
}

/** Objects are replaced, never changed in place: only a person or another program can shorten one. */
export function changedByHand(path: string, size: number, got: number): Failure {
  const text = formatErrorText({
    what: "store unavailable",
    where: path,
    expected: `expected ${size} bytes, got ${got}: the file was shortened while it was read`,
  });
  return new Failure("StoreUnavailable", text, { retryable: true });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
