// Two kinds of subnets. Sandboxes have no way out: no NAT, no internet gateway, and DNS answers for our own endpoints
// only. Drivers, samplers and trainers have public addresses and let nothing in: that is cheaper than NAT, whose price
// for pulling images exceeds that of the compute.
import { Aws, Stack, type StackProps } from "aws-cdk-lib";
import {
  FlowLogDestination,
  FlowLogTrafficType,
  GatewayVpcEndpoint,
  GatewayVpcEndpointAwsService,
  IpAddresses,
  type ISubnet,
  Peer,
  Port,
  SecurityGroup,
  SubnetType,
  Vpc,
} from "aws-cdk-lib/aws-ec2";
import { AnyPrincipal, PolicyStatement } from "aws-cdk-lib/aws-iam";
import {
  CfnFirewallDomainList,
  CfnFirewallRuleGroup,
  CfnFirewallRuleGroupAssociation,
} from "aws-cdk-lib/aws-route53resolver";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import { PrivateDnsNamespace } from "aws-cdk-lib/aws-servicediscovery";
import type { Construct } from "constructs";
import { PORTS } from "../../src/sandbox/fargate/task-request.ts";
import type { DeploymentConfig } from "../config.ts";
import { dnsDomains } from "../dns-domains.ts";

export interface NetworkProps extends StackProps {
  readonly config: DeploymentConfig;
  readonly store: IBucket;
  readonly logs: IBucket;
}

export const SAMPLER_PORT = 8000;
export const PROXY_PORT = 3128;

/** Only these security groups decide which parts may talk to each other. */
export interface Groups {
  readonly sandbox: SecurityGroup;
  readonly driver: SecurityGroup;
  readonly sampler: SecurityGroup;
  readonly trainer: SecurityGroup;
  readonly endpoints: SecurityGroup;
  /** With the proxy profile only: the proxy's group, and the second group of sandboxes whose tasks may use the proxy. */
  readonly egress: { readonly proxy: SecurityGroup; readonly networked: SecurityGroup } | undefined;
}

export class NetworkStack extends Stack {
  readonly vpc: Vpc;
  readonly sandboxSubnets: readonly ISubnet[];
  readonly publicSubnets: readonly ISubnet[];
  readonly groups: Groups;
  readonly namespace: PrivateDnsNamespace;

  constructor(scope: Construct, id: string, { config, store, logs, ...props }: NetworkProps) {
    super(scope, id, props);
    const { cidr, zones, sandboxMask } = config.network;
    this.vpc = new Vpc(this, "Vpc", {
      ipAddresses: IpAddresses.cidr(cidr),
      maxAzs: zones,
      natGateways: 0,
      // true would add a function that edits the default group; nothing of ours is in that group.
      restrictDefaultSecurityGroup: false,
      subnetConfiguration: [
        { name: "Sandbox", subnetType: SubnetType.PRIVATE_ISOLATED, cidrMask: sandboxMask },
        { name: "Public", subnetType: SubnetType.PUBLIC, cidrMask: 22, mapPublicIpOnLaunch: false },
      ],
    });
    this.sandboxSubnets = this.vpc.isolatedSubnets;
    this.publicSubnets = this.vpc.publicSubnets;
    this.vpc.addFlowLog("Refused", {
      destination: FlowLogDestination.toS3(logs, "flow-logs/"),
      trafficType: FlowLogTrafficType.REJECT,
    });
    this.#reachS3(store);
    this.groups = this.#groups(config);
    this.namespace = new PrivateDnsNamespace(this, "Namespace", {
      name: `${config.name}.internal`,
      vpc: this.vpc,
    });
    this.#filterDns(config);
  }

  /** The S3 gateway endpoint is free and brings image layers to sandboxes. It reaches only our bucket and ECR's layers. */
  #reachS3(store: IBucket): void {
    const endpoint = new GatewayVpcEndpoint(this, "S3", {
      vpc: this.vpc,
      service: GatewayVpcEndpointAwsService.S3,
      subnets: [{ subnetType: SubnetType.PRIVATE_ISOLATED }, { subnetType: SubnetType.PUBLIC }],
    });
    const anyone = { principals: [new AnyPrincipal()] };
    endpoint.addToPolicy(
      new PolicyStatement({
        ...anyone,
        actions: ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
        resources: [store.arnForObjects("*")],
      }),
    );
    endpoint.addToPolicy(
      new PolicyStatement({
        ...anyone,
        actions: ["s3:ListBucket", "s3:GetBucketLocation"],
        resources: [store.bucketArn],
      }),
    );
    endpoint.addToPolicy(
      new PolicyStatement({
        ...anyone,
        actions: ["s3:GetObject"],
        resources: [`arn:${Aws.PARTITION}:s3:::prod-${Aws.REGION}-starport-layer-bucket/*`],
      }),
    );
  }

  #groups({ network }: DeploymentConfig): Groups {
    const group = (name: string, description: string, allowAllOutbound: boolean): SecurityGroup =>
      new SecurityGroup(this, name, { vpc: this.vpc, description, allowAllOutbound });
    const sandbox = group("SandboxGroup", "Sandboxes: untrusted commands", false);
    const driver = group("DriverGroup", "Drivers: play episodes", true);
    const sampler = group("SamplerGroup", "Samplers: answer drivers", true);
    const trainer = group("TrainerGroup", "Training jobs", true);
    const endpoints = group("EndpointsGroup", "Interface endpoints that sandboxes pull images by", false);
    sandbox.addIngressRule(
      driver,
      Port.tcpRange(PORTS.agent, PORTS.verifier),
      "the driver speaks to the daemons of agent and verifier",
    );
    sandbox.addEgressRule(endpoints, Port.tcp(443), "image manifests");
    // Layers come from S3. The subnets route nowhere but to its gateway endpoint, and no other group lets sandboxes in.
    sandbox.addEgressRule(Peer.anyIpv4(), Port.tcp(443), "image layers, by the gateway endpoint");
    // Their private names hold in the whole VPC, so everything else that pulls images uses these endpoints as well.
    for (const client of [sandbox, driver, sampler, trainer])
      endpoints.addIngressRule(client, Port.tcp(443), "image manifests");
    sampler.addIngressRule(driver, Port.tcp(SAMPLER_PORT), "drivers ask for tokens");
    if (network.egress.profile === "none")
      return { sandbox, driver, sampler, trainer, endpoints, egress: undefined };
    const proxy = group("ProxyGroup", "The way out to listed domains", false);
    const networked = group("NetworkedGroup", "Sandboxes whose tasks may use the network", false);
    proxy.addIngressRule(networked, Port.tcp(PROXY_PORT), "sandboxes ask it");
    networked.addEgressRule(proxy, Port.tcp(PROXY_PORT), "to the proxy and nowhere else");
    for (const port of [80, 443]) proxy.addEgressRule(Peer.anyIpv4(), Port.tcp(port), "listed domains");
    endpoints.addIngressRule(proxy, Port.tcp(443), "image manifests");
    return { sandbox, driver, sampler, trainer, endpoints, egress: { proxy, networked } };
  }

  /** The VPC's resolver answers even where nothing is routed: names of an attacker's zone would carry data out. */
  #filterDns(config: DeploymentConfig): void {
    const list = (name: string, domains: string[]): string =>
      new CfnFirewallDomainList(this, name, { domains }).attrId;
    const group = new CfnFirewallRuleGroup(this, "DnsRules", {
      firewallRules: [
        {
          priority: 100,
          action: "ALLOW",
          firewallDomainListId: list("KnownDomains", dnsDomains(config, Aws.REGION)),
          // Otherwise the firewall would refuse an allowed name's own alias.
          firewallDomainRedirectionAction: "TRUST_REDIRECTION_DOMAIN",
        },
        {
          priority: 200,
          action: "BLOCK",
          blockResponse: "NXDOMAIN",
          firewallDomainListId: list("AllDomains", ["*"]),
        },
      ],
    });
    new CfnFirewallRuleGroupAssociation(this, "DnsFilter", {
      firewallRuleGroupId: group.attrId,
      vpcId: this.vpc.vpcId,
      priority: 101,
    });
  }
}
