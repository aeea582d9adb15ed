// The permissions of each role. roles.txt is the table (role, action, resource, condition); read it whenever it changes.
import { describe, expect, it } from "vitest";
import { deployedTemplates, flatten } from "./deployed-templates.ts";

const templates = await deployedTemplates();

interface Grant {
  readonly role: string;
  readonly action: string;
  readonly resource: string;
  readonly condition: string;
}

const grants: Grant[] = Object.entries(templates)
  .flatMap(([stack, { Resources }]) =>
    Object.values(Resources).flatMap(({ Type, Properties }) => {
      if (Type !== "AWS::IAM::Policy" && Type !== "AWS::IAM::ManagedPolicy") return [];
      const roles: string[] = (Properties.Roles ?? []).map((role: unknown) => nameOf(flatten(role)));
      return roles.flatMap(role =>
        Properties.PolicyDocument.Statement.flatMap((statement: Statement) =>
          grantsOf(`${stack} ${role}`, statement),
        ),
      );
    }),
  )
  .sort((a, b) => (lineOf(a) < lineOf(b) ? -1 : 1));

interface Statement {
  readonly Effect: string;
  readonly Action: string | string[];
  readonly Resource: unknown;
  readonly Condition?: Record<string, Record<string, unknown>>;
}

function grantsOf(role: string, { Effect, Action, Resource, Condition = {} }: Statement): Grant[] {
  expect(Effect).toBe("Allow");
  const condition = Object.entries(Condition)
    .flatMap(([test, keys]) =>
      Object.entries(keys).map(([key, value]) => `${test} ${key} ${nameOf(flatten(value))}`),
    )
    .join(", ");
  return [Action]
    .flat()
    .flatMap(action =>
      [Resource].flat().map(resource => ({ role, action, resource: nameOf(flatten(resource)), condition })),
    );
}

/** Strips the suffix that CDK adds to logical ids, which would change the table for no reason. */
function nameOf(text: string): string {
  return text
    .replaceAll("arn:<AWS::Partition>:", "arn:")
    .replaceAll("<AWS::Region>:<AWS::AccountId>", "")
    .replace(/[0-9A-F]{8}(?=[.>]|Arn|Ref|[0-9A-F]{8})([0-9A-F]{8})?/g, "");
}

function lineOf({ role, action, resource, condition }: Grant): string {
  return [role, action, resource, condition].join(" | ").replace(/ \| $/, "");
}

/** Actions that AWS gives no resource for. */
const WITHOUT_RESOURCES = [
  "batch:DescribeJobs",
  "ecr:GetAuthorizationToken",
  "ecs:ListTasks",
  "ecs:RegisterTaskDefinition",
  "logs:CreateLogDelivery",
  "logs:DeleteLogDelivery",
  "logs:DescribeLogGroups",
  "logs:DescribeResourcePolicies",
  "logs:GetLogDelivery",
  "logs:ListLogDeliveries",
  "logs:PutResourcePolicy",
  "logs:UpdateLogDelivery",
  "servicequotas:GetServiceQuota",
  "xray:GetSamplingRules",
  "xray:GetSamplingTargets",
  "xray:PutTelemetryRecords",
  "xray:PutTraceSegments",
];

describe("roles", () => {
  it("may do what the table says", async () => {
    expect(grants.length).toBeGreaterThan(50);
    await expect(`${grants.map(lineOf).join("\n")}\n`).toMatchFileSnapshot("roles.txt");
  });

  it("have no action on everything, but where AWS knows no resources", () => {
    const open = grants.filter(({ resource }) => resource === "*");
    expect(open.filter(({ action }) => !WITHOUT_RESOURCES.includes(action))).toEqual([]);
    expect(grants.filter(({ action }) => action.includes("*"))).toEqual([]);
  });

  it("of the driver: may hand on one role, the one that only pulls images", () => {
    const passed = grants.filter(
      ({ role, action }) => role.includes("DriverRole") && action === "iam:PassRole",
    );
    expect(passed).toHaveLength(1);
    expect(passed[0].resource).toContain("SandboxExecutionRole");
    expect(passed[0].condition).toBe("StringEquals iam:PassedToService ecs-tasks.amazonaws.com");
    const puller = grants.filter(({ role }) => role.includes("SandboxExecutionRole"));
    expect(puller.map(({ action }) => action).sort()).toEqual([
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchGetImage",
      "ecr:BatchGetImage",
      "ecr:GetAuthorizationToken",
      "ecr:GetDownloadUrlForLayer",
      "ecr:GetDownloadUrlForLayer",
    ]);
  });

  it("of the driver: starts sandboxes in this cluster and nothing else", () => {
    const started = grants.filter(
      ({ role, action }) => role.includes("DriverRole") && action === "ecs:RunTask",
    );
    expect(started.map(({ resource }) => resource)).toEqual([
      expect.stringContaining("task-definition/t1-sandbox-*"),
    ]);
    expect(started[0].condition).toContain("ecs:cluster");
  });

  it("of stages, trainer and sampler: cannot start, stop or pass anything", () => {
    const quiet = [
      "Plan",
      "Score",
      "Close",
      "Publish",
      "Summarise",
      "NextStep",
      "TrainerRole",
      "sampler Role",
    ];
    const bad = grants.filter(
      ({ role, action }) =>
        quiet.some(name => role.includes(name)) &&
        !role.includes("Machine") &&
        /^(iam|ecs|states|batch|codebuild):/.test(action),
    );
    expect(bad).toEqual([]);
  });
});
