// Every number that an iteration is described by, in one table: reports, progress lines, exporters and comparisons read
// names, units and explanations here.

interface Metric {
  readonly unit: string;
  /** What the number says, as a sentence for people. */
  readonly says: string;
  /** The chart it is drawn in, and what its line is called there. Lines of one chart share their unit. */
  readonly curve?: {
    readonly chart: string;
    readonly line: string;
    readonly scale?: "log";
    /** Drawn thinly beside the line before it. */
    readonly thin?: true;
  };
}

const curve = (chart: string, line: string, more: { scale?: "log"; thin?: true } = {}) => ({
  chart,
  line,
  ...more,
});
const GAP = "Gap between trainer and sampler, |Δ log p|";

const METRICS = {
  "episodes.count": { unit: "episodes", says: "Episodes that ended by themselves." },
  "episodes.failed": { unit: "episodes", says: "Episodes that the infrastructure lost." },
  "episodes.cancelled": { unit: "episodes", says: "Episodes that were cut off as stragglers." },
  "episodes.resolvedRate": {
    unit: "share of episodes",
    says: "Episodes whose tests all passed.",
    curve: curve("Resolved", "resolved"),
  },
  "episodes.meanReward": {
    unit: "reward",
    says: "Mean over the episodes of an iteration.",
    curve: curve("Reward", "reward"),
  },
  "episodes.passingShare": {
    unit: "share of assertions",
    says: "Assertions that passed, mean over episodes.",
  },
  "mismatch.replayed.mean": {
    unit: "nats per token",
    says: "The same tokens scored by both, before training. Replay gives the trainer the sampler's experts (a dense model has none); what stays is the rounding of the published weights.",
    curve: curve(GAP, "replayed", { scale: "log" }),
  },
  "mismatch.replayed.p99": {
    unit: "nats per token",
    says: "99th percentile over the tokens.",
    curve: curve(GAP, "replayed p99", { scale: "log", thin: true }),
  },
  "mismatch.replayed.max": { unit: "nats per token", says: "The largest over the tokens." },
  "mismatch.free.mean": {
    unit: "nats per token",
    says: "The gap when the trainer routes by itself.",
    curve: curve(GAP, "free", { scale: "log" }),
  },
  "mismatch.free.p99": {
    unit: "nats per token",
    says: "99th percentile over the tokens.",
    curve: curve(GAP, "free p99", { scale: "log", thin: true }),
  },
  "mismatch.free.max": { unit: "nats per token", says: "The largest over the tokens." },
  "groups.count": { unit: "groups", says: "Tasks whose episodes were compared with each other." },
  "groups.uniform": {
    unit: "groups",
    says: "Groups whose rewards were all equal, or that had one episode: nothing to learn from.",
    curve: curve("Groups", "uniform"),
  },
  "groups.incomplete": {
    unit: "groups",
    says: "Groups in which an episode is missing; the baseline is over the others.",
    curve: curve("Groups", "incomplete"),
  },
  "critic.explainedVariance": {
    unit: "share of variance",
    says: "Of the returns, by the critic's values before it trained on them. 1 is perfect, 0 no better than a constant.",
    curve: curve("Explained variance", "explained variance"),
  },
  "policy.entropy": {
    unit: "nats per token",
    says: "How undecided the policy is. A collapse to 0 ends exploration.",
    curve: curve("Entropy", "entropy"),
  },
  "policy.klToOld": {
    unit: "nats per token",
    says: "Mean of ρ − 1 − log ρ against the policy before the update, over the steps of an iteration, each measured as it begins.",
    curve: curve("KL to the policy before the update", "KL"),
  },
  "policy.clipShare": {
    unit: "share of tokens",
    says: "Share whose probability ratio left the clip range, over the same steps.",
    curve: curve("Clipped tokens", "clipped"),
  },
  "policy.loss": { unit: "loss", says: "Of the policy, mean over the steps." },
  "policy.gradientNorm": {
    unit: "norm",
    says: "Before clipping.",
    curve: curve("Gradient norms", "actor", { scale: "log" }),
  },
  "critic.gradientNorm": {
    unit: "norm",
    says: "Before clipping.",
    curve: curve("Gradient norms", "critic", { scale: "log" }),
  },
  "critic.loss": { unit: "reward squared", says: "Clipped value loss, mean over the steps." },
  "batch.episodes": { unit: "episodes", says: "Episodes trained on." },
  "batch.tokens": { unit: "tokens", says: "Tokens trained on: those that the policy sampled." },
  "batch.meanReturn": { unit: "reward", says: "Mean reward after the truncation rule." },
  "sft.loss": {
    unit: "nats per token",
    says: "Cross-entropy of the demonstrated tokens.",
    curve: curve("Loss", "mean", { scale: "log" }),
  },
  "sft.lastLoss": {
    unit: "nats per token",
    says: "Mean over the last tenth of the steps.",
    curve: curve("Loss", "last steps", { scale: "log" }),
  },
  "sft.learningRate": {
    unit: "rate",
    says: "At the last step of the iteration.",
    curve: curve("Learning rate", "rate"),
  },
  "sft.steps": { unit: "steps", says: "Optimizer steps taken." },
  "episodes.meanTurns": { unit: "turns", says: "Answers per episode.", curve: curve("Turns", "turns") },
  "episodes.meanTokens": {
    unit: "tokens",
    says: "Per episode; sampled ones are those the policy wrote itself.",
    curve: curve("Tokens", "all"),
  },
  "episodes.meanSampledTokens": {
    unit: "tokens",
    says: "Per episode, written by the policy.",
    curve: curve("Tokens", "sampled"),
  },
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof METRICS;
export const METRIC_NAMES = Object.keys(METRICS) as MetricName[];

/** Numbers by name; one that is not defined (a variance of equal returns) is left out. */
export type Metrics = Readonly<Partial<Record<MetricName, number>>>;

export function metricOf(name: MetricName): Metric {
  return METRICS[name];
}
