// The address of a store in a bucket: `s3://bucket/prefix`, with the region and the endpoint behind a question mark
// where the environment does not say them.
import { InputError } from "../../failure/errors.ts";
import { assertPrefix } from "../object-key.ts";

export interface S3Location {
  readonly bucket: string;
  /** `""`, or a prefix that ends in a slash. */
  readonly prefix: string;
  /** Without it the SDK's own rules say it (AWS_REGION, the profile). */
  readonly region?: string;
  /** Without it AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL say it, and without them it is AWS. */
  readonly endpoint?: string;
}

/** S3 allows 1,024 bytes per key, of which keys of a store take 900 (object-key.ts). */
const MAX_PREFIX_BYTES = 120;

/** Names that AWS gives out today: no capitals, no underscores. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

/** @throws InputError that says which part cannot be, and what was expected */
export function parseS3Url(url: string): S3Location {
  const [, bucket = "", path = "", query = ""] =
    /^s3:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/is.exec(url) ?? [];
  if (!BUCKET.test(bucket))
    throw refuse(url, "the name of a bucket: 3 to 63 small letters, digits, dots and dashes");
  if (bucket.endsWith("--x-s3"))
    throw refuse(url, "a general-purpose bucket: directory buckets list their keys in no order");
  const prefix = path.replace(/\/$/, "");
  if (prefix !== "") assertPrefix(`${prefix}/`);
  if (Buffer.byteLength(prefix) > MAX_PREFIX_BYTES)
    throw refuse(url, `a prefix of at most ${MAX_PREFIX_BYTES} bytes, so that keys fit behind it`);
  return { bucket, prefix: prefix === "" ? "" : `${prefix}/`, ...parseQuery(url, query) };
}

/** The same store in one spelling. */
export function formatS3Url({ bucket, prefix, region, endpoint }: S3Location): string {
  const query = new URLSearchParams({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
  });
  const path = prefix === "" ? "" : `/${prefix.slice(0, -1)}`;
  return `s3://${bucket}${path}${query.size === 0 ? "" : `?${query}`}`;
}

/** @param where of the setting, for messages @throws InputError */
export function assertEndpoint(endpoint: string, where: string): void {
  const parsed = URL.parse(endpoint);
  if (parsed !== null && /^https?:$/.test(parsed.protocol)) return;
  throw new InputError({
    what: "invalid endpoint of S3",
    where,
    expected: `expected an http:// or https:// URL, got ${JSON.stringify(endpoint)}`,
  });
}

function parseQuery(url: string, query: string): Pick<S3Location, "region" | "endpoint"> {
  const values = new URLSearchParams(query);
  for (const name of values.keys())
    if (name !== "region" && name !== "endpoint")
      throw refuse(url, `no settings but region and endpoint, got ${JSON.stringify(name)}`);
  const region = values.get("region");
  const endpoint = values.get("endpoint");
  if (region !== null && !/^[a-z0-9-]{1,40}$/.test(region)) throw refuse(url, "a region like eu-west-1");
  if (endpoint !== null) assertEndpoint(endpoint, JSON.stringify(url));
  return { ...(region === null ? {} : { region }), ...(endpoint === null ? {} : { endpoint }) };
}

function refuse(url: string, expected: string): InputError {
  return new InputError({
    what: "cannot open store",
    where: JSON.stringify(url),
    expected: `expected ${expected}`,
    fix: "write e.g. s3://my-bucket/t1 or s3://my-bucket/t1?region=eu-west-1",
  });
}
