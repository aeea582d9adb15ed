// The proxy through which sandboxes reach listed domains, in deployments that have one (network.egress). It stands in the
// public subnets; sandboxes have no other way out, and only those of tasks that may use the network can speak to it.
import { Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import {
  ContainerImage,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  LogDrivers,
  OperatingSystemFamily,
} from "aws-cdk-lib/aws-ecs";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { DnsRecordType } from "aws-cdk-lib/aws-servicediscovery";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
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
    const definition = new FargateTaskDefinition(this, "Task", {
      family: `${config.name}-egress-proxy`,
      cpu: 256,
      memoryLimitMiB: 512,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.X86_64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    definition.addContainer("proxy", {
      image: ContainerImage.fromEcrRepository(images.own["egress-proxy"], config.imageTag),
      portMappings: [{ containerPort: PROXY_PORT }],
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
      // Its log says who asked for what, refused names included.
      logging: LogDrivers.awsLogs({
        streamPrefix: "proxy",
        logGroup: new LogGroup(this, "Log", {
          retention: RetentionDays.THREE_MONTHS,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
      }),
    });
    new FargateService(this, "Service", {
      serviceName: `${config.name}-egress-proxy`,
      cluster: sandboxes.cluster,
      taskDefinition: definition,
      desiredCount: 1,
      minHealthyPercent: 100,
      assignPublicIp: true,
      vpcSubnets: { subnets: [...network.publicSubnets] },
      securityGroups: network.groups.egress === undefined ? [] : [network.groups.egress.proxy],
      circuitBreaker: { rollback: true },
      cloudMapOptions: {
        name: "proxy",
        cloudMapNamespace: network.namespace,
        dnsRecordType: DnsRecordType.A,
        dnsTtl: Duration.seconds(10),
      },
    });
    acknowledge(definition, {
      "AwsSolutions-ECS2": "Names of domains, no secret.",
      "AwsSolutions-IAM5": "ecr:GetAuthorizationToken has no resource-level permissions.",
    });
  }
}
