// The test flavour of the deployment: the app as it is deployed, with what an emulator cannot do turned off. Everything
// that differs from a real deployment stands in this file.
import { App } from "aws-cdk-lib";
import { DeploymentConfig } from "../../infra/config.ts";
import { addStacks } from "../../infra/stacks.ts";

/** Small shards are enough, because the suites test the way through the state machines. */
const config = DeploymentConfig.parse({
  sandboxes: { atOnce: 8 },
  drivers: { episodes: 2 },
  storage: { retain: false },
});

const app = new App();
const { sandboxes, pipeline } = addStacks(app, config);

// No emulator has networks in which a driver could reach a sandbox: its sandboxes are bubblewrap containers, and there
// are no images to build, no service to wake and no quotas to ask for.
sandboxes.driver.defaultContainer?.addEnvironment("T1_SANDBOXES", "bubblewrap");
for (const name of ["prepare", "preflight"] as const)
  pipeline.stages[name].function.addEnvironment("T1_SANDBOXES", "bubblewrap");
