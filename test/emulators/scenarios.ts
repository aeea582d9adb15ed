// Scenarios of a deployed state machine, written as the answers of its tasks in the format in which AWS mocks
// integrations of Step Functions Local (https://docs.aws.amazon.com/step-functions/latest/dg/sfn-local-test-sm-exec.html),
// so that every interpreter that knows the format can play the same.

export interface Answer {
  readonly Return?: unknown;
  readonly Throw?: { readonly Error: string; readonly Cause: string };
}

/** Answers by the number of the state entry from 0: "0", or "1-999". */
type Answers = Readonly<Record<string, Answer>>;

export interface Scenario {
  readonly machine: "iteration" | "run" | "evaluation";
  readonly input: unknown;
  /** Answers by state; the execution never reaches a state without answers. */
  readonly answers: Readonly<Record<string, Answers>>;
  /** The end that every interpreter must reach. */
  readonly ends: { readonly status: "SUCCEEDED" | "FAILED"; readonly error?: string };
}

const always = (answer: Answer): Answers => ({ "0-999": answer });
const payload = (value: unknown): Answer => ({ Return: { StatusCode: 200, Payload: value } });
const task = (exitCode: number): Answer => ({
  Throw: {
    Error: "States.TaskFailed",
    Cause: JSON.stringify({
      TaskArn: "arn:aws:ecs:us-east-1:000000000000:task/t1/a",
      Containers: [{ ExitCode: exitCode }],
    }),
  },
});
const job = (exitCode: number): Answer => ({
  Throw: {
    Error: "States.TaskFailed",
    Cause: JSON.stringify({ JobId: "j", Container: { ExitCode: exitCode } }),
  },
});

const PHASE = "runs/r/iterations/000000/";
/** Key of the scenarios' shards: each interpreter finds them in its own store. */
export const SHARDS = { key: `${PHASE}shards/scenario.jsonl`, count: 3 } as const;
export function shardLines(): string {
  const line = (shard: number) => ({ run: "r", phase: PHASE, shard, episodes: `${shard}`, policyVersion: 0 });
  return Array.from({ length: SHARDS.count }, (_, shard) => `${JSON.stringify(line(shard))}\n`).join("");
}

const planned = (shardCount: number): Answers =>
  always(
    payload({
      phase: PHASE,
      policyVersion: 0,
      episodeCount: shardCount,
      pool: { epoch: 0, position: shardCount },
      shardsKey: SHARDS.key,
      shardCount,
    }),
  );
const published = (evaluationDue: boolean): Answers =>
  always(payload({ version: 1, evaluationDue, ...(evaluationDue && { evaluation: "during-000001" }) }));

/** An iteration in which all goes well. */
const well = {
  Plan: planned(SHARDS.count),
  Prepare: always(payload({ ready: true, waiting: 0 })),
  PlayOnSpot: always({ Return: { LastStatus: "STOPPED", Containers: [{ ExitCode: 0 }] } }),
  PlayOnDemand: always({ Return: { LastStatus: "STOPPED", Containers: [{ ExitCode: 0 }] } }),
  Score: always(payload({ lostCount: 0 })),
  Close: always(payload({ episodeCount: 3 })),
  TrainOnSpot: always({ Return: { StartedAt: 1000, StoppedAt: 61_000, Status: "SUCCEEDED" } }),
  TrainOnDemand: always({ Return: { StartedAt: 2000, StoppedAt: 62_000, Status: "SUCCEEDED" } }),
  Publish: published(false),
};
const ITERATION = {
  machine: "iteration",
  input: { run: "r", iteration: 0, overlap: false, last: false },
} as const;
const RUN = { machine: "run", input: { run: "r" } } as const;
const nextStep = (next: string, iteration: number): Answer =>
  payload({ next, iteration, last: false, spentUsd: 1 });

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  AllWell: { ...ITERATION, answers: well, ends: { status: "SUCCEEDED" } },
  NothingToPlay: { ...ITERATION, answers: { ...well, Plan: planned(0) }, ends: { status: "SUCCEEDED" } },
  ImagesLater: {
    ...ITERATION,
    answers: {
      ...well,
      Prepare: {
        "0": payload({ ready: false, waiting: 2 }),
        "1": payload({ ready: false, waiting: 1 }),
        "2": payload({ ready: true, waiting: 0 }),
      },
    },
    ends: { status: "SUCCEEDED" },
  },
  SpotInterrupted: {
    ...ITERATION,
    answers: { ...well, PlayOnSpot: always(task(75)) },
    ends: { status: "SUCCEEDED" },
  },
  GroupsRefused: {
    ...ITERATION,
    answers: { ...well, PlayOnSpot: always(task(2)) },
    ends: { status: "FAILED", error: "States.ExceedToleratedFailureThreshold" },
  },
  TooFewEpisodes: {
    ...ITERATION,
    answers: { ...well, Close: always({ Throw: { Error: "InputError", Cause: "too few" } }) },
    ends: { status: "FAILED", error: "InputError" },
  },
  StoppedAtClose: {
    ...ITERATION,
    answers: { ...well, Close: always({ Throw: { Error: "RunStopped", Cause: "stopped" } }) },
    ends: { status: "SUCCEEDED" },
  },
  TrainingHostLost: {
    ...ITERATION,
    answers: { ...well, TrainOnSpot: always(job(137)) },
    ends: { status: "SUCCEEDED" },
  },
  TrainerBroken: {
    ...ITERATION,
    answers: { ...well, TrainOnSpot: always(job(70)) },
    ends: { status: "FAILED", error: "InvariantError" },
  },
  EvaluationDue: {
    ...ITERATION,
    answers: { ...well, Publish: published(true), Evaluate: always({ Return: { Output: { rate: 0.5 } } }) },
    ends: { status: "SUCCEEDED" },
  },
  Ahead: {
    ...ITERATION,
    input: { run: "r", iteration: 0, overlap: true, last: false },
    answers: {
      ...well,
      PlanAhead: planned(SHARDS.count),
      PrepareAhead: always(payload({ ready: true, waiting: 0 })),
      PlayOnSpotAhead: well.PlayOnSpot,
    },
    ends: { status: "SUCCEEDED" },
  },
  AheadFails: {
    ...ITERATION,
    input: { run: "r", iteration: 0, overlap: true, last: false },
    answers: { ...well, PlanAhead: always({ Throw: { Error: "InputError", Cause: "no tasks" } }) },
    ends: { status: "SUCCEEDED" },
  },
  TwoIterations: {
    ...RUN,
    answers: {
      Preflight: always(payload({ algorithm: "ppo", iterations: 2 })),
      NextStep: { "0": nextStep("iterate", 0), "1": nextStep("iterate", 1), "2": nextStep("done", 2) },
      Iterate: always({ Return: { Output: { version: 1 } } }),
    },
    ends: { status: "SUCCEEDED" },
  },
  BudgetSpent: {
    ...RUN,
    input: { run: "r", session: "s7", budgetUsd: 3 },
    answers: { Preflight: always(payload({})), NextStep: always(nextStep("budget-spent", 1)) },
    ends: { status: "FAILED", error: "BudgetSpent" },
  },
  RefusedByPreflight: {
    ...RUN,
    answers: { Preflight: always({ Throw: { Error: "InputError", Cause: "quota" } }) },
    ends: { status: "FAILED", error: "InputError" },
  },
  StoppedBefore: {
    ...RUN,
    answers: { Preflight: always(payload({})), NextStep: always(nextStep("stopped", 0)) },
    ends: { status: "SUCCEEDED" },
  },
  Evaluation: {
    machine: "evaluation",
    input: { run: "r", evaluation: "during-000000", version: 0 },
    answers: { ...well, Summarise: always(payload({ rate: 0.25 })) },
    ends: { status: "SUCCEEDED" },
  },
};

/** All scenarios as one file of mocks. @param prefix of the machines' names */
export function mockFile(prefix: string): unknown {
  const machines: Record<string, { TestCases: Record<string, Record<string, string>> }> = {};
  const responses: Record<string, Answers> = {};
  for (const [name, { machine, answers }] of Object.entries(SCENARIOS)) {
    machines[`${prefix}-${machine}`] ??= { TestCases: {} };
    const states = Object.keys(answers).map(state => [state, `${name}.${state}`] as const);
    machines[`${prefix}-${machine}`].TestCases[name] = Object.fromEntries(states);
    for (const [state, response] of states) responses[response] = answers[state];
  }
  return { StateMachines: machines, MockedResponses: responses };
}

/** The answer to a state entry. */
export function answerTo(answers: Answers, visit: number): Answer | undefined {
  for (const [range, answer] of Object.entries(answers)) {
    const [first, last = first] = range.split("-").map(Number);
    if (visit >= first && visit <= last) return answer;
  }
  return undefined;
}
