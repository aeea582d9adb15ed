// Checks the account of a deployment: its quotas, its images, and the permissions of the driver's role.
import { DescribeImagesCommand, ECRClient } from "@aws-sdk/client-ecr";
import { IAMClient, SimulatePrincipalPolicyCommand } from "@aws-sdk/client-iam";
import { GetServiceQuotaCommand, ServiceQuotasClient } from "@aws-sdk/client-service-quotas";
import type { Account } from "../../src/stages/preflight.ts";

export const account: Account = { quotas, missingImages, missingRights };

/** In vCPUs. */
async function quotas(): Promise<{ readonly onDemand: number; readonly spot: number }> {
  const client = new ServiceQuotasClient();
  const quota = async (code: string): Promise<number> => {
    const command = new GetServiceQuotaCommand({ ServiceCode: "fargate", QuotaCode: code });
    return (await client.send(command)).Quota?.Value ?? 0;
  };
  // "Fargate On-Demand vCPU resource count" and "Fargate Spot vCPU resource count".
  const [onDemand, spot] = await Promise.all([quota("L-3032A538"), quota("L-36FBB829")]);
  return { onDemand, spot };
}

/** @returns a sentence for each missing image */
async function missingImages(repositories: readonly string[], tag: string): Promise<readonly string[]> {
  const client = new ECRClient();
  const problems = await Promise.all(
    repositories.map(async repositoryName => {
      try {
        await client.send(new DescribeImagesCommand({ repositoryName, imageIds: [{ imageTag: tag }] }));
        return [];
      } catch (error) {
        const name = error instanceof Error ? error.name : "";
        if (name !== "ImageNotFoundException" && name !== "RepositoryNotFoundException") throw error;
        return [`there is no image ${repositoryName}:${tag}; build and push it (docs/operate.md, Deploy)`];
      }
    }),
  );
  return problems.flat();
}

/**
 * Asks IAM's simulation, which knows the role's policies and its permissions boundary: it sees a change made by hand, but
 * not the policies of an organisation.
 *
 * @returns a sentence for each action that the role may not do
 */
async function missingRights(
  deployment: Parameters<Account["missingRights"]>[0],
): Promise<readonly string[]> {
  const client = new IAMClient();
  const context = (name: string, value: string) => ({
    ContextKeyName: name,
    ContextKeyType: "string" as const,
    ContextKeyValues: [value],
  });
  const asked = [
    { actions: ["ecs:RunTask"], resource: deployment.anyDefinition },
    { actions: ["ecs:StopTask", "ecs:DescribeTasks"], resource: deployment.anyTask },
    { actions: ["iam:PassRole"], resource: deployment.sandboxExecutionRole },
    { actions: ["s3:GetObject", "s3:PutObject"], resource: deployment.anyObject },
  ];
  const problems = await Promise.all(
    asked.map(async ({ actions, resource }) => {
      const { EvaluationResults = [] } = await client.send(
        new SimulatePrincipalPolicyCommand({
          PolicySourceArn: deployment.driverRole,
          ActionNames: actions,
          ResourceArns: [resource],
          ContextEntries: [
            context("ecs:cluster", deployment.clusterArn),
            context("iam:PassedToService", "ecs-tasks.amazonaws.com"),
          ],
        }),
      );
      return EvaluationResults.filter(({ EvalDecision }) => EvalDecision !== "allowed").map(
        ({ EvalActionName, EvalDecision }) =>
          `drivers may not do ${EvalActionName} on ${resource} (${EvalDecision}); deploy again, or look for a permissions boundary`,
      );
    }),
  );
  return problems.flat();
}
