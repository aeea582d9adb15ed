// A program of t1's own inside a sandbox: the toolkit, or a shell that prepares it.
import type { ProcessRun } from "../run-process.ts";
import type { ExecResult } from "../sandbox.ts";
import type { Command } from "./entry-process.ts";

/** Far more than 1 GB takes tar in memory. */
export const TOOL_LIMIT_MS = 300_000;
export const ERROR_TEXT_BYTES = 2048;

export type ToolRun = Pick<Command, "cwd" | "removed" | "made" | "emptied"> &
  Partial<Pick<ProcessRun, "stdin" | "signal" | "onStdout">>;

export interface ToolEnd {
  readonly end: ExecResult["end"];
  /** Its last words, or what stands for them. */
  readonly said: string;
}

export type RunTool = (argv: readonly string[], run: ToolRun) => Promise<ToolEnd>;
