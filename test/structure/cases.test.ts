// Faults that terminals, sandboxes and verifiers of other projects had, by their public threads, and the tests that keep
// each of them out of this one. Rules of a contract hold for every provider.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const RULES = "test/contracts/sandbox/";
const DAEMON = "src/sandboxd/daemon.test.ts";
const DOCKER = "test/sandbox/docker/cases.test.ts";
const ECS_START = "test/sandbox/ecs/launching.test.ts";
const ECS_LIFE = "test/sandbox/ecs/life.test.ts";
const MODES = "test/verifier/modes.test.ts";
const ATTACKS = "test/red-team/attacks.ts";
const EPISODE = "test/agent/episode.test.ts";
const PROTOCOLS = "test/agent/protocols.test.ts";

type Place = readonly [place: string, title: string];

const CASES: Readonly<Record<string, readonly Place[]>> = {
  // Shells and commands
  "harbor#776": [[RULES, "returns when it ends, though a background process holds its output open"]],
  "harbor#887, #1904, #1873, #1680": [
    [RULES, "takes long keystrokes in full, counted in bytes"],
    [PROTOCOLS, "takes long keystrokes in full"],
  ],
  "harbor#2308, #2213": [["test/agent/terminus-replies.test.ts", "only waits, in both formats"]],
  "harbor#1941": [
    [RULES, "runs once, however often and whenever it is asked for"],
    [DAEMON, "after a command was sent does not run it twice, nor lose it"],
  ],
  "mini-swe-agent#865": [[RULES, "is ended with all of its process group"]],
  "SWE-ReX#281": [[RULES, "finds its input at its end when it gets none"]],
  "SWE-ReX#159": [[RULES, "runs as it is given: quotes, here-documents and case branches included"]],
  "SWE-ReX#160, mini-swe-agent#886, harness-sdk#1968": [
    [RULES, "is kept byte for byte: white space, escape sequences, NUL and what is no UTF-8"],
    [EPISODE, "lets a command with errors, NUL bytes or broken UTF-8 be just another observation"],
  ],
  "inspect#4658, cuplivo#466": [
    [RULES, "beyond the limit keeps its head and tail, cut between characters"],
    [
      "test/agent/terminus-parts.test.ts",
      "is cut between characters, holds the limit, and counts every byte",
    ],
  ],
  "SWE-ReX#201": [
    [RULES, "is kept byte for byte: white space, escape sequences, NUL and what is no UTF-8"],
    [PROTOCOLS, "is bash, in a new shell each time, with errors among the output and nothing stripped"],
  ],
  "mini-swe-agent#639": [[RULES, "of a command without end is bounded too, when time cuts it"]],
  "mini-swe-agent#761": [
    [RULES, "is kept byte for byte: white space, escape sequences, NUL and what is no UTF-8"],
  ],
  "SWE-ReX#202, #185": [[RULES, "starts in the environment of the spec, whatever the one before exported"]],
  "harbor#1744": [[RULES, "starts in the environment of the spec, whatever the one before exported"]],
  "harbor#2200": [
    [RULES, "of everything by the agent ends its command, not the sandbox"],
    [DAEMON, "the daemon outlives kill -9 -1, kill of process 1 and its own name"],
    [ATTACKS, "everything killed"],
  ],
  "daytona#4230": [[RULES, "returns after a here-document that writes a file"]],
  "E2B#500, coder/mux#533": [
    [RULES, "is ended with all of its process group"],
    [RULES, "is ended at the lease's deadline, were its own limit infinite"],
  ],
  "E2B#1074": [[DAEMON, "finds a running command by its id and reads on from an offset"]],
  "letta-evals#262, huggingface_hub#4350": [
    [RULES, "says how it ended: exit code, signal or time limit, never one for another"],
  ],
  "cloudflare/sandbox-sdk#438": [[RULES, "is ended when it has stopped itself, and the next one runs"]],

  // Verifiers and rewards
  "verifiers#1401, #1674": [
    ["src/verifier/read-report.test.ts", "of two files that disagree are a conflict"],
  ],
  "dawn#14": [
    [ATTACKS, "planted reward files"],
    [ATTACKS, "planted reward files, shared"],
  ],
  "harbor#1367, #1366": [[ATTACKS, "planted reward files that cannot be written"]],
  "cube-harness#444": [[MODES, "reads assertions from the report, not from what the tests printed"]],
  "largest-eigenval__pn7URic": [["src/verifier/reward.test.ts", "with no test is a collection error"]],
  "verifiers#2224": [
    ["src/verifier/reward.test.ts", "takes reward.json before reward.txt, and only its key reward"],
  ],
  "a default shorter than the task's verifier budget": [
    ["src/task/load.test.ts", "gives times in milliseconds and sizes in bytes"],
    [ATTACKS, "a tool that never ends"],
  ],
  "reef#215": [["src/task/load.test.ts", "is Harbor's: $harbor $title"]],

  // Lives of sandboxes
  "harbor#2166, #2127": [
    [RULES, "is lost to everybody once it is disposed of, which may be said twice"],
    [ECS_LIFE, "ends by its daemon where the driver may not stop tasks, and one that is gone is no error"],
  ],
  "harbor#2262": [
    [RULES, "is made from a spec that can be kept, else the spec is named"],
    [DOCKER, "a lease without time left makes no sandbox, and not one that lives for ever"],
    [ECS_START, "a lease without time left makes no sandbox, and not one that lives for ever"],
  ],
  "harbor#1317": [
    [ATTACKS, "memory without end, beside real work"],
    [DOCKER, "a command that takes too much memory is killed, is told so once, and the sandbox lives"],
    [ECS_LIFE, "out of memory, is the agent's doing, with its exit code and reason, and not tried again"],
  ],
  "SWE-ReX#278": [
    [RULES, "is lost to everybody once it is disposed of, which may be said twice"],
    [ECS_LIFE, "is stopped, and its processes with it"],
  ],
  "NeMo Evaluator#1066": [
    [DAEMON, "with twenty commands in flight is made up by one connection, and each runs once"],
    [DOCKER, "why a container died is told to all its callers, with its exit code"],
    [ECS_LIFE, "with a task that ECS has forgotten, is told what was recorded of its stop"],
  ],
  "marimohub#309": [
    [RULES, "is the same for the same lease and generation, and another for the next"],
    [ECS_START, "after the task was made leads to that task, not to a second one"],
    [ECS_START, "a generation is a task of its own, and what was stopped is not used again"],
  ],
  "harbor#1545, verifiers#2015": [
    [
      "src/sandbox/bubblewrap/image-layers.test.ts",
      "an entrypoint has done its work before the first command",
    ],
    ["src/sandbox/bubblewrap/image-layers.test.ts", "an entrypoint that ends at once, or is missing"],
    [DOCKER, "an entry point that seeds a file and runs its command is honoured"],
  ],
  "harbor#2543, #964": [
    [
      "src/sandbox/bubblewrap/root-builder.test.ts",
      "is made once, and anew when anything it depends on changes",
    ],
    [DOCKER, "a tag that was moved to another image makes sandboxes of that one"],
  ],
  "harbor#1733": [[MODES, "gets artifacts of one name at their own paths"]],
  "verifiers#2031, harbor#2051, #1845": [
    ["src/task/load.test.ts", 'memory = "8G"'],
    [DOCKER, "memory and processors of the spec are the container's limits"],
  ],
  "verifiers#2236": [
    [RULES, "of the spec are there from the start, with modes and below new folders"],
    ["src/sandbox/bubblewrap/root-builder.test.ts", "COPY a.txt data.csv"],
  ],

  // Trajectories, costs, errors
  "harbor#1566": [[MODES, "grades each step before the next begins, in one sandbox and one conversation"]],
  "harbor#2053, #1644": [
    ["src/store/json.test.ts", "are called corrupt wherever they are cut off, with the key and what to do"],
    ["src/store/file-store-faults.test.ts", "leaves whole objects only, all that it reported"],
  ],
  "harbor#1724": [["src/model/text.test.ts", "leaves instructions as they are, trailing spaces included"]],
  "harbor#2522": [["test/run/run.test.ts", "is refused a name that is taken, and listed"]],
  "mini-swe-agent#915": [
    [EPISODE, "ends at the turn limit"],
    [PROTOCOLS, "ends at the turn limit, answers that cannot be used included"],
  ],
  "harbor#1619, #996": [
    [
      "src/sampler/sglang/sglang-sampler.test.ts",
      "knows a context that is too short, and says what to change",
    ],
    [EPISODE, "makes no call when the prompt alone fills the context"],
  ],
  "inspect#4683, #4682, #4371": [[DAEMON, "long arguments and large answers leave the connection in order"]],
  "coder/xum#1539": [[DAEMON, "the limit that fired is the one that is told, with the time it took"]],
};

describe("a fault that others had", () => {
  it.each(Object.entries(CASES))("%s has its tests", (_, places) => {
    for (const [place, title] of places) expect(textOf(place)).toContain(title);
  });
});

/** Of a file, or of the files of a folder. */
function textOf(place: string): string {
  if (!place.endsWith("/")) return readFileSync(join(ROOT, place), "utf8");
  return readdirSync(join(ROOT, place))
    .map(name => readFileSync(join(ROOT, place, name), "utf8"))
    .join("\n");
}
