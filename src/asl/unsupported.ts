// What Step Functions has and this interpreter does not. Each is refused by its name and the state's when a machine is
// loaded: a definition that runs here must mean the same there, so nothing is ignored in silence.
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

const OTHER_FIELDS: Readonly<Record<string, string>> = {
  ItemBatcher: "one failure would repeat a whole batch; let the plan make the groups",
  Iterator: "the old name of ItemProcessor",
  Credentials: "this runner knows one identity",
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
  for (const [field, why] of Object.entries(OTHER_FIELDS))
    if (field in state) throw refuse(field, `${where}.${field}`, why);
  if (state.Type === "Choice" && Array.isArray(state.Choices))
    for (const [index, rule] of state.Choices.entries())
      if (isJsonObject(rule))
        for (const field of ["Variable", "And", "Or", "Not"])
          if (field in rule)
            throw refuse(`${field} (JSONPath)`, `${where}.Choices[${index}].${field}`, "write a Condition");
  if (state.Type === "Map") refuseInMap(state, where);
}

function refuseInMap(state: JsonObject, where: string): void {
  const { ItemReader: reader, ItemProcessor: processor } = state;
  if (isJsonObject(processor) && isJsonObject(processor.ProcessorConfig)) {
    if (processor.ProcessorConfig.ExecutionType === "EXPRESS")
      throw refuse(
        "ExecutionType EXPRESS",
        `${where}.ItemProcessor.ProcessorConfig.ExecutionType`,
        "children may run for hours, and Express ends after five minutes without .sync or tokens; use STANDARD",
      );
  }
  if (!isJsonObject(reader)) return;
  if (isJsonObject(reader.ReaderConfig)) {
    const { ReaderConfig: config } = reader;
    const type = config.InputType;
    if (type !== undefined && type !== "JSON" && type !== "JSONL")
      throw refuse(`InputType ${String(type)}`, `${where}.ItemReader.ReaderConfig.InputType`, "write JSONL");
    for (const field of [
      "CSVHeaderLocation",
      "CSVHeaders",
      "CSVDelimiter",
      "MaxItemsPath",
      "Transformation",
      "ItemsPointer",
      "ManifestType",
    ])
      if (field in config) throw refuse(field, `${where}.ItemReader.ReaderConfig.${field}`, "write JSONL");
  }
  if ("Parameters" in reader)
    throw refuse("Parameters (JSONPath)", `${where}.ItemReader.Parameters`, "write Arguments");
}

export function refuse(feature: string, where: string, fix: string): InputError {
  return new InputError({ what: `not supported: ${feature}`, where, fix });
}
