// The interface endpoints by which sandboxes pull images: the dearest thing of a deployment that does nothing. A stack
// of its own, so that it can be destroyed between runs and deployed again in minutes, alone.
import { Stack, type StackProps } from "aws-cdk-lib";
import { InterfaceVpcEndpoint, InterfaceVpcEndpointAwsService } from "aws-cdk-lib/aws-ec2";
import type { Construct } from "constructs";
import type { NetworkStack } from "./network.ts";

export class PullEndpointsStack extends Stack {
  constructor(scope: Construct, id: string, { network, ...props }: StackProps & { network: NetworkStack }) {
    super(scope, id, props);
    const services = {
      Manifests: InterfaceVpcEndpointAwsService.ECR_DOCKER,
      Api: InterfaceVpcEndpointAwsService.ECR,
    };
    for (const [name, service] of Object.entries(services)) {
      new InterfaceVpcEndpoint(this, name, {
        vpc: network.vpc,
        service,
        subnets: { subnets: [...network.sandboxSubnets] },
        securityGroups: [network.groups.endpoints],
        open: false,
        privateDnsEnabled: true,
      });
    }
  }
}
