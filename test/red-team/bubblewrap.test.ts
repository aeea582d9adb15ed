import { describe } from "vitest";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { redTeam } from "./red-team.ts";

describe("in bubblewrap sandboxes, an agent with", () => {
  redTeam(() => createBubblewrapProvider());
});
