// The stages as Lambda functions, and the three state machines that call them.
import { Aws, Duration, Stack, type StackProps } from "aws-cdk-lib";
import type { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { nextStep } from "../../src/stages/next-step.ts";
import { plan } from "../../src/stages/plan.ts";
import { preflight } from "../../src/stages/preflight.ts";
import { prepare } from "../../src/stages/prepare.ts";
import { publish } from "../../src/stages/publish.ts";
import { STAGES, type StageName } from "../../src/stages/step.ts";
import { summarise } from "../../src/stages/summarise.ts";
import type { DeploymentConfig } from "../config.ts";
import { Machine } from "../constructs/machine.ts";
import { allow, arn, machineArn } from "../constructs/permissions.ts";
import { StageFunction } from "../constructs/stage-function.ts";
import { machineNames } from "../machine-names.ts";
import { addOutputs, shapeOf } from "../outputs.ts";
import type { Definition } from "../state-machines/asl.ts";
import { evaluationMachine } from "../state-machines/evaluation.ts";
import { iterationMachine } from "../state-machines/iteration.ts";
import type { Parts } from "../state-machines/parts.ts";
import { runMachine } from "../state-machines/run.ts";
import type { ImagesStack } from "./images.ts";
import type { NetworkStack } from "./network.ts";
import { DRIVER_CONTAINER, type SandboxesStack } from "./sandboxes.ts";
import type { TrainingStack } from "./training.ts";

export interface PipelineProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly store: IBucket;
  readonly network: NetworkStack;
  readonly images: ImagesStack;
  readonly sandboxes: SandboxesStack;
  readonly training: TrainingStack;
}

export class PipelineStack extends Stack {
  readonly stages: Readonly<Record<StageName, StageFunction>>;
  readonly machines: Readonly<Record<"run" | "iteration" | "evaluation", StateMachine>>;

  constructor(scope: Construct, id: string, props: PipelineProps) {
    super(scope, id, props);
    const { config, store, sandboxes } = props;
    const settings = stageSettings(props);
    this.stages = Object.fromEntries(
      STAGES.map(name => {
        const { environment = {}, ...rest } = settings[name];
        const common = { T1_STORE_URL: `s3://${store.bucketName}` };
        const id = name.replace(/(^|-)./g, start => start.slice(-1).toUpperCase());
        return [
          name,
          new StageFunction(this, id, { handler: name, ...rest, environment: { ...common, ...environment } }),
        ];
      }),
    ) as Record<StageName, StageFunction>;

    const names = machineNames(config);
    const parts = this.#parts(props);
    const context = {
      clusterName: config.name,
      bucketArn: store.bucketArn,
      passRoleArns: [sandboxes.driver.taskRole.roleArn, sandboxes.driver.obtainExecutionRole().roleArn],
    };
    const machine = (id: string, name: string, definition: Definition) =>
      new Machine(this, id, { name, definition, ...context }).machine;
    this.machines = {
      evaluation: machine("EvaluationMachine", names.evaluation, evaluationMachine(parts)),
      iteration: machine("IterationMachine", names.iteration, iterationMachine(parts)),
      run: machine("RunMachine", names.run, runMachine(parts)),
    };
    addOutputs(this, config, store);
  }

  #parts({ config, store, network, sandboxes, training }: PipelineProps): Parts {
    const names = machineNames(config);
    const { drivers, pipeline } = config;
    const hours = (count: number): number => Math.round(count * 3600);
    return {
      partition: Aws.PARTITION,
      bucket: store.bucketName,
      stages: Object.fromEntries(
        STAGES.map(name => [
          name,
          {
            arn: this.stages[name].function.functionArn,
            timeoutSeconds: this.stages[name].timeoutSeconds,
          },
        ]),
      ) as Parts["stages"],
      driver: {
        clusterArn: sandboxes.cluster.clusterArn,
        family: `${config.name}-driver`,
        container: DRIVER_CONTAINER,
        subnets: network.publicSubnets.map(subnet => subnet.subnetId),
        securityGroup: network.groups.driver.securityGroupId,
        // Add half an hour for pulling the image, for ending sandboxes and for the last writes.
        timeoutSeconds: hours(drivers.maxHours) + 1800,
        spot: config.sandboxes.spot,
      },
      training: {
        jobDefinition: training.jobDefinitionName,
        onDemandQueueArn: training.onDemandQueue.attrJobQueueArn,
        ...(training.spotQueue !== undefined && { spotQueueArn: training.spotQueue.attrJobQueueArn }),
        // Stay above Batch's own limit of all attempts and the wait for an instance.
        timeoutSeconds: hours(config.training.maxHours * 2) + config.training.waitMinutes * 60,
      },
      rollouts: {
        maxConcurrency: Math.max(1, Math.floor(config.sandboxes.atOnce / drivers.episodes)),
        toleratedFailurePercentage: drivers.toleratedFailurePercentage,
      },
      limits: {
        runSeconds: hours(pipeline.runDays * 24),
        iterationSeconds: hours(pipeline.iterationHours),
        evaluationSeconds: hours(pipeline.iterationHours),
        iterationsPerExecution: pipeline.iterationsPerExecution,
      },
      machines: {
        runArn: machineArn(names.run),
        iterationArn: machineArn(names.iteration),
        evaluationArn: machineArn(names.evaluation),
      },
    };
  }
}

interface StageSettings {
  readonly description: string;
  readonly timeout: Duration;
  readonly memoryMiB: number;
  readonly permissions: readonly PolicyStatement[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly wildcards?: string;
  readonly temporaryGiB?: number;
}

function stageSettings({
  config,
  store,
  images,
  sandboxes,
}: PipelineProps): Record<StageName, StageSettings> {
  const key = (prefix: string): string => store.arnForObjects(prefix);
  const read = allow(["s3:GetObject"], [key("runs/*"), key("pools/*")]);
  const list = allow(["s3:ListBucket"], [store.bucketArn]);
  const write = (...prefixes: string[]): PolicyStatement => allow(["s3:PutObject"], prefixes.map(key));
  const iteration = "runs/*/iterations/*";
  const evaluation = "runs/*/evaluations/*";
  const episodesPerDriver = config.drivers.episodes;
  const storeUrl = `s3://${store.bucketName}`;
  const driverRole = sandboxes.driver.taskRole;
  const { "egress-proxy": proxy, ...ownAlways } = images.own;
  const ownImages = [
    ...Object.values(ownAlways),
    ...(config.network.egress.profile === "proxy" ? [proxy] : []),
  ];
  const sampler = arn("ecs", `service/${config.name}/${config.name}-sampler`);
  return {
    plan: {
      description: "Chooses the episodes of an iteration or evaluation",
      timeout: Duration.minutes(5),
      memoryMiB: 1024,
      environment: plan.settings.toEnvironment({ episodesPerDriver }),
      permissions: [read, list, write(iteration, evaluation)],
    },
    prepare: {
      description: "Builds and registers what sandboxes are made from, and wakes the sampler",
      timeout: Duration.minutes(15),
      memoryMiB: 1024,
      temporaryGiB: 4,
      environment: prepare.settings.toEnvironment({
        storeUrl,
        sandboxes: "fargate",
        cluster: config.name,
        samplerService: `${config.name}-sampler`,
        samplerCopies: config.sampler.copies,
        buildProject: images.build.projectName,
        taskRepository: images.tasks.repositoryUri,
        toolkitImage: images.own["sandbox-toolkit"].repositoryUriForTag(config.imageTag),
        families: `${config.name}-sandbox-`,
        sandboxCpu: config.sandboxes.size.cpu,
        sandboxMemoryMiB: config.sandboxes.size.memoryMiB,
        sandboxDiskGiB: config.sandboxes.diskGiB,
        sandboxExecutionRole: sandboxes.sandboxExecutionRole.roleArn,
      }),
      permissions: [
        read,
        list,
        allow(["s3:GetObject", "s3:PutObject"], [key("images/*"), key("builds/*")]),
        allow(["s3:DeleteObject"], [key("builds/*.json")]),
        allow(["codebuild:StartBuild", "codebuild:BatchGetBuilds"], [images.build.projectArn]),
        allow(["ecs:RegisterTaskDefinition"], ["*"]), // has no resource-level permissions
        allow(["ecs:UpdateService", "ecs:DescribeServices"], [sampler]),
        allow(["iam:PassRole"], [sandboxes.sandboxExecutionRole.roleArn], {
          StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
        }),
      ],
      wildcards:
        "ecs:RegisterTaskDefinition has no resource-level permissions; the only role that can be put into a definition is the one that pulls images.",
    },
    score: {
      description: "Turns verifier reports into rewards and admits attempts",
      timeout: Duration.minutes(10),
      memoryMiB: 1024,
      permissions: [read, list, write("runs/*/episodes/*")],
    },
    close: {
      description: "Fixes the list of what counts",
      timeout: Duration.minutes(10),
      memoryMiB: 1024,
      permissions: [
        read,
        list,
        write(`${iteration}/closed.json`, `${evaluation}/closed.json`, "runs/*/state.json"),
      ],
    },
    publish: {
      description: "Makes a trained version the newest policy",
      timeout: Duration.minutes(10),
      memoryMiB: 512,
      environment: publish.settings.toEnvironment({ episodesPerDriver }),
      permissions: [
        read,
        list,
        write("runs/*/state.json", `${iteration}/usage.json`),
        allow(["s3:DeleteObject"], [key("runs/*/policies/*"), key("runs/*/engine/*")]),
      ],
    },
    summarise: {
      description: "Rates and intervals of a closed evaluation",
      timeout: Duration.minutes(10),
      memoryMiB: 1024,
      environment: summarise.settings.toEnvironment({ episodesPerDriver }),
      permissions: [read, list, write(`${evaluation}/summary.json`, `${evaluation}/usage.json`)],
    },
    preflight: {
      description: "Refuses what cannot run, and makes a run from a checkpoint where asked to",
      timeout: Duration.minutes(15),
      memoryMiB: 3008,
      environment: preflight.settings.toEnvironment({
        sandboxes: "fargate",
        sandboxesAtOnce: config.sandboxes.atOnce,
        sandboxCpu: config.sandboxes.size.cpu,
        episodesPerDriver,
        driverCpu: config.drivers.size.cpu,
        spot: config.sandboxes.spot,
        egress: config.network.egress.profile === "proxy",
        ownImages: ownImages.map(repository => repository.repositoryName),
        imageTag: config.imageTag,
        driverRole: driverRole.roleArn,
        sandboxExecutionRole: sandboxes.sandboxExecutionRole.roleArn,
        clusterArn: sandboxes.cluster.clusterArn,
        anyTask: arn("ecs", `task/${config.name}/any`),
        anyDefinition: arn("ecs", `task-definition/${config.name}-sandbox-any:1`),
        anyObject: store.arnForObjects("runs/any"),
      }),
      permissions: [
        read,
        list,
        write("runs/*"),
        allow(["servicequotas:GetServiceQuota"], ["*"]), // quotas of Fargate have no ARN that is known beforehand
        allow(
          ["ecr:DescribeImages"],
          ownImages.map(repository => repository.repositoryArn),
        ),
        allow(["iam:SimulatePrincipalPolicy"], [driverRole.roleArn]),
      ],
      wildcards: "servicequotas:GetServiceQuota only reads.",
    },
    "next-step": {
      description: "Says what a run does next, and what it has cost so far",
      timeout: Duration.minutes(5),
      memoryMiB: 1024,
      environment: nextStep.settings.toEnvironment({ shape: shapeOf(config) }),
      permissions: [read, list],
    },
  };
}
