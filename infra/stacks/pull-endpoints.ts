// The interface endpoints by which sandboxes pull images: the dearest part of an idle deployment. They are a stack of
// their own, so that you can destroy it between runs and deploy it again in minutes.
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
