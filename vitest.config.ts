import { defineConfig } from "vitest/config";

const shared = {
  // ONNX Runtime sessions and sandboxes use every core: files side by side would only take it from each other.
  fileParallelism: true,
  maxWorkers: 2,
  testTimeout: 30_000,
  setupFiles: ["test/setup.ts"],
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: "fast",
          include: ["{src,lambdas,containers,infra,test}/**/*.test.ts"],
          exclude: ["test/long/**"],
        },
      },
      {
        test: {
          ...shared,
          name: "long",
          include: ["test/long/**/*.test.ts"],
          maxWorkers: 1,
          testTimeout: 3_600_000,
        },
      },
    ],
  },
});
