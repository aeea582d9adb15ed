// The three families of errors, by who must act. State machines and retries match on `name`, so every name is a
// literal of ERROR_NAMES and survives bundling.

/** Names of the errors that our code throws. Code that catches or retries by name uses only these. */
export const ERROR_NAMES = [
  "InputError",
  "InvariantError",
  "SandboxLost",
  "SandboxBroken",
  "SandboxUnavailable",
  "SamplerUnavailable",
  "PolicyNotFinite",
  "StoreUnavailable",
  "VerifierBootstrapFailed",
  "OwnerLost",
  "RunStopped",
  "DriverLost",
  "AgentNotStarted",
  "StageTimedOut",
  "AwsUnavailable",
] as const;
export type ErrorName = (typeof ERROR_NAMES)[number];

/** The part of the system in which an infrastructure failure happened. */
export const FAILURE_LAYERS = ["sandbox", "sampler", "store", "verifier", "runner"] as const;
export type FailureLayer = (typeof FAILURE_LAYERS)[number];

type FailureName = Exclude<ErrorName, "InputError" | "InvariantError">;

export function isFailureName(name: string): name is FailureName {
  return name in LAYER_OF;
}

const LAYER_OF: Record<FailureName, FailureLayer> = {
  SandboxLost: "sandbox",
  SandboxBroken: "sandbox",
  SandboxUnavailable: "sandbox",
  SamplerUnavailable: "sampler",
  PolicyNotFinite: "sampler",
  StoreUnavailable: "store",
  VerifierBootstrapFailed: "verifier",
  OwnerLost: "runner",
  RunStopped: "runner",
  DriverLost: "runner",
  AgentNotStarted: "runner",
  StageTimedOut: "runner",
  AwsUnavailable: "runner",
};

/** Message parts of an error that a person reads: what happened and where, what was expected, how to fix it. */
export interface ErrorText {
  readonly what: string;
  readonly where?: string;
  readonly expected?: string;
  readonly fix?: string;
}

/** Joins "what: where: expected …\n  fix: …" in that order, without parts that are missing. */
export function formatErrorText(text: ErrorText): string {
  const head = [text.what, text.where, text.expected].filter(part => part !== undefined).join(": ");
  return text.fix === undefined ? head : `${head}\n  fix: ${text.fix}`;
}

/** A person has to change something: a file, a setting, the machine. Never retried, shown without a stack. */
export class InputError extends Error {
  override readonly name = "InputError" satisfies ErrorName;

  constructor(text: ErrorText | string, options?: ErrorOptions) {
    super(typeof text === "string" ? text : formatErrorText(text), options);
  }
}

/** A bug of ours. It carries the values that contradict each other, and nobody catches it to go on. */
export class InvariantError extends Error {
  override readonly name = "InvariantError" satisfies ErrorName;
  readonly values: Readonly<Record<string, unknown>>;

  constructor(message: string, values: Readonly<Record<string, unknown>> = {}, options?: ErrorOptions) {
    const listed = Object.entries(values).map(([key, value]) => `${key}=${show(value)}`);
    super(listed.length === 0 ? message : `${message} (${listed.join(", ")})`, options);
    this.values = values;
  }
}

/**
 * A fault that only the infrastructure can cause. It is recorded on the attempt and never becomes a reward; a fault that
 * the agent's commands can cause is an `agent_error` instead (end-reason.ts). The one exception is `SandboxBroken`: a
 * program inside ended the sandbox or made it unusable. The code that runs an agent in it turns that into an
 * `agent_error`.
 */
export class Failure extends Error {
  override readonly name: FailureName;
  readonly layer: FailureLayer;
  readonly retryable: boolean;

  constructor(name: FailureName, detail: string, options: ErrorOptions & { readonly retryable: boolean }) {
    super(detail, options);
    this.name = name;
    this.layer = LAYER_OF[name];
    this.retryable = options.retryable;
  }
}

function show(value: unknown): string {
  if (typeof value === "bigint") return `${value}`;
  const text = JSON.stringify(value);
  if (text === undefined) return String(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
