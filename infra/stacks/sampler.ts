// The served ONNX sampler: a service that stands at no tasks until a run needs it (the prepare stage) and again when
// none is at work (the sweeper).
import { Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import {
  type CfnService,
  ContainerImage,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  LogDrivers,
  OperatingSystemFamily,
} from "aws-cdk-lib/aws-ecs";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { DnsRecordType } from "aws-cdk-lib/aws-servicediscovery";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { allow } from "../constructs/permissions.ts";
import type { ImagesStack } from "./images.ts";
import { type NetworkStack, SAMPLER_PORT } from "./network.ts";
import type { SandboxesStack } from "./sandboxes.ts";

export interface SamplerProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly store: IBucket;
  readonly network: NetworkStack;
  readonly images: ImagesStack;
  readonly sandboxes: SandboxesStack;
}

export class SamplerStack extends Stack {
  constructor(scope: Construct, id: string, props: SamplerProps) {
    super(scope, id, props);
    const { config, store, network, images, sandboxes } = props;
    const taskRole = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: "Reads policies",
    });
    taskRole.addToPolicy(allow(["s3:GetObject"], [store.arnForObjects("runs/*/policies/*")]));
    taskRole.addToPolicy(allow(["s3:ListBucket"], [store.bucketArn]));
    const definition = new FargateTaskDefinition(this, "Task", {
      family: `${config.name}-sampler`,
      cpu: config.sampler.size.cpu,
      memoryLimitMiB: config.sampler.size.memoryMiB,
      taskRole,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.X86_64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    definition.addContainer("sampler", {
      image: ContainerImage.fromEcrRepository(images.own.sampler, config.imageTag),
      portMappings: [{ containerPort: SAMPLER_PORT }],
      stopTimeout: Duration.seconds(120),
      healthCheck: {
        command: ["CMD", "node", "containers/sampler/health.ts"],
        interval: Duration.seconds(15),
        startPeriod: Duration.seconds(120),
      },
      environment: { T1_STORE_URL: `s3://${store.bucketName}`, T1_PORT: String(SAMPLER_PORT) },
      logging: LogDrivers.awsLogs({
        streamPrefix: "sampler",
        logGroup: new LogGroup(this, "Log", {
          retention: RetentionDays.THREE_MONTHS,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
      }),
    });
    const service = new FargateService(this, "Service", {
      serviceName: `${config.name}-sampler`,
      cluster: sandboxes.cluster,
      taskDefinition: definition,
      desiredCount: 0,
      minHealthyPercent: 100,
      assignPublicIp: true,
      vpcSubnets: { subnets: [...network.publicSubnets] },
      securityGroups: [network.groups.sampler],
      circuitBreaker: { rollback: true },
      cloudMapOptions: {
        name: "sampler",
        cloudMapNamespace: network.namespace,
        dnsRecordType: DnsRecordType.A,
        dnsTtl: Duration.seconds(10),
      },
    });
    // CDK leaves a count of 0 out, which CloudFormation reads as 1.
    (service.node.defaultChild as CfnService).desiredCount = 0;
    acknowledge(definition, {
      "AwsSolutions-ECS2": "Addresses and names, no secret.",
      "AwsSolutions-IAM5": "ecr:GetAuthorizationToken has no resource-level permissions.",
    });
    acknowledge(taskRole, {
      "AwsSolutions-IAM5":
        "Runs have names that exist only once they are there; only their policies can be read.",
    });
  }
}
