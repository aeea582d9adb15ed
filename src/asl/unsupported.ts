// Features of Step Functions that this interpreter lacks. Loading a machine refuses each by its name and the state's: a
// definition that runs here must mean the same there, so nothing is ignored in silence.
import { InputError } from "../failure/errors.ts";
import { isJsonObject, type JsonObject } from "./json-value.ts";

/** Fields of JSONPath states; Step Functions refuses them in JSONata states too. */
const JSONPATH_FIELDS = [
  "InputPath",
  "OutputPath",
  "ResultPath",
  "ResultSelector",
  "Parameters",
  "Result",
  "ItemsPath",
  "SecondsPath",
  "TimestampPath",
  "TimeoutSecondsPath",
  "HeartbeatSecondsPath",
  "ErrorPath",
  "CausePath",
  "MaxConcurrencyPath",
  "ToleratedFailureCountPath",
  "ToleratedFailurePercentagePath",
];

/** With a hint what to write instead. */
const OTHER_FIELDS: Readonly<Record<string, string>> = {
  ItemBatcher: "one failure would repeat a whole batch; let the plan make the groups",
  Iterator: "write ItemProcessor, its new name",
  Credentials: "this runner has one identity; leave it out",
  HeartbeatSeconds: "only a task token sends heartbeats; write TimeoutSeconds",
  Timestamp: "write Seconds",
};

/** @throws InputError for the first unsupported part of one state, apart from the states inside it */
export function refuseUnsupported(state: JsonObject, where: string): void {
  for (const field of JSONPATH_FIELDS)
    if (field in state)
      throw refuse(
        `${field} (JSONPath)`,
        `${where}.${field}`,
        "write it in JSONata: Arguments, Output, Assign",
      );
  for (const [field, hint] of Object.entries(OTHER_FIELDS))
    if (field in state) throw refuse(field, `${where}.${field}`, hint);
  if (state.Type === "Choice" && Array.isArray(state.Choices))
    for (const [index, rule] of state.Choices.entries())
      if (isJsonObject(rule))
        for (const field of ["Variable", "And", "Or", "Not"])
          if (field in rule)
            throw refuse(`${field} (JSONPath)`, `${where}.Choices[${index}].${field}`, "write a Condition");
  if (state.Type === "Map") refuseInMap(state, where);
}

function refuseInMap(state: JsonObject, where: string): void {
  const processor = fieldsOf(state.ItemProcessor);
  const config = fieldsOf(processor.ProcessorConfig);
  const processorAt = `${where}.ItemProcessor.ProcessorConfig`;
  if (config.Mode !== "DISTRIBUTED")
    throw refuse("inline Map", processorAt, 'write "Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"');
  if (config.ExecutionType !== "STANDARD")
    throw refuse(
      `ExecutionType ${String(config.ExecutionType ?? "EXPRESS")}`,
      `${processorAt}.ExecutionType`,
      "write STANDARD: an Express child ends after five minutes and cannot use .sync",
    );
  if ("WriterConfig" in fieldsOf(state.ResultWriter))
    throw refuse("WriterConfig", `${where}.ResultWriter.WriterConfig`, "leave it out");
  const reader = fieldsOf(state.ItemReader);
  const readerAt = `${where}.ItemReader`;
  if ("Parameters" in reader)
    throw refuse("Parameters (JSONPath)", `${readerAt}.Parameters`, "write Arguments");
  if (typeof reader.Resource === "string" && reader.Resource.endsWith("listObjectsV2"))
    throw refuse("items from a list of objects", `${readerAt}.Resource`, "write JSON lines and getObject");
  const { InputType: type, ...others } = fieldsOf(reader.ReaderConfig);
  const configAt = `${readerAt}.ReaderConfig`;
  if (type !== undefined && type !== "JSONL")
    throw refuse(`InputType ${String(type)}`, `${configAt}.InputType`, "write JSONL");
  for (const field of Object.keys(others)) throw refuse(field, `${configAt}.${field}`, "leave it out");
}

function fieldsOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** @returns the error, to be thrown */
export function refuse(feature: string, where: string, fix: string): InputError {
  return new InputError({ what: `not supported: ${feature}`, where, fix });
}
