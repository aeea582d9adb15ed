// Parses the text of a config file. Errors name the line and guess the key that was meant.
import { type Document, isMap, isScalar, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { valueOfYaml } from "../settings/yaml-value.ts";
import { methodOf } from "../training/algorithms.ts";
import { nearestName } from "./nearest-name.ts";
import { RunConfig } from "./run-config.ts";

/**
 * @param text YAML
 * @param file its name in errors
 * @param overrides "path.to.key=value" with a YAML value; they win over the file
 * @throws InputError listing every problem with its line, the key, what was expected and what was probably meant
 */
export function parseRunConfig(text: string, file: string, overrides: readonly string[] = []): RunConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [broken] = document.errors;
  if (broken !== undefined) {
    throw new InputError({
      what: "not YAML",
      where: `${file}:${lines.linePos(broken.pos[0]).line}`,
      expected: broken.message,
    });
  }
  for (const override of overrides) applyOverride(document, override);
  const parsed = RunConfig.safeParse(valueOfYaml(document, file), { reportInput: true });
  const problems = parsed.success ? contradictions(parsed.data) : describeIssues(parsed.error.issues);
  if (parsed.success && problems.length === 0) return parsed.data;
  const lineOf = (path: readonly PropertyKey[]): string => {
    let node: unknown = document.contents;
    let place: string = file;
    for (const key of path) {
      const pair = isMap(node)
        ? node.items.find(item => isScalar(item.key) && item.key.value === key)
        : undefined;
      if (!isScalar(pair?.key) || !pair.key.range) break;
      place = `${file}:${lines.linePos(pair.key.range[0]).line}`;
      node = pair.value;
    }
    return place;
  };
  const texts = problems.map(
    ({ path, message }) => `${lineOf(path)}: ${path.map(String).join(".") || "the file"}: ${message}`,
  );
  throw new InputError({
    what: problems.length === 1 ? "the config has a problem" : `the config has ${problems.length} problems`,
    where: `\n  ${texts.join("\n  ")}`,
    fix: "t1 config schema --text lists every key with its default and reason",
  });
}

function applyOverride(document: Document, override: string): void {
  const [, path, text] = /^([\w.]+)=(.*)$/s.exec(override) ?? [];
  if (path === undefined) throw notASetting(override, "path.to.key=value");
  const value = parseDocument(text, { prettyErrors: false });
  const [broken] = value.errors;
  if (broken !== undefined) throw notASetting(override, `a value in YAML: ${broken.message}`);
  const keys = path.split(".");
  // A value has no settings below it; a missing group is made.
  const above = keys
    .slice(1)
    .map((_, index) => keys.slice(0, index + 1))
    .find(one => document.hasIn(one) && !isMap(document.getIn(one)));
  if (above !== undefined)
    throw notASetting(override, `a key below which there are others, but ${above.join(".")} is a value`);
  document.setIn(keys, valueOfYaml(value, override));
}

function notASetting(where: string, expected: string): InputError {
  return new InputError({ what: "not a setting", where, expected, fix: "e.g. training.iterations=10" });
}

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** Reports a number that is too large for two reasons once, by the nearer limit. */
function describeIssues(issues: readonly z.core.$ZodIssue[]): Problem[] {
  const isSaidLater = ({ code, path }: z.core.$ZodIssue, index: number): boolean =>
    issues.slice(index + 1).some(later => later.code === code && later.path.join() === path.join());
  return issues.filter((issue, index) => !isSaidLater(issue, index)).flatMap(describeIssue);
}

function describeIssue(issue: z.core.$ZodIssue): Problem[] {
  const { path } = issue;
  if (issue.code === "unrecognized_keys")
    return issue.keys.map(key => ({ path: [...path, key], message: unknownKey(path, key) }));
  if (issue.code === "invalid_union" && issue.errors.length > 0) {
    // Where a value or a group may stand and a group is written, report the group's errors.
    const meant = issue.errors.find(([first]) => first?.path.length !== 0 || first.code !== "invalid_type");
    if (meant !== undefined)
      return describeIssues(meant.map(inner => ({ ...inner, path: [...path, ...inner.path] })));
    const expected = issue.errors.flatMap(([one]) => (one.code === "invalid_type" ? [one.expected] : []));
    return [{ path, message: wrongType(expected.join(" or "), issue.input) }];
  }
  if (issue.code === "invalid_type" && issue.input === undefined)
    return [{ path, message: wrongType(issue.expected, issue.input) }];
  return [{ path, message: issue.message }];
}

function wrongType(expected: string, got: unknown): string {
  if (got === undefined) return `missing: expected ${expected}`;
  return `expected ${expected}, got ${JSON.stringify(got)}`;
}

function unknownKey(path: readonly PropertyKey[], key: string): string {
  const having = RunConfig.options.filter(option => keysAt(path, [option]).includes(key));
  if (having.length > 0)
    return `only with algorithm ${having.flatMap(({ shape }) => [...shape.algorithm.values]).join(" or ")}`;
  const known = keysAt(path);
  const meant = nearestName(key, known);
  return `unknown key; ${meant === undefined ? `known here: ${known.join(", ")}` : `did you mean ${meant}?`}`;
}

/** Names of all keys that may stand at a path, over all algorithms or those given. */
function keysAt(path: readonly PropertyKey[], options: readonly z.core.$ZodType[] = [RunConfig]): string[] {
  let schemas = [...options];
  for (const key of path) schemas = schemas.flatMap(shapesOf).flatMap(shape => shape[String(key)] ?? []);
  return [...new Set(schemas.flatMap(shapesOf).flatMap(shape => Object.keys(shape)))];
}

function shapesOf(schema: z.core.$ZodType): Record<string, z.core.$ZodType>[] {
  const { def } = schema._zod;
  if ("shape" in def) return [def.shape as Record<string, z.core.$ZodType>];
  if ("options" in def) return (def.options as z.core.$ZodType[]).flatMap(shapesOf);
  if ("innerType" in def) return shapesOf(def.innerType as z.core.$ZodType);
  return [];
}

/**
 * Tokens of our own words in the calls of a summary and in what it leaves, at four bytes each, which most vocabularies
 * need: src/agent/summary.ts has fewer, and a test holds it to that. The task itself comes on top; no config knows it.
 */
export const SUMMARY_PROMPT_TOKENS = 1200;

/** A summary that cannot be made, or that frees too little, would fail in every episode; T1 had 98 % of them fail. */
function summaryProblems({ agent }: RunConfig): Problem[] {
  const { summary, protocol, contextTokens, observationTokens, answerTokens } = agent;
  if (summary === undefined) return [];
  const path = ["agent", "summary"];
  if (!protocol.startsWith("terminus-")) {
    return [{ path, message: `only terminus-json and terminus-xml make summaries, not ${protocol}` }];
  }
  const calls = 3 * summary.answerTokens + SUMMARY_PROMPT_TOKENS;
  const turn = observationTokens + answerTokens;
  const problems: Problem[] = [];
  if (summary.freeTokens < turn + calls) {
    problems.push({
      path: [...path, "freeTokens"],
      message: `must be at least ${turn + calls}: a turn (${turn}) and the three calls (${calls}) have to fit, got ${summary.freeTokens}`,
    });
  }
  const kept = calls + observationTokens;
  if (contextTokens < kept + summary.freeTokens) {
    problems.push({
      path: ["agent", "contextTokens"],
      message: `must be at least ${kept + summary.freeTokens} with agent.summary: what a summary keeps (${kept}) and freeTokens (${summary.freeTokens}), or one would follow the other, got ${contextTokens}`,
    });
  }
  return problems;
}

/** Checks rules between several keys. */
function contradictions(config: RunConfig): Problem[] {
  const problems: Problem[] = [];
  const { rollout, agent, sampling } = config;
  if (rollout.launch !== undefined && rollout.launch < rollout.episodes) {
    problems.push({
      path: ["rollout", "launch"],
      message: `must be at least rollout.episodes (${rollout.episodes}), got ${rollout.launch}`,
    });
  }
  if (rollout.stragglers === "cut" && rollout.launch === undefined) {
    problems.push({
      path: ["rollout", "stragglers"],
      message: "cut needs rollout.launch above rollout.episodes, or nothing is left to cut",
    });
  }
  if (agent.answerTokens >= agent.contextTokens) {
    problems.push({
      path: ["agent", "answerTokens"],
      message: `must be below agent.contextTokens (${agent.contextTokens})`,
    });
  }
  problems.push(...summaryProblems(config));
  if (sampling.temperature === 0 || sampling.topP !== 1 || sampling.topK !== 0) {
    problems.push({
      path: ["sampling"],
      message:
        "training needs temperature above 0, topP 1 and topK 0: the trainer's distribution would be another one",
    });
  }
  const method = methodOf(config);
  const imitates = method.learnsFrom === "demonstrations";
  if (imitates && agent.protocol !== "compact") {
    problems.push({
      path: ["agent", "protocol"],
      message: "demonstrations are written for compact: leave it out, or learn from episodes",
    });
  }
  if (imitates && (config.policy === undefined) === (config.model === undefined)) {
    problems.push({
      path: ["policy"],
      message: "give either policy (go on from a model) or model (start from nothing)",
    });
  }
  if (!imitates && config.policy === undefined)
    problems.push({ path: ["policy"], message: "missing: expected a model folder, or {run, version}" });
  if (!imitates && config.model !== undefined)
    problems.push({ path: ["model"], message: "only of runs that learn from demonstrations" });
  for (const key of ["episodes", "launch"] as const) {
    const count = rollout[key];
    if (count !== undefined && count % method.groupSize !== 0)
      problems.push({
        path: ["rollout", key],
        message: `must be a multiple of training.groupSize (${method.groupSize}), got ${count}`,
      });
  }
  return problems;
}
