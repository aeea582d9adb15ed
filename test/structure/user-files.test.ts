// What a person gives us is read and parsed where a mistake in it becomes bad input, and a folder that a person names is
// made without waiting for ever. Three rules, and what may break them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const SOURCES = ["src", "lambdas", "containers"].flatMap(folder =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter(name => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map(name => join(folder, name)),
);

/** Matching lines, as `file: match`. */
function linesWith(pattern: RegExp, isLookedAt: (file: string) => boolean): readonly string[] {
  return SOURCES.filter(isLookedAt).flatMap(file =>
    [...readFileSync(join(ROOT, file), "utf8").matchAll(pattern)].map(([text]) => `${file}: ${text.trim()}`),
  );
}

/** Files whose bare `.parse` takes data of our own, so that a value that does not fit is a bug of ours. */
const OWN_DATA: Readonly<Record<string, string>> = {
  "src/asl/assembly.ts": "templates that our app synthesized",
  "src/asl/executors/program.ts": "the overrides of our own state machines",
  "src/task/compose-file.ts": "an empty object, for its defaults",
  "src/deployment/run-machine.ts": "the input that we gave an execution",
  "src/local/machines.ts": "the input that we gave an execution",
  "src/sandbox/bubblewrap/lease-files.ts": "a lease of ours; one that does not fit is left out",
  "src/agent/atif.ts": "a trajectory that we write",
  "src/image/images-file.ts": "an empty object, for its defaults",
  "src/sandboxd/tar-names.ts": "records of an archive that we packed",
  "src/deployment/preflight.ts": "the answer of our own function",
  "src/local/synthesized-assembly.ts": "cdk.json of this clone",
  "src/cli/own-version.ts": "package.json of this clone",
  "containers/driver/fargate.ts": "the answer of the ECS agent",
};

test("a zod schema throws only at data of our own: everything else is parsed by safeParse", () => {
  // Schemas have names like types; the other `.parse` of our code belong to JSON, Date, URL and values.
  const bare = linesWith(/\b(?!JSON\b|Date\b|URL\b)[A-Z]\w*\.parse\(|\}\)\.parse\(/g, () => true);
  const files = new Set(bare.map(line => line.slice(0, line.indexOf(":"))));
  expect([...files].filter(file => !(file in OWN_DATA))).toEqual([]);
  expect(Object.keys(OWN_DATA).filter(file => !files.has(file))).toEqual([]);
});

/** Rooms that read what a person wrote, and files in them that read something else with `node:fs`. */
const USERS_ROOMS = /^src\/(?:cli|config|settings|run|task|model)\//;
const OTHER_FILES: Readonly<Record<string, string>> = {
  "src/cli/check-report.ts": "the report that t1 tasks check wrote",
  "src/cli/generate-command.ts": "tasks that t1 tasks generate wrote",
  "src/cli/own-version.ts": "package.json of this clone",
  "src/task/environment-source.ts": "a folder that listFolder has read before",
  "src/task/links.ts": "folders that listFolder has read before",
};

test("files of a person are read by files/user-files.ts, which makes bad input of every error", () => {
  const own = linesWith(/\b(?:readFileSync|readFile|readdirSync|readdir)\(/g, file => USERS_ROOMS.test(file));
  const files = new Set(own.map(line => line.slice(0, line.indexOf(":"))));
  expect([...files].filter(file => !(file in OTHER_FILES))).toEqual([]);
  expect(Object.keys(OTHER_FILES).filter(file => !files.has(file))).toEqual([]);
});

test("folders are made by files/make-folders.ts: Node's own recursive way may never end", () => {
  expect(linesWith(/\bmkdir(?:Sync)?\([^;]*recursive/g, () => true)).toEqual([]);
});
