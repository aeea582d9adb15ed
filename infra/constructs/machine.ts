// A state machine of ours: a typed definition, a role that may do exactly what the definition asks for, and a log.
import { Duration, RemovalPolicy, Stack } from "aws-cdk-lib";
import { Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { DefinitionBody, LogLevel, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import type { Definition } from "../state-machines/asl.ts";
import { acknowledge } from "./acknowledge.ts";
import { type PermissionContext, permissions } from "./permissions.ts";

export interface MachineProps extends Omit<PermissionContext, "machineName"> {
  /** The name is fixed, because state machines start one another and themselves by it. */
  readonly name: string;
  readonly definition: Definition;
}

export class Machine extends Construct {
  readonly machine: StateMachine;

  constructor(scope: Construct, id: string, { name, definition, ...context }: MachineProps) {
    super(scope, id);
    const role = new Role(this, "Role", { assumedBy: new ServicePrincipal("states.amazonaws.com") });
    for (const statement of permissions(definition, { ...context, machineName: name }))
      role.addToPolicy(statement);
    const logs = new LogGroup(this, "Log", {
      // Step Functions adds no further statement to the log's policy for names under this prefix; it has a size limit.
      logGroupName: `/aws/vendedlogs/states/${name}`,
      retention: RetentionDays.THREE_MONTHS,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.machine = new StateMachine(this, "Machine", {
      stateMachineName: name,
      definitionBody: DefinitionBody.fromString(Stack.of(this).toJsonString(definition)),
      timeout: Duration.seconds(definition.TimeoutSeconds),
      role,
      // Log no inputs and outputs: they are only keys, and a map of thousands of children would fill the log.
      logs: { destination: logs, level: LogLevel.ALL, includeExecutionData: false },
      tracingEnabled: true,
    });
    acknowledge(role, {
      "AwsSolutions-IAM5":
        "Executions, tasks and jobs have names that exist only once they run; each wildcard is below our own machine, cluster or prefix. batch:DescribeJobs, log delivery and X-Ray have no resource-level permissions.",
    });
  }
}
