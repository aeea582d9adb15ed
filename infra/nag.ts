// cdk-nag's rules for AWS solutions. It names every wildcard of every role as a finding of its own; here one reason per
// role covers them, and test/infra/roles.test.ts lists what each role may do, action by action and resource by resource.
import {
  type IPolicyValidationContext,
  type IPolicyValidationPlugin,
  type PolicyValidationPluginReport,
  Validations,
} from "aws-cdk-lib";
import { AwsSolutionsChecks } from "cdk-nag";
import type { IConstruct } from "constructs";

export class SolutionsChecks implements IPolicyValidationPlugin {
  readonly name = "AwsSolutions";
  readonly #checks = new AwsSolutionsChecks();

  validate(context: IPolicyValidationContext): PolicyValidationPluginReport {
    const root = context.appConstruct;
    const { violations } = this.#checks.validate(context);
    const open = violations.flatMap(violation => {
      const [rule] = violation.ruleName.split("[");
      const violatingResources = violation.violatingResources.filter(
        ({ constructPath }) => !isAcknowledged(root, constructPath, rule),
      );
      return violatingResources.length === 0 ? [] : [{ ...violation, violatingResources }];
    });
    return { success: open.length === 0, violations: open };
  }
}

/** Written down on the construct or on one that holds it (constructs/acknowledge.ts). */
function isAcknowledged(root: IConstruct | undefined, path: string | undefined, rule: string): boolean {
  let node: IConstruct | undefined = root;
  const scopes = [];
  for (const id of (path ?? "").split("/")) {
    node = node?.node.tryFindChild(id);
    if (node !== undefined) scopes.push(node);
  }
  return scopes.some(scope =>
    scope.node.metadata.some(
      ({ type, data }) =>
        type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY &&
        Object.keys(data ?? {}).some(key => key.replace(/^annotation::/i, "") === rule),
    ),
  );
}
