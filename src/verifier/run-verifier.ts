// Grades an agent's work out of the agent's reach. The agent's processes are ended first. Then, by mode:
//   hardened  the tests run in a clean sandbox of the same image that has the agent's files, but for those which would run
//             on their own (tampering.ts);
//   shared    they run in the agent's own sandbox, as Harbor does it; what is suspicious there is only recorded;
//   separate  they run in a sandbox of the verifier's image, which gets the declared artifacts and nothing else.
import type { z } from "zod";
import { Failure } from "../failure/errors.ts";
import type { FileChange, Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox/sandbox.ts";
import type { VerifierModeName } from "../settings/grading-config.ts";
import { collectArtifacts, type DeclaredArtifact } from "./artifacts.ts";
import { listPrograms } from "./image-programs.ts";
import { type KeptFiles, keepFiles } from "./keep-files.ts";
import { brokenSandbox, notRun, runTests, type TestRun, type TestScript } from "./run-tests.ts";
import {
  findShadows,
  findSuspects,
  type Suspects,
  summariseTampering,
  type Tampering,
  type TamperKind,
} from "./tampering.ts";

export type VerifierMode = z.infer<typeof VerifierModeName>;

export interface VerifierInput {
  readonly mode: VerifierMode;
  readonly script: TestScript;
  /** Spec of the agent's sandbox. */
  readonly spec: SandboxSpec;
  /** Spec of a clean verifier, with its own image when it is a separate one. */
  readonly verifierSpec: SandboxSpec;
  /** Commands that gather evidence in the agent's sandbox before artifacts are collected. */
  readonly collect: readonly { readonly command: string; readonly timeoutMs: number }[];
  readonly artifacts: readonly DeclaredArtifact[];
  /** Keeps the agent's files, for grading them again. */
  readonly keepFiles: boolean;
}

export interface VerifierServices {
  readonly sandboxes: Pick<SandboxProvider, "create">;
  /** Leases another sandbox of this grading. */
  readonly nextLease: () => Lease;
  /** Aborts the tests, wherever they run. */
  readonly interruption?: AbortSignal | undefined;
}

export interface VerifierRun extends Pick<TestRun, "report" | "files"> {
  readonly tampering?: Tampering;
  /** The agent has made its verification impossible. */
  readonly isBrokenByAgent: boolean;
  readonly kept?: KeptFiles | { readonly notKept: string };
}

/** The providers' PATH for a sandbox whose spec sets none. */
const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** Folders that every mode empties before the tests arrive. */
const ALWAYS_LEFT_OUT: ReadonlySet<TamperKind> = new Set(["planted_report", "planted_tests"]);

/**
 * Any fault that the agent can have caused becomes a report with a cause.
 *
 * @throws Failure when a sandbox is lost or cannot be had, and VerifierBootstrapFailed when the tests do not even start in
 * a sandbox that no agent has touched; the interruption's reason
 */
export async function runVerifier(
  sandbox: Sandbox,
  input: VerifierInput,
  services: VerifierServices,
): Promise<VerifierRun> {
  try {
    await sandbox.killAgents();
    return await new Grading(sandbox, input, services).run();
  } catch (error) {
    return { ...brokenSandbox(error), isBrokenByAgent: true };
  }
}

/** The agent's changes, and those of them that would run on their own. */
interface Found {
  readonly changes: readonly FileChange[];
  readonly suspects: Suspects;
  readonly shadows: readonly FileChange[];
}

class Grading {
  readonly #sandbox: Sandbox;
  readonly #input: VerifierInput;
  readonly #services: VerifierServices;
  readonly #opened: Sandbox[] = [];
  readonly #found: Promise<Found>;
  #kept: VerifierRun["kept"];

  constructor(sandbox: Sandbox, input: VerifierInput, services: VerifierServices) {
    this.#sandbox = sandbox;
    this.#input = input;
    this.#services = services;
    this.#found = this.#find();
  }

  async run(): Promise<VerifierRun> {
    // The clean sandbox starts while we find out which changes it gets.
    const early = this.#input.mode === "hardened" ? this.#clean() : undefined;
    early?.catch(() => undefined); // told below, unless there is something to say before
    try {
      const found = await this.#found;
      const { run, isBrokenByAgent } = await this.#settle(await early);
      const tampering = this.#tampering(found);
      return {
        report: run.report,
        files: run.files,
        isBrokenByAgent,
        tampering,
        kept: this.#kept,
      };
    } finally {
      await Promise.allSettled([early]);
      await Promise.all(this.#opened.map(sandbox => sandbox[Symbol.asyncDispose]()));
    }
  }

  get #path(): string {
    return this.#input.spec.env.PATH ?? DEFAULT_PATH;
  }

  async #find(): Promise<Found> {
    const changes = await this.#sandbox.changedFiles();
    const suspects = findSuspects(changes, { workdir: this.#input.spec.workdir, path: this.#path });
    const shadows =
      suspects.newPrograms.length > 0
        ? findShadows(suspects, await listPrograms(await this.#untouched(), this.#path))
        : [];
    return { changes, suspects, shadows };
  }

  /** Runs the tests, and once more in a clean sandbox when their result may be a transient fault. */
  async #settle(
    clean: Sandbox | { readonly refused: string } | undefined,
  ): Promise<{ readonly run: TestRun; readonly isBrokenByAgent: boolean }> {
    const place = clean ?? (this.#input.mode === "shared" ? this.#sandbox : await this.#clean());
    const first = await this.#attempt(place);
    if (!mayPass(first)) return { run: first, isBrokenByAgent: false };
    const second = await this.#attempt(await this.#clean());
    if (!couldNotStart(second)) return { run: second, isBrokenByAgent: false };
    // The tests do not start on the agent's work. Find out whether they start without it.
    const untouched = await this.#attempt(await this.#untouched());
    if (couldNotStart(untouched)) {
      const words = Buffer.from(untouched.files.get("stdout.txt") ?? [])
        .toString("utf8")
        .trim()
        .slice(-300);
      throw new Failure(
        "VerifierBootstrapFailed",
        `the tests do not start in a sandbox that no agent has touched: ${words}`,
        { retryable: true },
      );
    }
    const report = { ...second.report, outcome: null, cause: "verifier_bootstrap_failed" as const };
    return { run: { ...second, report }, isBrokenByAgent: true };
  }

  async #attempt(place: Sandbox | { readonly refused: string }): Promise<TestRun> {
    if ("refused" in place) return notRun("changes_not_carried", place.refused);
    try {
      return await runTests(place, this.#input.script, this.#services.interruption);
    } catch (error) {
      return brokenSandbox(error);
    }
  }

  /** A sandbox that no agent has used, with those of the agent's files that this mode gives it. */
  async #clean(): Promise<Sandbox | { readonly refused: string }> {
    const { mode, keepFiles: isKept } = this.#input;
    if (mode === "separate") return this.#withArtifacts();
    const without = this.#without();
    const { network } = this.#input.verifierSpec;
    const next = await this.#sandbox.successor(this.#services.nextLease(), { without, network });
    if ("refused" in next) return next;
    this.#opened.push(next);
    if (isKept && this.#kept === undefined)
      this.#kept = await keepFiles(next, (await this.#found).changes, await without);
    return next;
  }

  /** The shared mode leaves no file out, so neither does its repetition in a clean sandbox. */
  async #without(): Promise<readonly string[]> {
    if (this.#input.mode === "shared") return findSuspects([], { workdir: "/", path: "" }).without;
    const { suspects, shadows } = await this.#found;
    return [...suspects.without, ...shadows.map(({ path }) => path)];
  }

  async #withArtifacts(): Promise<Sandbox | { readonly refused: string }> {
    const { collect, artifacts, spec, verifierSpec } = this.#input;
    for (const { command, timeoutMs } of collect) await this.#sandbox.exec(command, { timeoutMs });
    const collected = await collectArtifacts(this.#sandbox, artifacts, spec.workdir);
    if ("refused" in collected) return collected;
    const made = await this.#create(verifierSpec);
    const uploaded = await made.upload(collected.tar, "/");
    return "refused" in uploaded ? uploaded : made;
  }

  #untouched(): Promise<Sandbox> {
    return this.#create(this.#input.verifierSpec);
  }

  async #create(spec: SandboxSpec): Promise<Sandbox> {
    const made = await this.#services.sandboxes.create(spec, this.#services.nextLease());
    this.#opened.push(made);
    return made;
  }

  #tampering({ suspects, shadows }: Found): Tampering | undefined {
    const shadowed = shadows.map(({ path, change }) => ({
      kind: "shadowed_program" as const,
      path: path.slice(0, 300),
      change,
    }));
    const isShared = this.#input.mode === "shared";
    return summariseTampering([...suspects.evidence, ...shadowed], kind =>
      isShared && !ALWAYS_LEFT_OUT.has(kind) ? "present" : "left_out",
    );
  }
}

/** Whether a second try in a clean sandbox may cure the result. */
function mayPass(run: TestRun): boolean {
  const { cause } = run.report;
  if (cause === "report_conflict" || cause === "verifier_timeout" || cause === "tests_not_placed")
    return true;
  return run.hasBootstrapFault || (run.wasKilled && cause === "no_report" && run.report.outcome === null);
}

/** Whether there is neither report nor reward, for a reason outside the tests. A reward of 0 is a grade. */
function couldNotStart({ report, hasBootstrapFault }: TestRun): boolean {
  return report.cause === "tests_not_placed" || (hasBootstrapFault && report.outcome === null);
}
