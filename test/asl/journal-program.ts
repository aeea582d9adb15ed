// A runner in a process of its own, for tests that kill it. Arguments: folder of the journals, file that every task
// appends its name to as it starts, milliseconds that a task takes.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openRunner } from "../../src/asl/runner.ts";

const [folder, log, taskMs] = process.argv.slice(2);

const task = (fields: Record<string, unknown>) => ({
  Type: "Task",
  Resource: "arn:aws:states:::test:call",
  ...fields,
});

const definition = {
  QueryLanguage: "JSONata",
  StartAt: "First",
  States: {
    First: task({ Arguments: { name: "first" }, Assign: { first: "{% $states.result %}" }, Next: "Both" }),
    Both: {
      Type: "Parallel",
      Branches: ["left", "right"].map(name => ({
        StartAt: name,
        States: { [name]: task({ Arguments: { name }, End: true }) },
      })),
      Next: "Each",
    },
    Each: {
      Type: "Map",
      Items: "{% [1..6] %}",
      MaxConcurrency: 2,
      ItemProcessor: {
        ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
        StartAt: "Work",
        States: {
          Work: task({
            Arguments: { name: "{% 'work-' & $string($states.input) %}" },
            Assign: { worked: "{% $states.result %}" },
            Next: "Score",
          }),
          Score: task({
            Arguments: { name: "{% 'score-' & $string($states.context.Execution.Input) %}" },
            Output: "{% [$worked, $states.result] %}",
            End: true,
          }),
        },
      },
      Output: "{% [$first, $states.result] %}",
      End: true,
    },
  },
};

const runner = await openRunner({
  folder,
  seed: "killed",
  machines: { main: JSON.stringify(definition) },
  executors: {
    "test:call": async ({ arguments: { name } }) => {
      appendFileSync(log, `start ${name}\n`);
      await sleep(Number(taskMs));
      appendFileSync(log, `end ${name}\n`);
      return String(name);
    },
  },
});
const [arn] = runner.executionArns();
const executionArn = arn ?? runner.startExecution({ machine: "main", name: "run" }).executionArn;
const { status, output } = await runner.result(executionArn);
process.stdout.write(
  JSON.stringify({
    status,
    output: output === undefined ? undefined : JSON.parse(output),
    events: runner.history(executionArn).length,
  }),
);
await runner.close();
