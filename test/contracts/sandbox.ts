// What every sandbox must do, whoever provides it. Many cases are faults that real projects had.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { changeRules } from "./sandbox/changes.ts";
import { commandRules } from "./sandbox/commands.ts";
import {
  type CreateSandbox,
  DISK_BYTES,
  type RuleScope,
  type SandboxContract,
  type SandboxContractSubject,
} from "./sandbox/contract.ts";
import { fileRules } from "./sandbox/files.ts";
import { killingRules } from "./sandbox/killing.ts";
import { lifeRules } from "./sandbox/lives.ts";
import { terminalRules } from "./sandbox/terminals.ts";

/** A provider may have to make its image first. */
const OPENING_MS = 120_000;

/** A case that a provider cannot keep, and why. It has to fail there, so that the list does not outlive its reasons. */
export interface SandboxContractException {
  readonly rule: string;
  readonly reason: string;
}

/** @param open makes the provider once for all cases */
export function sandboxContract(
  open: () => Promise<SandboxContractSubject>,
  { except }: { readonly except: readonly SandboxContractException[] },
): void {
  let subject: SandboxContractSubject;
  let count = 0;
  const unique = (): number => count++;
  const folders: string[] = [];
  const unused = new Set(except);

  const rule: SandboxContract["rule"] = (name, check, { isAlone = false } = {}) => {
    const exception = except.find(other => other.rule === name);
    const scoped = async ({ expect }: Pick<RuleScope, "expect">): Promise<void> => {
      const made: Sandbox[] = [];
      try {
        await check({
          expect,
          create: async (...args) => {
            const sandbox = await create(...args);
            made.push(sandbox);
            return sandbox;
          },
        });
      } finally {
        await Promise.all(made.map(sandbox => sandbox[Symbol.asyncDispose]()));
      }
    };
    if (exception === undefined) {
      (isAlone ? test : test.concurrent)(name, scoped);
      return;
    }
    unused.delete(exception);
    test.concurrent.fails(`${name} (not here: ${exception.reason})`, scoped);
  };

  beforeAll(async () => {
    subject = await open();
  }, OPENING_MS);
  afterAll(async () => {
    await subject.provider[Symbol.asyncDispose]();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }, OPENING_MS);

  const create: CreateSandbox = (
    spec = {},
    { lifeMs = 600_000, id = `contract/${unique()}`, generation = 1 } = {},
  ) => {
    const defaults = {
      image: subject.image,
      workdir: "/app",
      env: {},
      network: "none",
      diskBytes: DISK_BYTES,
    } as const;
    const lease = { id, generation, deadlineMs: Date.now() + lifeMs };
    return subject.provider.create({ ...defaults, ...spec }, lease);
  };

  function folderWith(files: Readonly<Record<string, string>>): string {
    const folder = mkdtempSync(join(tmpdir(), "t1-contract-"));
    folders.push(folder);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(folder, name, ".."), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    return folder;
  }

  const contract: SandboxContract = { rule, subject: () => subject, folderWith, unique };
  for (const rules of [commandRules, fileRules, killingRules, changeRules, terminalRules, lifeRules])
    rules(contract);

  // As a test, because rules are collected after this function has returned.
  test("an exception names a rule", () => expect([...unused].map(({ rule }) => rule)).toEqual([]));
}
