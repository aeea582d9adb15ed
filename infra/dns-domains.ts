// The names that the VPC's resolver answers for. Drivers, samplers and trainers share the resolver with sandboxes, so
// theirs are in the list too; none of them is a name under which somebody else could run a name server.
import type { DeploymentConfig } from "./config.ts";

export function dnsDomains({ name, network }: DeploymentConfig, region: string): string[] {
  const amazon = [
    "s3",
    "*.s3",
    "api.ecr",
    "*.dkr.ecr",
    "ecs",
    ...agentEndpoints("a"),
    ...agentEndpoints("t"),
    "logs",
    "sts",
    "ec2messages",
    "monitoring",
  ].map(service => `${service}.${region}.amazonaws.com`);
  const allowed = network.egress.profile === "proxy" ? network.egress.domains : [];
  return [...amazon, `*.${name}.internal`, ...allowed.map(domain => domain.replace(/^\./, "*."))];
}

/** The endpoints of the ECS agent of a training host; Amazon numbers them. */
function agentEndpoints(kind: "a" | "t"): string[] {
  return Array.from({ length: 12 }, (_, index) => `ecs-${kind}-${index + 1}`);
}
