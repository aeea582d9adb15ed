import { describe, expect, it } from "vitest";
import { problemsOfNeeds, type TaskNeeds } from "./task-needs.ts";

const NOTHING: TaskNeeds = { network: false, services: false };
const problems = (needs: Record<string, Partial<TaskNeeds>>, hasProxy = false) =>
  problemsOfNeeds(new Map(Object.entries(needs).map(([name, own]) => [name, { ...NOTHING, ...own }])), {
    hasProxy,
  });

describe("what tasks need of a deployment", () => {
  it("is there for most", () => {
    expect(
      problems({ a: {}, b: { cpus: 4, memoryBytes: 16 * 2 ** 30, storageBytes: 10 * 2 ** 30 } }),
    ).toEqual([]);
  });

  it("is told once for all tasks that lack the same, with an example", () => {
    const needs = { a: {}, b: { network: true }, c: { network: true }, d: { services: true, cpus: 32 } };
    expect(problems(needs)).toEqual([
      "2 of 4 tasks want the network, which this deployment's sandboxes have not (network.egress), such as b",
      "1 of 4 tasks run several containers, which a sandbox on Fargate is not, such as d",
      "1 of 4 tasks want more processors, memory or disk than a task on Fargate can have, such as d",
    ]);
    expect(problems(needs, true)).toHaveLength(2);
  });
});
