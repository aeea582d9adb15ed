"""LocalStack's open core (PyPI localstack-core, Apache-2.0, Python 3.13) with what our definitions need of its interpreter
of Step Functions and version 2026.3.0 does not have. Runs like `python -m localstack.runtime.main`.

Only S3 and Step Functions with mocked tasks: what else it lacks stands in docs/emulators.md.
"""

import importlib
import json
import sys
import types

import jsonata

# JSONata by PyPI's jsonata-python; as shipped, Java and its libraries are downloaded.
for name in ("jpype", "jpype.imports"):
    sys.modules.setdefault(name, types.ModuleType(name))
sys.modules["jpype"].imports = sys.modules["jpype.imports"]

STEPS = "localstack.services.stepfunctions.asl."
MAP = STEPS + "component.state.state_execution.state_map."
expressions = importlib.import_module(STEPS + "jsonata.jsonata")


def evaluate(expression):
    try:
        return json.loads(json.dumps(jsonata.Jsonata(expression).evaluate(None)))
    except Exception as error:
        raise expressions.JSONataException("UNKNOWN", str(error)) from error


expressions._eval_jsonata = evaluate

# Definitions: an integer percentage is a syntax error, JSON lines are unknown, and so are Arguments of a ResultWriter.
parsing = importlib.import_module(STEPS + "parse.asl_parser")
parse = parsing.AmazonStateLanguageParser.parse


def as_it_can(value):
    if isinstance(value, list):
        return [as_it_can(one) for one in value]
    if not isinstance(value, dict):
        return value
    known = {key: as_it_can(one) for key, one in value.items()}
    if known.get("Type") == "Map":
        known.pop("ResultWriter", None)
        if "ToleratedFailurePercentage" in known:
            known["ToleratedFailurePercentage"] = float(known["ToleratedFailurePercentage"])
    if known.get("InputType") == "JSONL":
        known["InputType"] = "JSON"
    return known


def parse_known(definition):
    return parse(json.dumps(as_it_can(json.loads(definition))))


parsing.AmazonStateLanguageParser.parse = staticmethod(parse_known)

transformers = MAP + "item_reader.resource_eval.resource_output_transformer."
reader = importlib.import_module(transformers + "resource_output_transformer_json")


def read_lines(self, env):
    env.stack.pop()
    text = env.stack.pop()
    env.stack.append([json.loads(line) for line in text.splitlines() if line.strip()])


reader.ResourceOutputTransformerJson._eval_body = read_lines

# Tolerated failures are counted and never exceeded; children that failed leave nulls.
maps = importlib.import_module(MAP + "iteration.distributed_iteration_component")
api = importlib.import_module("localstack.aws.api.stepfunctions")
failures = importlib.import_module(STEPS + "component.common.error_name.failure_event")
names = importlib.import_module(STEPS + "component.common.error_name.custom_error_name")
details = importlib.import_module(STEPS + "eval.event.event_detail")
EXCEEDED = "States.ExceedToleratedFailureThreshold"
map_run = maps.DistributedIterationComponent._map_run


def map_run_with_limit(self, env, eval_input):
    map_run(self, env, eval_input)
    items = eval_input.map_run_record.item_counter
    failed, total = items.failed.get() + items.timed_out.get(), items.total.get()
    if failed * 100 <= eval_input.tolerated_failure_percentage * total:
        env.stack[-1] = [output for output in env.stack[-1] if output is not None]
        return
    name = names.CustomErrorName("Exceeded")
    object.__setattr__(name, "error_name", EXCEEDED)
    cause = "The specified tolerated failure threshold was exceeded"
    event = api.TaskFailedEventDetails(error=EXCEEDED, cause=cause, resource="", resourceType="")
    raise failures.FailureEventException(
        failures.FailureEvent(
            env=env,
            error_name=name,
            event_type=api.HistoryEventType.TaskFailed,
            event_details=details.EventDetails(taskFailedEventDetails=event),
        )
    )


maps.DistributedIterationComponent._map_run = map_run_with_limit

if __name__ == "__main__":
    from localstack.runtime.main import main

    main()
