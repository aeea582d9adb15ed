// The head of a report: the run, its progress, and its results in a few figures.
import type { MetricName } from "../training/metrics.ts";
import { mean } from "../training/statistics.ts";
import {
  count,
  decimals,
  duration,
  moment,
  percent,
  plural,
  points,
  roundCount,
  scientific,
} from "./format.ts";
import { type Html, html } from "./html.ts";
import type { IterationData, RunData } from "./read-run.ts";

export function head(run: RunData): Html {
  const { record, state, problems } = run;
  const { config } = record;
  return html`<header>
<p class="kicker">t1 · run report</p>
<h1>${record.run}</h1>
<p class="facts">${factsOf(run).map(fact => html`<span>${fact}</span>`)}</p>
${state.stopped !== undefined && state.policyPublished < config.training.iterations && html`<p class="notice">Stopped: ${state.stopped.reason}</p>`}
${problems.length > 0 && html`<p class="notice">${plural(problems.length, "object")} of this run could not be read; what is missing for it is listed <a href="#notes">at the end</a>.</p>`}
<div class="tiles">${tilesOf(run)}</div>
</header>`;
}

function factsOf({ record, state, model }: RunData): string[] {
  const { config } = record;
  const { iterations } = config.training;
  const done = state.policyPublished;
  const facts = [
    `learns by ${config.algorithm}`,
    `started ${moment(record.createdAt)}`,
    done >= iterations ? plural(done, "iteration") : `${count(done)} of ${plural(iterations, "iteration")}`,
    `${plural(config.rollout.episodes, "episode")} each`,
  ];
  if (model !== undefined) {
    const { experts, layerCount } = model.config;
    const [size, depth] = [`${roundCount(model.parameterCount)} parameters`, plural(layerCount, "layer")];
    facts.push(
      experts === undefined
        ? `${size}: ${depth}, dense`
        : `${size}, ${roundCount(model.activeCount)} active: ${depth}, ${experts.perToken} of ${experts.count} experts`,
    );
  }
  facts.push(`${plural(record.pool.taskCount, "task")} in the pool`, `seed ${config.seed}`);
  return facts;
}

interface Tile {
  readonly name: string;
  readonly value: string | Html;
  readonly note: string;
  readonly tone?: "good" | "bad";
}

function tilesOf(run: RunData): Html[] {
  const { iterations } = run;
  if (iterations.length === 0) return [html`<p class="empty">No iteration is finished yet.</p>`];
  const tiles: readonly (Tile | undefined)[] = [
    ...run.evaluations.map(series => gainTile(series)),
    changeTile("Resolved in training", iterations, "episodes.resolvedRate", percent),
    changeTile("Mean reward", iterations, "episodes.meanReward", value => decimals(value, 3)),
    changeTile("Loss", iterations, "sft.loss", value => decimals(value, 3)),
    proofTile(run),
    mismatchTile(iterations),
    workTile(iterations),
  ];
  return tiles.flatMap(tile => (tile === undefined ? [] : [drawTile(tile)]));
}

function drawTile({ name, value, note, tone }: Tile): Html {
  return html`<div class="tile"><h2>${name}</h2><p class="value ${tone ?? ""}">${value}</p><p class="note">${note}</p></div>`;
}

function gainTile({ title, evaluations, gain }: RunData["evaluations"][number]): Tile | undefined {
  const [before, after] = [evaluations[0], evaluations[evaluations.length - 1]];
  const rateOf = ({ summary }: typeof before): string => percent(summary.resolved.mean);
  if (gain === undefined) {
    const { resolved, taskCount } = after.summary;
    return {
      name: `Resolved, ${title}`,
      value: rateOf(after),
      note: `version ${after.version}; 95 % from ${percent(resolved.low)} to ${percent(resolved.high)}, ${plural(taskCount, "task")}`,
    };
  }
  const { mean, low, high } = gain.resolved;
  return {
    name: `Gain on ${title}`,
    value: html`${points(mean)} <small>points</small>`,
    note: `resolved ${rateOf(before)} → ${rateOf(after)}, version ${before.version} → ${after.version}; 95 % from ${points(low)} to ${points(high)}, ${plural(gain.taskCount, "paired task")}`,
    tone: low > 0 ? "good" : high < 0 ? "bad" : undefined,
  };
}

/** Iterations whose mean stands for the start or the end: enough to smooth the noise of one batch. */
const ENDS = 8;

function changeTile(
  name: string,
  iterations: readonly IterationData[],
  metric: MetricName,
  format: (value: number) => string,
): Tile | undefined {
  const values = numbersOf(iterations, metric);
  if (values.length === 0) return undefined;
  if (values.length === 1) return { name, value: format(values[0]), note: "one iteration" };
  const size = Math.max(1, Math.min(ENDS, Math.floor(values.length / 3)));
  const note =
    size === 1 ? "first and last iteration" : `mean of the first and of the last ${size} iterations`;
  return {
    name,
    value: html`<span class="from">${format(mean(values.slice(0, size)))} →</span> ${format(mean(values.slice(-size)))}`,
    note,
  };
}

/** An iteration has an audit only if every receipt agreed: training stops otherwise. */
function proofTile({ iterations }: RunData): Tile | undefined {
  const audits = iterations.flatMap(({ audit }) => (audit === undefined ? [] : [audit]));
  const total = (pick: (audit: (typeof audits)[number]) => number): number =>
    audits.reduce((sum, audit) => sum + pick(audit), 0);
  if (audits.length === 0) return undefined;
  return {
    name: "Token drift",
    value: "0",
    note: `of ${roundCount(total(audit => audit.sampledTokenCount))} sampled tokens: ${count(total(audit => audit.receiptCount))} receipts were made again from the tensors before training, and all agree`,
  };
}

function mismatchTile(iterations: readonly IterationData[]): Tile | undefined {
  const last = (metric: MetricName) => numbersOf(iterations, metric).slice(-ENDS);
  const [replayed, free] = [last("mismatch.replayed.mean"), last("mismatch.free.mean")];
  if (free.length === 0) return undefined;
  const name = "|Δ log p|, trainer to sampler";
  const span = `last ${plural(free.length, "iteration")}`;
  if (replayed.length < free.length)
    return { name, value: scientific(mean(free), 1), note: `nats per token, ${span}` };
  return {
    name,
    value: scientific(mean(replayed), 1),
    note: `nats per token with replayed experts, ${span}; ${scientific(mean(free), 1)} without replay`,
  };
}

function numbersOf(iterations: readonly IterationData[], metric: MetricName): number[] {
  return iterations.flatMap(({ metrics }) => metrics?.numbers[metric] ?? []);
}

function workTile(iterations: readonly IterationData[]): Tile | undefined {
  const timed = iterations.flatMap(({ timings }) => (timings === undefined ? [] : [timings]));
  if (timed.length === 0) return undefined;
  const total = timed.flatMap(timings => Object.values(timings)).reduce((sum, time) => sum + time, 0);
  const episodes = iterations.reduce((sum, { closed }) => sum + (closed?.episodes.length ?? 0), 0);
  return {
    name: "Time at work",
    value: duration(total),
    note: `${duration(total / timed.length)} per iteration; ${plural(episodes, "episode")}${timed.length < iterations.length ? `; ${plural(iterations.length - timed.length, "iteration")} not timed` : ""}`,
  };
}
