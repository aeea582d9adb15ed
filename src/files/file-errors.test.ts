import { describe, expect, it } from "vitest";
import { Failure, InputError } from "../failure/errors.ts";
import { attributeFileError, hasCode } from "./file-errors.ts";

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: text of the system`), { code, syscall: "write", errno: -1 });
}

describe("errors of the file system", () => {
  it.each([
    ["ENOSPC", false, "no space left"],
    ["EDQUOT", false, "quota used up"],
    ["EROFS", false, "read-only file system"],
    ["EACCES", false, "permission denied"],
    ["EPERM", false, "not permitted"],
    ["EXDEV", false, "another file system is mounted below the folder"],
    ["EMFILE", true, "too many open files of this process"],
    ["ENFILE", true, "too many open files of this machine"],
    ["EIO", true, "input/output error"],
    ["ESTALE", true, "stale network file"],
    ["EUNHEARDOF", false, "unexpected error of the file system"],
  ])("%s is a failure that names the path, with advice (retryable: %s)", (code, retryable, meaning) => {
    const cause = systemError(code);
    const failure = attributeFileError(cause, "put", "/store/a");
    expect(failure).toBeInstanceOf(Failure);
    expect(failure).toMatchObject({ name: "StoreUnavailable", retryable, cause });
    expect(String(failure)).toMatch(
      new RegExp(`^StoreUnavailable: cannot put: /store/a: ${meaning} \\(${code}\\)\n  fix: .`),
    );
  });

  it("leaves our own errors and bugs as they are", () => {
    for (const error of [
      new InputError("x"),
      new TypeError("x"),
      "x",
      Object.assign(new Error("x"), { code: "ERR_X" }),
    ])
      expect(attributeFileError(error, "put", "/a")).toBe(error);
  });

  it("tells codes of system calls from codes of Node", () => {
    expect(hasCode(systemError("ENOENT"), "EEXIST", "ENOENT")).toBe(true);
    expect(hasCode(systemError("ENOENT"), "EEXIST")).toBe(false);
    expect(hasCode(Object.assign(new Error("x"), { code: "ENOENT" }), "ENOENT")).toBe(false);
    expect(hasCode("ENOENT", "ENOENT")).toBe(false);
  });
});
