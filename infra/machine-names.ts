// Names of the state machines: fixed, since machines start one another and themselves by them.
import type { DeploymentConfig } from "./config.ts";

export function machineNames({ name }: DeploymentConfig) {
  return { run: `${name}-run`, iteration: `${name}-iteration`, evaluation: `${name}-evaluation` };
}
