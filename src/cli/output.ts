// What commands have in common: where runs lie unless said otherwise, and how results are written.

export const DEFAULT_STORE = ".t1/store";

/** Writes a result: JSON for machines, text for people. */
export function print(options: { readonly json?: boolean }, result: unknown, text: string): void {
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : text);
}
