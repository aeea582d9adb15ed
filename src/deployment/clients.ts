// One client per service, made when it is first asked. Where they talk to, as whom and in which region is said by the
// environment, as for every program of AWS: AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL for an emulator.
import { BatchClient } from "@aws-sdk/client-batch";
import { CloudFormationClient } from "@aws-sdk/client-cloudformation";
import { CloudWatchLogsClient } from "@aws-sdk/client-cloudwatch-logs";
import { ECSClient } from "@aws-sdk/client-ecs";
import { LambdaClient } from "@aws-sdk/client-lambda";
import { SFNClient } from "@aws-sdk/client-sfn";

/** A service answers within seconds; one that says nothing is asked again, three times in all. */
const SILENCE_MS = 20_000;

export class AwsClients {
  readonly #made = new Map<string, unknown>();
  readonly #patience: { readonly requestHandler: Readonly<Record<string, number>> };

  constructor(silenceMs = SILENCE_MS) {
    this.#patience = { requestHandler: { connectionTimeout: silenceMs, socketTimeout: silenceMs } };
  }

  get stacks(): CloudFormationClient {
    return this.#once("stacks", () => new CloudFormationClient(this.#patience));
  }

  get states(): SFNClient {
    return this.#once("states", () => new SFNClient(this.#patience));
  }

  get functions(): LambdaClient {
    // A function may work for 15 minutes; a second call while the first is at work would do everything twice.
    return this.#once(
      "functions",
      () => new LambdaClient({ maxAttempts: 1, requestHandler: { requestTimeout: 16 * 60_000 } }),
    );
  }

  get logs(): CloudWatchLogsClient {
    return this.#once("logs", () => new CloudWatchLogsClient(this.#patience));
  }

  get tasks(): ECSClient {
    return this.#once("tasks", () => new ECSClient(this.#patience));
  }

  get jobs(): BatchClient {
    return this.#once("jobs", () => new BatchClient(this.#patience));
  }

  #once<Client>(name: string, make: () => Client): Client {
    if (!this.#made.has(name)) this.#made.set(name, make());
    return this.#made.get(name) as Client;
  }
}
