// Reads state machines from a synthesized CloudFormation template (`cdk.out/*.template.json`): the deployed definition
// with its references replaced by local names. There is no second copy of a definition.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import type { Json } from "./json-value.ts";

const Template = z.looseObject({
  Resources: z.record(
    z.string(),
    z.looseObject({ Type: z.string(), Properties: z.record(z.string(), z.unknown()).optional() }),
  ),
});

/**
 * Local names of resources. Keys are a logical id for Ref, `Id.Attribute` for GetAtt, the export's name for ImportValue,
 * and pseudo parameters: `AWS::Region`.
 */
export type Symbols = Readonly<Record<string, string>>;

const PSEUDO: Symbols = {
  "AWS::Region": "us-east-1",
  "AWS::AccountId": "000000000000",
  "AWS::Partition": "aws",
  "AWS::URLSuffix": "amazonaws.com",
};

/**
 * @param file of the template, for messages
 * @returns definitions by the machines' names: their StateMachineName, else their logical id
 * @throws InputError for a reference without a symbol
 */
export function readMachines(
  template: unknown,
  file: string,
  symbols: Symbols,
): Readonly<Record<string, string>> {
  const parsed = Template.safeParse(template);
  if (!parsed.success)
    throw new InputError({
      what: "no CloudFormation template",
      where: file,
      expected: z.prettifyError(parsed.error),
    });
  const machines: Record<string, string> = {};
  for (const [id, { Type: type, Properties: properties = {} }] of Object.entries(parsed.data.Resources)) {
    if (type !== "AWS::StepFunctions::StateMachine") continue;
    const where = `${file}: ${id}`;
    const all = { ...PSEUDO, ...symbols };
    const name =
      properties.StateMachineName === undefined ? id : resolveText(properties.StateMachineName, where, all);
    machines[name] =
      properties.Definition === undefined
        ? resolveText(properties.DefinitionString, where, all)
        : JSON.stringify(resolveDeep(properties.Definition as Json, where, all));
  }
  return machines;
}

function resolveDeep(value: Json, where: string, symbols: Symbols): Json {
  if (Array.isArray(value)) return value.map(item => resolveDeep(item, where, symbols));
  if (typeof value !== "object" || value === null) return value;
  const [key, ...more] = Object.keys(value);
  if (more.length === 0 && (key === "Ref" || key?.startsWith("Fn::")))
    return resolveText(value, where, symbols);
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name, resolveDeep(field as Json, where, symbols)]),
  );
}

/** Resolves a text, or one of CloudFormation's functions that make one. */
function resolveText(value: unknown, where: string, symbols: Symbols): string {
  if (typeof value === "string") return value;
  const look = (name: string): string => {
    if (!Object.hasOwn(symbols, name))
      throw new InputError({
        what: "unresolved reference",
        where,
        expected: `expected a local stand-in for ${name}`,
        fix: "give one when the runner is opened",
      });
    return symbols[name];
  };
  const [entry, ...more] = typeof value === "object" && value !== null ? Object.entries(value) : [];
  if (entry !== undefined && more.length === 0) {
    const [kind, operand] = entry;
    if (kind === "Ref" && typeof operand === "string") return look(operand);
    if (kind === "Fn::ImportValue" && typeof operand === "string") return look(operand);
    if (kind === "Fn::GetAtt") {
      const path =
        typeof operand === "string" ? operand : Array.isArray(operand) ? operand.join(".") : undefined;
      if (path !== undefined) return look(path);
    }
    if (kind === "Fn::Join" && Array.isArray(operand) && Array.isArray(operand[1]))
      return operand[1].map(part => resolveText(part, where, symbols)).join(String(operand[0]));
    if (kind === "Fn::Sub" && typeof operand === "string")
      return operand.replace(/\$\{(!?)([^}]+)\}/g, (_, isLiteral: string, name: string) =>
        isLiteral === "!" ? `\${${name}}` : look(name),
      );
  }
  throw new InputError({
    what: "not supported in a definition",
    where,
    expected: `expected a text, Ref, Fn::GetAtt, Fn::ImportValue, Fn::Join or Fn::Sub, got ${JSON.stringify(value)?.slice(0, 120)}`,
  });
}
