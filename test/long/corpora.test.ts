// Public corpora of tasks, which are not part of this repository: every task loads or is refused for a known reason,
// and the listed ones are solved by their own solutions. docs/corpora.md says where they come from and what came out.
//
//   T1_CORPORA        folder that holds the corpora, at any depth
//   T1_IMAGES         images file of the host; without it the test builds and solves nothing
//   T1_SANDBOXES      docker instead of bubblewrap
//   T1_CORPORA_SOLVE  names of tasks instead of the listed ones, separated by blanks
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { InputError } from "../../src/failure/errors.ts";
import { parseDockerfile } from "../../src/image/dockerfile.ts";
import { readImages } from "../../src/image/images-file.ts";
import { imageServices } from "../../src/rollout/image-services.ts";
import { prepareTask } from "../../src/rollout/prepare.ts";
import { openSandboxes } from "../../src/sandbox/open-sandboxes.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { checkTask } from "../../src/task-gates/check-tasks.ts";

const corpora = process.env.T1_CORPORA;
const imagesFile = process.env.T1_IMAGES;

const kind = process.env.T1_SANDBOXES === "docker" ? "docker" : "bubblewrap";

/** Solved on bubblewrap and docker with tests and solutions as they are (docs/corpora.md). */
const SOLVED = readFileSync(new URL("./corpora-solved.txt", import.meta.url), "utf8")
  .trim()
  .split("\n");

/** Why a task may be refused. A new reason has to be understood, and written down in docs/corpora.md. */
const REASONS: Readonly<Record<string, RegExp>> = {
  "name of the task": /^task.toml refused[^\n]*task\.name/,
  "no test script": /^the test script is missing/,
  "no environment": /^nothing says how to make the environment/,
  "several steps": /^the task has several steps/,
  "several containers": /^the task runs several containers/,
  "volume in a service": /^services\.\S+\.volumes: /,
  "separate verifier": /^the task wants a separate verifier/,
  "allow-listed hosts": /^the task wants network access for .*\(allowlist\)/,
  "another user": /^the task wants the .* to be user/,
  "GPU or TPU": /^the task wants a GPU or TPU/,
  "variable of the host": /^environment variable .* is not set/,
};

describe.skipIf(corpora === undefined)(
  `public corpora${corpora === undefined ? " (skipped: T1_CORPORA names no folder)" : ""}`,
  () => {
    const folders = corpora === undefined ? [] : taskFolders(corpora);

    test("every task loads and can be run here, or is refused for a known reason", async () => {
      const counts = new Map<string, number>();
      const unknown: string[] = [];
      // Another test builds images; in this one a task is done when it asks for its image.
      const images = readImages(imagesFile);
      const open = {
        ...images,
        agent: { network: "none", env: {} },
        verifier: { network: "none", env: {} },
      } as const;
      const builder = {
        usesHostPrograms: kind === "bubblewrap",
        hasUsers: kind === "docker",
        hasServices: kind === "docker",
        build: () => Promise.reject(new ReachedBuild()),
      };
      for (const folder of folders) {
        const corpus = relative(corpora ?? "", folder).split("/")[0] ?? "";
        let result = "can be run";
        try {
          await prepareTask(folder, { images: open, builder, demonstration: false });
        } catch (error) {
          if (!(error instanceof InputError) && !(error instanceof ReachedBuild)) throw error;
          if (error instanceof InputError) {
            const { message } = error;
            const [reason] = Object.entries(REASONS).find(([, pattern]) => pattern.test(message)) ?? [];
            if (reason === undefined) unknown.push(`${folder}: ${message}`);
            result = `refused: ${reason ?? "unknown"}`;
          }
        }
        const key = `${corpus}: ${result}`;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
      console.log(
        [...counts]
          .sort()
          .map(([key, count]) => `${count} ${key}`)
          .join("\n"),
      );
      expect(unknown).toEqual([]);
      expect(folders.length).toBeGreaterThan(0);
    });

    test("every Dockerfile can be read, and holds nothing but known instructions or what Docker refuses too", () => {
      const names = new Map<string, number>();
      const known =
        /^(FROM|RUN|COPY|ADD|ENV|ARG|WORKDIR|USER|SHELL|CMD|ENTRYPOINT|EXPOSE|LABEL|VOLUME|HEALTHCHECK)$/;
      let refused = 0;
      for (const folder of folders) {
        const file = join(folder, "environment", "Dockerfile");
        const text = readText(file);
        if (text === undefined) continue;
        const { instructions } = parseDockerfile(text, file);
        if (instructions.some(({ name }) => !known.test(name))) {
          // A here-document whose name stands apart (`<< 'EOF'`) is none to Docker either: its lines are instructions.
          expect([file, text]).toEqual([file, expect.stringMatching(/^RUN .*<< +['"]?\w+/m)]);
          refused++;
          continue;
        }
        const used = instructions.flatMap(({ name, flags, heredocs }) => [
          name,
          ...[...flags.keys()].map(flag => `${name} --${flag}`),
          ...(heredocs.length > 0 ? [`${name} <<`] : []),
        ]);
        for (const name of new Set(used)) names.set(name, (names.get(name) ?? 0) + 1);
      }
      console.log(`${refused} refused, as Docker does`);
      console.log(
        [...names]
          .sort((a, b) => b[1] - a[1])
          .map(([name, count]) => `${count} ${name}`)
          .join("\n"),
      );
      expect(names.size).toBeGreaterThan(0);
    });

    const why = imagesFile === undefined ? " (skipped: T1_IMAGES names no file)" : "";
    describe.skipIf(imagesFile === undefined)(`solved on ${kind}${why}`, () => {
      let sandboxes: SandboxProvider;
      beforeAll(async () => {
        sandboxes = await openSandboxes(kind);
      });
      afterAll(() => sandboxes[Symbol.asyncDispose]());
      const wanted = new Set(process.env.T1_CORPORA_SOLVE?.split(/\s+/) ?? SOLVED);

      test.for(
        folders.filter(folder => wanted.has(basename(folder))).map(folder => [basename(folder), folder]),
      )("%s: nothing earns 0, its solution earns 1, twice", async ([, folder = ""]) => {
        const startedAt = performance.now();
        const images = imageServices(imagesFile, sandboxes);
        const { passed, failed, assertions, passedByNothing } = await checkTask(folder, {
          sandboxes,
          images,
        });
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
        console.log(
          `${basename(folder)}: ${passed ? "passed" : `${failed?.gate}: ${failed?.reason}`}, ${assertions ?? 0} assertions, ${passedByNothing ?? 0} hold untouched, ${seconds} s`,
        );
        expect(failed).toBeUndefined();
      });
    });
  },
);

class ReachedBuild extends Error {}

/** Folders with a task.toml, sorted. */
function taskFolders(root: string): readonly string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter(path => basename(path) === "task.toml")
    .map(path => join(root, dirname(path)))
    .sort();
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined; // a task without Dockerfile
  }
}
