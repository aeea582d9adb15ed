// Lines for CloudWatch. A function that runs elsewhere has no log: what it has to say it throws.

const isInLambda = process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined;

export function logError(line: Readonly<Record<string, unknown>>): void {
  if (isInLambda) console.error(line);
}

export function logWarning(message: string): void {
  if (isInLambda) console.warn({ message });
}

/** As it is: console.log would wrap it in the function's own log format. */
export function logRaw(line: object): void {
  if (isInLambda) process.stdout.write(`${JSON.stringify(line)}\n`);
}
