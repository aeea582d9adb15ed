// The drawing in docs/ is made from the definition. After a change:
// `npx vitest run --project fast test/infra/drawing.test.ts -u`
import { expect, it } from "vitest";
import { drawMachine } from "../../infra/state-machines/draw.ts";
import { definitionsOf, deployedTemplates } from "./deployed-templates.ts";

const { iteration, run } = definitionsOf(await deployedTemplates());

it("shows the machines as they are", async () => {
  const page = `# The state machines

Drawn from the definitions that are deployed and that run on a laptop (\`infra/state-machines/draw.ts\`). An evaluation is an iteration without training, with \`Summarise\` at its end.

## An iteration

\`\`\`mermaid
${drawMachine(iteration)}
\`\`\`

## A run

\`\`\`mermaid
${drawMachine(run)}
\`\`\`
`;
  await expect(page).toMatchFileSnapshot("../../docs/state-machines.md");
});

it("leaves no state out", () => {
  const drawn = drawMachine(iteration);
  const names = [...JSON.stringify(iteration).matchAll(/"(\w+)":\{(?:"Default":"\w+",)?"Type":/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(15);
  for (const name of names) expect(drawn).toMatch(new RegExp(`\\b${name}\\b`));
});
