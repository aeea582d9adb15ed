import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

/** Whether a process that ran this had ONNX Runtime's telemetry client, which begins with a log. It has no network. */
function reports(code: string): boolean {
  // Nothing of the test's environment: the client also stays away where a variable speaks of a build server.
  const env = { PATH: process.env.PATH };
  const script = `${code}; process.stdout.write(String(process.pid));`;
  const words = [
    "--dev-bind",
    "/",
    "/",
    "--unshare-net",
    process.execPath,
    "--input-type=module",
    "--eval",
    script,
  ];
  const pid = execFileSync("bwrap", words, { cwd: ROOT, env, encoding: "utf8" });
  const log = `/tmp/mat-debug-${pid}.log`;
  onTestFinished(() => rmSync(log, { force: true }));
  return existsSync(log);
}

test("ONNX Runtime reports nothing, though by itself it would", () => {
  const session = 'await ort.InferenceSession.create(new Uint8Array([8, 7])).catch(() => "no model");';
  const load = 'const ort = await import("onnxruntime-node");';
  expect(reports(`${load} ${session}`)).toBe(true);
  expect(reports(`await import("./src/tensor/session.ts"); ${load} ${session}`)).toBe(false);
});

test("whoever loads it, or starts a thread that may, has turned that off before", () => {
  const loaders = globSync("{src,containers,lambdas,bench}/**/*.ts", { cwd: ROOT }).filter(
    path =>
      !path.endsWith(".test.ts") &&
      /^import (?!type).* from "onnxruntime-node"|new Worker\(/m.test(readFileSync(join(ROOT, path), "utf8")),
  );
  expect(loaders.length).toBeGreaterThan(3);
  for (const path of loaders)
    expect(readFileSync(join(ROOT, path), "utf8"), path).toMatch(
      /^(?:\/\/.*\n)*import "[./\w]*no-telemetry\.ts";/,
    );
});
