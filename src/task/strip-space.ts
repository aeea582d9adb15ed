// White space as Harbor's Python sees it: it differs from String.prototype.trim at U+FEFF and U+001C to U+001F.
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const OUTER_SPACE = new RegExp(`^${SPACE}+|${SPACE}+$`, "g");

/** Removes white space at both ends, as Python's `str.strip()` does. */
export function stripSpace(text: string): string {
  return text.replace(OUTER_SPACE, "");
}
