// Reads JUnit XML as pytest, Maven, Gradle and others write it: <testsuites>, <testsuite>, <testcase> with <failure>,
// <error> or <skipped> inside. There is no standard; these names are common to all
// (https://github.com/testmoapp/junitxml).
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { z } from "zod";
import { MOST_TESTS, NAME_CHARACTERS, type TestResult } from "./report.ts";

/** An element: its name maps to its children, `:@` to its attributes. */
const Element = z.record(z.string(), z.unknown());
const Children = z.array(Element);
const Attributes = z.record(z.string(), z.string());

/** Each test has a few elements: its properties, its output. */
const MOST_TAGS = 8 * MOST_TESTS;
/** Suites nest a few levels deep; a report does not nest deeper than this. */
const DEEPEST = 20;

/** @returns undefined when the file is no JUnit XML, or has more than MOST_TESTS tests */
export function readJunit(bytes: Uint8Array): TestResult[] | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  // Without a document type there are no entities to expand but the five that every document has.
  if (/<!(DOCTYPE|ENTITY)/i.test(text)) return undefined;
  // Check this first: the whole run waits while we parse.
  if (text.split("<", MOST_TAGS + 1).length > MOST_TAGS) return undefined;
  // The parser itself accepts a file that breaks off.
  if (XMLValidator.validate(text) !== true) return undefined;
  const parser = new XMLParser({
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: "",
    parseAttributeValue: false,
    parseTagValue: false,
    processEntities: false,
    maxNestedTags: 100,
  });
  let root: unknown;
  try {
    root = parser.parse(text);
  } catch {
    return undefined;
  }
  const suites = childrenOf(root).filter(element => "testsuites" in element || "testsuite" in element);
  if (suites.length === 0) return undefined;
  const tests: TestResult[] = [];
  return collect(suites, tests, 0) ? tests : undefined;
}

/** @returns false when there are too many tests, or they nest too deeply */
function collect(elements: readonly Record<string, unknown>[], tests: TestResult[], depth: number): boolean {
  if (depth > DEEPEST) return false;
  for (const element of elements) {
    if ("testcase" in element) {
      if (tests.length >= MOST_TESTS) return false;
      tests.push({ name: nameOf(element[":@"]), status: statusOf(childrenOf(element.testcase)) });
    } else {
      const inner = childrenOf(element.testsuites ?? element.testsuite);
      if (!collect(inner, tests, depth + 1)) return false;
    }
  }
  return true;
}

function childrenOf(value: unknown): readonly Record<string, unknown>[] {
  const parsed = Children.safeParse(value);
  return parsed.success ? parsed.data : [];
}

function nameOf(attributes: unknown): string {
  const parsed = Attributes.safeParse(attributes);
  const { classname = "", name = "" } = parsed.success ? parsed.data : {};
  return decode(classname === "" ? name : `${classname}.${name}`).slice(0, NAME_CHARACTERS);
}

function statusOf(children: readonly Record<string, unknown>[]): TestResult["status"] {
  const has = (name: string): boolean => children.some(child => name in child);
  if (has("failure") || has("error")) return "failed";
  return has("skipped") ? "skipped" : "passed";
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

function decode(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
    if (name !== undefined) return ENTITIES[name] ?? whole;
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
