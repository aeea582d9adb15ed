// Errors of a store that is a folder.
import { Failure, formatErrorText, InputError } from "../failure/errors.ts";
import { attributeFileError, hasCode } from "../files/file-errors.ts";
import type { StoreUse } from "./object-store.ts";

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
