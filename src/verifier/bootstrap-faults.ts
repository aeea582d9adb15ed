// Signs in a test script's output that it did not get as far as its tests: what package tools, shells and kernels say.

const FAULTS: readonly RegExp[] = [
  /Could not get lock \/var\/lib\/(dpkg|apt)/,
  /dpkg was interrupted/,
  /Temporary failure (resolving|in name resolution)/i,
  /Could not resolve host/i,
  /E: (Failed to fetch|Unable to locate package|Unable to fetch)/,
  /No space left on device/,
  /(getcwd|shell-init|job-working-directory): .*(cannot access|No such file)/,
  /error: Failed to (fetch|download|install)/i,
  /Could not install packages due to an OSError/,
  /No matching distribution found for/,
  /Cannot allocate memory|fork: (retry: )?Resource temporarily unavailable|Cannot fork/,
  /(exec format error|cannot execute: required file not found|bad interpreter)/i,
  /(pytest|uvx?|pip3?|python3?|bash|curl): (command )?not found/,
];

/** @param printed what the script wrote to stdout and stderr */
export function hasBootstrapFault(printed: Uint8Array): boolean {
  const text = Buffer.from(printed).toString("utf8");
  return FAULTS.some(fault => fault.test(text));
}
