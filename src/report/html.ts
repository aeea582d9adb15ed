// Makes markup and always escapes: only this module makes `Html`, and every other value in a template is text. It also
// checks the place of each value, because escaping alone does not make a handler or a link safe.
import { InvariantError } from "../failure/errors.ts";
import { shorten, visibleText } from "./visible-text.ts";

/** Only its type is exported, so that no other module can turn text into markup. */
class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}
export type Html = Markup;

/** `undefined` and `false` render as nothing; a list renders its parts without a separator. */
export type Part = Html | string | number | undefined | false | readonly Part[];

/**
 * Renders a template: escapes text and makes its hidden characters visible.
 *
 * Values may stand between tags, or in a double-quoted attribute that neither runs nor loads anything; a link may only
 * lead into the page (`href="#${id}"`).
 *
 * @throws InvariantError for a value anywhere else, a number that is none, markup in an attribute, and elements that
 * run or load (script, style, iframe, …)
 */
export function html(parts: TemplateStringsArray, ...values: readonly Part[]): Html {
  const places = placesOf(parts);
  let text = parts[0];
  values.forEach((value, index) => {
    text += (places[index] === "content" ? contentText(value) : attributeText(value)) + parts[index + 1];
  });
  return new Markup(text);
}

/** Renders the style sheet. @throws InvariantError when the text could end its element */
export function styleElement(css: string): Html {
  if (css.includes("<")) throw new InvariantError("CSS could end its element", { at: css.indexOf("<") });
  return new Markup(`<style>${css}</style>`);
}

export function sizeBytesOf(markup: Html): number {
  return Buffer.byteLength(markup.text);
}

type Place = "content" | "attribute";

/** Templates are literals of the code, so each is checked once. */
const checked = new WeakMap<TemplateStringsArray, readonly Place[]>();

function placesOf(parts: TemplateStringsArray): readonly Place[] {
  const known = checked.get(parts);
  if (known !== undefined) return known;
  const places = findPlaces(parts);
  checked.set(parts, places);
  return places;
}

const FORBIDDEN_ELEMENT =
  /<\/?(script|style|iframe|frame|object|embed|applet|base|link|form|template|noscript|foreignobject|use|animate|set)\b|<!--/i;
const FORBIDDEN_ATTRIBUTE = /^(on.*|style|src|srcset|srcdoc|action|formaction|ping|background|http-equiv)$/i;

function findPlaces(parts: readonly string[]): Place[] {
  let state: "content" | "tag" | "attribute" = "content";
  let before = "";
  const places: Place[] = [];
  parts.forEach((part, index) => {
    const forbidden = FORBIDDEN_ELEMENT.exec(part);
    if (forbidden !== null)
      throw new InvariantError("a template holds what may not be in a report", { found: forbidden[0] });
    for (const character of part) {
      before += character;
      if (state === "content" && character === "<") state = "tag";
      else if (state === "tag" && character === ">") state = "content";
      else if (state === "tag" && character === '"') state = "attribute";
      else if (state === "attribute" && character === '"') state = "tag";
    }
    if (index === parts.length - 1) return;
    if (state === "tag") throw new InvariantError("a value stands in a tag outside quotes", { before });
    if (state === "attribute") assertHarmless(before);
    places.push(state);
  });
  if (state !== "content") throw new InvariantError("a template ends inside a tag", { template: before });
  return places;
}

function assertHarmless(before: string): void {
  const [, name = "", value = ""] = /([\w:-]+)="([^"]*)$/.exec(before) ?? [];
  if (name === "" || FORBIDDEN_ATTRIBUTE.test(name))
    throw new InvariantError("a value stands in an attribute that can run or load", { name });
  if (/(^|:)href$/i.test(name) && !value.startsWith("#"))
    throw new InvariantError("a link may only lead into the page", { name, value });
}

function contentText(value: Part): string {
  if (value instanceof Markup) return value.text;
  if (typeof value === "object") return value.map(contentText).join("");
  return scalarText(value);
}

function attributeText(value: Part): string {
  if (typeof value === "object") throw new InvariantError("markup stands in an attribute");
  return scalarText(value);
}

/** Limits a name of a megabyte. Code that shows long texts shortens them better before. */
const LONGEST_TEXT = 20_000;

function scalarText(value: string | number | undefined | false): string {
  if (value === undefined || value === false) return "";
  if (typeof value === "string") return escapeText(visibleText(shorten(value, LONGEST_TEXT)));
  if (!Number.isFinite(value))
    throw new InvariantError("a number of the page is none", { value: String(value) });
  return String(value);
}

/** These suffice because `findPlaces` requires double quotes around every attribute. */
const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

function escapeText(text: string): string {
  return text.replace(/[&<>"]/g, character => ENTITIES[character]);
}
