// The CDK app. Run it by `npm run synth`, with a deployment's config by `-c config=deployment.yaml`. It needs no AWS
// account, because it looks nothing up, and no Docker, because esbuild bundles the functions.
import { App, Validations } from "aws-cdk-lib";
import { readDeploymentConfig } from "./config.ts";
import { SolutionsChecks } from "./nag.ts";
import { addStacks } from "./stacks.ts";

const app = new App();
const file: unknown = app.node.tryGetContext("config");
const config = readDeploymentConfig(typeof file === "string" ? file : undefined);
addStacks(app, config);
Validations.of(app).addPlugins(new SolutionsChecks());
