// The emulator that the suites of this project run against, as its global setup made it.
import { inject } from "vitest";
import { CAPABILITIES, type Capability } from "./capabilities.ts";
import { environmentFor } from "./process.ts";

const provided = inject("emulator");

/** @returns why a suite that needs these is skipped, undefined where it is not */
export function missingFor(...needed: readonly Capability[]): string | undefined {
  if ("missing" in provided) return provided.missing;
  const lacking = needed.filter(one => !provided.can.includes(one));
  if (lacking.length === 0) return undefined;
  return `${provided.kind} does not do this: ${lacking.map(one => CAPABILITIES[one]).join("; ")}`;
}

/** Endpoint of the emulator; a skipped suite has none. */
export const endpoint = "missing" in provided ? "" : provided.endpoint;
export const kind = "missing" in provided ? "none" : provided.kind;
export const can = "missing" in provided ? [] : provided.can;
export const environment = environmentFor(endpoint);
