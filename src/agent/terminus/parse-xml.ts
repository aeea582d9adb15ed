// A Terminus-2 reply in tags that look like XML: what stands inside a keystrokes tag is taken as it is, entities too.
// Behaviour and words: Harbor 0.26, agents/terminus_2/terminus_xml_plain_parser.py. No text makes it throw.
import { stripSpace } from "../../task/strip-space.ts";
import {
  DEFAULT_DURATION_SEC,
  type Keystrokes,
  limitDuration,
  newlineWarning,
  orderWarning,
  type ParsedReply,
} from "./parsed-reply.ts";

const REQUIRED = ["analysis", "plan", "commands"] as const;
const SECTIONS = [...REQUIRED, "task_complete"] as const;
type Section = (typeof SECTIONS)[number];

const OPEN = "<response>";
const CLOSE = "</response>";

/** @param text a reply without its reasoning */
export function parseXmlReply(text: string): ParsedReply {
  const warnings = extraTextWarnings(text);
  const content = responseContent(text);
  if (content === "") {
    const error = "No <response> tag found";
    return { commands: [], isComplete: false, error, warnings, analysis: "", plan: "" };
  }
  const isComplete = /<task_complete>\s*true\s*<\/task_complete>/i.test(content);
  const sections = readSections(content, warnings);
  const said = { analysis: sections.get("analysis") ?? "", plan: sections.get("plan") ?? "" };
  const inside = sections.get("commands");
  if (inside === undefined && !isComplete)
    return { commands: [], isComplete, error: "Missing <commands> section", warnings, ...said };
  if (inside === "" && !isComplete) {
    warnings.push(
      "Commands section is empty; not taking any action. If you want to wait a specific amount of time please use `sleep`, but if you're waiting for a command to finish then continue to wait.",
    );
  }
  const commands = inside === undefined || inside === "" ? [] : readCommands(inside, warnings);
  return { commands, isComplete, warnings, ...said };
}

function extraTextWarnings(text: string): string[] {
  const start = text.indexOf(OPEN);
  if (start === -1) return [];
  const warnings: string[] = [];
  if (stripSpace(text.slice(0, start)) !== "") warnings.push("Extra text detected before <response> tag");
  const end = text.indexOf(CLOSE);
  if (end === -1 || stripSpace(text.slice(end + CLOSE.length)) === "") return warnings;
  warnings.push("Extra text detected after </response> tag");
  const count = text.split(OPEN).length - 1;
  if (count > 1) warnings.push(onlyOne("response", count));
  return warnings;
}

function onlyOne(tag: string, count: number): string {
  return `IMPORTANT: Only issue one <${tag}> block at a time. You issued ${count} and only the first was executed.`;
}

/** A reply that was not closed goes on to its end. */
function responseContent(text: string): string {
  const start = text.indexOf(OPEN);
  if (start === -1) return "";
  const from = start + OPEN.length;
  const end = text.indexOf(CLOSE, start);
  return stripSpace(end === -1 ? text.slice(from) : text.slice(from, end));
}

function readSections(content: string, warnings: string[]): ReadonlyMap<Section, string> {
  const sections = new Map<Section, string>();
  for (const name of SECTIONS) {
    const inside = between(content, `<${name}>`, `</${name}>`);
    if (inside !== undefined) sections.set(name, stripSpace(inside));
    else if (new RegExp(`<${name}\\s*/>`).test(content)) sections.set(name, "");
  }
  for (const name of REQUIRED) if (!sections.has(name)) warnings.push(`Missing <${name}> section`);
  const known = new Set<string>(SECTIONS);
  for (const tag of new Set(topLevelTags(content))) {
    if (!known.has(tag))
      warnings.push(`Unknown tag found: <${tag}>, expected analysis/plan/commands/task_complete`);
  }
  for (const name of SECTIONS) {
    const count = content.match(new RegExp(`<${name}(?:\\s|>|/>)`, "g"))?.length ?? 0;
    if (count > 1)
      warnings.push(name === "commands" ? onlyOne("commands", count) : `Multiple <${name}> sections found`);
  }
  const places = REQUIRED.map(name => [name, content.search(new RegExp(`<${name}(?:\\s|>|/>)`))] as const);
  warnings.push(...orderWarning("Sections", new Map(places.filter(([, place]) => place !== -1))));
  return sections;
}

/** From the first opening tag that has a closing one behind it. */
function between(text: string, open: string, close: string): string | undefined {
  const start = text.indexOf(open);
  const end = start === -1 ? -1 : text.indexOf(close, start + open.length);
  return end === -1 ? undefined : text.slice(start + open.length, end);
}

/** Names of the tags that stand inside no other, as far as tags that need not match can tell. */
function topLevelTags(content: string): string[] {
  const names: string[] = [];
  let depth = 0;
  for (let at = content.indexOf("<"); at !== -1; at = content.indexOf("<", at)) {
    const end = content.indexOf(">", at);
    if (end === -1) break;
    const tag = content.slice(at + 1, end);
    at = end + 1;
    if (tag.startsWith("!") || tag.startsWith("?")) continue;
    if (tag.startsWith("/")) {
      depth--;
      continue;
    }
    const name = tag.includes(" ") ? (stripSpace(tag).split(/\s+/)[0] ?? "") : tag;
    if (depth === 0) names.push(name.endsWith("/") ? name.slice(0, -1) : name);
    if (!tag.endsWith("/")) depth++;
  }
  return names;
}

const KEYSTROKES = "<keystrokes";
const END_OF_KEYSTROKES = "</keystrokes>";
const ENTITIES = [
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&amp;", "&"],
  ["&quot;", '"'],
  ["&apos;", "'"],
] as const;

function readCommands(inside: string, warnings: string[]): Keystrokes[] {
  const found = findKeystrokes(inside);
  const commands = found.map(({ attributes, keys }, index) => {
    const name = `Command ${index + 1}`;
    warnings.push(...attributeWarnings(attributes, name));
    const durationSec = readDuration(attributes, name, warnings);
    warnings.push(...newlineWarning(keys, index, found.length));
    return { keys, durationSec };
  });
  for (const [entity, character] of ENTITIES) {
    if (inside.includes(entity))
      warnings.push(
        `Warning: ${entity} is read verbatim and not converted to ${character}. NEVER USE ${entity}, unless you want these exact characters to appear directly in the output.`,
      );
  }
  if (inside.includes("\\r\\n"))
    warnings.push("Warning: \\r\\n line endings are not necessary - use \\n instead for simpler output");
  return commands;
}

function findKeystrokes(inside: string): { attributes: string; keys: string }[] {
  const found: { attributes: string; keys: string }[] = [];
  let at = 0;
  for (;;) {
    const start = inside.indexOf(KEYSTROKES, at);
    const open = start === -1 ? -1 : inside.indexOf(">", start);
    const end = open === -1 ? -1 : inside.indexOf(END_OF_KEYSTROKES, open + 1);
    if (end === -1) return found;
    found.push({
      attributes: inside.slice(start + KEYSTROKES.length, open),
      keys: inside.slice(open + 1, end),
    });
    at = end + END_OF_KEYSTROKES.length;
  }
}

function readDuration(attributes: string, name: string, warnings: string[]): number {
  const given = /duration\s*=\s*["']([^"']*)["']/.exec(attributes)?.[1];
  if (given === undefined) {
    warnings.push(`${name}: Missing duration attribute, using default 1.0`);
    return DEFAULT_DURATION_SEC;
  }
  const durationSec = parsePythonFloat(given);
  if (durationSec !== undefined) return limitDuration(durationSec);
  warnings.push(`${name}: Invalid duration value '${given}', using default 1.0`);
  return DEFAULT_DURATION_SEC;
}

/** Accepts the texts that Python's float() accepts: underscores between digits, inf and nan, white space around. */
function parsePythonFloat(text: string): number | undefined {
  const stripped = stripSpace(text).toLowerCase();
  if (/^[+-]?nan$/.test(stripped)) return Number.NaN;
  if (/^[+-]?inf(?:inity)?$/.test(stripped))
    return stripped.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const digits = "\\d+(?:_\\d+)*";
  const number = new RegExp(`^[+-]?(?:${digits}\\.?(?:${digits})?|\\.${digits})(?:e[+-]?${digits})?$`);
  return number.test(stripped) ? Number(stripped.replaceAll("_", "")) : undefined;
}

const WORD = "[\\p{L}\\p{N}_]+";

function attributeWarnings(attributes: string, name: string): string[] {
  const all = (pattern: string): RegExpExecArray[] => [...attributes.matchAll(new RegExp(pattern, "gu"))];
  return [
    ...all(`(${WORD})\\s*=\\s*([^"'\\s>]+)`).map(
      ([, key, value]) => `${name}: Attribute '${key}' value should be quoted: ${key}="${value}"`,
    ),
    ...all(`(${WORD})\\s*=\\s*'([^']*)'`).map(
      ([, key, value]) => `${name}: Use double quotes for attribute '${key}': ${key}="${value}"`,
    ),
    ...all(`(${WORD})\\s*=`)
      .filter(([, key]) => key !== "duration")
      .map(([, key]) => `${name}: Unknown attribute '${key}' - known attributes are: duration`),
  ];
}
