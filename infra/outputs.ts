// Outputs of the pipeline stack, which `t1 … --stack NAME` reads (src/deployment/deployment.ts).
import { CfnOutput, Stack } from "aws-cdk-lib";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { Shape } from "../src/planning/cost.ts";
import type { Standing } from "../src/planning/idle-cost.ts";
import type { DeploymentConfig } from "./config.ts";
import { dnsDomains } from "./dns-domains.ts";
import type { PipelineStack } from "./stacks/pipeline.ts";

export function addOutputs(stack: PipelineStack, config: DeploymentConfig, store: IBucket): void {
  const { machines, stages } = stack;
  const outputs = {
    StoreUrl: `s3://${store.bucketName}`,
    RunMachineArn: machines.run.stateMachineArn,
    IterationMachineArn: machines.iteration.stateMachineArn,
    EvaluationMachineArn: machines.evaluation.stateMachineArn,
    PreflightFunctionName: stages.preflight.function.functionName,
    Shape: JSON.stringify(shapeOf(config)),
    Standing: JSON.stringify(standingOf(config, Stack.of(stack).region)),
  };
  for (const [name, value] of Object.entries(outputs)) new CfnOutput(stack, name, { value });
}

export function shapeOf({ sandboxes, drivers, sampler, training }: DeploymentConfig): Shape {
  const size = ({ cpu, memoryMiB }: { readonly cpu: number; readonly memoryMiB: number }) => ({
    vcpus: cpu / 1024,
    gib: memoryMiB / 1024,
  });
  return {
    sandbox: { ...size(sandboxes.size), diskGib: sandboxes.diskGiB },
    driver: size(drivers.size),
    sampler: { ...size(sampler.size), copies: sampler.copies },
    spot: sandboxes.spot,
    trainingInstance: training.instances[0],
    episodesPerDriver: drivers.episodes,
    sandboxesAtOnce: sandboxes.atOnce,
  };
}

/** Idle costs of the stacks' resources. The sizes of images and store are assumed, since no setting says them. */
function standingOf(config: DeploymentConfig, region: string): Standing {
  return {
    endpointZones: 2 * config.network.zones,
    alarms: 8,
    dashboards: 1,
    hostedZones: 1,
    // Add the one name for everything else, which the firewall refuses.
    firewallDomains: dnsDomains(config, region).length + 1,
    sweepsPerHour: 6,
    imageGb: 10,
    storeGb: 10,
  };
}
