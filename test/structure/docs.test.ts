// Links, paths, scripts and decisions that the docs name exist.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const DECISIONS = readdirSync(join(ROOT, "docs/decisions"));
const PAGES = [
  ...["README.md", "CONTRIBUTING.md"],
  ...readdirSync(join(ROOT, "docs")).flatMap(name => (name.endsWith(".md") ? [`docs/${name}`] : [])),
  ...DECISIONS.map(name => `docs/decisions/${name}`),
];
const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

describe.each(PAGES)("%s", page => {
  const text = readFileSync(join(ROOT, page), "utf8");
  const all = (pattern: RegExp): string[] => [...text.matchAll(pattern)].map(([, found]) => found ?? "");

  it("links to pages that exist", () => {
    const links = all(/\]\(((?!https?:)[^)#\s]+)/g);
    expect(links.filter(link => !existsSync(join(ROOT, dirname(page), link)))).toEqual([]);
  });

  it("names paths of the repository that exist", () => {
    const paths = all(
      /(?<![\w./-])((?:src|test|infra|lambdas|containers|bench|scripts|docs)\/[\w./-]*\w)(?![\w/<*{…-])/g,
    );
    expect(paths.filter(path => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  it("names npm scripts that exist", () => {
    expect(all(/npm run ([\w:-]+)/g).filter(name => scripts[name] === undefined)).toEqual([]);
  });

  it("names decisions that exist", () => {
    const numbers = all(/\bdecisions? (\d{4})\b/gi);
    expect(numbers.filter(number => !DECISIONS.some(name => name.startsWith(`${number}-`)))).toEqual([]);
  });
});

it("gives each decision a number of its own, which its title repeats", () => {
  const numbers = DECISIONS.map(name => name.slice(0, 4));
  expect(numbers).toEqual([...new Set(numbers)]);
  for (const name of DECISIONS)
    expect(readFileSync(join(ROOT, "docs/decisions", name), "utf8")).toMatch(
      new RegExp(`^# ${name.slice(0, 4)} `),
    );
});
