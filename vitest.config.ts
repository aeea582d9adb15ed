import { join } from "node:path";
import { defineConfig } from "vitest/config";

// As the script t1 has it: each file's process reads the same packages, and many start t1 or a container's program.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/t1");

const shared = {
  // ONNX Runtime sessions and sandboxes use every core: files side by side would only take it from each other.
  fileParallelism: true,
  maxWorkers: 2,
  // For a machine that does other things too; what is quick here is measured in bench/, not by these limits.
  testTimeout: 120_000,
  // Tests of one file that run side by side wait for terminals and limits of time, and need little of a core.
  maxConcurrency: 12,
  setupFiles: ["test/setup.ts"],
};

/** Suites that want a container engine or another server, or more minutes than `npm test` has. */
const LONG = [
  "test/long/**/*.test.ts",
  "{src,test}/sandbox/docker/**/*.test.ts",
  "src/sandbox/fargate/provider.test.ts",
  "test/sandbox/ecs/life.test.ts",
  "src/sandbox/docker/docker-builder.test.ts",
  "src/store/s3/s3-store.test.ts",
];

/** Suites that want an emulator of AWS: `npm run test:emulators`, and a step of `.ci/run`. */
const EMULATORS = ["test/emulators/**/*.test.ts"];

export default defineConfig({
  test: {
    reporters: ["default", "./test/skip-reasons.ts"],
    projects: [
      {
        test: {
          ...shared,
          name: "fast",
          include: ["{src,lambdas,containers,infra,test}/**/*.test.ts"],
          exclude: [...LONG, ...EMULATORS],
        },
      },
      {
        test: {
          ...shared,
          name: "long",
          include: LONG,
          maxWorkers: 1,
          testTimeout: 3_600_000,
        },
      },
      {
        test: {
          ...shared,
          name: "emulators",
          include: EMULATORS,
          globalSetup: ["test/emulators/global-setup.ts"],
        },
      },
    ],
  },
});
