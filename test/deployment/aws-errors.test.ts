// Messages for people when AWS refuses: the SDK sends real requests to a server on loopback that answers as AWS does.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { AwsClients } from "../../src/deployment/clients.ts";
import { findDeployment } from "../../src/deployment/deployment.ts";
import { reportError } from "../../src/failure/report-error.ts";

/** Answers of CloudFormation, by the name of the stack that is asked for. */
const ANSWERS: Readonly<
  Record<string, { readonly status: number; readonly code: string; readonly message: string }>
> = {
  expired: {
    status: 403,
    code: "ExpiredToken",
    message: "The security token included in the request is expired",
  },
  denied: {
    status: 403,
    code: "AccessDenied",
    message:
      "User: arn:aws:iam::1:user/x is not authorized to perform: cloudformation:DescribeStacks on resource: *",
  },
  unknown: {
    status: 403,
    code: "InvalidClientTokenId",
    message: "The security token included in the request is invalid.",
  },
  missing: { status: 400, code: "ValidationError", message: "Stack with id missing-pipeline does not exist" },
  throttled: { status: 400, code: "Throttling", message: "Rate exceeded" },
};

let server: Server;
let endpoint: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", chunk => {
      body += chunk;
    });
    request.on("end", () => {
      const name = new URLSearchParams(body).get("StackName")?.replace("-pipeline", "") ?? "";
      const failed = name === "unfinished";
      const answer = ANSWERS[name];
      if (name === "silent") return;
      if (name === "proxy") {
        response.writeHead(403, { "content-type": "text/html" }).end("<html>log in first</html>");
        return;
      }
      response.writeHead(answer?.status ?? 200, { "content-type": "text/xml" });
      response.end(
        answer === undefined
          ? `<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>${name}-pipeline</StackName><CreationTime>2026-11-30T00:00:00Z</CreationTime><StackStatus>${failed ? "ROLLBACK_COMPLETE" : "CREATE_COMPLETE"}</StackStatus></member></Stacks></DescribeStacksResult></DescribeStacksResponse>`
          : `<ErrorResponse><Error><Type>Sender</Type><Code>${answer.code}</Code><Message>${answer.message}</Message></Error></ErrorResponse>`,
      );
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** Sends a request and reports its error as the command line does. */
async function find(
  stack: string,
  environment: NodeJS.ProcessEnv = {},
  clients = new AwsClients(),
): Promise<{ code: number; stderr: string }> {
  const env = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
    AWS_MAX_ATTEMPTS: "1",
    ...environment,
  };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  let stderr = "";
  try {
    await findDeployment(stack, clients);
    return { code: 0, stderr };
  } catch (error) {
    const code = reportError(error, text => {
      stderr += text;
    });
    return { code, stderr };
  } finally {
    vi.unstubAllEnvs();
  }
}

describe("a refusal of AWS", () => {
  it.each<[string, string, NodeJS.ProcessEnv, number, string[]]>([
    ["expired credentials", "expired", {}, 2, ["credentials have expired", "aws sso login"]],
    ["denied access", "denied", {}, 2, ["access is denied", "allow cloudformation:DescribeStacks"]],
    ["an unknown key", "unknown", {}, 2, ["credentials are refused", "AWS_PROFILE"]],
    ["no such stack", "missing", {}, 2, ["no such deployment: missing", "AWS_REGION"]],
    ["a stack that was never finished", "unfinished", {}, 2, ["not complete", "ROLLBACK_COMPLETE"]],
    ["a stack of another version", "older", {}, 2, ["another version of t1", "StoreUrl", "cdk deploy"]],
    ["too many requests", "throttled", {}, 75, ["AwsUnavailable", "Rate exceeded"]],
    [
      "no credentials",
      "any",
      { AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined },
      2,
      ["no credentials for AWS", "AWS_ACCESS_KEY_ID"],
    ],
    ["no region", "any", { AWS_REGION: undefined }, 2, ["no region", "set AWS_REGION"]],
    [
      "nobody who answers",
      "any",
      { AWS_ENDPOINT_URL: "http://127.0.0.1:9" },
      75,
      ["AwsUnavailable", "ECONNREFUSED"],
    ],
    ["a page of somebody else", "proxy", {}, 2, ["no service of AWS (HTTP 403)", "AWS_ENDPOINT_URL"]],
    ["no address", "any", { AWS_ENDPOINT_URL: "localhost" }, 2, ["no address", "AWS_ENDPOINT_URL"]],
  ])("%s", async (_, stack, environment, code, words) => {
    const ended = await find(stack, environment);
    for (const word of words) expect(ended.stderr).toContain(word);
    expect(ended.code).toBe(code);
    expect(ended.stderr).not.toContain("This is a bug");
  });

  it("no word from a service that takes the request: it is not waited for without end", async () => {
    const ended = await find("silent", {}, new AwsClients(300));
    expect(ended).toMatchObject({ code: 75, stderr: expect.stringContaining("AwsUnavailable") });
  });
});
