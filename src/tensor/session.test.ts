import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { Graph } from "./graph.ts";
import { Session } from "./session.ts";

const hasGpu = existsSync("/dev/nvidiactl");

it.skipIf(hasGpu)(
  `a device that is not there is refused with what is missing, not replaced by another${hasGpu ? " (skipped: it is there)" : ""}`,
  async () => {
    const graph = new Graph();
    graph.output("x", graph.input("x", ["N"]));
    await expect(Session.open(graph, { threads: 1, device: "cuda" })).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/cannot compute on a GPU.*CUDA provider.*\n {2}fix: /s),
    });
  },
);
