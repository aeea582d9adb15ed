// The import rules are worth something only if they see the code: a planted violation has to be found.
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const FOLDERS = ["src", "infra", "lambdas", "containers"];
const copy = mkdtempSync(join(tmpdir(), "t1-imports-"));
afterAll(() => rmSync(copy, { recursive: true, force: true }));

function cruise(planted: Readonly<Record<string, string>>): {
  readonly status: number | null;
  readonly output: string;
} {
  for (const name of ["package.json", "tsconfig.json", ".dependency-cruiser.mjs"])
    cpSync(join(ROOT, name), join(copy, name));
  for (const folder of FOLDERS) rmSync(join(copy, folder), { recursive: true, force: true });
  for (const [path, text] of Object.entries(planted)) {
    mkdirSync(join(copy, path, ".."), { recursive: true });
    writeFileSync(join(copy, path), text);
  }
  if (spawnSync("test", ["-e", join(copy, "node_modules")]).status !== 0)
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const folders = FOLDERS.filter(folder => Object.keys(planted).some(path => path.startsWith(`${folder}/`)));
  const options = ["--config", ".dependency-cruiser.mjs", ...folders];
  const result = spawnSync("node_modules/.bin/depcruise", options, { cwd: copy, encoding: "utf8" });
  return { status: result.status, output: result.stdout + result.stderr };
}

describe("import rules", () => {
  it("find an import upwards, a room without a place, a cycle, and adapters that are imported", () => {
    const { status, output } = cruise({
      "src/tensor/up.ts": 'import { x } from "../cli/x.ts";\nexport const y = x;\n',
      "src/cli/x.ts": "export const x = 1;\n",
      "src/utils/anything.ts": "export const z = 1;\n",
      "src/model/uses.ts": 'import { z } from "../utils/anything.ts";\nexport const w = z;\n',
      "src/store/a.ts": 'import { b } from "./b.ts";\nexport const a = b;\n',
      "src/store/b.ts": 'import { a } from "./a.ts";\nexport const b = a;\n',
      "src/rollout/x.ts": 'import { z } from "../../lambdas/plan/handler.ts";\nexport const x = z;\n',
      "lambdas/plan/handler.ts": "export const z = 1;\n",
      "infra/stack.ts": 'import { z } from "../lambdas/plan/handler.ts";\nexport const y = z;\n',
      "src/store/cdk.ts": 'import { App } from "aws-cdk-lib";\nexport const app = new App();\n',
    });
    expect(status).not.toBe(0);
    expect(output).toContain("no-upward-import-from-tensor: src/tensor/up.ts → src/cli/x.ts");
    expect(output).toContain("room-without-a-place: src/model/uses.ts → src/utils/anything.ts");
    expect(output).toContain("no-cycles");
    expect(output).toContain("adapters-are-not-imported: src/rollout/x.ts");
    expect(output).toContain("deployment-and-adapters-apart: infra/stack.ts");
    expect(output).toContain("src-knows-no-cdk: src/store/cdk.ts");
  });

  it("pass imports downwards", () => {
    const { status, output } = cruise({
      "src/cli/x.ts": 'import { y } from "../tensor/y.ts";\nexport const x = y;\n',
      "src/tensor/y.ts": "export const y = 1;\n",
    });
    expect(output).toContain("no dependency violations found");
    expect(status).toBe(0);
  });
});
