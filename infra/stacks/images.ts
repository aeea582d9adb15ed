// The repositories of images and the project that builds them. Nothing pulls from a public registry at run time: CodeBuild
// builds task images, and copies public ones (a context of one FROM line), ahead of time.
import { Aws, Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import { BuildSpec, ComputeType, LinuxBuildImage, Project } from "aws-cdk-lib/aws-codebuild";
import { Repository, TagMutability, TagStatus } from "aws-cdk-lib/aws-ecr";
import { ManagedPolicy, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import type { IBucket } from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";
import { acknowledge } from "../constructs/acknowledge.ts";
import { allow } from "../constructs/permissions.ts";

/** Our own images. */
const OWN_IMAGES = ["driver", "sampler", "trainer", "sandbox-toolkit", "egress-proxy"] as const;
export type OwnImage = (typeof OWN_IMAGES)[number];

export class ImagesStack extends Stack {
  readonly own: Readonly<Record<OwnImage, Repository>>;
  /** Sandbox images, tagged by the hash of their build context. */
  readonly tasks: Repository;
  readonly build: Project;

  constructor(
    scope: Construct,
    id: string,
    { config, store, ...props }: StackProps & { config: DeploymentConfig; store: IBucket },
  ) {
    super(scope, id, props);
    const repository = (name: string, mutability: TagMutability): Repository =>
      new Repository(this, name, {
        repositoryName: `${config.name}/${name}`,
        imageScanOnPush: true,
        imageTagMutability: mutability,
        removalPolicy: RemovalPolicy.DESTROY,
        emptyOnDelete: true,
        lifecycleRules: [{ tagStatus: TagStatus.UNTAGGED, maxImageAge: Duration.days(7) }],
      });
    this.own = Object.fromEntries(
      OWN_IMAGES.map(name => [name, repository(name, TagMutability.MUTABLE)]),
    ) as Record<OwnImage, Repository>;
    this.tasks = repository("tasks", TagMutability.IMMUTABLE);
    this.build = this.#project(
      "Build",
      "Builds T1_DOCKERFILE from the archive at T1_CONTEXT, pushes it as T1_IMAGE and writes its config to T1_CONFIG",
      store,
      [
        'aws s3 cp "$T1_CONTEXT" context.tar && mkdir context && tar -xf context.tar -C context',
        // Tags of task images are hashes of their contexts, so an image that exists is the same.
        'docker manifest inspect "$T1_IMAGE" > found 2>&1 || { docker build --tag "$T1_IMAGE" --file "context/$T1_DOCKERFILE" context && docker push "$T1_IMAGE"; }',
        // On Fargate our daemon starts in place of the image's entry point, and has to know that entry point.
        'docker image inspect "$T1_IMAGE" > found 2>&1 || docker pull --quiet "$T1_IMAGE"',
        "docker image inspect --format '{{json .Config}}' \"$T1_IMAGE\" > config.json",
        'aws s3 cp config.json "$T1_CONFIG"',
      ],
    );
  }

  #project(name: string, description: string, store: IBucket, commands: string[]): Project {
    const log = new LogGroup(this, `${name}Log`, {
      retention: RetentionDays.THREE_MONTHS,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, `${name}Role`, {
      assumedBy: new ServicePrincipal("codebuild.amazonaws.com"),
    });
    // Pass a managed policy, so that CDK adds none of its own wider statements.
    role.addManagedPolicy(
      new ManagedPolicy(this, `${name}Policy`, {
        statements: [
          allow(["logs:CreateLogStream", "logs:PutLogEvents"], [log.logGroupArn, `${log.logGroupArn}:*`]),
          allow(["s3:GetObject"], [store.arnForObjects("builds/*"), store.arnForObjects("pools/*")]),
          allow(["s3:PutObject"], [store.arnForObjects("builds/*.config.json")]),
          allow(["ecr:GetAuthorizationToken"], ["*"]), // has no resource-level permissions
          allow(
            [
              "ecr:BatchCheckLayerAvailability",
              "ecr:BatchGetImage",
              "ecr:CompleteLayerUpload",
              "ecr:GetDownloadUrlForLayer",
              "ecr:InitiateLayerUpload",
              "ecr:PutImage",
              "ecr:UploadLayerPart",
            ],
            [this.tasks, ...Object.values(this.own)].map(repository => repository.repositoryArn),
          ),
        ],
      }),
    );
    const registry = `${Aws.ACCOUNT_ID}.dkr.ecr.${Aws.REGION}.${Aws.URL_SUFFIX}`;
    const project = new Project(this, name, {
      description,
      role: role.withoutPolicyUpdates(),
      timeout: Duration.hours(1),
      environment: {
        buildImage: LinuxBuildImage.STANDARD_7_0,
        computeType: ComputeType.MEDIUM,
        privileged: true,
      },
      logging: { cloudWatch: { logGroup: log } },
      buildSpec: BuildSpec.fromObject({
        version: "0.2",
        phases: {
          pre_build: {
            commands: [
              `aws ecr get-login-password | docker login --username AWS --password-stdin ${registry}`,
            ],
          },
          build: { commands },
        },
      }),
    });
    acknowledge(project, {
      "AwsSolutions-CB3":
        "Building images takes a Docker daemon, which CodeBuild offers in privileged mode only.",
      "AwsSolutions-CB4":
        "The only artefacts are images, which ECR encrypts; a key of one's own costs 1 $ a month.",
    });
    acknowledge(this, {
      "AwsSolutions-IAM5":
        "ecr:GetAuthorizationToken has no resource-level permissions; build contexts and log streams have names that exist only once they are made.",
    });
    return project;
  }
}
