// Asks the deployed preflight: in the deployment's account, with its quotas and what it was deployed with.
import { InvokeCommand } from "@aws-sdk/client-lambda";
import { z } from "zod";
import { Failure, InputError } from "../failure/errors.ts";
import { PreflightReport } from "../planning/preflight-report.ts";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";

const FunctionError = z.looseObject({ errorType: z.string(), errorMessage: z.string() });

/** @param run in the deployment's store; without it the deployment alone is looked at */
export async function askPreflight(
  { preflightFunction }: Deployment,
  run: string | undefined,
  { functions }: AwsClients,
): Promise<PreflightReport> {
  const command = new InvokeCommand({
    FunctionName: preflightFunction,
    Payload: JSON.stringify({ ask: true, ...(run !== undefined && { run }) }),
  });
  const { Payload, FunctionError: isError } = await asked("lambda:InvokeFunction", functions.send(command));
  const answer: unknown = JSON.parse(Buffer.from(Payload ?? []).toString() || "null");
  if (isError === undefined) return PreflightReport.parse(answer);
  const { errorType, errorMessage } = FunctionError.parse(answer);
  if (errorType === "InputError") throw new InputError(errorMessage);
  throw new Failure("AwsUnavailable", `preflight ended with ${errorType}: ${errorMessage}`, {
    retryable: true,
  });
}
