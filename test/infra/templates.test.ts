// Rules of the templates, one test each; the numbers (B01 …) are rows of docs/cases.md, faults that real projects had.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hasGpu, lintTemplate, type TemplateJson } from "../../infra/lint/template.ts";
import { SolutionsChecks } from "../../infra/nag.ts";
import { totalUsd } from "../../src/planning/cost.ts";
import { DEFAULT_SHAPE, DEFAULT_STANDING } from "../../src/planning/default-deployment.ts";
import { idleCost } from "../../src/planning/idle-cost.ts";
import { sandboxTaskDefinition } from "../../src/planning/sandbox-task.ts";
import { definitionsOf, deployedTemplates, flatten } from "./deployed-templates.ts";
import { synthesize } from "./synthesized.ts";

const { app, config, templates } = synthesize({ budget: { monthlyUsd: 500, mail: "ops@example.org" } });
const of = (stack: string, type: string) =>
  Object.entries(templates[stack].Resources).filter(([, resource]) => resource.Type === type);
const propertiesOf = (stack: string, type: string) => of(stack, type).map(([, { Properties }]) => Properties);

describe("every stack", () => {
  it("is kept as these sources make it, for suites and runs that read what was kept", async () => {
    expect(await deployedTemplates()).toEqual(synthesize().templates);
  });

  it("breaks no rule of ours", () => {
    const problems = Object.values(templates).flatMap(template =>
      lintTemplate(template, `${config.name}-sandbox`),
    );
    expect(problems).toEqual([]);
  });

  it("breaks no rule of cdk-nag without a written reason", () => {
    const { violations } = new SolutionsChecks().validate({
      appConstruct: app,
      templatePaths: [],
    } as never);
    expect(violations.map(({ ruleName, violatingResources }) => [ruleName, violatingResources])).toEqual([]);
  });

  it("asks nothing of an account: no look-up and no image asset", () => {
    const { manifest, directory } = app.synth();
    expect(manifest.missing ?? []).toEqual([]);
    for (const file of readdirSync(directory).filter(name => name.endsWith(".assets.json")))
      expect(JSON.parse(readFileSync(join(directory, file), "utf8")).dockerImages).toEqual({});
  });
});

describe("storage", () => {
  it("refuses requests without TLS, and forgets what only bookkeeping needs", () => {
    const statements = propertiesOf("storage", "AWS::S3::BucketPolicy").flatMap(
      policy => policy.PolicyDocument.Statement,
    );
    const denied = statements.filter(
      statement =>
        statement.Effect === "Deny" && statement.Condition?.Bool?.["aws:SecureTransport"] === "false",
    );
    expect(denied).toHaveLength(2);
    const store = propertiesOf("storage", "AWS::S3::Bucket").find(bucket => bucket.LoggingConfiguration);
    const rules = store.LifecycleConfiguration.Rules;
    expect(rules.find((rule: { Prefix?: string }) => rule.Prefix === "map-results/").ExpirationInDays).toBe(
      14,
    );
    expect(rules.some((rule: object) => "AbortIncompleteMultipartUpload" in rule)).toBe(true);
  });
});

describe("network", () => {
  it("gives every route table the free way to S3", () => {
    const tables = of("network", "AWS::EC2::RouteTable").map(([id]) => id);
    const [endpoint] = propertiesOf("network", "AWS::EC2::VPCEndpoint");
    expect(endpoint.VpcEndpointType).toBe("Gateway");
    expect(endpoint.RouteTableIds.map(({ Ref }: { Ref: string }) => Ref).sort()).toEqual(tables.sort());
  });

  it("lets sandboxes route nowhere, and nobody but drivers speak to them", () => {
    expect(of("network", "AWS::EC2::NatGateway")).toEqual([]);
    const isolated = of("network", "AWS::EC2::RouteTable").filter(([id]) => id.includes("Sandbox"));
    const routed = propertiesOf("network", "AWS::EC2::Route").map(({ RouteTableId }) => RouteTableId.Ref);
    for (const [id] of isolated) expect(routed).not.toContain(id);
    const intoSandboxes = propertiesOf("network", "AWS::EC2::SecurityGroupIngress").filter(({ GroupId }) =>
      flatten(GroupId).includes("SandboxGroup"),
    );
    expect(intoSandboxes.map(({ SourceSecurityGroupId }) => flatten(SourceSecurityGroupId))).toEqual([
      expect.stringContaining("DriverGroup"),
    ]);
  });

  it("opens no port to an address: groups name groups", () => {
    for (const group of propertiesOf("network", "AWS::EC2::SecurityGroup"))
      expect(group.SecurityGroupIngress ?? []).toEqual([]);
    for (const rule of propertiesOf("network", "AWS::EC2::SecurityGroupIngress")) {
      expect(rule.CidrIp).toBeUndefined();
      expect(rule.SourceSecurityGroupId).toBeDefined();
    }
  });

  it("answers DNS for the known names and for no other", () => {
    const [{ FirewallRules: rules }] = propertiesOf("network", "AWS::Route53Resolver::FirewallRuleGroup");
    expect(rules.map(({ Action }: { Action: string }) => Action)).toEqual(["ALLOW", "BLOCK"]);
    const lists = propertiesOf("network", "AWS::Route53Resolver::FirewallDomainList").map(list =>
      list.Domains.map(flatten),
    );
    expect(lists[1]).toEqual(["*"]);
    expect(lists[0]).toContain("*.t1.internal");
    expect(lists[0].every((domain: string) => domain !== "*.amazonaws.com")).toBe(true);
  });
});

describe("machines' roles", () => {
  /** Actions on resources, of every statement of a machine's role. */
  const grants = (machine: string): [action: string, resource: string][] => {
    const [, policy] = of("pipeline", "AWS::IAM::Policy").find(([id]) => id.startsWith(machine)) ?? [];
    return policy?.Properties.PolicyDocument.Statement.flatMap(
      ({ Action, Resource }: { Action: string | string[]; Resource: unknown }) =>
        [Action].flat().flatMap(action => [Resource].flat().map(resource => [action, flatten(resource)])),
    );
  };
  const has = (machine: string, action: string, resource: string): boolean =>
    grants(machine).some(([granted, on]) => granted === action && on.endsWith(resource));

  it("B01: may start, watch and redrive the children of a Distributed Map", () => {
    for (const name of ["evaluation", "iteration"]) {
      const machine = `${name[0].toUpperCase()}${name.slice(1)}Machine`;
      expect(has(machine, "states:StartExecution", `stateMachine:t1-${name}`)).toBe(true);
      expect(has(machine, "states:DescribeExecution", `execution:t1-${name}:*`)).toBe(true);
      expect(has(machine, "states:StopExecution", `execution:t1-${name}:*`)).toBe(true);
      expect(has(machine, "states:RedriveExecution", `execution:t1-${name}/Rollouts:*`)).toBe(true);
    }
  });

  it("B02: every Distributed Map has a ResultWriter with Arguments, and its role may write there", () => {
    for (const definition of Object.values(definitionsOf(templates))) {
      const maps = JSON.stringify(definition).match(/"Mode":"DISTRIBUTED"/g) ?? [];
      const writers = JSON.stringify(definition).match(
        /"ResultWriter":\{"Resource":"[^"]+","Arguments":\{"Bucket"/g,
      );
      expect(writers ?? []).toHaveLength(maps.length);
    }
    expect(has("IterationMachine", "s3:PutObject", "/map-results/*")).toBe(true);
  });

  it("B04: may tag the jobs that it submits", () => {
    for (const resource of ["job-definition/t1-train", "job-definition/t1-train:*", "job/*"])
      expect(has("IterationMachine", "batch:TagResource", resource)).toBe(true);
  });

  it("B05: may look up and end the jobs that it waits for", () => {
    expect(has("IterationMachine", "batch:DescribeJobs", "*")).toBe(true);
    expect(has("IterationMachine", "batch:TerminateJob", "job/*")).toBe(true);
  });

  it("B40: has for each integration variant the actions that AWS documents for it, and its managed rule", () => {
    const needed: Record<string, string[]> = {
      "ecs:runTask.sync": [
        "ecs:RunTask",
        "ecs:StopTask",
        "ecs:DescribeTasks",
        "iam:PassRole",
        "events:PutRule",
      ],
      "batch:submitJob.sync": [
        "batch:SubmitJob",
        "batch:DescribeJobs",
        "batch:TerminateJob",
        "events:PutRule",
      ],
      "states:startExecution.sync:2": [
        "states:StartExecution",
        "states:DescribeExecution",
        "states:StopExecution",
        "events:PutRule",
      ],
      "states:startExecution": ["states:StartExecution"],
      "lambda:invoke": ["lambda:InvokeFunction"],
      "s3:getObject": ["s3:GetObject"],
      "s3:putObject": ["s3:PutObject"],
    };
    for (const [name, definition] of Object.entries(definitionsOf(templates))) {
      const machine = `${name[0].toUpperCase()}${name.slice(1)}Machine`;
      const granted = new Set(grants(machine).map(([action]) => action));
      const used = [...JSON.stringify(definition).matchAll(/:states:::([\w:.]+)"/g)].map(([, used]) => used);
      expect(used.length).toBeGreaterThan(0);
      for (const integration of used) {
        expect(needed).toHaveProperty([integration]);
        for (const action of needed[integration])
          expect(granted, `${name}: ${integration}`).toContain(action);
      }
    }
  });
});

describe("sandboxes", () => {
  it("have no identity, no log and no shared processes", () => {
    const [sandbox] = propertiesOf("sandboxes", "AWS::ECS::TaskDefinition").filter(({ Family }) =>
      Family.startsWith("t1-sandbox"),
    );
    expect(sandbox.TaskRoleArn).toBeUndefined();
    expect(sandbox.ContainerDefinitions.map(({ Name }: { Name: string }) => Name)).toEqual([
      "toolkit",
      "agent",
      "verifier",
    ]);
  });

  it("are registered by the prepare stage in the same shape", () => {
    const task = sandboxTaskDefinition({
      family: "t1-sandbox-x",
      image: "i",
      toolkitImage: "t",
      cpu: 2048,
      memoryMiB: 8192,
      diskGiB: 21,
      executionRoleArn: "arn",
      environment: {},
    });
    expect(task).not.toHaveProperty("taskRoleArn");
    expect(task.containerDefinitions.every(container => !("logConfiguration" in container))).toBe(true);
    const memory = task.containerDefinitions.map(one =>
      "memory" in one ? one.memory : one.memoryReservation,
    );
    expect(memory.reduce((sum, mib) => sum + mib, 0)).toBeLessThanOrEqual(8192);
  });

  it("B11: drivers are started through capacity providers", () => {
    const text = JSON.stringify(definitionsOf(templates).iteration);
    expect(text).toContain('"CapacityProvider":"FARGATE_SPOT"');
    expect(text).toContain('"CapacityProvider":"FARGATE"');
    expect(text).not.toContain("LaunchType");
  });
});

describe("training", () => {
  it("B10: compute environments can be replaced: no name, and a version of the launch template", () => {
    const environments = propertiesOf("training", "AWS::Batch::ComputeEnvironment");
    expect(environments).toHaveLength(2);
    for (const environment of environments) {
      expect(environment.ComputeEnvironmentName).toBeUndefined();
      expect(environment.ReplaceComputeEnvironment).toBe(false);
      expect(environment.ComputeResources.LaunchTemplate.Version).toBeDefined();
    }
  });

  it("B13: the job asks for its GPUs", () => {
    const [job] = propertiesOf("training", "AWS::Batch::JobDefinition");
    expect(hasGpu(job.ContainerProperties)).toBe(true);
  });

  it("B28: a job that gets no machine in time is cancelled, and the machine then takes the other queue", () => {
    for (const queue of propertiesOf("training", "AWS::Batch::JobQueue"))
      expect(queue.JobStateTimeLimitActions[0]).toMatchObject({
        Action: "CANCEL",
        State: "RUNNABLE",
        MaxTimeSeconds: config.training.waitMinutes * 60,
      });
    const [train] = definitionsOf(templates).iteration.States.Update.Branches;
    expect(train.States.TrainOnSpot.Catch[0].Next).toBe("SpotTrainingEnded");
    expect(train.States.SpotTrainingEnded.Default).toBe("TrainOnDemand");
    const queues = [train.States.TrainOnSpot, train.States.TrainOnDemand].map(
      state => state.Arguments.JobQueue,
    );
    expect(new Set(queues).size).toBe(2);
  });

  it("retries lost hosts and nothing else", () => {
    const [job] = propertiesOf("training", "AWS::Batch::JobDefinition");
    expect(job.RetryStrategy.EvaluateOnExit).toEqual([
      { Action: "RETRY", OnStatusReason: "Host EC2*" },
      { Action: "EXIT", OnReason: "*" },
    ]);
  });
});

describe("rules for multi-node jobs, which come later", () => {
  const range = (targetNodes: string, container: object = {}) => ({
    TargetNodes: targetNodes,
    Container: {
      ResourceRequirements: [{ Type: "GPU", Value: "8" }],
      LinuxParameters: { Devices: [{ HostPath: "/dev/infiniband/uverbs0" }], SharedMemorySize: 1024 },
      ...container,
    },
  });
  const planted = (ranges: object[], market = "EC2"): TemplateJson => ({
    Resources: {
      Hosts: { Type: "AWS::Batch::ComputeEnvironment", Properties: { ComputeResources: { Type: market } } },
      Job: {
        Type: "AWS::Batch::JobDefinition",
        Properties: { Type: "multinode", NodeProperties: { NodeRangeProperties: ranges } },
      },
    },
  });
  const rules = (template: TemplateJson): string[] =>
    lintTemplate(template, "t1-sandbox").map(({ rule }) => rule);

  it("pass a right one", () => {
    expect(rules(planted([range("0:0"), range("1:")]))).toEqual([]);
  });
  it("B08: refuse a closed last range", () => {
    expect(rules(planted([range("0:0"), range("1:3")]))).toEqual(["node-ranges"]);
  });
  it("B14: refuse Spot", () => {
    expect(rules(planted([range("0:0"), range("1:")], "SPOT"))).toEqual(["multinode-spot"]);
  });
  it("B13: refuse a range without GPUs", () => {
    expect(rules(planted([range("0:0"), range("1:", { ResourceRequirements: [] })]))).toEqual(["node-gpus"]);
  });
  it("B16: refuse ranges whose devices or shared memory differ", () => {
    expect(rules(planted([range("0:0"), range("1:", { LinuxParameters: {} })]))).toEqual(["node-devices"]);
  });
});

describe("rules for single parts", () => {
  const rules = (type: string, properties: object): string[] =>
    lintTemplate({ Resources: { X: { Type: type, Properties: properties } } }, "t1-sandbox").map(
      ({ rule }) => rule,
    );

  it("refuse a sandbox with an identity, a log or shared processes", () => {
    const sandbox = { Family: "t1-sandbox-x", ContainerDefinitions: [{}] };
    const type = "AWS::ECS::TaskDefinition";
    expect(rules(type, sandbox)).toEqual([]);
    expect(rules(type, { ...sandbox, TaskRoleArn: "arn" })).toEqual(["sandbox-identity"]);
    expect(rules(type, { ...sandbox, PidMode: "task" })).toEqual(["sandbox-identity"]);
    expect(rules(type, { ...sandbox, ContainerDefinitions: [{ LogConfiguration: {} }] })).toEqual([
      "sandbox-identity",
    ]);
  });
  it("refuse a named compute environment and a launch template without a version", () => {
    const type = "AWS::Batch::ComputeEnvironment";
    expect(rules(type, { ComputeEnvironmentName: "x" })).toEqual(["compute-environment"]);
    expect(rules(type, { ComputeResources: { LaunchTemplate: {} } })).toEqual(["compute-environment"]);
  });
  it("refuse a queue without a time limit, and more than ten attempts", () => {
    expect(rules("AWS::Batch::JobQueue", {})).toEqual(["queue-limit"]);
    expect(rules("AWS::Batch::JobDefinition", { RetryStrategy: { Attempts: 20 } })).toEqual(["job-attempts"]);
  });
});

describe("the idle month", () => {
  it("costs at most 25 $, counted from the templates", () => {
    const count = (type: string): number =>
      Object.keys(templates).reduce((sum, stack) => sum + of(stack, type).length, 0);
    const domains = propertiesOf("network", "AWS::Route53Resolver::FirewallDomainList").flatMap(
      ({ Domains }) => Domains,
    );
    const rates = propertiesOf("sandboxes", "AWS::Events::Rule").map(
      ({ ScheduleExpression }) => ScheduleExpression,
    );
    const standing = {
      endpointZones: propertiesOf("pull-endpoints", "AWS::EC2::VPCEndpoint").reduce(
        (sum, { SubnetIds }) => sum + SubnetIds.length,
        0,
      ),
      alarms: count("AWS::CloudWatch::Alarm"),
      dashboards: count("AWS::CloudWatch::Dashboard"),
      hostedZones: count("AWS::ServiceDiscovery::PrivateDnsNamespace"),
      firewallDomains: domains.length,
      // Every ten minutes.
      sweepsPerHour: rates.includes("rate(10 minutes)") ? 6 : Number.NaN,
      imageGb: 10,
      storeGb: 10,
    };
    expect(standing).toEqual(DEFAULT_STANDING);
    expect(JSON.parse(templates.pipeline.Outputs?.Standing.Value)).toEqual(DEFAULT_STANDING);
    expect(JSON.parse(templates.pipeline.Outputs?.Shape.Value)).toEqual(DEFAULT_SHAPE);
    const items = idleCost(standing);
    expect(items[0].usd).toBeCloseTo(14.6, 6); // 2 endpoints, 1 zone, 730 h, 0.01 $
    expect(totalUsd(items)).toBeLessThanOrEqual(25);
    // Everything else that is billed by the hour is absent, or stands at none.
    for (const type of ["AWS::EC2::NatGateway", "AWS::EC2::EIP", "AWS::KMS::Key", "AWS::EC2::Instance"])
      expect(count(type)).toBe(0);
    expect(propertiesOf("sampler", "AWS::ECS::Service")[0].DesiredCount).toBe(0);
    for (const { ComputeResources } of propertiesOf("training", "AWS::Batch::ComputeEnvironment"))
      expect(ComputeResources.MinvCpus).toBe(0);
  });
});
