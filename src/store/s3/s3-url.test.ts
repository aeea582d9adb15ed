import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatS3Url, parseS3Url } from "./s3-url.ts";

describe("URL of a store in S3", () => {
  it("says bucket, prefix, region and endpoint", () => {
    expect(parseS3Url("s3://my-bucket")).toEqual({ bucket: "my-bucket", prefix: "" });
    expect(parseS3Url("S3://my.bucket/a b/ä/")).toEqual({ bucket: "my.bucket", prefix: "a b/ä/" });
    expect(parseS3Url("s3://bucket/%41?region=eu-west-1&endpoint=http://127.0.0.1:8333")).toEqual({
      ...{ bucket: "bucket", prefix: "%41/" },
      ...{ region: "eu-west-1", endpoint: "http://127.0.0.1:8333" },
    });
  });

  it("is the same after it was written and read again, as workers do", () => {
    const segment = fc.stringMatching(/^[a-z0-9 +&%=#é-]{1,8}$/);
    const location = fc.record(
      {
        bucket: fc
          .stringMatching(/^[a-z0-9][a-z0-9-]{1,20}[a-z0-9]$/)
          .filter(name => !name.endsWith("--x-s3")),
        prefix: fc.array(segment, { maxLength: 4 }).map(names => names.map(name => `${name}/`).join("")),
        region: fc.constantFrom("eu-west-1", "us-east-1"),
        endpoint: fc.constantFrom("http://127.0.0.1:1", "https://s3.example.org/x?y=1&z"),
      },
      { requiredKeys: ["bucket", "prefix"] },
    );
    fc.assert(
      fc.property(location, value => {
        expect(parseS3Url(formatS3Url(value))).toEqual(value);
      }),
    );
  });
});
