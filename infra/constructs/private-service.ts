// A container that serves the VPC under a private name. It stands in the public subnets because it has to reach out; only
// its security group decides who may reach it.
import { Duration, RemovalPolicy } from "aws-cdk-lib";
import type { ISecurityGroup } from "aws-cdk-lib/aws-ec2";
import type { IRepository } from "aws-cdk-lib/aws-ecr";
import {
  ContainerImage,
  CpuArchitecture,
  FargateService,
  FargateTaskDefinition,
  type HealthCheck,
  type ICluster,
  LogDrivers,
  OperatingSystemFamily,
} from "aws-cdk-lib/aws-ecs";
import type { IRole } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { DnsRecordType } from "aws-cdk-lib/aws-servicediscovery";
import type { Construct } from "constructs";
import type { NetworkStack } from "../stacks/network.ts";

export interface PrivateServiceProps {
  /** Name of the task family and the service. */
  readonly serviceName: string;
  /** Name of the container and its log, and the name in the private zone. */
  readonly name: string;
  readonly port: number;
  readonly image: IRepository;
  readonly imageTag: string;
  readonly size: { readonly cpu: number; readonly memoryMiB: number };
  readonly environment: Readonly<Record<string, string>>;
  readonly healthCheck: HealthCheck;
  readonly desiredCount: number;
  readonly taskRole?: IRole;
  readonly stopTimeout?: Duration;
  readonly cluster: ICluster;
  readonly network: NetworkStack;
  readonly groups: readonly ISecurityGroup[];
}

export function addPrivateService(scope: Construct, props: PrivateServiceProps) {
  const { serviceName, name, size, network } = props;
  const definition = new FargateTaskDefinition(scope, "Task", {
    family: serviceName,
    cpu: size.cpu,
    memoryLimitMiB: size.memoryMiB,
    ...(props.taskRole !== undefined && { taskRole: props.taskRole }),
    runtimePlatform: {
      cpuArchitecture: CpuArchitecture.X86_64,
      operatingSystemFamily: OperatingSystemFamily.LINUX,
    },
  });
  definition.addContainer(name, {
    image: ContainerImage.fromEcrRepository(props.image, props.imageTag),
    portMappings: [{ containerPort: props.port }],
    ...(props.stopTimeout !== undefined && { stopTimeout: props.stopTimeout }),
    environment: { ...props.environment },
    healthCheck: props.healthCheck,
    logging: LogDrivers.awsLogs({
      streamPrefix: name,
      logGroup: new LogGroup(scope, "Log", {
        retention: RetentionDays.THREE_MONTHS,
        removalPolicy: RemovalPolicy.DESTROY,
      }),
    }),
  });
  const service = new FargateService(scope, "Service", {
    serviceName,
    cluster: props.cluster,
    taskDefinition: definition,
    desiredCount: props.desiredCount,
    minHealthyPercent: 100,
    assignPublicIp: true,
    vpcSubnets: { subnets: [...network.publicSubnets] },
    securityGroups: [...props.groups],
    circuitBreaker: { rollback: true },
    cloudMapOptions: {
      name,
      cloudMapNamespace: network.namespace,
      dnsRecordType: DnsRecordType.A,
      dnsTtl: Duration.seconds(10),
    },
  });
  return { definition, service };
}
