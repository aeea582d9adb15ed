// Trains policies on Batch with GPU instances. Spot and on-demand have a queue each, so that the state machine can move
// from one to the other. A job has one node; jobs over several nodes and the distributed engine come later.
import { Duration, RemovalPolicy, Size, Stack, type StackProps } from "aws-cdk-lib";
import {
  Action,
  CfnComputeEnvironment,
  type CfnJobDefinition,
  CfnJobQueue,
  EcsEc2ContainerDefinition,
  EcsJobDefinition,
  LinuxParameters,
  Reason,
  RetryStrategy,
} from "aws-cdk-lib/aws-batch";
import { CfnLaunchTemplate } from "aws-cdk-lib/aws-ec2";
import { ContainerImage, LogDriver } from "aws-cdk-lib/aws-ecs";
import { CfnInstanceProfile, ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import { TRAINER_SETTINGS } from "../../src/stages/jobs.ts";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { allow } from "../constructs/permissions.ts";
import type { ImagesStack } from "./images.ts";
import type { NetworkStack } from "./network.ts";

export interface TrainingProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly store: IBucket;
  readonly network: NetworkStack;
  readonly images: ImagesStack;
}

/** Tries of Batch after a lost host, the first one included. */
const ATTEMPTS = 4;

export class TrainingStack extends Stack {
  readonly jobDefinitionName: string;
  readonly onDemandQueue: CfnJobQueue;
  readonly spotQueue: CfnJobQueue | undefined;

  constructor(scope: Construct, id: string, { config, store, network, images, ...props }: TrainingProps) {
    super(scope, id, props);
    this.jobDefinitionName = `${config.name}-train`;
    const host = this.#host(config);
    this.onDemandQueue = this.#queue(config, network, host, "on-demand");
    this.spotQueue = config.training.spot ? this.#queue(config, network, host, "spot") : undefined;
    this.#job(config, store, images);
  }

  #host(config: DeploymentConfig): Host {
    const role = new Role(this, "HostRole", {
      assumedBy: new ServicePrincipal("ec2.amazonaws.com"),
      managedPolicies: [
        ManagedPolicy.fromAwsManagedPolicyName("service-role/AmazonEC2ContainerServiceforEC2Role"),
      ],
    });
    acknowledge(role, {
      "AwsSolutions-IAM4":
        "What the ECS agent of a host needs is AWS's to say; jobs have a role of their own.",
    });
    const template = new CfnLaunchTemplate(this, "Hosts", {
      launchTemplateData: {
        // Containers of jobs are one hop too far to reach the host's credentials.
        metadataOptions: { httpTokens: "required", httpPutResponseHopLimit: 1 },
        blockDeviceMappings: [
          { deviceName: "/dev/xvda", ebs: { volumeSize: 200, volumeType: "gp3", encrypted: true } },
        ],
        tagSpecifications: [
          { resourceType: "instance", tags: [{ key: "Name", value: `${config.name}-training` }] },
        ],
      },
    });
    const profile = new CfnInstanceProfile(this, "HostProfile", { roles: [role.roleName] });
    return { profile, template };
  }

  #queue(
    config: DeploymentConfig,
    network: NetworkStack,
    { profile, template }: Host,
    market: "spot" | "on-demand",
  ): CfnJobQueue {
    const name = market === "spot" ? "Spot" : "OnDemand";
    const environment = new CfnComputeEnvironment(this, `${name}Hosts`, {
      type: "MANAGED",
      // Give no name: CloudFormation replaces an environment that it cannot change, and a fixed name would collide.
      replaceComputeEnvironment: false,
      updatePolicy: { terminateJobsOnUpdate: false, jobExecutionTimeoutMinutes: 60 },
      computeResources: {
        type: market === "spot" ? "SPOT" : "EC2",
        allocationStrategy: market === "spot" ? "SPOT_PRICE_CAPACITY_OPTIMIZED" : "BEST_FIT_PROGRESSIVE",
        minvCpus: 0,
        maxvCpus: config.training.maxVcpus,
        instanceTypes: config.training.instances,
        subnets: network.publicSubnets.map(subnet => subnet.subnetId),
        securityGroupIds: [network.groups.trainer.securityGroupId],
        instanceRole: profile.attrArn,
        ec2Configuration: [{ imageType: "ECS_AL2023_NVIDIA" }],
        updateToLatestImageVersion: true,
        launchTemplate: {
          launchTemplateId: template.ref,
          // Without a version Batch keeps the template's default one, and a changed template changes nothing.
          version: template.attrLatestVersionNumber,
        },
      },
    });
    return new CfnJobQueue(this, `${name}Queue`, {
      jobQueueName: `${config.name}-train-${market}`,
      priority: 1,
      computeEnvironmentOrder: [{ order: 1, computeEnvironment: environment.attrComputeEnvironmentArn }],
      // Without this a job that can never start would wait forever, shown as running.
      jobStateTimeLimitActions: RUNNABLE_REASONS.map(reason => ({
        action: "CANCEL",
        state: "RUNNABLE",
        reason,
        maxTimeSeconds: config.training.waitMinutes * 60,
      })),
    });
  }

  #job(config: DeploymentConfig, store: IBucket, images: ImagesStack): void {
    const { training } = config;
    const jobRole = new Role(this, "TrainerRole", {
      assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: "Reads a closed iteration, writes the next policy",
    });
    jobRole.addToPolicy(
      allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], [store.arnForObjects("runs/*")]),
    );
    jobRole.addToPolicy(allow(["s3:ListBucket"], [store.bucketArn]));
    const definition = new EcsJobDefinition(this, "Job", {
      jobDefinitionName: this.jobDefinitionName,
      propagateTags: true,
      timeout: Duration.hours(training.maxHours),
      retryAttempts: ATTEMPTS,
      // Batch retries only losses of the host; the state machine sees all other ends at once.
      retryStrategies: [
        RetryStrategy.of(Action.RETRY, Reason.SPOT_INSTANCE_RECLAIMED),
        RetryStrategy.of(Action.EXIT, Reason.custom({ onReason: "*" })),
      ],
      container: new EcsEc2ContainerDefinition(this, "Container", {
        image: ContainerImage.fromEcrRepository(images.own.trainer, config.imageTag),
        cpu: training.vcpus,
        memory: Size.mebibytes(training.memoryMiB),
        gpu: training.gpus,
        jobRole,
        linuxParameters: new LinuxParameters(this, "Linux", {
          sharedMemorySize: Size.mebibytes(training.sharedMemoryMiB),
        }),
        environment: TRAINER_SETTINGS.toEnvironment({
          storeUrl: `s3://${store.bucketName}`,
          // Use as many threads as the job has vCPUs: another number would give other bytes (decision 0003).
          threads: training.vcpus,
          device: "cuda",
        }),
        logging: LogDriver.awsLogs({
          streamPrefix: "trainer",
          logGroup: new LogGroup(this, "Log", {
            retention: RetentionDays.THREE_MONTHS,
            removalPolicy: RemovalPolicy.DESTROY,
          }),
        }),
      }),
    });
    (definition.node.defaultChild as CfnJobDefinition).addPropertyOverride("Tags", {
      "t1:deployment": config.name,
    });
    acknowledge(this, {
      "AwsSolutions-IAM5":
        "Keys of runs have names that exist only once a run is there; ecr:GetAuthorizationToken has no resource-level permissions.",
    });
  }
}

interface Host {
  readonly profile: CfnInstanceProfile;
  readonly template: CfnLaunchTemplate;
}

/** The reasons that Batch reports for a waiting job. */
const RUNNABLE_REASONS = [
  "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
  "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
  "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
];
