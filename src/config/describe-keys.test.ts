import { expect, test } from "vitest";
import { describeKeys } from "./describe-keys.ts";

test("every key says what it does, and none says it twice", () => {
  for (const { path, description } of describeKeys()) {
    expect(description, path).not.toBe("");
    const sentences = description.split(/(?<=\.) /);
    expect(new Set(sentences).size, path).toBe(sentences.length);
  }
});

test("a choice between a value and a group says what the group holds", () => {
  expect(describeKeys().find(({ path }) => path === "policy")?.type).toBe("string | {run, version}");
});
