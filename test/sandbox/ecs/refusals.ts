// What the fake of ECS refuses, as far as our requests could be wrong in it.
import type { RunTaskCommandInput } from "@aws-sdk/client-ecs";
import type { TaskDefinition } from "./ecs-task.ts";

export class Refused extends Error {
  readonly type: string;

  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

/** @throws Refused for what RunTask refuses */
export function assertRequest(request: RunTaskCommandInput, definition: TaskDefinition): void {
  const refuse = (message: string): never => {
    throw new Refused("InvalidParameterException", message);
  };
  const { clientToken = "", startedBy = "", tags = [], overrides = {}, networkConfiguration } = request;
  if (clientToken.length > 64) refuse("clientToken is longer than 64 characters");
  if (startedBy.length > 128 || !/^[\w./-]*$/.test(startedBy)) refuse("startedBy is not valid");
  if (Buffer.byteLength(JSON.stringify(overrides)) > 8192)
    refuse("Container Overrides length must be at most 8192");
  if (tags.length > 50) refuse("too many tags");
  for (const { key = "", value = "" } of tags)
    if (key.length > 128 || value.length > 256 || !/^[\p{L}\p{N}\s_.:/=+@-]*$/u.test(value))
      refuse(`tag ${key}`);
  if ((networkConfiguration?.awsvpcConfiguration?.subnets ?? []).length === 0)
    refuse("subnets can not be empty.");
  for (const { name } of overrides.containerOverrides ?? [])
    if (!definition.containerDefinitions.some(container => container.name === name))
      refuse(`Override for container named ${name} is not a container in the TaskDefinition.`);
  if (request.launchType !== undefined && request.capacityProviderStrategy !== undefined)
    refuse("Specifying both a launch type and capacity provider strategy is not supported.");
}
