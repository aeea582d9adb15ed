// `t1 cost`: what a run costs, and what a deployment costs while nothing runs.
import type { Command } from "commander";
import { type CostItem, type Shape, totalUsd } from "../planning/cost.ts";
import { DEFAULT_SHAPE, DEFAULT_STANDING } from "../planning/default-deployment.ts";
import { idleCost } from "../planning/idle-cost.ts";
import { PRICES_AS_OF, stalePrices } from "../planning/prices.ts";
import { type RunCost, runCost } from "../rollout/run-cost.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { jsonOption, print } from "./output.ts";
import { listRuns, readableRuns } from "./run-list.ts";
import { isOnStack, stackOption } from "./stack-option.ts";
import { storeOption } from "./store-option.ts";
import { formatTable } from "./table.ts";

interface CostOptions {
  readonly local: string;
  readonly stack?: string;
  readonly idle?: boolean;
  readonly json?: boolean;
}

export function addCostCommand(program: Command): void {
  program
    .command("cost [run]")
    .description("planned and actual cost of runs: per episode, iteration and run")
    .addOption(storeOption())
    .addOption(stackOption())
    .option("--idle", "what the deployment costs in a month in which nothing runs")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `\nA run of this machine is priced as if the default deployment had played it, in the time it took here.\nPrices: us-east-1, ${PRICES_AS_OF}; estimates for decisions, no invoice (docs/operate.md).`,
    )
    .action(async (run: string | undefined, options: CostOptions) => {
      const stale = stalePrices(new Date());
      if (stale !== undefined) process.stderr.write(`warning: ${stale}\n`);
      if (options.idle) return showIdle(options);
      const { store, shape } = await open(options);
      if (run === undefined) await showAll(store, shape, options);
      else await showRun(await runCost({ run, shape }, { store }), options);
    });
}

async function open(options: CostOptions): Promise<{ readonly store: ObjectStore; readonly shape: Shape }> {
  if (!isOnStack(options)) return { store: await openStore(options.local, "read"), shape: DEFAULT_SHAPE };
  const { openStack } = await import("./stack-run.ts");
  const { deployment, store } = await openStack(options.stack);
  return { store, shape: deployment.shape };
}

async function showIdle(options: CostOptions): Promise<void> {
  const standing = isOnStack(options)
    ? (await (await import("./stack-run.ts")).openStack(options.stack)).deployment.standing
    : DEFAULT_STANDING;
  const items = idleCost(standing);
  const name = options.stack ?? "the default deployment";
  const head = `${name} in a month in which nothing runs, prices of ${PRICES_AS_OF}; ${standing.imageGb} GB of images and ${standing.storeGb} GB in the store assumed\n`;
  print(
    options,
    { deployment: name, pricesAsOf: PRICES_AS_OF, standing, items, totalUsd: totalUsd(items) },
    `${head}${itemTable(items)}`,
  );
}

async function showAll(store: ObjectStore, shape: Shape, options: CostOptions): Promise<void> {
  const costs = [];
  for (const { run } of readableRuns(await listRuns(store)))
    costs.push(await runCost({ run, shape }, { store }));
  print(
    options,
    costs,
    costs.length === 0
      ? `no run in ${store.url}\n`
      : formatTable(
          ["run", "so far $", "whole run $", "an iteration $", "an episode $"],
          costs.map(cost => [
            cost.run,
            ...[cost.actualUsd, cost.plannedUsd, cost.plannedPerIterationUsd, cost.plannedPerEpisodeUsd].map(
              usd,
            ),
          ]),
        ),
  );
}

async function showRun(cost: RunCost, options: CostOptions): Promise<void> {
  const { phases, pace } = cost;
  const rows = phases.map(phase => [
    phase.phase,
    `${phase.usage.episodeCount}`,
    (phase.usage.sandboxSeconds / 3600).toFixed(2),
    ((phase.usage.training?.seconds ?? 0) / 3600).toFixed(2),
    usd(phase.usd),
    phase.usdPerEpisode === undefined ? "" : usd(phase.usdPerEpisode),
  ]);
  const table =
    rows.length === 0
      ? `nothing of ${cost.run} was played yet\n`
      : `${formatTable(["phase", "episodes", "sandbox h", "training h", "$", "an episode $"], rows)}\n${itemTable(byItem(phases.flatMap(({ items }) => [...items])))}`;
  const planned = [
    `planned from ${pace.from}: ${pace.episodeSeconds.toFixed(0)} s an episode, ${(pace.trainingSeconds / 60).toFixed(1)} min of training (${pace.market})`,
    `  an episode ${usd(cost.plannedPerEpisodeUsd)} $, an iteration ${usd(cost.plannedPerIterationUsd)} $, the whole run ${usd(cost.plannedUsd)} $`,
  ];
  print(options, { ...cost, pricesAsOf: PRICES_AS_OF }, `${table}\n${planned.join("\n")}\n`);
}

function byItem(items: readonly CostItem[]): CostItem[] {
  const sums = new Map<string, number>();
  for (const item of items) sums.set(item.what, (sums.get(item.what) ?? 0) + item.usd);
  return [...sums].map(([what, sum]) => ({ what, usd: sum }));
}

function itemTable(items: readonly CostItem[]): string {
  const rows = items.map(item => [item.what, usd(item.usd)]);
  return formatTable(["item", "$"], [...rows, ["total", usd(totalUsd(items))]]);
}

/** Cents, and what is less with enough digits to be seen. */
function usd(value: number): string {
  return value === 0 || value >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
}
