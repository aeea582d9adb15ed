// A Lambda function from lambdas/<name>/handler.ts. esbuild runs in this process: NodejsFunction would start npx and
// esbuild anew for each of ten functions, which takes longer than the rest of the synthesis.
import { join } from "node:path";
import { AssetHashType, DockerImage, type Duration, RemovalPolicy, Size } from "aws-cdk-lib";
import { type PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import {
  Architecture,
  Code,
  Function as LambdaFunction,
  LoggingFormat,
  Runtime,
} from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { type BuildOptions, buildSync } from "esbuild";
import { acknowledge } from "./acknowledge.ts";
import { allow } from "./permissions.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface StageFunctionProps {
  /** Folder in lambdas/. */
  readonly handler: string;
  readonly description: string;
  readonly timeout: Duration;
  readonly memoryMiB: number;
  readonly environment: Readonly<Record<string, string>>;
  readonly permissions: readonly PolicyStatement[];
  /** The reason why its role needs wildcards beyond keys of the store. */
  readonly wildcards?: string;
  readonly temporaryGiB?: number;
}

export class StageFunction extends Construct {
  readonly function: LambdaFunction;
  readonly timeoutSeconds: number;

  constructor(scope: Construct, id: string, props: StageFunctionProps) {
    super(scope, id);
    const log = new LogGroup(this, "Log", {
      retention: RetentionDays.THREE_MONTHS,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new Role(this, "Role", { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
    role.addToPolicy(allow(["logs:CreateLogStream", "logs:PutLogEvents"], [log.logGroupArn]));
    for (const statement of props.permissions) role.addToPolicy(statement);
    this.function = new LambdaFunction(this, "Function", {
      description: props.description,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: "handler.handler",
      code: bundled(props.handler),
      role,
      logGroup: log,
      loggingFormat: LoggingFormat.JSON,
      timeout: props.timeout,
      memorySize: props.memoryMiB,
      environment: { NODE_OPTIONS: "--enable-source-maps", ...props.environment },
      ...(props.temporaryGiB !== undefined && { ephemeralStorageSize: Size.gibibytes(props.temporaryGiB) }),
    });
    this.timeoutSeconds = props.timeout.toSeconds();
    acknowledge(role, {
      "AwsSolutions-IAM5": `Keys of the store and log streams have names that exist only once a run is there; each wildcard is below one prefix or log group. ${props.wildcards ?? ""}`,
    });
  }
}

/** Assets are named by their content, so an unchanged function is not deployed again. */
function bundled(name: string): Code {
  const folder = join(ROOT, "lambdas", name);
  return Code.fromAsset(folder, {
    bundling: {
      image: DockerImage.fromRegistry("unused: bundled in this process"),
      local: {
        tryBundle(outdir: string): boolean {
          buildSync({
            entryPoints: [join(folder, "handler.ts")],
            outfile: join(outdir, "handler.mjs"),
            ...BUNDLE_OPTIONS,
          });
          return true;
        },
      },
    },
    assetHashType: AssetHashType.OUTPUT,
  });
}

/** Shared with the test that measures the bundles. */
export const BUNDLE_OPTIONS: BuildOptions = {
  bundle: true,
  platform: "node",
  target: "node24",
  format: "esm",
  minify: true,
  // Take the ES modules of the AWS SDK, from which esbuild can drop unused parts; its default is Node's CommonJS form.
  mainFields: ["module", "main"],
  alias: { zod: join(import.meta.dirname, "zod-in-english.mjs") },
  sourcemap: false,
  // Packages of the AWS SDK still require() Node's modules.
  banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
  logLevel: "error",
};
