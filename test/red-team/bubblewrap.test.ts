import { describe } from "vitest";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { redTeam } from "./red-team.ts";

describe("in bubblewrap sandboxes, an agent with", () => {
  redTeam(async () => ({ provider: createBubblewrapProvider(), base: "ubuntu:24.04 AS t1-host" }), {
    except: [],
  });
});
