import { describe, expect, it } from "vitest";
import { readReport } from "./read-report.ts";

const read = (files: Readonly<Record<string, string>>) =>
  readReport(new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])));
const ctrf = (...statuses: string[]): string =>
  JSON.stringify({ results: { tests: statuses.map((status, index) => ({ name: `t${index}`, status })) } });

describe("JUnit XML", () => {
  // As pytest 8 writes it, and with Maven's nesting.
  const xml = `<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" tests="4">
<testcase classname="tests.test_a" name="test_1" time="0.001" />
<testcase classname="tests.test_a" name="test_2[&lt;a &amp; b&gt;&#233;]"><failure message="x">assert 1 &lt; 0</failure></testcase>
<testsuite><testcase name="test_3"><skipped/></testcase><testcase name="test_4"><error>no</error></testcase></testsuite>
</testsuite></testsuites>`;

  it("is read through all suites, names decoded", () => {
    expect(read({ "junit.xml": xml })).toEqual({
      outcome: 0,
      tests: [
        { name: "tests.test_a.test_1", status: "passed" },
        { name: "tests.test_a.test_2[<a & b>é]", status: "failed" },
        { name: "test_3", status: "skipped" },
        { name: "test_4", status: "failed" },
      ],
    });
  });

  it("with entities of its own, or none of its elements, is no report", () => {
    const laughs = `<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;&b;">]><testsuite><testcase name="&c;"/></testsuite>`;
    for (const text of [laughs, "<html/>", "", "not xml <", "<testsuite><testcase>"])
      expect(read({ "junit.xml": text, "reward.txt": "1" }).cause, text).toMatch(
        /unreadable_report|collection_error/,
      );
  });
});

describe("TAP", () => {
  it("is read with directives, and tests that never ran have failed", () => {
    const text =
      "TAP version 13\n1..5\nok 1 - a\nnot ok 2 b\n  ok 1 - inner\nok 3 # SKIP no disk\nnot ok 4 c # TODO later\n";
    expect(read({ "results.tap": text }).tests).toEqual([
      { name: "a", status: "passed" },
      { name: "b", status: "failed" },
      { name: "test 3", status: "skipped" },
      { name: "c", status: "skipped" },
      { name: "test 5 did not run", status: "failed" },
    ]);
    expect(read({ "results.tap": "1..1\nok 1\nBail out! disk\n" }).outcome).toBe(0);
    expect(read({ "results.tap": "hello\n" }).cause).toBe("unreadable_report");
  });
});

describe("reports", () => {
  it("count in one order: CTRF, JUnit, TAP", () => {
    const junit = "<testsuite><testcase name='j'/></testsuite>";
    const all = { "ctrf.json": ctrf("passed"), "junit.xml": junit, "results.tap": "1..1\nnot ok 1\n" };
    expect(read(all).tests.map(test => test.name)).toEqual(["t0"]);
    const { "ctrf.json": _, ...others } = all;
    expect(read(others).tests.map(test => test.name)).toEqual(["j"]);
  });

  it("are bombs to nobody: a million tests, depth, length", () => {
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    const bombs: Readonly<Record<string, string>>[] = [
      { "ctrf.json": `{"results":{"tests":[${'{"name":"a","status":"passed"},'.repeat(200_000)}{}]}}` },
      { "ctrf.json": `{"results":{"tests":${deep}}}` },
      { "ctrf.json": " ".repeat(9 << 20) },
      { "junit.xml": `<testsuite>${"<testcase name='a'/>".repeat(100_000)}</testsuite>` },
      { "junit.xml": "<testsuite>".repeat(100_000) },
      { "results.tap": "1..999999999\n" },
      { "results.tap": `${"ok\n".repeat(100_000)}` },
    ];
    for (const bomb of bombs) expect(read(bomb).cause).toBe("unreadable_report");
    const long = read({ "ctrf.json": ctrf("passed").replace("t0", "n".repeat(100_000)) });
    expect(long.tests[0]?.name.length).toBe(1000);
  });

  it("with a prototype's names are only names", () => {
    const report = read({ "reward.json": '{"__proto__": 1, "constructor": 0.5}' });
    expect(report.outcome).not.toBeNaN();
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("rewards", () => {
  it("keep every key, and truth values as numbers", () => {
    expect(read({ "reward.json": '{"reward": 0.5, "style": true}' })).toMatchObject({
      outcome: 0.5,
      rewards: { reward: 0.5, style: 1 },
    });
  });

  it("without a key reward come to their mean", () => {
    expect(read({ "reward.json": '{"a": 1, "b": 0.5}' }).outcome).toBe(0.75);
  });

  it("of two files that disagree are a conflict (verifiers#1401, #1674)", () => {
    expect(read({ "reward.json": '{"reward": 1}', "reward.txt": "0" })).toMatchObject({
      cause: "report_conflict",
    });
    expect(read({ "reward.json": '{"reward": 1}', "reward.txt": "1" })).toMatchObject({ cause: "no_report" });
  });

  it("that are no numbers are not taken for any, and the other file does not stand in", () => {
    for (const text of ["[1]", '"1"', '{"reward": "1"}', "NaN", '{"reward": null}', "{}"])
      expect(read({ "reward.json": text, "reward.txt": "1" }).outcome, text).toBeNull();
  });
});
