import { describe } from "vitest";
import { sandboxContract } from "../../../test/contracts/sandbox.ts";
import { createBubblewrapProvider } from "./provider.ts";

describe("programs of this machine", () => {
  sandboxContract(
    async () => ({
      provider: createBubblewrapProvider(),
      image: { kind: "host", files: [] },
    }),
    { except: [] },
  );
});
