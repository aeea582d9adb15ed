// What an error of the file system means: whether trying again can help, and what a person has to do.
import { Failure, formatErrorText, InputError, InvariantError } from "../failure/errors.ts";

interface Meaning {
  readonly what: string;
  readonly fix: string;
  readonly retryable: boolean;
}

const NOT_WRITABLE = { fix: "make the folder writable, or choose another", retryable: false } as const;
const TOO_MANY_FILES = { fix: "raise the limit of open files (ulimit -n)", retryable: true } as const;

const MEANING: Readonly<Record<string, Meaning>> = {
  ENOSPC: {
    what: "no space left",
    fix: "free space or inodes on the disk that it lies on, or use another disk",
    retryable: false,
  },
  EDQUOT: { what: "quota used up", fix: "delete files or ask for a larger quota", retryable: false },
  EROFS: { what: "read-only file system", ...NOT_WRITABLE },
  EACCES: { what: "permission denied", ...NOT_WRITABLE },
  EPERM: { what: "not permitted", ...NOT_WRITABLE },
  EXDEV: {
    what: "another file system is mounted below the folder",
    fix: "use the folder on that file system",
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
 * @param action what was tried, as a verb: "put", "list"
 * @param path what could not be read or written, named in the message: a store, a sandbox's folder, a lock
 * @returns `Failure("StoreUnavailable")`, the name that state machines retry on (failure/machine-errors.ts), for an error of the file system; everything else as it is
 */
export function attributeFileError(error: unknown, action: string, path: string): unknown {
  if (error instanceof InputError || error instanceof Failure || error instanceof InvariantError)
    return error;
  const code = codeOf(error);
  if (code === undefined) return error;
  const meaning = MEANING[code] ?? UNKNOWN;
  const text = formatErrorText({
    what: `cannot ${action}`,
    where: path,
    expected: `${meaning.what} (${code})`,
    fix: meaning.fix,
  });
  return new Failure("StoreUnavailable", text, { retryable: meaning.retryable, cause: error });
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
