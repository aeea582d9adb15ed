// What the contract's rules are given.
import type { expect } from "vitest";
import type { Sandbox, SandboxImage, SandboxProvider, SandboxSpec } from "../../../src/sandbox/sandbox.ts";

export interface SandboxContractSubject {
  readonly provider: SandboxProvider;
  /** With /bin/sh and the usual small programs. */
  readonly image: SandboxImage;
  /** Of a sandbox that is to meet its deadline: longer than one takes to be made. 700 ms when not given. */
  readonly shortLifeMs?: number;
}

/** Of a sandbox, unless its rule says otherwise. */
export const DISK_BYTES = 32 << 20;

export type CreateSandbox = (
  spec?: Partial<SandboxSpec>,
  lease?: { readonly lifeMs?: number; readonly id?: string; readonly generation?: number },
) => Promise<Sandbox>;

export interface RuleScope {
  /** The rule's own, as rules that run side by side need it. */
  readonly expect: typeof expect;
  /** Its sandboxes end with the rule. */
  readonly create: CreateSandbox;
}

export interface SandboxContract {
  /** Side by side, because most of them wait for something to end; but for one that leaves no room for others. */
  readonly rule: (
    name: string,
    check: (scope: RuleScope) => Promise<void>,
    options?: { readonly isAlone?: boolean },
  ) => void;
  /** Opened before the first rule runs. */
  readonly subject: () => SandboxContractSubject;
  /** A folder of this machine, for as long as the contract runs. */
  readonly folderWith: (files: Readonly<Record<string, string>>) => string;
  /** A number that no other rule has. */
  readonly unique: () => number;
}
