// What a deployed run is doing, and why it failed, in words for a terminal.

import { executionLink } from "../deployment/console-links.ts";
import type { Explanation } from "../deployment/explain-failure.ts";
import type { PartProgress, RunProgress } from "../deployment/progress.ts";
import { readPlan } from "../rollout/plan.ts";
import { readAttempts } from "../rollout/score.ts";
import { evaluationName } from "../run/evaluation-due.ts";
import { episodePrefix, evaluationPrefix, iterationPrefix, type PhasePrefix, planKey } from "../run/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** One line. */
export function describeProgress({ doing, parts }: RunProgress): string {
  const lines = parts.map(describePart);
  return lines.length > 0 ? lines.join("; ") : doing.join(", ") || "between two stages";
}

function describePart({ kind, name, doing, shards, job }: PartProgress): string {
  const [, digits, inside] = /-[ie](\d{6})(-eval)?$/.exec(name) ?? [];
  // Iterations are counted from 1 for people; iteration i makes version i + 1.
  const number = Number(digits ?? 0) + (kind === "iteration" || inside !== undefined ? 1 : 0);
  const what = `${kind === "evaluation" ? "evaluation of policy" : "iteration"} ${number}`;
  const details = [
    ...(shards === undefined
      ? []
      : [`${shards.succeeded + shards.failed}/${shards.total} shards`, `${shards.running} at work`]),
    ...(shards !== undefined && shards.failed > 0 ? [`${shards.failed} failed`] : []),
    ...(job === undefined ? [] : [`job ${job.status}${job.reason === undefined ? "" : `: ${job.reason}`}`]),
  ];
  return [what, doing.join(" and ") || "between two stages", ...details].join("  ");
}

/** Several lines: what failed, in which state, the last lines of its log, and episodes that failed with it. */
export async function describeFailure(
  run: string,
  { arn, state, error, cause, shards, log }: Explanation,
  store: ObjectStore,
): Promise<string> {
  const lines = [`${run} failed${state === undefined ? "" : ` in ${state}`}: ${error}`];
  if (cause !== "") lines.push(`  ${cause.replaceAll("\n", "\n  ")}`);
  lines.push(`  ${executionLink(arn)}`);
  for (const shard of shards)
    lines.push(`shard: ${shard.error}: ${shard.cause}`, `  ${executionLink(shard.arn)}`);
  if (log !== undefined && log.lines.length > 0)
    lines.push(`last lines of ${log.stream}:`, ...log.lines.map(line => `  | ${line}`));
  const failed = await failedEpisodes(arn, run, store);
  for (const { episode, task, detail, key } of failed)
    lines.push(`episode ${episode} (${task}): ${detail}`, `  ${store.url}/${key}`);
  return `${lines.join("\n")}\n`;
}

const EXAMPLES = 3;

/** Of the phase that an execution's name tells, from the records that its drivers wrote. */
async function failedEpisodes(arn: string, run: string, store: ObjectStore) {
  const phase = phaseOf(arn.split(":").at(-1) ?? "", run);
  if (phase === undefined || (await store.head(planKey(phase))) === undefined) return [];
  const found: { episode: number; task: string; detail: string; key: string }[] = [];
  for (const { episode, task } of await readPlan(store, phase)) {
    const prefix = episodePrefix(phase, episode);
    const last = (await readAttempts(store, prefix)).at(-1);
    if (last?.failure === undefined) continue;
    const { name, detail } = last.failure;
    found.push({ episode, task, detail: `${name}: ${detail}`, key: prefix });
    if (found.length >= EXAMPLES) break;
  }
  return found;
}

/** An evaluation inside an iteration is of the version that the iteration made. */
function phaseOf(execution: string, run: string): PhasePrefix | undefined {
  const [, kind, digits, inside] = /-([ie])(\d{6})(-eval)?$/.exec(execution) ?? [];
  if (kind === undefined) return undefined;
  const number = Number(digits);
  if (kind === "i" && inside === undefined) return iterationPrefix(run, number);
  return evaluationPrefix(run, evaluationName(inside === undefined ? number : number + 1));
}
