// Names of the state machines. They are fixed, since the state machines start one another and themselves by name.
import type { DeploymentConfig } from "./config.ts";

export function machineNames({ name }: DeploymentConfig) {
  return { run: `${name}-run`, iteration: `${name}-iteration`, evaluation: `${name}-evaluation` };
}
