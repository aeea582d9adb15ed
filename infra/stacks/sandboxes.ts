// The cluster of drivers and sandboxes: the driver's task definition, the sandboxes' roles, and the sweeper that ends
// leftover tasks.
import { Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import {
  CfnTaskDefinition,
  Cluster,
  ContainerImage,
  ContainerInsights,
  CpuArchitecture,
  FargateTaskDefinition,
  LogDrivers,
  OperatingSystemFamily,
} from "aws-cdk-lib/aws-ecs";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction as InvokeFunction } from "aws-cdk-lib/aws-events-targets";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import { sandboxTaskDefinition } from "../../src/planning/sandbox-task.ts";
import { DRIVER_SETTINGS, FARGATE_SETTINGS } from "../../src/stages/jobs.ts";
import { sweep } from "../../src/stages/sweep.ts";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { allow, arn, machineArn } from "../constructs/permissions.ts";
import { StageFunction } from "../constructs/stage-function.ts";
import { machineNames } from "../machine-names.ts";
import type { ImagesStack } from "./images.ts";
import { type NetworkStack, PROXY_PORT, SAMPLER_PORT } from "./network.ts";

export interface SandboxesProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly store: IBucket;
  readonly network: NetworkStack;
  readonly images: ImagesStack;
}

export const DRIVER_CONTAINER = "driver";

export class SandboxesStack extends Stack {
  readonly cluster: Cluster;
  readonly driver: FargateTaskDefinition;
  readonly sandboxExecutionRole: Role;
  readonly sweep: StageFunction;
  readonly stopRecorder: StageFunction;

  constructor(scope: Construct, id: string, { config, store, network, images, ...props }: SandboxesProps) {
    super(scope, id, props);
    this.cluster = new Cluster(this, "Cluster", {
      clusterName: config.name,
      vpc: network.vpc,
      containerInsightsV2: ContainerInsights.ENABLED,
      enableFargateCapacityProviders: true,
    });
    this.sandboxExecutionRole = this.#sandboxRole(images);
    const sandbox = new CfnTaskDefinition(
      this,
      "Sandbox",
      sandboxTaskDefinition({
        family: `${config.name}-sandbox-default`,
        image: images.tasks.repositoryUriForTag("default"),
        toolkitImage: images.own["sandbox-toolkit"].repositoryUriForTag(config.imageTag),
        cpu: config.sandboxes.size.cpu,
        memoryMiB: config.sandboxes.size.memoryMiB,
        diskGiB: config.sandboxes.diskGiB,
        executionRoleArn: this.sandboxExecutionRole.roleArn,
        environment: {},
      }),
    );
    acknowledge(sandbox, {
      "AwsSolutions-ECS2":
        "At most a proxy's address; a sandbox is given no secret but its own daemon's token.",
      "AwsSolutions-ECS7":
        "On purpose no log: what an agent prints is untrusted and stays inside; the driver records what counts.",
    });
    this.driver = this.#driver(config, store, network, images);
    this.sweep = this.#sweeper(config, store);
    this.stopRecorder = this.#stopRecorder(config, store);
  }

  /** The role with which ECS pulls the two images of a sandbox. Only ECS has its credentials, no container gets them. */
  #sandboxRole({ tasks, own }: ImagesStack): Role {
    const role = new Role(this, "SandboxExecutionRole", {
      assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: "Pulls sandbox images and may do nothing else",
    });
    role.addToPolicy(allow(["ecr:GetAuthorizationToken"], ["*"])); // has no resource-level permissions
    role.addToPolicy(
      allow(
        ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
        [tasks.repositoryArn, own["sandbox-toolkit"].repositoryArn],
      ),
    );
    acknowledge(role, {
      "AwsSolutions-IAM5": "ecr:GetAuthorizationToken has no resource-level permissions.",
    });
    return role;
  }

  #driver(
    config: DeploymentConfig,
    store: IBucket,
    network: NetworkStack,
    images: ImagesStack,
  ): FargateTaskDefinition {
    const taskRole = new Role(this, "DriverRole", {
      assumedBy: new ServicePrincipal("ecs-tasks.amazonaws.com"),
      description: "Plays episodes: reads plans and policies, writes trajectories, leases sandboxes",
    });
    const tasks = arn("ecs", `task/${config.name}/*`);
    const inCluster = { ArnEquals: { "ecs:cluster": this.cluster.clusterArn } };
    for (const statement of [
      allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], [store.arnForObjects("runs/*")]),
      allow(
        ["s3:GetObject"],
        ["pools/*", "images/*", "stops/*"].map(keys => store.arnForObjects(keys)),
      ),
      allow(["s3:ListBucket"], [store.bucketArn]),
      allow(["ecs:RunTask"], [arn("ecs", `task-definition/${config.name}-sandbox-*`)], inCluster),
      allow(["ecs:StopTask", "ecs:DescribeTasks"], [tasks], inCluster),
      allow(["ecs:ListTasks"], ["*"], inCluster), // names a container instance, which Fargate has none of
      allow(["ecs:TagResource"], [tasks], { StringEquals: { "ecs:CreateAction": "RunTask" } }),
      // A driver may pass only this role to a sandbox; even as a task role it would only allow pulling images.
      allow(["iam:PassRole"], [this.sandboxExecutionRole.roleArn], {
        StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
      }),
    ])
      taskRole.addToPolicy(statement);
    const definition = new FargateTaskDefinition(this, "Driver", {
      family: `${config.name}-driver`,
      cpu: config.drivers.size.cpu,
      memoryLimitMiB: config.drivers.size.memoryMiB,
      taskRole,
      runtimePlatform: {
        cpuArchitecture: CpuArchitecture.X86_64,
        operatingSystemFamily: OperatingSystemFamily.LINUX,
      },
    });
    definition.addContainer(DRIVER_CONTAINER, {
      image: ContainerImage.fromEcrRepository(images.own.driver, config.imageTag),
      healthCheck: {
        command: ["CMD", "node", "containers/heartbeat.ts"],
        interval: Duration.seconds(30),
        startPeriod: Duration.seconds(60),
      },
      // On SIGTERM the driver ends its sandboxes and flushes; Spot gives two minutes.
      stopTimeout: Duration.seconds(120),
      readonlyRootFilesystem: false,
      environment: {
        ...DRIVER_SETTINGS.toEnvironment({
          storeUrl: `s3://${store.bucketName}`,
          sandboxes: "fargate",
          samplerUrl: `http://sampler.${config.name}.internal:${SAMPLER_PORT}`,
          deadlineSeconds: Math.round(config.drivers.maxHours * 3600),
        }),
        ...FARGATE_SETTINGS.toEnvironment({
          cluster: config.name,
          families: `${config.name}-sandbox-`,
          subnets: network.sandboxSubnets.map(subnet => subnet.subnetId),
          securityGroups: [network.groups.sandbox.securityGroupId],
          ...(network.groups.egress !== undefined && {
            networkedGroups: [network.groups.egress.networked.securityGroupId],
            proxyUrl: `http://proxy.${config.name}.internal:${PROXY_PORT}`,
          }),
          toolkitImage: images.own["sandbox-toolkit"].repositoryUriForTag(config.imageTag),
          sandboxMarket: config.sandboxes.spot ? "spot-first" : "on-demand",
        }),
      },
      logging: LogDrivers.awsLogs({
        streamPrefix: "driver",
        logGroup: new LogGroup(this, "DriverLog", {
          retention: RetentionDays.THREE_MONTHS,
          removalPolicy: RemovalPolicy.DESTROY,
        }),
      }),
    });
    acknowledge(definition, {
      "AwsSolutions-ECS2": "Addresses and names, no secret: what a driver may do comes from its role.",
      "AwsSolutions-IAM5":
        "Keys, tasks and definitions have names that exist only once a run is there; each wildcard is below one prefix or our own cluster. ecr:GetAuthorizationToken has no resource-level permissions.",
    });
    acknowledge(taskRole, {
      "AwsSolutions-IAM5":
        "Keys, tasks and sandbox definitions have names that exist only once a run is there; each wildcard is below one prefix or our own cluster.",
    });
    return definition;
  }

  /** The sweeper ends tasks that outlived every other limit, and scales the sampler to none when no run is in progress. */
  #sweeper(config: DeploymentConfig, store: IBucket): StageFunction {
    const { run, evaluation } = machineNames(config);
    const inCluster = { ArnEquals: { "ecs:cluster": this.cluster.clusterArn } };
    const sweeper = new StageFunction(this, "Sweep", {
      handler: "sweep",
      description: "Ends sandboxes and drivers that are too old, and the sampler when nothing runs",
      timeout: Duration.minutes(5),
      memoryMiB: 256,
      environment: {
        T1_STORE_URL: `s3://${store.bucketName}`,
        ...sweep.settings.toEnvironment({
          cluster: config.name,
          maxAgeSeconds: Math.round(config.sandboxes.maxHours * 3600),
          samplerService: `${config.name}-sampler`,
          machines: [machineArn(run), machineArn(evaluation)],
        }),
      },
      permissions: [
        allow(["ecs:ListTasks"], ["*"], inCluster), // names a container instance, which Fargate has none of
        allow(["ecs:DescribeTasks", "ecs:StopTask"], [arn("ecs", `task/${config.name}/*`)], inCluster),
        allow(
          ["ecs:UpdateService"],
          [arn("ecs", `service/${config.name}/${config.name}-sampler`)],
          inCluster,
        ),
        allow(["states:ListExecutions"], [machineArn(run), machineArn(evaluation)]),
      ],
      wildcards: "ecs:ListTasks is limited to our cluster by a condition.",
    });
    new Rule(this, "SweepRule", {
      schedule: Schedule.rate(Duration.minutes(10)),
      targets: [new InvokeFunction(sweeper.function, { retryAttempts: 2 })],
    });
    return sweeper;
  }

  /** Records why tasks stopped, because ECS forgets that after about an hour. */
  #stopRecorder(config: DeploymentConfig, store: IBucket): StageFunction {
    const recorder = new StageFunction(this, "StopRecorder", {
      handler: "stop-recorder",
      description: "Keeps why tasks and jobs stopped",
      timeout: Duration.seconds(30),
      memoryMiB: 256,
      environment: { T1_STORE_URL: `s3://${store.bucketName}` },
      permissions: [allow(["s3:PutObject", "s3:GetObject"], [store.arnForObjects("stops/*")])],
    });
    const target = new InvokeFunction(recorder.function, { retryAttempts: 10 });
    new Rule(this, "StoppedTasks", {
      eventPattern: {
        source: ["aws.ecs"],
        detailType: ["ECS Task State Change"],
        detail: { clusterArn: [this.cluster.clusterArn], lastStatus: ["STOPPED"] },
      },
      targets: [target],
    });
    new Rule(this, "FailedJobs", {
      eventPattern: {
        source: ["aws.batch"],
        detailType: ["Batch Job State Change"],
        detail: { status: ["FAILED"], jobQueue: [{ wildcard: `*/${config.name}-*` }] },
      },
      targets: [target],
    });
    return recorder;
  }
}
