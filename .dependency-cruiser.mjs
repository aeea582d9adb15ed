// Imports in src/ go downwards in this list (docs/architecture.md, "Rooms"): a room may use those below it and
// those on its own line. A room that is not listed may not be imported at all, so a new folder has to take a place.
const layers = [
  ["cli"],
  ["report"],
  ["local"],
  ["asl", "deployment"],
  ["stages"],
  ["task-gates"],
  ["learning"],
  ["rollout"],
  ["run"],
  ["planning", "evaluation"],
  ["config"],
  ["training"],
  ["agent"],
  ["verifier"],
  ["sandbox", "sandboxd", "image"],
  ["sampler"],
  ["trajectory"],
  ["model"],
  ["tensor"],
  ["task"],
  ["settings"],
  ["store"],
  ["safetensors"],
  ["files"],
  ["random", "failure"],
];

const upwards = layers.slice(1).map((rooms, index) => ({
  name: `no-upward-import-from-${rooms.join("-")}`,
  severity: "error",
  comment: "src/ rooms import downwards only",
  from: { path: `^src/(${rooms.join("|")})/`, pathNot: "\\.test\\.ts$" },
  to: {
    path: `^src/(${layers
      .slice(0, index + 1)
      .flat()
      .join("|")})/`,
  },
}));

export default {
  forbidden: [
    ...upwards,
    {
      name: "room-without-a-place",
      severity: "error",
      comment: "every folder of src/ stands in the list above",
      from: {},
      to: { path: "^src/", pathNot: `^src/(${layers.flat().join("|")})/` },
    },
    {
      name: "no-cycles",
      severity: "error",
      comment: "types may refer to each other; modules may not load each other",
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "images-know-no-provider",
      severity: "error",
      comment: "Dockerfiles are read in one way for all providers of sandboxes",
      from: { path: "^src/(image|sandboxd)/", pathNot: "\\.test\\.ts$" },
      to: { path: "^src/sandbox/(bubblewrap|docker|fargate)/" },
    },
    { name: "not-to-unresolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "no-dev-dependency-at-run-time",
      severity: "error",
      from: { path: "^(src|lambdas|containers)/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
    {
      name: "aws-sdk-only-at-the-edges",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(store/s3|sandbox/fargate|deployment)/" },
      to: { path: "^node_modules/@aws-sdk/" },
    },
    {
      name: "adapters-are-not-imported",
      severity: "error",
      comment: "lambdas/, containers/ and infra/ stand on src/; nothing below leans on them",
      from: { path: "^src/" },
      to: { path: "^(infra|lambdas|containers)/" },
    },
    {
      name: "deployment-and-adapters-apart",
      severity: "error",
      comment: "what runs in the cloud is bundled without CDK; infra/ knows functions by their folder only",
      from: { path: "^(infra|lambdas|containers)/" },
      to: {
        path: "^(infra|lambdas|containers)/",
        pathNot: ["^$1/"],
      },
    },
    {
      name: "no-command-line-below-itself",
      severity: "error",
      comment: "what a container or a function needs lies in a room below the command line",
      from: { path: "^(infra|lambdas|containers)/" },
      to: { path: "^src/cli/" },
    },
    {
      name: "src-knows-no-cdk",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "aws-cdk-lib|constructs" },
    },
  ],
  options: {
    // TypeScript 7 has no compiler API for dependency-cruiser to call; with it alone no module would be seen.
    parser: "swc",
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    // Tests may reach anywhere, and the parser does not know their `await using` yet.
    exclude: { path: "\\.test\\.ts$|^test/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
