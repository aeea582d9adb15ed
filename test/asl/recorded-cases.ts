// Which recorded test belongs to which definition. The input is the recording's own.
import type { Json } from "../../src/asl/json-value.ts";

type Definition = Record<string, Json>;

export interface RecordedCase {
  readonly file: string;
  readonly test: string;
  readonly definition: string;
  /** What the recorded test changed before it created the machine. */
  readonly change?: (definition: Definition) => void;
  /** Text replaced in the definition, as the recorded test did it. */
  readonly replace?: readonly (readonly [string, string])[];
  /** Values that the recording hides. */
  readonly input?: Json;
  /** What the recorded function does. */
  readonly lambda?: "echo" | "raise" | "hang" | "large";
  /** What lies in the recorded bucket, where it is not the usual list. */
  readonly object?: string;
  /** Machines that the recorded one starts, by name. */
  readonly machines?: Readonly<Record<string, string>>;
  /** See EXIT_OF_MAP. */
  readonly exitPointsToRunEnd?: boolean;
  /** Why the interpreter cannot agree; such a case must fail, so that the list stays true. */
  readonly differs?: string;
  /** What is refused at load, by name. */
  readonly refused?: RegExp;
}

const FUNCTION = "arn:aws:lambda:us-east-1:111111111111:function:fn";

function state(definition: Definition, name: string): Record<string, Json> {
  return (definition.States as Record<string, Record<string, Json>>)[name];
}

function each(
  file: string,
  test: (id: string) => string,
  rows: Readonly<Record<string, string | Omit<RecordedCase, "file" | "test">>>,
  shared: Omit<RecordedCase, "file" | "test" | "definition"> = {},
): RecordedCase[] {
  return Object.entries(rows).map(([id, row]) => ({
    file,
    test: test(id),
    ...shared,
    ...(typeof row === "string" ? { definition: row } : row),
  }));
}

const placeholder = [["%LAMBDA_FUNCTION_ARN_LITERAL_PLACEHOLDER%", FUNCTION]] as const;
const withLambda = { lambda: "echo", replace: placeholder } as const;
const raising = { lambda: "raise", replace: placeholder } as const;

const evaluated = "evaluate_jsonata/test_base_evaluate_expressions";
const evaluate = "evaluatejsonata/statemachines";
const change = (name: string, field: string, value: Json) => (definition: Definition) => {
  state(definition, name)[field] = value;
};
const NUMBER = "{% $variable := 1 %}";
const INPUT = "{% $states.input.input_value %}";
const scenarios = "scenarios/test_base_scenarios";
const scenario = (id: string) => `scenarios/statemachines/${id}`;
const literals: Readonly<Record<string, string>> = {
  number: "1",
  string: "'string'",
  boolean: "true",
  object: "{'foo': 'bar'}",
  null: "null",
};

/** A state of them reads paths. */
const JSONPATH = /not supported: QueryLanguage JSONPath: .*state "/;

export const CASES: readonly RecordedCase[] = [
  ...each(
    "arguments/test_arguments",
    id => `TestArgumentsBase::test_base_cases[${id}]`,
    {
      BASE_LAMBDA_EMPTY: "arguments/statemachines/base_lambda_empty",
      BASE_LAMBDA_LITERALS: "arguments/statemachines/base_lambda_literals",
      BASE_LAMBDA_EXPRESSION: {
        definition: "arguments/statemachines/base_lambda_expressions",
        refused: JSONPATH,
      },
      BASE_LAMBDA_EMPTY_GLOBAL_QL_JSONATA: "arguments/statemachines/base_lambda_empty_global_ql_jsonata",
    },
    { lambda: "echo", change: change("State0", "Resource", FUNCTION) },
  ),
  ...each("assign/test_assign_base", id => `TestAssignBase::test_base_cases[${id}]`, {
    BASE_CONSTANT_LITERALS: { definition: "assign/statemachines/base_constant_literals", refused: JSONPATH },
    BASE_VAR: { definition: "assign/statemachines/base_var", refused: JSONPATH },
  }),
  ...each("assign/test_assign_base", id => `TestAssignBase::test_assign_in_choice[${id}]`, {
    CONDITION_TRUE: "assign/statemachines/choice_condition_jsonata",
    CONDITION_FALSE: "assign/statemachines/choice_condition_jsonata",
  }),
  ...each(
    "assign/test_assign_reference_variables",
    id => `TestAssignReferenceVariables::test_undefined_reference[${id}]`,
    {
      BASE_UNDEFINED_OUTPUT: "assign/statemachines/base_undefined_output",
      BASE_UNDEFINED_OUTPUT_FIELD: "assign/statemachines/base_undefined_output_field",
      BASE_UNDEFINED_OUTPUT_MULTIPLE_STATES: "assign/statemachines/base_undefined_output_multiple_states",
      BASE_UNDEFINED_ASSIGN: "assign/statemachines/base_undefined_assign",
      BASE_UNDEFINED_ARGUMENTS: "assign/statemachines/base_undefined_arguments",
      BASE_UNDEFINED_ARGUMENTS_FIELD: "assign/statemachines/base_undefined_arguments_field",
    },
  ),
  ...each(
    evaluated,
    id => `TestBaseEvaluateJsonata::test_base_task[${id}]`,
    {
      TIMEOUT_SECONDS: {
        definition: `${evaluate}/base_task`,
        change: change("Start", "TimeoutSeconds", NUMBER),
      },
      HEARTBEAT_SECONDS: {
        definition: `${evaluate}/base_task`,
        change: change("Start", "HeartbeatSeconds", NUMBER),
      },
    },
    withLambda,
  ),
  ...each(
    evaluated,
    id => `TestBaseEvaluateJsonata::test_base_task_from_input[${id}]`,
    {
      HEARTBEAT_SECONDS: {
        definition: `${evaluate}/base_task`,
        change: change("Start", "HeartbeatSeconds", INPUT),
      },
    },
    withLambda,
  ),
  ...each(evaluated, id => `TestBaseEvaluateJsonata::test_base_map[${id}]`, {
    ITEMS: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "Items", [1, '{% $number("2") %}', 3]),
    },
    ITEMS_DOUBLE_QUOTES: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "Items", [1, "{% $number('2') %}", 3]),
    },
    MAX_CONCURRENCY: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "MaxConcurrency", NUMBER),
    },
    TOLERATED_FAILURE_PERCENTAGE: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "ToleratedFailurePercentage", NUMBER),
    },
    TOLERATED_FAILURE_COUNT: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "ToleratedFailureCount", NUMBER),
    },
  }),
  ...each(evaluated, id => `TestBaseEvaluateJsonata::test_base_map_from_input[${id}]`, {
    ITEMS: { definition: `${evaluate}/base_map`, change: change("Start", "Items", INPUT) },
    MAX_CONCURRENCY: { definition: `${evaluate}/base_map`, change: change("Start", "MaxConcurrency", INPUT) },
    TOLERATED_FAILURE_PERCENTAGE: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "ToleratedFailurePercentage", INPUT),
    },
    TOLERATED_FAILURE_COUNT: {
      definition: `${evaluate}/base_map`,
      change: change("Start", "ToleratedFailureCount", INPUT),
    },
  }),
  ...each(evaluated, id => `TestBaseEvaluateJsonata::test_base_jsonata_regular_expressions[${id}]`, {
    BASE: {
      definition: `${evaluate}/base_pass`,
      change: change("Start", "Output", String.raw`{% $contains("hello$world", /^hello\$/) %}`),
    },
    BASE_FALSE: {
      definition: `${evaluate}/base_pass`,
      change: change("Start", "Output", String.raw`{% $contains("hello$world", /^hello\ /) %}`),
    },
    BASE_SINGLE_QUOTE: {
      definition: `${evaluate}/base_pass`,
      change: change("Start", "Output", String.raw`{% $contains('hello$world', /^hello\$/) %}`),
    },
    BASE_SINGLE_QUOTE_FALSE: {
      definition: `${evaluate}/base_pass`,
      change: change("Start", "Output", String.raw`{% $contains('hello$world', /^hello\ /) %}`),
    },
  }),
  {
    file: evaluated,
    test: "TestBaseEvaluateJsonata::test_merge_with_dynamic_args",
    definition: `${evaluate}/base_pass`,
    change: change("Start", "Output", "{% $merge([$states.input.part1, $states.input.part2]) %}"),
  },
  {
    file: "intrinsic_functions/test_array_jsonata",
    test: "TestArrayJSONata::test_array_partition",
    definition: "intrinsicfunctions/statemachines/array/array_partition_jsonata",
  },
  {
    file: "intrinsic_functions/test_array_jsonata",
    test: "TestArrayJSONata::test_array_range",
    definition: "intrinsicfunctions/statemachines/array/array_range_jsonata",
  },
  {
    file: "intrinsic_functions/test_json_manipulation_jsonata",
    test: "TestJsonManipulationJSONata::test_parse",
    definition: "intrinsicfunctions/statemachines/json_manipulation/parse_jsonata",
  },
  {
    file: "intrinsic_functions/test_math_operations_jsonata",
    test: "TestMathOperationsJSONata::test_math_random_seeded",
    definition: "intrinsicfunctions/statemachines/math_operations/math_random_seeded_jsonata",
  },
  ...each("outputdecl/test_output", id => `TestArgumentsBase::test_base_cases[${id}]`, {
    BASE_EMPTY: "outputdecl/statemachines/base_empty",
    BASE_LITERALS: "outputdecl/statemachines/base_literals",
    BASE_EXPR: { definition: "outputdecl/statemachines/base_expr", refused: JSONPATH },
    BASE_DIRECT_EXPR: "outputdecl/statemachines/base_direct_expr",
  }),
  {
    file: "outputdecl/test_output",
    test: "TestArgumentsBase::test_base_lambda[BASE_LAMBDA]",
    definition: "outputdecl/statemachines/base_lambda",
    refused: JSONPATH,
  },
  {
    file: "outputdecl/test_output",
    test: "TestArgumentsBase::test_base_task_lambda[BASE_TASK_LAMBDA]",
    definition: "outputdecl/statemachines/base_task_lambda",
    lambda: "echo",
  },
  ...each(
    "outputdecl/test_output",
    id => `TestArgumentsBase::test_base_output_any_non_dict[${id}]`,
    Object.fromEntries(
      Object.entries({
        NULL: null,
        INT: 0,
        FLOAT: 0.1,
        BOOL: true,
        STR_LIT: "string literal",
        JSONATA_EXPR: "{% $states.input %}",
        LIST_EMPY: [],
        LIST_RICH: [
          null,
          0,
          0.1,
          true,
          "string",
          [],
          "$nosuchvar",
          "$.no.such.path",
          "{% $states.input %}",
          { key: "{% true %}" },
        ],
      }).map(([id, value]) => [
        id,
        { definition: "outputdecl/statemachines/base_output_any", change: change("State0", "Output", value) },
      ]),
    ),
  ),
  ...each("outputdecl/test_output", id => `TestArgumentsBase::test_output_in_choice[${id}]`, {
    CONDITION_TRUE: "outputdecl/statemachines/choice_condition_jsonata",
    CONDITION_FALSE: "outputdecl/statemachines/choice_condition_jsonata",
  }),
  {
    file: "query_language/test_base_query_language",
    test: "TestBaseQueryLanguage::test_base_query_language_field[JSONATA]",
    definition: "querylanguage/statemachines/base_pass_jsonata",
  },
  ...each(
    "query_language/test_base_query_language",
    id => `TestBaseQueryLanguage::test_query_language_field_override[${id}]`,
    {
      JSONATA_OVERRIDE: "querylanguage/statemachines/base_pass_jsonata_override",
      JSONATA_OVERRIDE_DEFAULT: "querylanguage/statemachines/base_pass_jsonata_override_default",
    },
  ),
  ...each(
    "states_variables/test_error_output",
    id => `TestStateVariablesTemplate::${id}`,
    {
      "test_task_catch_error_output[TASK_CATCH_ERROR_OUTPUT]":
        "statevariables/statemachines/task_catch_error_output",
      "test_catch_error_variable_sampling[TASK_CATCH_ERROR_VARIABLE_SAMPLING]":
        "statevariables/statemachines/task_catch_error_variable_sampling",
      "test_task_catch_error_with_retry[TASK_CATCH_ERROR_OUTPUT_WITH_RETRY]":
        "statevariables/statemachines/task_catch_error_output_with_retry",
      "test_map_catch_error[MAP_CATCH_ERROR_OUTPUT]": "statevariables/statemachines/map_catch_error_output",
      "test_map_catch_error[MAP_CATCH_ERROR_OUTPUT_WITH_RETRY]":
        "statevariables/statemachines/map_catch_error_output_with_retry",
      "test_map_catch_error[MAP_CATCH_ERROR_VARIABLE_SAMPLING]":
        "statevariables/statemachines/map_catch_error_variable_sampling",
      "test_parallel_catch_error[PARALLEL_CATCH_ERROR_OUTPUT]":
        "statevariables/statemachines/parallel_catch_error_output",
      "test_parallel_catch_error[PARALLEL_CATCH_ERROR_VARIABLE_SAMPLING]":
        "statevariables/statemachines/parallel_catch_error_variable_sampling",
      "test_parallel_catch_error[PARALLEL_CATCH_ERROR_OUTPUT_WITH_RETRY]":
        "statevariables/statemachines/parallel_catch_error_output_with_retry",
    },
    raising,
  ),
  {
    file: "local_mocking/test_base_scenarios",
    test: "TestBaseScenarios::test_numbered_mock_responses_multiple_success_invocations",
    definition: scenario("lambda_repeat_until_loop"),
    lambda: "echo",
    change: change("LambdaState", "Arguments", {
      FunctionName: FUNCTION,
      Payload: { status: "{% $exists($status) ? 'completed' : 'running' %}" },
    }),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_map_state_item_selector[MAP_STATE_ITEM_SELECTOR_JSONATA]",
    definition: scenario("map_state_item_selector_jsonata"),
  },
  ...["number", "string", "boolean", "object", "null"].flatMap(kind => [
    {
      file: scenarios,
      test: `TestBaseScenarios::test_map_state_items_eval_jsonata_fail[${kind}]`,
      definition: scenario("map_state_items_literal"),
      change: change("MapIterateState", "Items", `{% ${literals[kind]} %}`),
    },
    {
      file: scenarios,
      test: `TestBaseScenarios::test_map_state_items_eval_jsonata_variable_sampling_fail[${kind}]`,
      definition: scenario("map_state_items_variable"),
      change: (definition: Definition) => {
        state(definition, "Start").Assign = { ItemsVar: `{% ${literals[kind]} %}` };
      },
    },
    {
      file: scenarios,
      test: `TestBaseScenarios::test_map_state_items_variable_sampling[${kind}]`,
      definition: scenario("map_state_items_variable"),
      change: (definition: Definition) => {
        state(definition, "Start").Assign = {
          ItemsVar: JSON.parse((literals[kind] ?? "").replaceAll("'", '"')),
        };
      },
    },
    {
      file: scenarios,
      test: `TestBaseScenarios::test_map_state_items_input_types[${kind}]`,
      definition: scenario("map_state_items"),
    },
  ]),
  {
    file: scenarios,
    test: "TestBaseScenarios::test_map_state_items_eval_jsonata_fail[function]",
    definition: scenario("map_state_items_literal"),
    change: change("MapIterateState", "Items", "{% $fn := function($x){$x} %}"),
  },
  ...each(scenarios, id => `TestBaseScenarios::test_map_state_items_eval_jsonata[${id}]`, {
    empty: {
      definition: scenario("map_state_items_literal"),
      change: change("MapIterateState", "Items", "{% [] %}"),
    },
    singleton: {
      definition: scenario("map_state_items_literal"),
      change: change("MapIterateState", "Items", "{% [0] %}"),
    },
    mixed: {
      definition: scenario("map_state_items_literal"),
      change: change("MapIterateState", "Items", "{% [1, 'two', 3] %}"),
    },
  }),
  ...each(scenarios, id => `TestBaseScenarios::test_map_state_items_input_array[${id}]`, {
    empty: scenario("map_state_items"),
    singleton: scenario("map_state_items"),
    mixed: scenario("map_state_items"),
  }),
  {
    file: scenarios,
    test: "TestBaseScenarios::test_map_item_reader_base_json_max_items_jsonata",
    definition: scenario("map_item_reader_base_json_max_items_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_map_item_batching_base_json_max_per_batch_jsonata",
    definition: scenario("map_item_batcher_base_max_per_batch_jsonata"),
    refused: /not supported: ItemBatcher: .*state "BatchMapState"/,
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_unsorted_parameters_positive[CHOICE_STATE_UNSORTED_CHOICE_PARAMETERS_JSONATA]",
    definition: scenario("choice_state_unsorted_choice_parameters_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_unsorted_parameters_negative[CHOICE_STATE_UNSORTED_CHOICE_PARAMETERS_JSONATA]",
    definition: scenario("choice_state_unsorted_choice_parameters_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_condition_constant_jsonata",
    definition: scenario("choice_state_condition_constant_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_aws_docs_scenario[CHOICE_STATE_AWS_SCENARIO_JSONATA]",
    definition: scenario("choice_state_aws_scenario_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_singleton_composite[CHOICE_STATE_SINGLETON_COMPOSITE_JSONATA]",
    definition: scenario("choice_state_singleton_composite_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_choice_singleton_composite[CHOICE_STATE_SINGLETON_COMPOSITE_LITERAL_JSONATA]",
    definition: scenario("choice_state_singleton_composite_literal_string_jsonata"),
  },
  ...each(scenarios, id => `TestBaseScenarios::test_wait_timestamp_jsonata[${id}]`, {
    SECONDS: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-03-14T01:59:00Z" },
    },
    NANOSECONDS: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-03-05T21:29:29.243167252Z" },
    },
    NO_T: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-12-05 21:29:29Z" },
    },
    NO_Z: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-12-05T21:29:29" },
    },
    INVALID_DATE: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-13-05T21:29:29Z" },
    },
    INVALID_TIME: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "2016-12-05T25:29:29Z" },
    },
    INVALID_ISO: {
      definition: scenario("wait_timestamp_jsonata"),
      input: { TimestampValue: "05-12-2016T21:29:29Z" },
    },
  }),
  {
    file: scenarios,
    test: "TestBaseScenarios::test_wait_seconds_jsonata",
    definition: scenario("wait_seconds_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_fail_error_jsonata",
    definition: scenario("fail_error_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_fail_cause_jsonata",
    definition: scenario("fail_cause_jsonata"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_escape_sequence_parsing[ESCAPE_SEQUENCES_JSONATA_COMPARISON_OUTPUT]",
    definition: scenario("escape_sequences_jsonata_comparison_output"),
  },
  {
    file: scenarios,
    test: "TestBaseScenarios::test_escape_sequence_parsing[ESCAPE_SEQUENCES_JSONATA_COMPARISON_ASSIGN]",
    definition: scenario("escape_sequences_jsonata_comparison_assign"),
  },
];

const translated = (
  file: string,
  prefix: string,
  rows: Readonly<Record<string, string | Omit<RecordedCase, "file" | "test">>>,
  shared: Omit<RecordedCase, "file" | "test" | "definition"> = {},
) => each(file, id => `${prefix}::${id}`, rows, shared);

/** For a Distributed Map in JSONPath the exit points to the end of its run, for one in JSONata to its start. */
const EXIT_OF_MAP = { exitPointsToRunEnd: true } as const;

const HEARTBEAT =
  "the recording, of April 2024, has States.Timeout; measured in August 2026 (floci#2733) it is States.HeartbeatTimeout";

const nested = (child: string, input: Json = null) => ({
  definition: "callbacks/statemachines/sfn_start_execution_sync",
  machines: { target: child },
  input: {
    StateMachineArn: "arn:aws:states:us-east-1:111111111111:stateMachine:target",
    Input: input,
    Name: "TestStartTarget",
  },
});

/** JSONPath machines whose paths only hand values on, in JSONata (translate.ts). */
export const TRANSLATED: readonly RecordedCase[] = [
  ...translated("base/test_base", "TestSnfBase", {
    test_state_fail: "base/statemachines/raise_failure",
    test_state_fail_empty: "base/statemachines/raise_empty_failure",
    test_state_pass_result: "base/statemachines/pass_result",
    test_decl_version_1_0: "base/statemachines/decl_version_1_0",
  }),
  ...translated(scenarios, "TestBaseScenarios", {
    "test_parallel_state[PARALLEL_STATE]": scenario("parallel_state"),
    "test_parallel_state[PARALLEL_STATE_PARAMETERS]": scenario("parallel_state_parameters"),
    test_parallel_state_order: scenario("parallel_state_order"),
    test_parallel_state_fail: scenario("parallel_state_fail"),
    test_parallel_state_catch: scenario("parallel_state_catch"),
    test_parallel_state_retry: scenario("parallel_state_retry"),
    test_map_state_nested: scenario("map_state_nested"),
    test_map_state_legacy_config_inline: scenario("map_state_legacy_config_inline"),
    test_map_state_legacy_config_inline_parameters: scenario("map_state_legacy_config_inline_parameters"),
    test_map_state_legacy_config_inline_item_selector: scenario(
      "map_state_legacy_config_inline_item_selector",
    ),
    test_map_state_config_inline_parameters: scenario("map_state_config_inline_parameters"),
  }),
  ...translated(
    scenarios,
    "TestBaseScenarios",
    {
      test_map_state_legacy_config_distributed: scenario("map_state_legacy_config_distributed"),
      test_map_state_legacy_config_distributed_parameters: scenario(
        "map_state_legacy_config_distributed_parameters",
      ),
      test_map_state_legacy_config_distributed_item_selector: scenario(
        "map_state_legacy_config_distributed_item_selector",
      ),
      test_map_state_config_distributed_parameters: scenario("map_state_config_distributed_parameters"),
      test_map_state_config_distributed_item_selector: scenario("map_state_config_distributed_item_selector"),
      test_map_item_reader_json_no_json_list_object: {
        definition: scenario("map_item_reader_base_json"),
        object: '{"foo":"bar"}',
      },
      test_map_item_reader_base_json: scenario("map_item_reader_base_json"),
      "test_map_state_tolerated_failure_count_path[0]": scenario("map_state_tolerated_failure_count_path"),
      "test_map_state_tolerated_failure_count_path[1]": scenario("map_state_tolerated_failure_count_path"),
      "test_map_state_tolerated_failure_percentage_path[0]": scenario(
        "map_state_tolerated_failure_percentage_path",
      ),
      "test_map_state_tolerated_failure_percentage_path[1.1]": scenario(
        "map_state_tolerated_failure_percentage_path",
      ),
      "test_map_state_tolerated_failure_percentage_path[100]": scenario(
        "map_state_tolerated_failure_percentage_path",
      ),
      // The recorded test is called inline and ran the distributed definition.
      test_map_state_config_inline_item_selector: scenario("map_state_config_distributed_item_selector"),
      test_map_state_label: scenario("map_state_label"),
      test_map_state_result_writer: {
        definition: scenario("map_state_result_writer"),
        input: ["Hello", "World"],
        replace: [["result-bucket", "result-bucket"]],
      },
    },
    EXIT_OF_MAP,
  ),
  ...translated("callback/test_callback", "TestCallback", {
    test_start_execution_sync: nested("base/statemachines/pass_result"),
    test_start_execution_sync2: {
      ...nested("base/statemachines/pass_result"),
      definition: "callbacks/statemachines/sfn_start_execution_sync2",
    },
    test_start_execution_sync_delegate_failure: nested("base/statemachines/raise_failure"),
    test_sqs_wait_for_task_token_no_token_parameter:
      "callbacks/statemachines/sqs_wait_for_task_token_no_token_parameter",
    test_sqs_wait_for_task_token_timeout: "callbacks/statemachines/sqs_wait_for_task_token_with_timeout",
  }),
  ...translated("timeouts/test_heartbeats", "TestHeartbeats", {
    test_heartbeat_timeout: {
      definition: "timeouts/statemachines/service_sqs_send_and_wait_for_task_token_with_heartbeat",
      differs: HEARTBEAT,
    },
    test_heartbeat_path_timeout: {
      definition: "timeouts/statemachines/service_sqs_send_and_wait_for_task_token_with_heartbeat_path",
      differs: HEARTBEAT,
    },
  }),
  ...translated(
    "timeouts/test_timeouts",
    "TestTimeouts",
    {
      test_fixed_timeout_service_lambda: "timeouts/statemachines/service_lambda_wait_with_timeout_seconds",
      test_fixed_timeout_service_lambda_with_path:
        "timeouts/statemachines/service_lambda_wait_with_timeout_seconds_path",
    },
    { lambda: "hang" },
  ),
  ...translated(
    "error_handling/test_states_errors",
    "TestStatesErrors",
    {
      test_service_task_lambada_data_limit_exceeded_on_large_utf8_response:
        "errorhandling/statemachines/task_service_lambda_invoke_catch_data_limit_exceeded",
      test_service_task_lambada_catch_state_all_data_limit_exceeded_on_large_utf8_response: {
        definition: "errorhandling/statemachines/task_service_lambda_invoke_catch_all",
        differs:
          "the recording, of March 2024, catches States.DataLimitExceeded by States.ALL; the developer guide says that it cannot, and a machine that relies on it must not pass here",
      },
    },
    { lambda: "large" },
  ),
];
