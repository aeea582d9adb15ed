import { describe } from "vitest";
import { sandboxContract } from "../../../test/contracts/sandbox.ts";
import { importImage, noDocker } from "../../../test/sandbox/docker-images.ts";
import { createDockerProvider } from "./provider.ts";

describe.skipIf(noDocker !== undefined)(
  `containers${noDocker === undefined ? "" : ` (skipped: ${noDocker})`}`,
  { timeout: 120_000 },
  () => {
    sandboxContract(
      async () => {
        const reference = await importImage("t1-test/contract:1");
        return {
          provider: await createDockerProvider({ creation: { perSecond: 100, burst: 100 } }),
          image: { kind: "docker", reference, files: [] },
          shortLifeMs: 30_000,
        };
      },
      {
        except: [
          {
            rule: "have one limit together, wherever they are written",
            reason: "the storage driver has no quota; each file has the limit",
          },
        ],
      },
    );
  },
);
