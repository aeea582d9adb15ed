// One client per service, made when it is first asked. Where they talk to, as whom and in which region is said by the
// environment, as for every program of AWS: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL for an emulator.
import { BatchClient } from "@aws-sdk/client-batch";
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { ECSClient } from "@aws-sdk/client-ecs";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SFNClient } from "@aws-sdk/client-sfn";

export class AwsClients {
  readonly #made = new Map<string, unknown>();

  get stacks(): CloudFormationClient {
    return this.#once("stacks", () => new CloudFormationClient());
  }

  get states(): SFNClient {
    return this.#once("states", () => new SFNClient());
  }

  get functions(): LambdaClient {
    // A function may work for 15 minutes; a second call while the first is at work would do everything twice.
    return this.#once(
      "functions",
      () => new LambdaClient({ maxAttempts: 1, requestHandler: { requestTimeout: 16 * 60_000 } }),
    );
  }

  get logs(): CloudWatchLogsClient {
    return this.#once("logs", () => new CloudWatchLogsClient());
  }

  get tasks(): ECSClient {
    return this.#once("tasks", () => new ECSClient());
  }

  get jobs(): BatchClient {
    return this.#once("jobs", () => new BatchClient());
  }

  #once<Client>(name: string, make: () => Client): Client {
    if (!this.#made.has(name)) this.#made.set(name, make());
    return this.#made.get(name) as Client;
  }
}
