// Imports in src/ go downwards in this list (docs/architecture.md, "Rooms"): a room may use those below it and
// those on its own line. A room that is not listed may not be imported at all, so a new folder has to take a place.
const layers = [
  ["cli"],
  ["report"],
  ["local"],
  ["pipeline"],
  ["planning", "evaluation"],
  ["training"],
  ["agent"],
  ["verifier"],
  ["sandbox"],
  ["sampler"],
  ["trajectory"],
  ["model"],
  ["tensor"],
  ["task"],
  ["config"],
  ["store"],
  ["safetensors", "random", "failure"],
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
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "not-to-tests",
      severity: "error",
      from: { pathNot: "\\.test\\.ts$|^(test|bench)/" },
      to: { path: "\\.test\\.ts$|^test/" },
    },
    { name: "not-to-unresolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
    {
      name: "no-dev-dependency-at-run-time",
      severity: "error",
      from: { path: "^(src|lambdas|containers)/", pathNot: "\\.test\\.ts$" },
      to: { dependencyTypes: ["npm-dev"] },
    },
    {
      name: "aws-sdk-only-at-the-edges",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(store/s3|sandbox/fargate|cli)/" },
      to: { path: "^node_modules/@aws-sdk/" },
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
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "node", "default", "types"],
    },
  },
};
