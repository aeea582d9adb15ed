// The features of an emulator that the deployment needs. docs/emulators.md has the table; a test that needs more than
// the emulator at hand has is skipped with the word from here.

export const CAPABILITIES = {
  stacks: "deploys all nine stacks (unknown resource types as placeholders)",
  tasks: "runs tasks of ECS and jobs of Batch from Step Functions, and fails on their exit codes",
  containers: "runs them as containers of the driver's and trainer's images",
  mocks: "answers tasks from a file of mocks (SFN_MOCK_CONFIG)",
  statesErrors: "lets a mock throw names that begin with States.",
} as const;
export type Capability = keyof typeof CAPABILITIES;

export type EmulatorKind = "ministack" | "ministack-docker" | "localstack" | "other";

const OF: Readonly<Record<EmulatorKind, readonly Capability[]>> = {
  ministack: ["stacks", "tasks", "mocks", "statesErrors"],
  "ministack-docker": ["stacks", "tasks", "containers", "mocks", "statesErrors"],
  localstack: ["mocks"],
  // The user says it of an emulator that AWS_ENDPOINT_URL names: T1_EMULATOR_CAN="stacks,mocks".
  other: [],
};

export function capabilitiesOf(
  kind: EmulatorKind,
  said = process.env.T1_EMULATOR_CAN,
): readonly Capability[] {
  if (kind !== "other") return OF[kind];
  const words = (said ?? "stacks").split(",").map(word => word.trim());
  const unknown = words.filter(word => !(word in CAPABILITIES));
  if (unknown.length > 0)
    throw new Error(
      `T1_EMULATOR_CAN: expected some of ${Object.keys(CAPABILITIES).join(", ")}, got ${unknown}`,
    );
  return words as Capability[];
}
