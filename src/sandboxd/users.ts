// Looks up the user of a command in the sandbox's own files: a name or number, as Docker's USER has it.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

export interface CommandUser {
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** More than any file of accounts needs; the agent may have written it. */
const FILE_LIMIT_BYTES = 1 << 20;

/** @param name `user`, `user:group`, or the numbers of either. @returns undefined when there is no such user or group */
export function findUser(name: string): CommandUser | undefined {
  const [user = "", group] = name.split(":");
  const entry = entries("/etc/passwd").find(([entryName, , uid]) => entryName === user || uid === user);
  const uid = numberOf(entry?.[2] ?? user);
  const groupEntry = entries("/etc/group").find(([entryName, , gid]) => entryName === group || gid === group);
  const gid =
    group === undefined || group === "" ? numberOf(entry?.[3] ?? "0") : numberOf(groupEntry?.[2] ?? group);
  if (uid === undefined || gid === undefined) return undefined;
  return { uid, gid, home: entry?.[5] || (uid === 0 ? "/root" : "/") };
}

/** passwd(5) and group(5): fields between colons. */
function entries(path: string): readonly (readonly string[])[] {
  return readPlainFile(path)
    .split("\n")
    .map(line => line.split(":"));
}

/** Ids of 32 bits without the last, which stands for none. */
function numberOf(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) < 0xffff_ffff ? Number(text) : undefined;
}

/** Nothing for what is no plain file: reading a pipe could wait for ever. */
function readPlainFile(path: string): string {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return "";
  }
  try {
    if (!fstatSync(fd).isFile()) return "";
    const bytes = Buffer.alloc(FILE_LIMIT_BYTES);
    return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
  } catch {
    return "";
  } finally {
    closeSync(fd);
  }
}

/** As Docker has it: where the account lives, unless image or caller say otherwise. */
export function withHome(
  env: Readonly<Record<string, string>>,
  user: CommandUser | undefined,
): Readonly<Record<string, string>> {
  return { HOME: user?.home ?? "/root", ...env };
}
