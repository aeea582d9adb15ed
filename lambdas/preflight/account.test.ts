// Preflight reads AWS's answers from a loopback server.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { account } from "./account.ts";

const asked: { readonly target: string; readonly body: string }[] = [];
let server: Server;
beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", chunk => {
      body += chunk;
    });
    request.once("end", () => {
      const target = `${request.headers["x-amz-target"] ?? ""}`;
      asked.push({ target, body });
      if (target.endsWith("DescribeImages")) {
        const isThere = body.includes('"t1/driver"');
        response.statusCode = isThere ? 200 : 400;
        const missing = { __type: "ImageNotFoundException", message: "no such image" };
        response.setHeader("content-type", "application/x-amz-json-1.1");
        response.end(JSON.stringify(isThere ? { imageDetails: [{ imageTags: ["main"] }] } : missing));
        return;
      }
      const denied = body.includes("PassRole") ? "explicitDeny" : "allowed";
      const actions = [...new URLSearchParams(body)].filter(([name]) => name.startsWith("ActionNames"));
      const members = actions.map(
        ([, action]) =>
          `<member><EvalActionName>${action}</EvalActionName><EvalDecision>${denied}</EvalDecision></member>`,
      );
      response.setHeader("content-type", "text/xml");
      response.end(
        `<SimulatePrincipalPolicyResponse><SimulatePrincipalPolicyResult><EvaluationResults>${members.join("")}</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>`,
      );
    });
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("AWS_ENDPOINT_URL", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(() => {
  vi.unstubAllEnvs();
  server.close();
});

it("an image that was not pushed is named, one that was is not", async () => {
  expect(await account.missingImages(["t1/driver", "t1/trainer"], "main")).toEqual([
    "there is no image t1/trainer:main; build and push it (docs/operate.md, Deploy)",
  ]);
});

it("a right that the driver's role lacks is named, with what decided", async () => {
  const rights = {
    driverRole: "arn:aws:iam::1:role/driver",
    sandboxExecutionRole: "arn:aws:iam::1:role/pull",
    anyTask: "arn:aws:ecs:::task/t1/any",
    anyDefinition: "arn:aws:ecs:::task-definition/t1-sandbox-any:1",
    clusterArn: "arn:aws:ecs:::cluster/t1",
    anyObject: "arn:aws:s3:::b/runs/any",
  };
  expect(await account.missingRights(rights)).toEqual([
    "drivers may not do iam:PassRole on arn:aws:iam::1:role/pull (explicitDeny); deploy again, or look for a permissions boundary",
  ]);
  // The request meets the conditions of the role's policy; otherwise the simulation would deny allowed actions.
  for (const { body } of asked.filter(({ body }) => body.includes("SimulatePrincipalPolicy")))
    expect(new URLSearchParams(body).get("ContextEntries.member.2.ContextKeyValues.member.1")).toBe(
      "ecs-tasks.amazonaws.com",
    );
});
