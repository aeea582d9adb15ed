// A reporter of Vitest that lists the skipped tests and their reasons after a run. A suite has its reason in its title,
// `… (skipped: why)`, a single test in its call of skip.
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";

export default class SkipReasons implements Reporter {
  #isFiltered = false;

  onInit({ config }: Vitest): void {
    this.#isFiltered = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    if (this.#isFiltered) return; // a person who filters by name knows of the others
    const counts = new Map<string, number>();
    for (const module of modules)
      for (const test of module.children.allTests("skipped")) {
        const line = `${module.relativeModuleId}: ${reasonOf(test)}`;
        counts.set(line, (counts.get(line) ?? 0) + 1);
      }
    for (const [line, count] of counts) process.stdout.write(`skipped ${count} in ${line}\n`);
  }
}

function reasonOf(test: TestCase): string {
  const result = test.result();
  const note = result.state === "skipped" ? result.note : undefined;
  return note ?? /\(skipped: (.*?)\)(?: >|$)/.exec(test.fullName)?.[1] ?? `no reason given: ${test.fullName}`;
}
