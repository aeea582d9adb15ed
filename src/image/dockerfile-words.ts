// Words of a Dockerfile's instructions: quotes, escapes and variables.
// Reference: https://docs.docker.com/reference/dockerfile/#environment-replacement
import type { Escape } from "./dockerfile.ts";

export interface Words {
  readonly escapeCharacter: Escape;
  /** @returns undefined for a variable that is not set */
  readonly lookup: (name: string) => string | undefined;
}

/** What the text of an instruction has that Dockerfiles do not, or that no builder of ours does. */
export class WordError extends Error {}

/** Words between blanks outside of quotes, as they stand there. */
export function words(text: string, escapeCharacter: Escape): readonly string[] {
  const found: string[] = [];
  let word = "";
  let quote: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (quote === undefined && /\s/.test(character)) {
      if (word !== "") found.push(word);
      word = "";
      continue;
    }
    word += character;
    if (character === escapeCharacter && quote !== "'") word += text.charAt(++at);
    else if (character === quote) quote = undefined;
    else if (quote === undefined && (character === '"' || character === "'")) quote = character;
  }
  if (word !== "") found.push(word);
  return found;
}

/** A word without quotes and escapes; variables are left alone. */
export function unquote(word: string, escapeCharacter: Escape): string {
  return new Expansion(word, { escapeCharacter, lookup: name => `$${name}` }).all();
}

/**
 * A text with its variables replaced and without quotes and escapes. Blanks stay, also those of a variable's value.
 *
 * @throws WordError
 */
export function expand(text: string, { escapeCharacter, lookup }: Words): string {
  return new Expansion(text, { escapeCharacter, lookup }).all();
}

/**
 * `NAME=value …` of ENV, LABEL and ARG, or the old `NAME the whole rest` of ENV and LABEL.
 *
 * @throws WordError
 */
export function assignments(text: string, context: Words): readonly (readonly [string, string])[] {
  const list = words(text, context.escapeCharacter);
  const [first] = list;
  if (first === undefined) throw new WordError("without a variable");
  if (!first.includes("=")) {
    const rest = text.slice(first.length).trim();
    if (rest === "") throw new WordError("without a value");
    return [[expand(first, context), expand(rest, context)]];
  }
  return list.map(word => {
    const at = word.indexOf("=");
    if (at < 1) throw new WordError(`with ${JSON.stringify(word)}, which is no NAME=value`);
    return [expand(word.slice(0, at), context), expand(word.slice(at + 1), context)];
  });
}

class Expansion {
  readonly #text: string;
  readonly #context: Words;
  #at = 0;

  constructor(text: string, context: Words) {
    this.#text = text;
    this.#context = context;
  }

  all(): string {
    const expanded = this.#until(undefined);
    if (this.#at < this.#text.length) throw new WordError(`with an open ${this.#text.charAt(this.#at)}`);
    return expanded;
  }

  /** @param stop the character in front of which it ends, outside of quotes */
  #until(stop: string | undefined): string {
    const { escapeCharacter } = this.#context;
    let expanded = "";
    while (this.#at < this.#text.length) {
      const character = this.#text.charAt(this.#at);
      if (character === stop) break;
      this.#at++;
      if (character === "'") expanded += this.#single();
      else if (character === '"') expanded += this.#double();
      else if (character === "$") expanded += this.#variable();
      else if (character === escapeCharacter) expanded += this.#text.charAt(this.#at++);
      else expanded += character;
    }
    return expanded;
  }

  #single(): string {
    const end = this.#text.indexOf("'", this.#at);
    if (end === -1) throw new WordError("with an open '");
    const quoted = this.#text.slice(this.#at, end);
    this.#at = end + 1;
    return quoted;
  }

  #double(): string {
    const { escapeCharacter } = this.#context;
    let quoted = "";
    while (this.#at < this.#text.length) {
      const character = this.#text.charAt(this.#at++);
      if (character === '"') return quoted;
      if (character === "$") quoted += this.#variable();
      else if (character === escapeCharacter) {
        const next = this.#text.charAt(this.#at);
        if (next === '"' || next === "$" || next === escapeCharacter) {
          quoted += next;
          this.#at++;
        } else quoted += character;
      } else quoted += character;
    }
    throw new WordError('with an open "');
  }

  /** Behind its dollar sign. */
  #variable(): string {
    const rest = this.#text.slice(this.#at);
    const { lookup } = this.#context;
    if (!rest.startsWith("{")) {
      const [name] = /^([A-Za-z_]\w*|[0-9@*#?!$-])/.exec(rest) ?? [];
      if (name === undefined) return "$";
      this.#at += name.length;
      return lookup(name) ?? "";
    }
    const [whole, name = "", colon, modifier] = /^\{([A-Za-z_]\w*|\d)(?:(:?)([-+?])|\})/.exec(rest) ?? [];
    if (whole === undefined) throw new WordError(`with ${JSON.stringify(`$${rest.slice(0, 20)}`)}`);
    this.#at += whole.length;
    const value = lookup(name);
    if (modifier === undefined) return value ?? "";
    const word = this.#until("}");
    if (this.#text.charAt(this.#at++) !== "}") throw new WordError("with an open {");
    const isSet = value !== undefined && (colon === "" || value !== "");
    if (modifier === "+") return isSet ? word : "";
    if (isSet) return value;
    if (modifier === "-") return word;
    throw new WordError(`with ${name}, which is not set: ${word}`);
  }
}
