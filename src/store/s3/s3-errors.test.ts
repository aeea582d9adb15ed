import { describe, expect, it } from "vitest";
import { attributeS3Error, isConflict, isLost, isMissing, isTransient } from "./s3-errors.ts";

/** As the SDK throws them. */
function answered(status: number, name: string, more: object = {}): Error {
  return Object.assign(new Error("words"), { name, $metadata: { httpStatusCode: status }, ...more });
}
function broken(code: string): Error {
  return Object.assign(new Error("words"), { code });
}

const AWS = { bucket: "b", prefix: "" };
const attribute = (error: unknown, action = "put") => attributeS3Error(error, action, "s3://b/k", AWS);

describe("errors of S3", () => {
  it.each<[string, Error, boolean]>([
    ["a throttled request", answered(503, "SlowDown"), true],
    ["an error of S3", answered(500, "InternalError"), true],
    ["a connection that was reset", broken("ECONNRESET"), true],
    ["a name that is not found now", broken("EAI_AGAIN"), true],
    ["a body that was changed on its way", answered(400, "BadDigest"), true],
    [
      "a clock that the SDK has set right",
      answered(403, "X", { $metadata: { httpStatusCode: 403, clockSkewCorrected: true } }),
      true,
    ],
    ["a denied request", answered(403, "AccessDenied"), false],
    ["a condition that did not hold", answered(412, "PreconditionFailed"), false],
    ["a bucket that is not there", answered(404, "NoSuchBucket"), false],
    ["a bug", new TypeError("x is not a function"), false],
  ])("are worth another try or not: %s", (_, error, expected) => {
    expect(isTransient(error)).toBe(expected);
  });

  it("tell a lost condition from a conflict and from a bucket that is gone", () => {
    const [lost, conflict] = [
      answered(412, "PreconditionFailed"),
      answered(409, "ConditionalRequestConflict"),
    ];
    expect([isLost(lost, { ifNoneMatch: "*" }), isConflict(lost)]).toEqual([true, false]);
    expect([isLost(conflict, { ifNoneMatch: "*" }), isConflict(conflict)]).toEqual([false, true]);
    const [missing, gone] = [answered(404, "NoSuchKey"), answered(404, "NoSuchBucket")];
    expect([isLost(missing, { ifMatch: "e" }), isLost(missing, { ifNoneMatch: "*" })]).toEqual([true, false]);
    expect([isMissing(missing), isMissing(gone), isLost(gone, { ifMatch: "e" })]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("are a person's to mend, or the infrastructure's, with what to do", () => {
    const credentials = Object.assign(new Error("none"), { name: "CredentialsProviderError" });
    expect(attribute(credentials, "open")).toMatchObject({ name: "InputError" });
    expect(attribute(credentials)).toMatchObject({ name: "StoreUnavailable", retryable: true });
    expect(attribute(answered(400, "ExpiredToken"))).toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/credentials for S3 are refused: s3:\/\/b\/k: .*\n {2}fix: renew them/),
    });
    expect(attribute(new Error("Region is missing"), "open")).toMatchObject({
      name: "InputError",
      message: expect.stringContaining("set AWS_REGION"),
    });
    expect(attribute(new Error('Checksum mismatch: expected "a" but received "b"'), "get")).toMatchObject({
      name: "StoreUnavailable",
      retryable: true,
      message: expect.stringContaining("what arrived is not what was stored"),
    });
    expect(attribute(answered(501, "NotImplemented"))).toMatchObject({
      name: "StoreUnavailable",
      retryable: false,
    });
    const bug = new TypeError("x is not a function");
    expect(attribute(bug)).toBe(bug);
  });
});
