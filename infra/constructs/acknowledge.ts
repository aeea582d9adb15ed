// Acknowledges the rules of cdk-nag that a construct breaks on purpose, each with its reason.
import { Validations } from "aws-cdk-lib";
import type { Construct } from "constructs";

export function acknowledge(construct: Construct, reasons: Readonly<Record<string, string>>): void {
  for (const [id, reason] of Object.entries(reasons)) Validations.of(construct).acknowledge({ id, reason });
}
