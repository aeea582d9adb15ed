// The assembly that runs on this machine, beside the one that would be deployed.
import { basename } from "node:path";
import { expect, it } from "vitest";
import { readAssembly } from "../../src/asl/assembly.ts";
import { loadDefinition } from "../../src/asl/load-definition.ts";
import { synthesizedAssembly } from "../../src/local/synthesized-assembly.ts";
import { definitionsOf, deployedTemplates } from "../infra/deployed-templates.ts";

const assembly = readAssembly(await synthesizedAssembly());
const deployed = definitionsOf(await deployedTemplates());

it("has the deployed definitions, with a stand-in for each reference and no other difference", () => {
  expect(Object.keys(assembly.machines).sort()).toEqual(["t1-evaluation", "t1-iteration", "t1-run"]);
  for (const [name, text] of Object.entries(assembly.machines)) {
    const here = JSON.parse(text);
    const there = deployed[name.replace("t1-", "")];
    expect(differences(here, there).filter(([, value]) => !/<[\w.:-]+>/.test(String(value)))).toEqual([]);
    expect(loadDefinition(name, text).states.size).toBeGreaterThan(5);
  }
});

it("knows the code of every function, the driver's container, the trainer's job and its queues", () => {
  const called = Object.values(assembly.machines).flatMap(text =>
    [...text.matchAll(/function:([\w-]+)"/g)].map(([, name]) => name),
  );
  expect(new Set(called)).toEqual(
    new Set(["plan", "prepare", "score", "close", "publish", "summarise", "preflight", "next-step"]),
  );
  for (const name of called) expect(basename(assembly.functions[name].folder)).toBe(name);
  expect(assembly.tasks["t1-driver"]).toMatchObject([{ name: "driver", stopTimeoutSeconds: 120 }]);
  expect(assembly.jobs).toEqual({
    "t1-train": expect.objectContaining({
      timeoutSeconds: 21_600,
      retryStrategy: {
        Attempts: 4,
        EvaluateOnExit: [
          { Action: "RETRY", OnStatusReason: "Host EC2*" },
          { Action: "EXIT", OnReason: "*" },
        ],
      },
    }),
  });
  expect([...assembly.queues].sort()).toEqual(["t1-train-on-demand", "t1-train-spot"]);
});

/** Leaves that differ, with what the second one has there. */
function differences(a: unknown, b: unknown, path = ""): (readonly [string, unknown])[] {
  if (typeof a !== "object" || a === null || typeof b !== "object" || b === null)
    return a === b ? [] : [[path, b]];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap(key =>
    differences((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key], `${path}/${key}`),
  );
}
