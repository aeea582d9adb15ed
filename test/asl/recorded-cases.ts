// The recorded tests with their definitions. The input is the recording's own.
import type { Json } from "../../src/asl/json-value.ts";

type Definition = Record<string, Json>;

export interface RecordedCase {
  readonly file: string;
  readonly test: string;
  readonly definition: string;
  /** Changes that the recorded test made before it created the machine. */
  readonly change?: (definition: Definition) => void;
  /** Text replaced in the definition, as the recorded test did it. */
  readonly replace?: readonly (readonly [string, string])[];
  /** Values that the recording hides. */
  readonly input?: Json;
  /** The behaviour of the recorded function. */
  readonly lambda?: "echo" | "raise" | "hang" | "large";
  /** Machines that the recorded one starts, by name. */
  readonly machines?: Readonly<Record<string, string>>;
  /** See EXIT_OF_MAP. */
  readonly exitPointsToRunEnd?: boolean;
  /** The reason why our history differs. Such a case must differ, so that the list stays true. */
  readonly differs?: string;
  /** The error at load that names an unsupported feature. */
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
const scenarios = "scenarios/test_base_scenarios";
const scenario = (id: string) => `scenarios/statemachines/${id}`;
/** The error of a definition with a state that reads paths. */
const JSONPATH = /not supported: QueryLanguage JSONPath: .*state "/;

export const CASES: readonly RecordedCase[] = [
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
    },
    withLambda,
  ),
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
