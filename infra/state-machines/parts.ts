// Parameters of the state machines: names and ARNs of the deployed parts, and the limits of the deployment.

import type { StageName } from "../../src/stages/step.ts";

/** A Lambda function that runs one stage of src/stages. */
interface Stage {
  readonly arn: string;
  readonly timeoutSeconds: number;
}

export interface Parts {
  /** `aws`, `aws-cn`, …: the first part of every integration's ARN. */
  readonly partition: string;
  /** Name of the store's bucket. */
  readonly bucket: string;
  readonly stages: Readonly<Record<StageName, Stage>>;
  readonly driver: {
    readonly clusterArn: string;
    /** Family, not revision: a deployment ends the old revision, and a run in progress has to go on. */
    readonly family: string;
    readonly container: string;
    readonly subnets: readonly string[];
    readonly securityGroup: string;
    /** Above the driver's own limit, so that it can end its sandboxes and write its results. */
    readonly timeoutSeconds: number;
    /** Try Spot first. */
    readonly spot: boolean;
  };
  readonly training: {
    readonly jobDefinition: string;
    readonly onDemandQueueArn: string;
    /** The Spot queue, which is tried first when there is one. */
    readonly spotQueueArn?: string;
    readonly timeoutSeconds: number;
  };
  readonly rollouts: {
    /** Concurrency limit of drivers. */
    readonly maxConcurrency: number;
    readonly toleratedFailurePercentage: number;
  };
  readonly limits: {
    readonly runSeconds: number;
    readonly iterationSeconds: number;
    readonly evaluationSeconds: number;
    /** A new execution takes over after this many iterations: a history ends at 25,000 events. */
    readonly iterationsPerExecution: number;
  };
  readonly machines: {
    readonly runArn: string;
    readonly iterationArn: string;
    readonly evaluationArn: string;
  };
}
