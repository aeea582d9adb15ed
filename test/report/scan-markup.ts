// Reads markup the strict way: tags with double-quoted attributes, text without a stray bracket, entities of our own.
// Whatever else stands in a page is an error, so a text that escaped its place cannot go unnoticed.

export interface Scanned {
  readonly elements: readonly { readonly name: string; readonly attributes: ReadonlyMap<string, string> }[];
  /** Text between tags, entities resolved; the style sheet is none. */
  readonly text: string;
}

const TAG = /^<(\/?)([a-z][a-z0-9]*)((?: [a-z-]+="[^"<>]*")*)(\/?)>$/i;
const ENTITY = /&(amp|lt|gt|quot);/g;

export function scanMarkup(document: string): Scanned {
  const body = document.replace(/^<!doctype html>/, "").replace(/<style>[^<]*<\/style>/, "");
  const elements: { name: string; attributes: ReadonlyMap<string, string> }[] = [];
  let text = "";
  for (const piece of body.split(/(<[^>]*>)/)) {
    if (!piece.startsWith("<")) {
      if (piece.includes(">")) throw new Error(`a bracket without a tag: ${piece.slice(0, 80)}`);
      text += resolve(piece);
      continue;
    }
    const match = TAG.exec(piece);
    if (match === null) throw new Error(`not a tag as the report writes them: ${piece.slice(0, 200)}`);
    const [, closing, name, attributes] = match;
    if (closing === "/") continue;
    const pairs = [...attributes.matchAll(/ ([a-z-]+)="([^"]*)"/gi)];
    elements.push({ name, attributes: new Map(pairs.map(([, key, value]) => [key, resolve(value)])) });
  }
  return { elements, text };
}

function resolve(text: string): string {
  const left = text.replace(ENTITY, "");
  if (left.includes("&")) throw new Error(`an unknown entity: ${left.slice(left.indexOf("&"), 40)}`);
  return text.replace(ENTITY, (_, name: string) => ({ amp: "&", lt: "<", gt: ">", quot: '"' })[name] ?? "");
}
