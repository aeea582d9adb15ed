// Draws a state machine as a Mermaid diagram, which GitHub and editors render. A test compares the page in docs/ with the
// drawing made from the definition.
import type { Catcher, Flowchart, State } from "./asl.ts";

/** @returns lines of a `stateDiagram-v2` */
export function drawMachine(chart: Flowchart): string {
  return ["stateDiagram-v2", ...drawChart(chart).map(line => `  ${line}`)].join("\n");
}

function drawChart({ StartAt, States }: Flowchart): string[] {
  return [
    `[*] --> ${StartAt}`,
    ...Object.entries(States).flatMap(([name, state]) => [
      ...drawInside(name, state),
      ...drawWays(name, state),
    ]),
  ];
}

/** Draws the inside of a state: branches side by side, children of a Map with their concurrency. */
function drawInside(name: string, state: State): string[] {
  if (state.Type === "Map")
    return composite(name, `${name}: at most ${state.MaxConcurrency} shards at once`, [state.ItemProcessor]);
  if (state.Type === "Parallel") return composite(name, name, state.Branches);
  if (state.Type === "Choice") return [`state ${name} <<choice>>`];
  return state.Type === "Task" ? [`${name}: ${name} (${integration(state.Resource)})`] : [];
}

function composite(name: string, title: string, charts: readonly Flowchart[]): string[] {
  const inside = charts.flatMap((chart, index) => [...(index > 0 ? ["--"] : []), ...drawChart(chart)]);
  return [`state "${title}" as ${name} {`, ...inside.map(line => `  ${line}`), "}"];
}

function drawWays(name: string, state: State): string[] {
  if (state.Type === "Choice")
    return [
      ...state.Choices.map(({ Condition, Next }) => way(name, Next, expression(Condition))),
      ...(state.Default === undefined ? [] : [way(name, state.Default, "else")]),
    ];
  if (state.Type === "Fail") return [way(name, "[*]", `fails with ${state.Error}`)];
  const catchers: readonly Catcher[] = "Catch" in state ? (state.Catch ?? []) : [];
  return [
    way(name, "Next" in state && state.Next !== undefined ? state.Next : "[*]"),
    ...catchers.map(({ ErrorEquals, Next }) => way(name, Next, ErrorEquals.join(", "))),
  ];
}

function way(from: string, to: string, label?: string): string {
  return `${from} --> ${to}${label === undefined ? "" : `: ${label}`}`;
}

/** `lambda:invoke`, `ecs:runTask.sync` … */
function integration(resource: string): string {
  return resource.split(":::").at(-1)?.replace(/:2$/, "").replace(":", " ") ?? resource;
}

/** Strips the brackets of JSONata, and colons, because a colon would end the label. */
function expression(condition: string): string {
  return condition.replace(/^\{%\s*|\s*%\}$/g, "").replaceAll(":", " ");
}
