// A container's own entry point as a process of this machine.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type Program, type ProgramEnd, type ProgramRun, runProgram } from "../asl/executors/program.ts";
import { Failure, InputError, InvariantError } from "../failure/errors.ts";
import { BAD_INPUT, OUR_BUG } from "../failure/exit-code.ts";
import type { OnRunEvent } from "../run/run-events.ts";
import { ROOT } from "./synthesized-assembly.ts";

const EpisodeLine = z.object({ episode: z.int() });
const StepLine = z.object({ step: z.int(), of: z.int() });
/** Of what a process printed, for the error that it ended with. */
const KEPT_CHARACTERS = 4_000;

/** @param environment what it is told on top of its definition and of the machine */
export function containerProcess(
  container: "driver" | "trainer",
  onEvent: OnRunEvent,
  environment: Readonly<Record<string, string>> = {},
): Program {
  return {
    kind: "function",
    run: run =>
      runContainer(
        container,
        { ...run, environment: { ...run.environment, ...environment } },
        { onLine: line => report(line, onEvent) },
      ),
  };
}

/**
 * Runs until it ends, or is ended by the run's signal.
 *
 * @returns how it ended, with the error that it printed where that was no success
 */
export async function runContainer(
  container: "driver" | "trainer" | "sampler",
  run: ProgramRun,
  {
    onLine,
    stopTimeoutSeconds,
  }: { readonly onLine: (line: string) => void; readonly stopTimeoutSeconds?: number },
): Promise<ProgramEnd> {
  let printed = "";
  let line = "";
  const end = await runProgram(
    {
      kind: "process",
      entryPoint: [...diesWithUs(), process.execPath, join(ROOT, "containers", container, "main.ts")],
      folder: ROOT,
      onOutput: chunk => {
        const text = Buffer.from(chunk).toString("utf8");
        printed = `${printed}${text}`.slice(-KEPT_CHARACTERS);
        const lines = `${line}${text}`.split("\n");
        line = lines.pop() ?? "";
        for (const one of lines) onLine(one);
      },
    },
    { ...run, environment: { ...surroundings(), ...run.environment } },
    { ...(stopTimeoutSeconds !== undefined && { stopTimeoutSeconds }) },
  );
  return end.exitCode === 0 ? end : { ...end, error: errorOf(end.exitCode, printed, container) };
}

/**
 * Of the environment of whoever runs this, what a container finds around it in a deployment: the AWS SDK finds credentials
 * by it, as by the role of a task, and a driver this machine's container engine, which is the runner's.
 */
function surroundings(): Record<string, string> {
  const names = Object.keys(process.env).filter(
    name => name.startsWith("AWS_") || MACHINE_VARIABLES.includes(name),
  );
  return Object.fromEntries(names.map(name => [name, process.env[name] ?? ""]));
}

const MACHINE_VARIABLES = [
  ...["HOME", "TMPDIR", "XDG_RUNTIME_DIR"],
  ...["DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST"],
];

/** A runner that is killed takes its programs along, as a lost host would; by util-linux, where it is there. */
function diesWithUs(): readonly string[] {
  return existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "TERM", "--"] : [];
}

/** What containers print is made for logs; of it progress is read. */
function report(line: string, onEvent: OnRunEvent): void {
  let printed: unknown;
  try {
    printed = JSON.parse(line);
  } catch {
    return;
  }
  if (EpisodeLine.safeParse(printed).success) onEvent({ kind: "episode" });
  const step = StepLine.safeParse(printed);
  if (step.success) onEvent({ kind: "train-step", done: step.data.step, total: step.data.of });
}

function errorOf(
  code: number | undefined,
  printed: string,
  container: "driver" | "trainer" | "sampler",
): Error {
  // The line in which it said why begins with the name of the command.
  const said = printed.slice(printed.lastIndexOf("t1: ") + 1 ? printed.lastIndexOf("t1: ") + 4 : 0).trim();
  const text = said === "" ? `the ${container} ended with exit code ${code ?? "none"}` : said;
  if (code === BAD_INPUT) return new InputError(text);
  if (code === OUR_BUG) return new InvariantError(text);
  const name = container === "sampler" ? "SamplerUnavailable" : "DriverLost";
  return new Failure(name, text, { retryable: true });
}
