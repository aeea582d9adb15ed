// Why a sandbox is not there, as a Failure. What the agent can bring about is SandboxBroken, so that a policy cannot void
// its bad episodes by ending its sandbox; what only the infrastructure can is lost, and played again.
import { Failure, InputError } from "../../failure/errors.ts";
import { broken, lost } from "../../sandboxd/leased-sandbox.ts";
import { classifyStop, type StoppedTask } from "./classify-stop.ts";

/** The facts about a task that has stopped, or about one of its containers. */
export interface Stopped extends Omit<StoppedTask, "containers" | "startedAt"> {
  readonly startedAt?: string | Date;
  readonly containers?: readonly {
    readonly name?: string;
    readonly exitCode?: number;
    readonly reason?: string;
  }[];
}

/** stopCode, reason, and how each container ended, in one line: ECS forgets it within the hour. */
function describeStop({ stopCode, stoppedReason, containers = [] }: Stopped): string {
  const ends = containers
    .filter(({ exitCode, reason }) => exitCode !== undefined || reason !== undefined)
    .map(({ name, exitCode, reason }) =>
      [name, exitCode === undefined ? "no exit code" : `exit code ${exitCode}`, reason]
        .filter(Boolean)
        .join(" "),
    );
  const said = [stopCode, stoppedReason, ...ends].filter(part => part !== undefined && part !== "");
  return said.length === 0 ? "its task stopped, and nobody says why" : said.join("; ");
}

/** The failure of a sandbox that was in use. */
export function failureOfStop(what: string, stopped: Stopped): Failure {
  const reason = describeStop(stopped);
  const judged = judgedContainers(stopped);
  const exitCode = judged[0]?.exitCode;
  switch (classOf({ ...stopped, containers: judged })) {
    case "interrupted":
      return lost(what, `Spot took its machine back: ${reason}`);
    case "out-of-memory":
      return broken(what, reason);
    case "failed":
      return exitCode === undefined || isKilledFromOutside(exitCode)
        ? lost(what, `killed from outside: ${reason}`)
        : broken(what, reason);
    case "ended":
      return lost(what, `its deadline passed: ${reason}`);
    default:
      return lost(what, reason);
  }
}

/** The end of the agent's container ends the task, and with it the other one, whose end says nothing then. */
function judgedContainers({ containers = [] }: Stopped): NonNullable<Stopped["containers"]> {
  const agent = containers.filter(({ name }) => name === "agent");
  return agent.length > 0 ? agent : containers;
}

/** 128 and a number: KILL and TERM reach process 1 from outside only. */
function isKilledFromOutside(exitCode: number | undefined): boolean {
  return exitCode === 137 || exitCode === 143;
}

export function wasInterrupted(stopped: Stopped): boolean {
  return classOf(stopped) === "interrupted";
}

function classOf({ startedAt, ...stopped }: Stopped): ReturnType<typeof classifyStop> {
  return classifyStop({ ...stopped, ...(startedAt === undefined ? {} : { startedAt: `${startedAt}` }) });
}

/** What a registry or the platform says when it will never work. */
const WRONG_IMAGE =
  /not found|manifest unknown|does not exist|no basic auth|denied|forbidden|\b40[134]\b|exec format error|no matching manifest|invalid reference/i;
const PASSES =
  /capacity is unavailable|timed? ?out|timeout|rate exceeded|throttl|toomanyrequests|internal ?error|no available ip|insufficient/i;

export type StartFailure =
  /** Another task may start. */
  | { readonly kind: "again"; readonly isOnOtherMarket: boolean; readonly error: Failure }
  | { readonly kind: "final"; readonly error: Error };

/** The failure of a task that stopped before it ran. */
export function failureOfStart(what: string, stopped: Stopped): StartFailure {
  const reason = describeStop(stopped);
  const error = new Failure("SandboxUnavailable", `${what} did not start: ${reason}`, { retryable: true });
  const stopClass = classOf(stopped);
  if (stopClass === "interrupted" || /capacity is unavailable/i.test(reason))
    return { kind: "again", isOnOtherMarket: true, error };
  // Who ended it wanted it to end.
  if (stopClass === "stopped") return { kind: "final", error };
  if (PASSES.test(reason) && !/manifest unknown|not found/i.test(reason))
    return { kind: "again", isOnOtherMarket: false, error };
  if (/CannotPull|CannotStart|exec format error/i.test(reason) && WRONG_IMAGE.test(reason))
    return { kind: "final", error: unusableImage(what, reason) };
  if (
    /CannotPull|ResourceInitialization|CannotCreateVolume|ContainerRuntime/i.test(reason) ||
    stopped.stopCode === "InfrastructureHealth"
  )
    return { kind: "again", isOnOtherMarket: false, error };
  if (stopClass === "failed" && isKilledFromOutside(judgedContainers(stopped)[0]?.exitCode))
    return { kind: "again", isOnOtherMarket: false, error };
  const detail = `${what} did not start: ${reason}`;
  return { kind: "final", error: new Failure("SandboxUnavailable", detail, { retryable: false }) };
}

function unusableImage(what: string, reason: string): InputError {
  return new InputError({
    what: `the image of a sandbox cannot be used: ${reason}`,
    where: what,
    expected:
      "an image of the deployment's repository, for the machines it runs on, that the execution role may pull",
    fix: "let the prepare stage build it again (delete its record below images/ in the store), or deploy the toolkit's image",
  });
}
