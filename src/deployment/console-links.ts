// Where a person sees more: pages of the AWS console. Partitions other than `aws` have consoles of their own.

const CONSOLES: Readonly<Record<string, string>> = {
  aws: "console.aws.amazon.com",
  "aws-cn": "console.amazonaws.cn",
  "aws-us-gov": "console.amazonaws-us-gov.com",
};

/** @param arn of an execution, also of a child of a Distributed Map */
export function executionLink(arn: string): string {
  const [, partition = "aws", , region = ""] = arn.split(":");
  return `https://${region}.${host(partition)}/states/home?region=${region}#/v2/executions/details/${encodeURIComponent(arn)}`;
}

/** @param log name of a log group @param stream of it */
export function logLink(region: string, log: string, stream: string, partition = "aws"): string {
  // CloudWatch's pages encode twice and write $ for %.
  const twice = (text: string): string => encodeURIComponent(encodeURIComponent(text)).replaceAll("%", "$");
  return `https://${region}.${host(partition)}/cloudwatch/home?region=${region}#logsV2:log-groups/log-group/${twice(log)}/log-events/${twice(stream)}`;
}

function host(partition: string): string {
  return CONSOLES[partition] ?? CONSOLES.aws;
}
