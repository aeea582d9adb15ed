// What an answer of S3, or none, means for a store: whether the condition of a write did not hold, whether trying again
// can help, and what a person has to do.
// Codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
import { Failure, formatErrorText, InputError, InvariantError } from "../../failure/errors.ts";
import type { PutCondition } from "../object-store.ts";
import type { S3Location } from "./s3-url.ts";

/** Nothing was answered, or it was cut off. */
const NETWORK_CODES = new Set([
  ...["ECONNRESET", "ECONNREFUSED", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "ERR_STREAM_PREMATURE_CLOSE"],
  ...["EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND", "EAI_AGAIN", "EADDRNOTAVAIL", "EMFILE"],
]);
const TRANSIENT_NAMES = new Set([
  ...["TimeoutError", "RequestTimeout", "InternalError", "ServiceUnavailable", "BadDigest"],
  ...["SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestTimeTooSkewed"],
  "CredentialsProviderError",
]);
const TRANSIENT_STATUSES = new Set([429, 500, 502, 503, 504]);
const THROTTLED = new Set(["SlowDown", "Throttling", "ThrottlingException", "TooManyRequests"]);
const WRONG_CREDENTIALS = new Set([
  ...["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"],
  ...["InvalidSecurity", "AuthorizationHeaderMalformed"],
]);

/** The SDK's words for bytes that do not have the checksum that S3 keeps for them. */
const CHANGED = /^Checksum mismatch/;

interface S3Error {
  readonly name: string;
  readonly message: string;
  readonly code: string | undefined;
  readonly status: number | undefined;
  /** Another region, when the bucket lies there. */
  readonly region: string | undefined;
  readonly isClockCorrected: boolean;
}

/** Whether the same request may succeed when it is made again. */
export function isTransient(thrown: unknown): boolean {
  const error = parse(thrown);
  if (error === undefined) return false;
  const { name, code, status, isClockCorrected } = error;
  if (isClockCorrected || TRANSIENT_NAMES.has(name)) return true;
  return status === undefined
    ? code !== undefined && NETWORK_CODES.has(code)
    : TRANSIENT_STATUSES.has(status);
}

/** Two conditional writes met in S3, which decided neither. The write has to be made again as a whole. */
export function isConflict(thrown: unknown): boolean {
  const error = parse(thrown);
  return error?.status === 409 && error.name !== "InvalidBucketState";
}

/** The condition did not hold: another writer was first. */
export function isLost(thrown: unknown, condition: PutCondition): boolean {
  const error = parse(thrown);
  // ifMatch on a key that is free is answered by 404.
  return error?.status === 412 || ("ifMatch" in condition && isMissing(thrown));
}

/** There is no such object; a bucket that is gone is another matter. */
export function isMissing(thrown: unknown): boolean {
  const error = parse(thrown);
  return error?.status === 404 && (error.name === "NoSuchKey" || error.name === "NotFound");
}

export function isNoSuchUpload(thrown: unknown): boolean {
  return parse(thrown)?.name === "NoSuchUpload";
}

/** The object changed between two parts of reading it. */
export function isReplaced(thrown: unknown): boolean {
  return parse(thrown)?.status === 412 || isMissing(thrown);
}

/**
 * @param action what was tried, as a noun: "put", "list"
 * @returns InputError or Failure for an answer of S3 or of the network; everything else as it is
 */
export function attributeS3Error(
  thrown: unknown,
  action: string,
  where: string,
  location: S3Location,
): unknown {
  if (thrown instanceof InputError || thrown instanceof Failure || thrown instanceof InvariantError)
    return thrown;
  const error = parse(thrown);
  if (error === undefined) return thrown;
  const options = { cause: thrown };
  const input = inputMistake(error, action, location);
  if (input !== undefined) return new InputError({ ...input, where }, options);
  const text = formatErrorText({ what: "store unavailable", where, ...unavailable(error, action, location) });
  const retryable = isTransient(thrown) || isConflict(thrown) || error.status === undefined;
  return new Failure("StoreUnavailable", text, { ...options, retryable });
}

/** Read by `isTransient`: the connection ended before all bytes were there. */
export function bodyCutOff(got: number, sizeBytes: number): Error {
  const error = new Error(`the answer ended after ${got} of ${sizeBytes} bytes`);
  return Object.assign(error, { code: "ERR_STREAM_PREMATURE_CLOSE" });
}

/** Read by `isTransient`: nothing came in time. */
export function deadlinePassed(deadlineMs: number): Error {
  return Object.assign(new Error(`no answer in ${deadlineMs} ms`), {
    name: "TimeoutError",
    code: "ETIMEDOUT",
  });
}

function inputMistake(
  { name, message, status, region }: S3Error,
  action: string,
  { bucket, endpoint }: S3Location,
): { readonly what: string; readonly expected: string; readonly fix: string } | undefined {
  if (name === "NoSuchBucket")
    return {
      what: "no such bucket",
      expected: `expected the bucket ${bucket} at ${endpoint ?? "AWS"}`,
      fix: "create it, or correct the store's URL, the region or the endpoint",
    };
  if (status === 301 || region !== undefined)
    return {
      what: "the bucket lies in another region",
      expected: `expected to reach ${bucket} in its own region${region === undefined ? "" : `, ${region}`}`,
      fix: `set AWS_REGION, or write s3://${bucket}/…?region=${region ?? "…"}`,
    };
  // Later they cannot be renewed for the moment, which is the infrastructure's doing.
  if (name === "CredentialsProviderError" && action === "open")
    return {
      what: "no credentials for S3",
      expected: `expected them in the environment, a profile or the role of this machine: ${message}`,
      fix: "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    };
  if (name === "Region is missing" || /^Region is missing/.test(message))
    return {
      what: "no region for S3",
      expected: "expected to know where the bucket lies",
      fix: `set AWS_REGION, or write s3://${bucket}/…?region=eu-west-1`,
    };
  if (WRONG_CREDENTIALS.has(name))
    return {
      what: "credentials for S3 are refused",
      expected: `expected valid ones, got ${name}: ${message}`,
      fix: "renew them (aws sso login), or check the access key and its secret",
    };
  if (status === 401 || status === 403)
    return {
      what: "access to the store is denied",
      expected: `expected to be allowed to ${action} there, got ${status} ${name}: ${message}`,
      fix: "allow s3:ListBucket on the bucket and s3:GetObject, PutObject, DeleteObject, AbortMultipartUpload on its objects",
    };
  return undefined;
}

function unavailable(
  { name, message, code, status }: S3Error,
  action: string,
  { endpoint }: S3Location,
): { readonly expected: string; readonly fix: string } {
  const host = endpoint ?? "AWS";
  if (CHANGED.test(message))
    return {
      expected: `${action} failed: what arrived is not what was stored (${message})`,
      fix: "try again",
    };
  if (status === undefined)
    return {
      expected: `${action} failed: ${host} does not answer (${code ?? name}: ${message})`,
      fix: "check the network, the endpoint and its name",
    };
  const answer = `${status} ${name}: ${message}`;
  if (THROTTLED.has(name) || status === 429 || status === 503)
    return {
      expected: `${action} failed: ${host} asks for fewer requests (${answer})`,
      fix: "try again later, or let fewer processes use the bucket at once",
    };
  return { expected: `${action} failed: ${host} answered ${answer}`, fix: "try again later; see the cause" };
}

/** @returns undefined for an error that is neither of the SDK nor of the network */
function parse(thrown: unknown): S3Error | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const fields = thrown as { code?: unknown; $metadata?: unknown; $response?: unknown };
  const metadata = (fields.$metadata ?? {}) as { httpStatusCode?: number; clockSkewCorrected?: boolean };
  const code = typeof fields.code === "string" ? fields.code : undefined;
  const isKnown =
    fields.$metadata !== undefined ||
    (code !== undefined && NETWORK_CODES.has(code)) ||
    ["TimeoutError", "CredentialsProviderError"].includes(thrown.name) ||
    /^Region is missing/.test(thrown.message) ||
    CHANGED.test(thrown.message);
  if (!isKnown) return undefined;
  const headers = (fields.$response as { headers?: Record<string, string> } | undefined)?.headers;
  return {
    name: thrown.name,
    message: thrown.message,
    code,
    status: metadata.httpStatusCode,
    region:
      metadata.httpStatusCode === 301 || metadata.httpStatusCode === 400
        ? headers?.["x-amz-bucket-region"]
        : undefined,
    isClockCorrected: metadata.clockSkewCorrected === true,
  };
}
