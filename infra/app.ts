// The CDK app. `npm run synth`; a deployment's config by `-c config=deployment.yaml`. Needs no AWS account: nothing is
// looked up, and no Docker: functions are bundled by esbuild.
import { App, Validations } from "aws-cdk-lib";
import { readDeploymentConfig } from "./config.ts";
import { SolutionsChecks } from "./nag.ts";
import { addStacks } from "./stacks.ts";

const app = new App();
const file: unknown = app.node.tryGetContext("config");
const config = readDeploymentConfig(typeof file === "string" ? file : undefined);
addStacks(app, config);
Validations.of(app).addPlugins(new SolutionsChecks());
