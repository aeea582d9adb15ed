// Parses the text of task.toml into typed values, and words errors with their lines.
import { parse, TomlDate, TomlError } from "smol-toml";
import type { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { SCHEMA_VERSION, TaskToml } from "./task-toml.ts";
import { locateKeys } from "./toml-lines.ts";

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The original file, for messages. */
interface Document {
  readonly file: string;
  readonly text: string;
  readonly raw: Readonly<Record<string, unknown>>;
}

/** A key without effect. */
interface Idle {
  readonly path: Path;
  readonly reason: string;
}

/**
 * @param text content of task.toml
 * @param file its path, for messages
 * @returns the typed content, with a warning for each key that has no effect
 * @throws InputError that lists all faults with their lines
 */
export function readTaskToml(
  text: string,
  file: string,
): { readonly toml: TaskToml; readonly warnings: readonly string[] } {
  const document: Document = { file, text, raw: parseToml(text, file) };
  const { toml, unknown } = checkSchema(document);
  const idle = [...unknown, ...findNewVersion(toml), ...findLostTimeout(toml, document.raw)];
  return { toml: withMetadata(toml, document.raw), warnings: wordWarnings(idle, document) };
}

function parseToml(text: string, file: string): Record<string, unknown> {
  try {
    // Lone carriage returns end lines in Python's text mode, but not in TOML.
    return parse(text.replaceAll(/\r\n?/g, "\n"), { integersAsBigInt: "asNeeded" });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [message = ""] = error.message.split("\n");
    throw new InputError(
      {
        what: "task.toml is not valid TOML",
        where: `${file}:${error.line}:${error.column}`,
        expected: message.replace(/^Invalid TOML document: /, ""),
        fix: "correct that line (https://toml.io/en/v1.0.0)",
      },
      { cause: error },
    );
  }
}

/** Unknown keys are no fault: they are taken out, and what is left is checked again. */
function checkSchema(document: Document): { readonly toml: TaskToml; readonly unknown: readonly Idle[] } {
  const tables = withoutDates(document.raw);
  const first = TaskToml.safeParse(tables);
  if (first.success) return { toml: first.data, unknown: [] };
  const { issues } = first.error;
  if (issues.some(issue => issue.code !== "unrecognized_keys")) throw refusal(issues, document);

  const unknown = issues.flatMap(issue =>
    issue.code === "unrecognized_keys" ? issue.keys.map(key => [...issue.path, key]) : [],
  );
  for (const path of unknown) dropKey(tables, path);
  // Rules over several keys of a table wait until it holds no unknown ones, so faults may still turn up here.
  const second = TaskToml.safeParse(tables);
  if (!second.success) throw refusal(second.error.issues, document);
  const reason = `task.toml ${SCHEMA_VERSION} has no such key`;
  return { toml: second.data, unknown: unknown.map(path => ({ path, reason })) };
}

/** A copy in which dates, which no key outside [metadata] takes, are null: to zod a date would pass for a table. */
function withoutDates(value: unknown): unknown {
  if (value instanceof TomlDate) return null;
  if (Array.isArray(value)) return value.map(withoutDates);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutDates(inner)]));
}

function dropKey(tables: unknown, path: Path): void {
  const table = valueAt(tables, path.slice(0, -1));
  const key = path.at(-1);
  if (typeof table === "object" && table !== null && key !== undefined) Reflect.deleteProperty(table, key);
}

function withMetadata(toml: TaskToml, { metadata }: Document["raw"]): TaskToml {
  // The schema has found a table here, or nothing.
  return typeof metadata === "object" && metadata !== null ? { ...toml, metadata: { ...metadata } } : toml;
}

function findNewVersion({ schema_version }: TaskToml): readonly Idle[] {
  const [major = 0, minor = 0] = schema_version.split(".").map(Number);
  const [knownMajor = 0, knownMinor = 0] = SCHEMA_VERSION.split(".").map(Number);
  const isNewer = major > knownMajor || (major === knownMajor && minor > knownMinor);
  return isNewer ? [{ path: ["schema_version"], reason: `the file is read as ${SCHEMA_VERSION}` }] : [];
}

function findLostTimeout(toml: TaskToml, raw: Document["raw"]): readonly Idle[] {
  const path = ["verifier", "timeout_sec"];
  if (toml.steps.length === 0 || valueAt(raw, path) === undefined) return [];
  return [{ path, reason: "each of [[steps]] has its own, 600 by default" }];
}

function wordWarnings(idle: readonly Idle[], document: Document): readonly string[] {
  return placeInFile(
    idle.map(({ path, reason }) => ({ path, words: () => `has no effect: ${reason}`, joint: " " })),
    document,
  );
}

function refusal(issues: readonly Issue[], document: Document): InputError {
  const faults = issues.filter(issue => issue.code !== "unrecognized_keys");
  const lines = placeInFile(
    faults.map(issue => ({
      path: issue.path,
      words: (path: Path) => `expected ${expectation(issue)}, got ${show(valueAt(document.raw, path))}`,
      joint: ": ",
    })),
    document,
  );
  const fix = "correct what is listed; optional keys may also be removed";
  return new InputError(`task.toml refused: ${lines.join("\n  also: ")}\n  fix: ${fix}`);
}

/** "file:line: key words" for each remark, in the order of the file. */
function placeInFile(
  remarks: readonly { readonly path: Path; readonly words: (path: Path) => string; readonly joint: string }[],
  { file, text, raw }: Document,
): readonly string[] {
  if (remarks.length === 0) return [];
  const lineOf = locateKeys(text);
  return remarks
    .map(remark => ({ ...remark, path: pathInFile(remark.path, raw) }))
    .map(({ path, words, joint }) => ({
      line: lineOf(path),
      text: `${formatPath(path)}${joint}${words(path)}`,
    }))
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .map(({ line, text }) => `${line === undefined ? file : `${file}:${line}`}: ${text}`);
}

/** `version` is read as `schema_version`; messages name what stands in the file. */
function pathInFile(path: Path, raw: unknown): Path {
  const isRenamed = path[0] === "schema_version" && valueAt(raw, ["schema_version"]) === undefined;
  return isRenamed ? ["version"] : path;
}

/** What stands at a path; where the file holds a plain value in place of a table, that value. */
function valueAt(file: unknown, path: Path): unknown {
  let value = file;
  for (const key of path) {
    if (typeof value !== "object" || value === null) return value;
    value = Reflect.get(value, key);
  }
  return value;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text in quotes",
  array: "a list",
  object: "a table",
  record: "a table",
};

function expectation(issue: Issue): string {
  if (issue.code === "invalid_type") return TYPE_NAMES[issue.expected] ?? issue.expected;
  if (issue.code === "invalid_value") return issue.values.map(value => JSON.stringify(value)).join(" or ");
  if (issue.code === "too_small") return `at least ${issue.minimum} characters`;
  return issue.message;
}

function formatPath(path: Path): string {
  const parts = path.map(key => (typeof key === "number" ? `[${key}]` : `.${String(key)}`));
  return parts.join("").replace(/^\./, "");
}

function show(value: unknown): string {
  if (value === undefined) return "nothing (the key is missing)";
  if (value instanceof TomlDate) return value.toISOString();
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  const text = JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "bigint" ? String(inner) : inner,
  );
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
