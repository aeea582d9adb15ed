// The network access of a phase of a task, and the host names and addresses of an allowlist.
import { isIPv4, isIPv6 } from "node:net";
import { stripSpace } from "./strip-space.ts";

export const NETWORK_MODES = ["public", "no-network", "allowlist"] as const;

export type NetworkPolicy =
  | { readonly kind: "public" }
  | { readonly kind: "no-network" }
  | {
      readonly kind: "allowlist";
      /** Host names, `*.name` for everything below a name, addresses, and CIDR ranges; normalised. */
      readonly hosts: readonly string[];
    };

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * Normal form of one allowlist entry: lower case, no trailing dot, addresses and ranges in their shortest spelling
 * (IPv4 netmasks become prefix lengths).
 *
 * @returns undefined for URLs, ports, paths, ranges with host bits set, and wildcards elsewhere than in `*.name`
 */
export function normalizeHost(entry: string): string | undefined {
  const host = stripSpace(entry).toLowerCase().replace(/\.+$/, "");
  if (host.includes("/")) return normalizeRange(host);
  if (host.includes(":")) return formatIPv6(parseIPv6(host));
  const name = host.startsWith("*.") ? host.slice(2) : host;
  if (name !== host && isIPv4(name)) return undefined;
  return name.split(".").every(label => LABEL.test(label)) ? host : undefined;
}

function normalizeRange(range: string): string | undefined {
  const [address = "", prefix = "", ...rest] = range.split("/");
  if (rest.length > 0) return undefined;
  const isOld = isIPv4(address);
  const bits = isOld ? parseIPv4(address) : parseIPv6(address);
  const width = isOld ? 32 : 128;
  const length = parsePrefix(prefix, isOld);
  if (bits === undefined || length === undefined || length > width) return undefined;
  const hostBits = (1n << BigInt(width - length)) - 1n;
  if ((bits & hostBits) !== 0n) return undefined;
  return `${isOld ? address : formatIPv6(bits)}/${length}`;
}

/** A length in digits or, for IPv4, a netmask (`255.0.0.0`) or its inverse (`0.255.255.255`). */
function parsePrefix(prefix: string, isOld: boolean): number | undefined {
  if (/^\d+$/.test(prefix)) return Number(prefix);
  if (!isOld || !isIPv4(prefix)) return undefined;
  const mask = parseIPv4(prefix);
  const masks = Array.from({ length: 33 }, (_, length) => 0xffff_ffffn ^ ((1n << BigInt(32 - length)) - 1n));
  const length = masks.indexOf(mask);
  if (length !== -1) return length;
  const inverse = masks.indexOf(mask ^ 0xffff_ffffn);
  return inverse === -1 ? undefined : inverse;
}

function parseIPv4(address: string): bigint {
  return address.split(".").reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function parseIPv6(address: string): bigint | undefined {
  // A zone ("fe80::1%eth0") belongs to one machine's interfaces and means nothing in a task.
  if (!isIPv6(address) || address.includes("%")) return undefined;
  const text = address.replace(/[\d.]+$/, tail => {
    if (!tail.includes(".")) return tail;
    const bits = parseIPv4(tail);
    return `${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`;
  });
  const [head = "", tail] = text.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}

/** The longest run of two or more zero groups becomes `::`; an IPv4-mapped address keeps its dotted tail. */
function formatIPv6(bits: bigint | undefined): string | undefined {
  if (bits === undefined) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) =>
    Number((bits >> BigInt(112 - 16 * index)) & 0xffffn),
  );
  if (bits >> 32n === 0xffffn) {
    const dotted = groups.slice(6).flatMap(group => [group >> 8, group & 255]);
    return `::ffff:${dotted.join(".")}`;
  }
  const run = longestZeroRun(groups);
  const text = (part: readonly number[]) => part.map(group => group.toString(16)).join(":");
  if (run.length < 2) return text(groups);
  return `${text(groups.slice(0, run.start))}::${text(groups.slice(run.start + run.length))}`;
}

function longestZeroRun(groups: readonly number[]): { readonly start: number; readonly length: number } {
  let longest = { start: 0, length: 0 };
  let start = 0;
  for (const [index, group] of groups.entries()) {
    if (group !== 0) start = index + 1;
    else if (index + 1 - start > longest.length) longest = { start, length: index + 1 - start };
  }
  return longest;
}
