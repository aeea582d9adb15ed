// The operator's dashboard, alarms that name their heading in the runbook, and a budget.
import { Duration, Stack, type StackProps } from "aws-cdk-lib";
import { CfnBudget } from "aws-cdk-lib/aws-budgets";
import {
  Alarm,
  ComparisonOperator,
  Dashboard,
  GraphWidget,
  MathExpression,
  Metric,
  SingleValueWidget,
  TreatMissingData,
} from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";
import type { PipelineStack } from "./pipeline.ts";
import type { SandboxesStack } from "./sandboxes.ts";

export interface ObservabilityProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly sandboxes: SandboxesStack;
  readonly pipeline: PipelineStack;
}

/** The runbook that alarms point to: the heading of an alarm is its name. A test checks that each heading exists. */
const RUNBOOK = "docs/operate.md";

export class ObservabilityStack extends Stack {
  readonly #topic: Topic;
  readonly #name: string;

  constructor(scope: Construct, id: string, { config, sandboxes, pipeline, ...props }: ObservabilityProps) {
    super(scope, id, props);
    this.#name = config.name;
    this.#topic = new Topic(this, "Alarms", { enforceSSL: true });
    if (config.budget.mail !== undefined)
      this.#topic.addSubscription(new EmailSubscription(config.budget.mail));

    const { run, iteration, evaluation } = pipeline.machines;
    const failed = run.metricFailed(HOURLY);
    const iterationsFailed = new MathExpression({
      expression: "iterations + evaluations + timeouts",
      usingMetrics: {
        iterations: iteration.metricFailed(HOURLY),
        evaluations: evaluation.metricFailed(HOURLY),
        timeouts: iteration.metricTimedOut(HOURLY),
      },
      period: Duration.hours(1),
      label: "failed and timed out",
    });
    const functions = [...Object.values(pipeline.stages), sandboxes.sweep, sandboxes.stopRecorder];
    const sum = (metricName: "Errors" | "Throttles"): MathExpression =>
      new MathExpression({
        expression: functions.map((_, index) => `f${index}`).join(" + "),
        usingMetrics: Object.fromEntries(
          functions.map((part, index) => [
            `f${index}`,
            part.function.metric(metricName, { statistic: "Sum", period: Duration.minutes(5) }),
          ]),
        ),
        period: Duration.minutes(5),
        label: metricName.toLowerCase(),
      });

    this.#alarm("run-failed", "A run ended with an error, or its budget is spent.", failed, 1);
    this.#alarm(
      "iteration-failed",
      "An iteration or an evaluation failed or timed out.",
      iterationsFailed,
      1,
    );
    this.#alarm("stage-errors", "Lambda functions fail again and again.", sum("Errors"), 5);
    this.#alarm("stage-throttles", "Lambda functions are throttled.", sum("Throttles"), 10);
    this.#alarm(
      "infrastructure-failures",
      "Of an iteration's episodes more than a fifth failed by the infrastructure.",
      ours("InfrastructureFailureShare", "Maximum"),
      0.2,
    );
    this.#alarm(
      "leaked-tasks",
      "The sweeper ended tasks that outlived every other limit.",
      ours("SweptTasks", "Sum"),
      1,
    );
    this.#alarm(
      "sweeper-silent",
      "The sweeper has not run: nothing would end leaked tasks.",
      sandboxes.sweep.function.metricInvocations({ period: Duration.hours(1) }),
      1,
      { below: true },
    );
    this.#alarm(
      "tasks-not-started",
      "Tasks stop before they start: images, capacity or addresses.",
      ours("TasksNotStarted", "Sum"),
      10,
    );

    this.#dashboard(pipeline, sandboxes, { failed, iterationsFailed, errors: sum("Errors") });
    this.#budget(config);
  }

  #alarm(
    name: string,
    meaning: string,
    metric: Metric | MathExpression,
    threshold: number,
    { below = false }: { readonly below?: boolean } = {},
  ): void {
    new Alarm(this, name, {
      alarmName: `${this.#name}-${name}`,
      alarmDescription: `${meaning} Runbook: ${RUNBOOK}#alarm-${name}`,
      metric,
      threshold,
      evaluationPeriods: below ? 2 : 1,
      comparisonOperator: below
        ? ComparisonOperator.LESS_THAN_THRESHOLD
        : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      treatMissingData: below ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING,
    }).addAlarmAction(new SnsAction(this.#topic));
  }

  #dashboard(
    { machines, stages }: PipelineStack,
    { cluster }: SandboxesStack,
    totals: {
      readonly failed: Metric;
      readonly iterationsFailed: MathExpression;
      readonly errors: MathExpression;
    },
  ): void {
    const graph = (title: string, left: (Metric | MathExpression)[], right: Metric[] = []): GraphWidget =>
      new GraphWidget({ title, left, right, width: 12 });
    const insight = (metricName: string): Metric =>
      new Metric({
        namespace: "ECS/ContainerInsights",
        metricName,
        dimensionsMap: { ClusterName: cluster.clusterName },
        statistic: "Maximum",
        period: Duration.minutes(1),
      });
    new Dashboard(this, "Dashboard", {
      dashboardName: this.#name,
      widgets: [
        [
          new SingleValueWidget({
            title: "Runs",
            metrics: [
              machines.run.metricStarted(HOURLY),
              totals.failed,
              machines.run.metricSucceeded(HOURLY),
            ],
            width: 24,
          }),
        ],
        // Show reward and share of failures side by side: a fall of one and a rise of the other look alike in a curve.
        [
          graph("Reward of closed iterations", [ours("MeanReward", "Average")]),
          graph("Share of infrastructure failures", [ours("InfrastructureFailureShare", "Maximum")]),
        ],
        [
          graph("Tasks", [insight("RunningTaskCount"), insight("PendingTaskCount")]),
          graph("Tasks that stopped before they started, tasks swept", [
            ours("TasksNotStarted", "Sum"),
            ours("SweptTasks", "Sum"),
          ]),
        ],
        [
          graph("Failed iterations", [totals.iterationsFailed]),
          graph(
            "Stages",
            [totals.errors],
            Object.values(stages).map(stage => stage.function.metricDuration({ statistic: "p95" })),
          ),
        ],
        [
          graph("Spent, by run", [ours("SpentUsd", "Maximum")]),
          graph("Shards of episodes", [ours("Shards", "Sum")]),
        ],
      ],
    });
  }

  /** The AWS budget only notifies, because AWS knows costs half a day later. The budget of a run is the brake. */
  #budget({ name, budget }: DeploymentConfig): void {
    const { monthlyUsd, mail } = budget;
    if (monthlyUsd === undefined || mail === undefined) return;
    new CfnBudget(this, "Budget", {
      budget: {
        budgetName: name,
        budgetType: "COST",
        timeUnit: "MONTHLY",
        budgetLimit: { amount: monthlyUsd, unit: "USD" },
        costFilters: { TagKeyValue: [`user:t1:deployment$${name}`] },
      },
      notificationsWithSubscribers: [50, 80, 100].map(threshold => ({
        notification: { notificationType: "ACTUAL", comparisonOperator: "GREATER_THAN", threshold },
        subscribers: [{ subscriptionType: "EMAIL", address: mail }],
      })),
    });
  }
}

const HOURLY = { period: Duration.hours(1), statistic: "Sum" };

/** A metric that our functions write (lambdas/metrics). */
function ours(metricName: string, statistic: string): Metric {
  return new Metric({ namespace: "T1", metricName, statistic, period: Duration.minutes(10) });
}
