// `${NAME}` in a Compose file.
// Reference: https://github.com/compose-spec/compose-spec/blob/main/12-interpolation.md

/** $$, ${NAME}, ${NAME:-otherwise}, ${NAME-otherwise}, $NAME */
const VARIABLE = /\$(?:(\$)|\{([A-Za-z_]\w*)(?:(:?-)([^}]*))?\}|([A-Za-z_]\w*))/g;

/** Replaces variables in every text of a value, but not in keys. One that is not known is empty, as Compose has it. */
export function interpolate(value: unknown, lookup: (name: string) => string | undefined): unknown {
  if (typeof value === "string") return replaceIn(value, lookup);
  if (Array.isArray(value)) return value.map(item => interpolate(item, lookup));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, interpolate(item, lookup)]));
}

function replaceIn(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(VARIABLE, (_, dollar, braced, operator, otherwise, plain) => {
    if (dollar !== undefined) return "$";
    const value = lookup(braced ?? plain);
    const isMissing = value === undefined || (operator === ":-" && value === "");
    return isMissing ? (otherwise ?? "") : value;
  });
}
