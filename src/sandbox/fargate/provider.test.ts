import { afterAll, describe } from "vitest";
import { sandboxContract } from "../../../test/contracts/sandbox.ts";
import { type FargateForTests, openFargate } from "../../../test/sandbox/ecs/fargate-for-tests.ts";

describe("tasks of ECS", { timeout: 300_000 }, () => {
  let opened: FargateForTests;
  afterAll(() => opened[Symbol.asyncDispose]());
  sandboxContract(
    async () => {
      // Twenty-four tasks at once start as fast as this machine makes processes.
      opened = await openFargate({ timing: { retryForMs: 240_000 } });
      return {
        provider: opened.provider,
        image: { kind: "docker", reference: "x", files: [] },
        shortLifeMs: 20_000,
      };
    },
    {
      except: [
        {
          rule: "have one limit together, wherever they are written",
          reason: "a task's disk is far larger than what is asked for; each file has the limit",
        },
      ],
    },
  );
});
