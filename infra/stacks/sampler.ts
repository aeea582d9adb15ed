// The served ONNX sampler: a service with no tasks until the prepare stage of a run starts it; the sweeper scales it to
// none again when no run is in progress.
import { Duration, Stack, type StackProps } from "aws-cdk-lib";
import type { CfnService } from "aws-cdk-lib/aws-ecs";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import { SAMPLER_SETTINGS } from "../../src/stages/jobs.ts";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { allow } from "../constructs/permissions.ts";
import { addPrivateService } from "../constructs/private-service.ts";
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
    const { definition, service } = addPrivateService(this, {
      serviceName: `${config.name}-sampler`,
      name: "sampler",
      port: SAMPLER_PORT,
      image: images.own.sampler,
      imageTag: config.imageTag,
      size: config.sampler.size,
      environment: SAMPLER_SETTINGS.toEnvironment({
        storeUrl: `s3://${store.bucketName}`,
        port: SAMPLER_PORT,
      }),
      healthCheck: {
        command: ["CMD", "node", "containers/sampler/health.ts"],
        interval: Duration.seconds(15),
        startPeriod: Duration.seconds(120),
      },
      desiredCount: 0,
      taskRole,
      stopTimeout: Duration.seconds(120),
      cluster: sandboxes.cluster,
      network,
      groups: [network.groups.sampler],
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
