// What an answer of an AWS service, or none, means for a person at a terminal. S3 has its own (store/s3/s3-errors.ts),
// where a store also has to tell lost writes from failed ones.
import { Failure, InputError } from "../failure/errors.ts";

const EXPIRED = new Set(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"]);
const UNKNOWN_KEY = new Set([
  ...["InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException"],
  ...["SignatureDoesNotMatch", "InvalidAccessKeyId", "IncompleteSignature", "MissingAuthenticationToken"],
]);
const DENIED = new Set([
  ...["AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"],
]);
const NETWORK = new Set([
  ...["ECONNRESET", "ECONNREFUSED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "ENOTFOUND"],
  "EAI_AGAIN",
]);

/**
 * Awaits an answer of AWS.
 *
 * @param action as IAM spells it, e.g. `states:StartExecution`: who is denied it reads what to allow
 * @throws InputError where a person has to change something; Failure AwsUnavailable where trying again may help; an
 *   answer that the caller may know what to do with comes as it is
 */
export async function asked<Answer>(action: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    throw attributeAwsError(error, action);
  }
}

/** @returns the error itself where it is none of those that every service can answer with */
function attributeAwsError(thrown: unknown, action: string): unknown {
  if (!(thrown instanceof Error) || thrown instanceof InputError || thrown instanceof Failure) return thrown;
  const options = { cause: thrown };
  const { name, message } = thrown;
  if (name === "CredentialsProviderError")
    return new InputError(
      {
        what: "no credentials for AWS",
        where: action,
        expected: `expected them in the environment, a profile or the role of this machine: ${firstLine(message)}`,
        fix: "aws sso login and set AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
      },
      options,
    );
  if (/^Region is missing/.test(message))
    return new InputError(
      {
        what: "no region",
        where: action,
        expected: "expected to know where the deployment is",
        fix: "set AWS_REGION to the region it was deployed to, or choose a profile that has one",
      },
      options,
    );
  if (EXPIRED.has(name))
    return new InputError(
      {
        what: "the credentials have expired",
        where: action,
        expected: `expected valid ones, got ${name}: ${message}`,
        fix: "renew them, e.g. by aws sso login; what is deployed goes on meanwhile",
      },
      options,
    );
  if (UNKNOWN_KEY.has(name))
    return new InputError(
      {
        what: "the credentials are refused",
        where: action,
        expected: `expected ones of the deployment's account, got ${name}: ${message}`,
        fix: "check AWS_PROFILE, or the access key and its secret",
      },
      options,
    );
  if (DENIED.has(name) || /not authorized to perform/.test(message))
    return new InputError(
      {
        what: "access is denied",
        where: action,
        expected: `expected to be allowed to: ${message}`,
        fix: `allow ${action} to the role that you use, or choose another profile`,
      },
      options,
    );
  if (name === "TypeError" && /^Invalid URL/.test(message))
    return new InputError(
      {
        what: `no address of a service: ${(thrown as { input?: unknown }).input ?? message}`,
        where: action,
        expected: "expected a URL in AWS_ENDPOINT_URL and its like",
        fix: "correct it, or leave it out to speak to AWS itself",
      },
      options,
    );
  if (isUnavailable(thrown))
    return new Failure("AwsUnavailable", `${action}: ${name}: ${message}`, { ...options, retryable: true });
  const status = statusOf(thrown);
  // The SDK's word for an answer with no error of the service's in it.
  if (name === "Unknown" && status !== undefined)
    return new InputError(
      {
        what: `what answered is no service of AWS (HTTP ${status})`,
        where: action,
        expected: "expected an error of the service in the answer",
        fix: "check AWS_ENDPOINT_URL, and whether a proxy stands between",
      },
      options,
    );
  return thrown;
}

function statusOf(error: Error): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
}

function isUnavailable(error: Error): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && NETWORK.has(code)) return true;
  const status = statusOf(error);
  return (
    ["TimeoutError", "ThrottlingException", "Throttling", "TooManyRequestsException"].includes(error.name) ||
    (status !== undefined && (status === 429 || status >= 500))
  );
}

function firstLine(text: string): string {
  return text.split("\n")[0];
}
