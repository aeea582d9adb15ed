import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../test/store/temporary-store.ts";
import { openStore } from "./open-store.ts";

describe("openStore", () => {
  it("opens one folder by path, relative path and file: URL alike", async () => {
    const folder = join(await temporaryFolder(), "with space, ä and %41");
    await mkdir(folder);
    const { href } = pathToFileURL(folder);
    for (const text of [
      folder,
      relative(process.cwd(), folder),
      href,
      `${href}/`,
      href.replace("file", "FILE"),
    ]) {
      expect((await openStore(text)).url, text).toBe(href);
    }
  });

  it.each([
    ["s3://", "expected the name of a bucket"],
    ["s3:bucket", "expected the name of a bucket"],
    ["S3://Bucket/x", "expected the name of a bucket"],
    ["s3://arn:aws:s3:eu-west-1:1:accesspoint/x", "expected the name of a bucket"],
    ["s3://bucket--euw1-az1--x-s3", "directory buckets list their keys in no order"],
    ["s3://bucket/a//b", "without empty segments"],
    ["s3://bucket/../b", "no segment . or .."],
    [`s3://bucket/${"x".repeat(121)}`, "a prefix of at most 120 bytes"],
    ["s3://bucket/x?profile=ada", 'no settings but region and endpoint, got "profile"'],
    ["s3://bucket/x?region=EU", "a region like eu-west-1"],
    ["s3://bucket/x?endpoint=localhost:9000", "expected an http:// or https:// URL"],
    ["https://host/x", "got scheme https:"],
    ["gs://bucket", "got scheme gs:"],
    ["file://host/folder", "expected file:/// and an absolute path"],
    ["file:folder", "expected file:/// and an absolute path"],
    ["file:///folder?x=1", "without ? and #"],
    ["file:///a%00b", "without NUL"],
    ["", "got nothing"],
    ["a\0b", "without NUL"],
    ["~/runs", "only a shell knows what ~ stands for"],
  ])("refuses %j, and says what it expects", async (url, expected) => {
    await expect((async () => openStore(url))()).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining(expected),
    });
  });
});
