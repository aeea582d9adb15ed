// The proxy through which sandboxes reach listed domains, in deployments that have one (network.egress). It stands in the
// public subnets; sandboxes have no other way out, and only those of tasks that may use the network can speak to it.
import { Duration, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { addPrivateService } from "../constructs/private-service.ts";
import type { ImagesStack } from "./images.ts";
import { type NetworkStack, PROXY_PORT } from "./network.ts";
import type { SandboxesStack } from "./sandboxes.ts";

export interface EgressProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly domains: readonly string[];
  readonly network: NetworkStack;
  readonly images: ImagesStack;
  readonly sandboxes: SandboxesStack;
}

export class EgressStack extends Stack {
  constructor(scope: Construct, id: string, props: EgressProps) {
    super(scope, id, props);
    const { config, domains, network, images, sandboxes } = props;
    const { definition } = addPrivateService(this, {
      serviceName: `${config.name}-egress-proxy`,
      // The proxy's log has every request with its sender, refused names included.
      name: "proxy",
      port: PROXY_PORT,
      image: images.own["egress-proxy"],
      imageTag: config.imageTag,
      size: { cpu: 256, memoryMiB: 512 },
      environment: { T1_ALLOWED_DOMAINS: domains.join(",") },
      healthCheck: {
        command: [
          "CMD",
          "perl",
          "-MIO::Socket::INET",
          "-e",
          `exit !IO::Socket::INET->new('127.0.0.1:${PROXY_PORT}')`,
        ],
        interval: Duration.seconds(15),
      },
      desiredCount: 1,
      cluster: sandboxes.cluster,
      network,
      groups: network.groups.egress === undefined ? [] : [network.groups.egress.proxy],
    });
    acknowledge(definition, {
      "AwsSolutions-ECS2": "Names of domains, no secret.",
      "AwsSolutions-IAM5": "ecr:GetAuthorizationToken has no resource-level permissions.",
    });
  }
}
