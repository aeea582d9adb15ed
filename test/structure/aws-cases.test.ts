// Faults that projects on AWS had, by their public threads: each is kept out of this one by a test that names it. What
// only an account can show is a checklist for whoever has one.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

const CASES: Readonly<Record<string, string>> = {
  // CDK and IAM
  B01: "aws/aws-cdk#28820",
  B02: "aws/aws-cdk#35403",
  B04: "TerraConstructs/base#137",
  B05: "ASFHyP3/hyp3#1089",
  B07: "aws/aws-cdk#18993",
  B08: "aws/aws-cdk#29415",
  B10: "aws/aws-cdk#25206, #27054",
  B11: "aws/aws-cdk#7967, #20013, #30171",
  B13: "aws/aws-cdk#7586",
  B14: "aws/aws-parallelcluster#2098",
  B16: "Netflix/metaflow PR#1656",
  B17: "broadinstitute/cromwell#4496, #5004; jenkinsci/amazon-ecs-plugin#105",
  // Launching and error classes
  B19: "wellcomecollection/catalogue-pipeline#3554",
  B20: "cdklabs/construct-hub PR#415; dagster-io/dagster#33439; AllenInstitute/neuron_morphology#151, #155",
  B22: "localstack/localstack#8493",
  B23: "floci-io/floci#1564; apache/airflow#52943",
  B25: "nextflow-io/nextflow#5786; aws/containers-roadmap#1565",
  B26: "aws/containers-roadmap#291, #572; CloudSnorkel/cdk-github-runners PR#139, #537",
  B28: "apache/airflow#38298; Netflix/metaflow#110, #347",
  B29: "Netflix/metaflow#1185, #138; nextflow-io/nextflow#3078, #710",
  B31: "nextflow-io/nextflow PR#5215",
  // Step Functions
  B32: "localstack/localstack#10662, #12335",
  B34: "localstack/localstack#12061, #12048",
  B35: "localstack/localstack#13215",
  B37: "floci-io/floci#2733, #2779",
  B38: "accelerated-intelligent-document-processing-on-aws#755; wellcomecollection/catalogue-pipeline#3595",
  B40: "serverless-operations/serverless-step-functions#543, #189",
  B41: "Netflix/metaflow#2982, #480, #1499",
  B43: "the output of a Map over 256 KiB",
  // Storage and SDK
  B44: "localstack/localstack#13294",
  B46: "aws/aws-sdk-js-v3#5479, #6770",
  B47: "aws/aws-sdk-js-v3#7416",
  B49: "aws/aws-sdk-js-v3#7048",
  B50: "aws/aws-sdk-js-v3#6810; localstack/localstack#12169",
  // Functions, verifiers, sandboxes, rewards
  B52: "middyjs/middy#1240",
  B53: "middyjs/middy PR#985",
  B55: "SWE-agent/SWE-ReX#222",
  B56: "SWE-agent/SWE-ReX#189",
  B58: "rllm-org/rllm PR#710",
  B59: "NVIDIA-NeMo/Gym#2552, #2611, #2608, PR#2410",
  B61: "NVIDIA-NeMo/RL PR#4029",
  B62: "NVIDIA-NeMo/nemo-platform PR#1295",
};
/** Of these a template shows one half, and an account the other. */
const LIVE = ["B10"];

/** What names a test: the text at the head of `it`, `test` and `describe`, and of their tables. */
const TITLE = /["'`]([^"'`\n]*\bB\d\d\b[^"'`\n]*)["'`]/g;

const named = new Set(
  globSync("{src,lambdas,containers,infra,test}/**/*.test.ts", { cwd: ROOT })
    .filter(file => !file.endsWith("structure/aws-cases.test.ts"))
    .flatMap(file => [...readFileSync(join(ROOT, file), "utf8").matchAll(TITLE)])
    .flatMap(([, title = ""]) => title.match(/\bB\d\d\b/g) ?? []),
);

describe("a fault that others had on AWS", () => {
  it.each(Object.entries(CASES))("%s (%s) has a test that names it", id => {
    expect(named).toContain(id);
  });

  it("is known wherever a test names one", () => {
    expect([...named].filter(id => !(id in CASES))).toEqual([]);
  });

  it.each(LIVE)("%s is on the list of what is checked in an account", id => {
    expect(readFileSync(join(ROOT, "docs/operate.md"), "utf8")).toMatch(
      new RegExp(`^- \\[ \\] ${id}: `, "m"),
    );
  });
});
