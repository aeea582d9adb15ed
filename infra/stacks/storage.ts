// The store: one bucket with everything that a run writes, and one for access and flow logs.
import { Duration, RemovalPolicy, Stack, type StackProps } from "aws-cdk-lib";
import {
  BlockPublicAccess,
  Bucket,
  BucketEncryption,
  ObjectOwnership,
  StorageClass,
  TransitionDefaultMinimumObjectSize,
} from "aws-cdk-lib/aws-s3";
import type { Construct } from "constructs";
import type { DeploymentConfig } from "../config.ts";

export class StorageStack extends Stack {
  readonly store: Bucket;
  readonly logs: Bucket;

  constructor(scope: Construct, id: string, { config, ...props }: StackProps & { config: DeploymentConfig }) {
    super(scope, id, props);
    const { retain, mapResultDays, logDays, coldDays } = config.storage;
    const common = {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    };
    this.logs = new Bucket(this, "Logs", {
      ...common,
      removalPolicy: retain ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      lifecycleRules: [{ expiration: Duration.days(logDays), abortIncompleteMultipartUploadAfter: DAYS_2 }],
    });
    this.store = new Bucket(this, "Store", {
      ...common,
      removalPolicy: retain ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
      serverAccessLogsBucket: this.logs,
      serverAccessLogsPrefix: "store-access/",
      // Objects are written once or by compare-and-swap, so older versions would only cost money.
      versioned: false,
      transitionDefaultMinimumObjectSize: TransitionDefaultMinimumObjectSize.ALL_STORAGE_CLASSES_128_K,
      lifecycleRules: [
        { id: "unfinished-uploads", abortIncompleteMultipartUploadAfter: DAYS_2 },
        { id: "map-results", prefix: "map-results/", expiration: Duration.days(mapResultDays) },
        { id: "stop-reasons", prefix: "stops/", expiration: Duration.days(logDays) },
        { id: "build-contexts", prefix: "builds/", expiration: Duration.days(logDays) },
        {
          id: "old-trajectories",
          prefix: "runs/",
          transitions: [
            { storageClass: StorageClass.INFREQUENT_ACCESS, transitionAfter: Duration.days(coldDays) },
          ],
        },
      ],
    });
  }
}

/** Longer than any upload of ours takes. */
const DAYS_2 = Duration.days(2);
