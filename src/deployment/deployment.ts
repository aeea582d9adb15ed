// A deployment as `--stack NAME` names it: where its store is and what its machines are called, read from the outputs of
// its pipeline stack.
import { DescribeStacksCommand, type Stack } from "@aws-sdk/client-cloudformation";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { Shape } from "../planning/cost.ts";
import { Standing } from "../planning/idle-cost.ts";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";

const Json = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    context.issues.push({ code: "custom", message: "expected JSON", input: text });
    return z.NEVER;
  }
});

/** Outputs of the stack NAME-pipeline (infra/stacks/pipeline.ts). */
const Outputs = z.object({
  StoreUrl: z.string().startsWith("s3://"),
  RunMachineArn: z.string().startsWith("arn:"),
  IterationMachineArn: z.string().startsWith("arn:"),
  EvaluationMachineArn: z.string().startsWith("arn:"),
  PreflightFunctionName: z.string().min(1),
  Shape: Json.pipe(Shape),
  Standing: Json.pipe(Standing),
});

export interface Deployment {
  readonly name: string;
  readonly region: string;
  readonly storeUrl: string;
  /** ARNs. */
  readonly machines: Readonly<Record<"run" | "iteration" | "evaluation", string>>;
  readonly preflightFunction: string;
  /** Sizes that cost depends on. */
  readonly shape: Shape;
  /** What is there while nothing runs. */
  readonly standing: Standing;
}

/** @throws InputError when there is no such deployment, or it is another version's */
export async function findDeployment(name: string, clients: AwsClients): Promise<Deployment> {
  const stackName = `${name}-pipeline`;
  const stack = await describe(stackName, clients);
  if (stack === undefined) throw missing(name, stackName);
  // A stack whose first deployment failed has no outputs; one that is rolled back after an update works as before.
  if (/^(CREATE_FAILED|ROLLBACK|DELETE)/.test(stack.StackStatus ?? "")) {
    throw new InputError({
      what: "the deployment is not complete",
      where: stackName,
      expected: `expected a stack that was created, got ${stack.StackStatus}`,
      fix: "deploy it again (docs/operate.md); its events in CloudFormation say what failed",
    });
  }
  const given = Object.fromEntries(
    (stack.Outputs ?? []).map(output => [output.OutputKey, output.OutputValue]),
  );
  const parsed = Outputs.safeParse(given);
  if (!parsed.success) {
    const problems = new Set(parsed.error.issues.map(({ path }) => String(path[0])));
    throw new InputError({
      what: "the stack was deployed by another version of t1",
      where: stackName,
      expected: `its outputs ${[...problems].join(", ")} as this version has them`,
      fix: "npx cdk deploy, from the version that you use here",
    });
  }
  const outputs = parsed.data;
  return {
    name,
    region: outputs.RunMachineArn.split(":")[3] ?? "",
    storeUrl: outputs.StoreUrl,
    machines: {
      run: outputs.RunMachineArn,
      iteration: outputs.IterationMachineArn,
      evaluation: outputs.EvaluationMachineArn,
    },
    preflightFunction: outputs.PreflightFunctionName,
    shape: outputs.Shape,
    standing: outputs.Standing,
  };
}

async function describe(stackName: string, { stacks }: AwsClients): Promise<Stack | undefined> {
  try {
    const asking = stacks.send(new DescribeStacksCommand({ StackName: stackName }));
    const { Stacks: found = [] } = await asked("cloudformation:DescribeStacks", asking);
    return found[0];
  } catch (error) {
    // CloudFormation has no error of its own for it.
    if (error instanceof Error && error.name === "ValidationError" && /does not exist/.test(error.message))
      return undefined;
    throw error;
  }
}

function missing(name: string, stackName: string): InputError {
  return new InputError({
    what: "no such deployment",
    where: name,
    expected: `expected a CloudFormation stack ${stackName} in this account and region`,
    fix: "check --stack (the deployment's name), AWS_PROFILE and AWS_REGION, or deploy it (docs/operate.md)",
  });
}
