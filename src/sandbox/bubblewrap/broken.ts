import { Failure } from "../../failure/errors.ts";

/** What ran in the sandbox has made it useless: the agent's doing, not the infrastructure's. */
export function broken(why: string): Failure {
  return new Failure("SandboxBroken", `the sandbox cannot be used: ${why}`, { retryable: false });
}
