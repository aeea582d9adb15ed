"""MiniStack (PyPI, MIT) with what our machines need and version 1.5.33 does not have. Runs like `python -m ministack`.

Each patch stands for a row of the table in docs/emulators.md. Tasks and jobs run as processes of this host: by
T1_TASKS=process with the entry point of the image's folder in containers/, by T1_TASKS=docker in a container of the
local image of that name, by T1_TASKS=none not at all.
"""

import copy
import ctypes
import json
import os
import signal
import subprocess
import time
import uuid

from ministack.core import lambda_runtime
from ministack.core.responses import get_account_id, get_region
from ministack.services import batch, cloudwatch_logs, ecs, lambda_svc, s3
from ministack.services import stepfunctions as states
from ministack.services.cloudformation import provisioners

PORT = os.environ.get("GATEWAY_PORT", "4566")
ENDPOINT = os.environ.get("T1_TASK_ENDPOINT") or f"http://127.0.0.1:{PORT}"
KIND = os.environ.get("T1_TASKS", "none")
NODE = os.environ.get("T1_NODE", "node")
ROOT = os.environ.get("T1_ROOT", ".")

# --- CloudFormation: types without a provisioner get a name and nothing else --------------------------------------


def camel(value):
    """Keys as the APIs spell them, from keys as CloudFormation and Step Functions spell them."""
    if isinstance(value, dict):
        return {k[:1].lower() + k[1:]: v if k in ("Tags", "Parameters") else camel(v) for k, v in value.items()}
    return [camel(v) for v in value] if isinstance(value, list) else value


def pascal(value):
    if isinstance(value, dict):
        return {k[:1].upper() + k[1:]: v if k in ("tags", "parameters") else pascal(v) for k, v in value.items()}
    return [pascal(v) for v in value] if isinstance(value, list) else value


def placeholder(attribute=None):
    def create(logical_id, props, stack_name):
        name = f"{stack_name}-{logical_id}"
        return name, {attribute or "Id": name, "Id": name, "Arn": name}

    return {"create": create, "delete": lambda *args, **named: None}


def by_api(call, answer, name_field, attribute):
    """A resource that the emulator's own API makes, so that SubmitJob finds it."""

    def create(logical_id, props, stack_name):
        request = camel(props)
        request.setdefault(name_field, f"{stack_name}-{logical_id}")
        request.setdefault("state", "ENABLED")
        if "priority" in request:
            request["priority"] = int(request["priority"])
        status, _, body = call(request)
        made = json.loads(body)
        if status >= 400:
            raise ValueError(made.get("message", str(made)))
        return made[answer], {attribute: made[answer]}

    return {"create": create, "delete": lambda *args, **named: None}


provisioners._RESOURCE_HANDLERS.update(
    {
        "AWS::CloudWatch::Alarm": placeholder(),  # metric math is refused
        "AWS::EC2::FlowLog": placeholder(),
        "AWS::EC2::SecurityGroupEgress": placeholder(),
        "AWS::EC2::SecurityGroupIngress": placeholder(),
        "AWS::ECS::ClusterCapacityProviderAssociations": placeholder(),
        "AWS::Route53Resolver::FirewallDomainList": placeholder(),
        "AWS::Route53Resolver::FirewallRuleGroup": placeholder(),
        "AWS::Route53Resolver::FirewallRuleGroupAssociation": placeholder(),
        "AWS::Batch::ComputeEnvironment": by_api(
            batch._create_compute_environment,
            "computeEnvironmentArn",
            "computeEnvironmentName",
            "ComputeEnvironmentArn",
        ),
        "AWS::Batch::JobQueue": by_api(batch._create_job_queue, "jobQueueArn", "jobQueueName", "JobQueueArn"),
        "AWS::Batch::JobDefinition": by_api(
            batch._register_job_definition, "jobDefinitionArn", "jobDefinitionName", "JobDefinitionArn"
        ),
    }
)

# --- Step Functions: Output of Succeed and Parallel, scopes of branches, Distributed Map in JSONata ----------------


def is_jsonata(state, ctx):
    return states._state_query_language(state, ctx) == "JSONata"


def branch_context(ctx):
    """A branch reads what was assigned before it; what it assigns stays inside."""
    return {**ctx, "State": dict(ctx.get("State", {})), "variables": dict(ctx.get("variables", {}))}


run_sub_machine = states._run_sub_machine


def scoped_sub_machine(chart, start_at, data, execution, ctx):
    return run_sub_machine(chart, start_at, data, execution, branch_context(ctx))


states._run_sub_machine = scoped_sub_machine

apply_output_path = states._apply_output_path


def output_path(state, data, ctx=None):
    if state.get("Type") == "Succeed" and is_jsonata(state, ctx):
        return states._apply_jsonata_output(state, data, ctx, default=data)
    return apply_output_path(state, data, ctx)


states._apply_output_path = output_path

run_parallel_branches = states._run_parallel_branches


def parallel_branches(state, data, execution, ctx):
    results, following = run_parallel_branches(state, data, execution, ctx)
    if not is_jsonata(state, ctx):
        return results, following
    states._apply_state_assign(state, data, ctx, result=results)
    return states._apply_jsonata_output(state, data, ctx, result=results, default=results), following


states._run_parallel_branches = parallel_branches

resolve_params = states._resolve_params_obj


def params(template, data, ctx=None):
    if (ctx or {}).get("QueryLanguage") == "JSONata":
        return states._apply_jsonata_template(template, data, ctx)
    return resolve_params(template, data, ctx)


states._resolve_params_obj = params


def children_of(map_run):
    return [one for one in list(states._executions.values()) if one.get("mapRunArn") == map_run]


def write_results(writer, effective, ctx, map_run):
    """Result files and their manifest, as the ResultWriter lays them out."""
    where = params(writer.get("Arguments", {}), effective, ctx)
    prefix = f"{where['Prefix'].rstrip('/')}/{map_run.split(':')[-1]}"
    files = {"FAILED": [], "PENDING": [], "SUCCEEDED": []}

    def put(key, value):
        body = json.dumps(value, default=str).encode()
        status, _, answer = s3._put_object(where["Bucket"], key, body, {"content-type": "application/json"})
        if status != 200:
            raise states._ExecutionError("States.ResultWriterFailed", str(answer))
        return {"Key": key, "Size": len(body)}

    for status in ("SUCCEEDED", "FAILED"):
        rows = [
            {
                "ExecutionArn": child["executionArn"],
                "Name": child["name"],
                "Status": status,
                "Input": child["input"],
                "Output": child.get("output"),
                "Error": child.get("error"),
                "Cause": child.get("cause"),
                "StartDate": child["startDate"],
                "StopDate": child["stopDate"],
            }
            for child in children_of(map_run)
            if child["status"] == status
        ]
        if rows:
            files[status].append(put(f"{prefix}/{status}_0.json", rows))
    manifest = put(
        f"{prefix}/manifest.json",
        {"DestinationBucket": where["Bucket"], "MapRunArn": map_run, "ResultFiles": files},
    )
    return {"MapRunArn": map_run, "ResultWriterDetails": {"Bucket": where["Bucket"], "Key": manifest["Key"]}}


run_distributed_map = states._run_distributed_map


def distributed_map(state, raw, effective, iterator, execution, ctx):
    if not is_jsonata(state, ctx):
        return run_distributed_map(state, raw, effective, iterator, execution, ctx)
    before = set(states._map_runs)
    plain = {key: value for key, value in state.items() if key not in ("ResultWriter", "Output", "Assign")}
    # Children of a Distributed Map do not see the parent's variables; its reader does.
    results, following = run_distributed_map(plain, raw, effective, iterator, execution, ctx)
    map_run = next(
        arn
        for arn, run in states._map_runs.items()
        if arn not in before and run["executionArn"] == execution["executionArn"]
    )
    result = [one for one in results if one is not None]
    if "ResultWriter" in state:
        result = write_results(state["ResultWriter"], effective, ctx, map_run)
    states._apply_state_assign(state, raw, ctx, result=result)
    return states._apply_jsonata_output(state, raw, ctx, result=result, default=result), following


states._run_distributed_map = distributed_map

# --- Lambda: an error's name is its type, as Node's runtime on AWS has it ------------------------------------------

MARK = "\x1f"
thrown = "error: String(err.message || err)"
assert thrown in lambda_runtime._NODEJS_WORKER_SCRIPT
lambda_runtime._NODEJS_WORKER_SCRIPT = lambda_runtime._NODEJS_WORKER_SCRIPT.replace(
    thrown, 'error: (err.name || "Error") + "\\x1f" + String(err.message || err)'
)
execute_function = lambda_svc._execute_function


def execute_named(*args, **named):
    result = execute_function(*args, **named)
    body = result.get("body")
    if result.get("error") and isinstance(body, dict) and MARK in str(body.get("errorMessage")):
        name, message = body["errorMessage"].split(MARK, 1)
        body.update(errorType=name, errorMessage=message)
    return result


lambda_svc._execute_function = execute_named

# --- ECS and Batch: tasks are processes or containers, and what they end with counts --------------------------------

ON_THIS_HOST = {
    "T1_DEVICE": "cpu",  # an emulated GPU instance has no GPU
    "AWS_ENDPOINT_URL": ENDPOINT,
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
}


def command_of(image, environment, task):
    """@return the words to run, and their environment."""
    name = image.rsplit("/", 1)[-1].split(":")[0]
    if KIND == "process":
        words = [NODE, os.path.join(ROOT, "containers", name, "main.ts")]
        return words, {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environment}
    words = ["docker", "run", "--rm", "--network", "host", "--name", task]
    words += os.environ.get("T1_DOCKER_OPTIONS", "").split()
    for key, value in environment.items():
        words += ["--env", f"{key}={value}"]
    return [*words, f"t1/{name}:emulated"], dict(os.environ)


def die_with_emulator():
    """A test that is killed must leave no driver behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def run_task(image, environment, task, log):
    """Runs a task to its end. @return exit code"""
    # No service is served here: without its address a driver samples by itself.
    told = {key: value for key, value in environment.items() if key != "T1_SAMPLER_URL"}
    words, env = command_of(image, {**told, **ON_THIS_HOST}, task)
    done = subprocess.run(
        words, env=env, capture_output=True, text=True, check=False, preexec_fn=die_with_emulator
    )
    group, stream = log
    if group is not None:
        write_log(group, stream, done.stdout + done.stderr)
    return done.returncode


def write_log(group, stream, text):
    for call, request in (
        (cloudwatch_logs._create_log_group, {"logGroupName": group}),
        (cloudwatch_logs._create_log_stream, {"logGroupName": group, "logStreamName": stream}),
    ):
        call(request)  # refused where it is there already
    now = int(time.time() * 1000)
    events = [{"timestamp": now, "message": line} for line in text.splitlines() if line != ""]
    if events:
        cloudwatch_logs._put_log_events({"logGroupName": group, "logStreamName": stream, "logEvents": events})


def variables(*lists):
    return {one["name"]: str(one.get("value", "")) for items in lists for one in items or []}


def log_of(container, name, task):
    options = ((container.get("logConfiguration") or {}).get("options")) or {}
    return options.get("awslogs-group"), f"{options.get('awslogs-stream-prefix', name)}/{name}/{task}"


def latest_definition(family):
    status, _, body = ecs._describe_task_definition({"taskDefinition": family})
    if status >= 400:
        raise states._ExecutionError("ECS.ClientException", f"no task definition {family}")
    return json.loads(body)["taskDefinition"]


def ecs_run_task(resource, data):
    if KIND == "none":
        raise states._ExecutionError("ECS.AmazonECSException", "this emulator runs no tasks; mock the state")
    request = camel(data)
    definition = latest_definition(request["taskDefinition"])
    container = definition["containerDefinitions"][0]
    overrides = ((request.get("overrides") or {}).get("containerOverrides") or [{}])[0]
    task = uuid.uuid4().hex
    code = run_task(
        container["image"],
        variables(container.get("environment"), overrides.get("environment")),
        task,
        log_of(container, container["name"], task),
    )
    cluster = request.get("cluster", "default").rsplit("/", 1)[-1]
    region, account = get_region(), get_account_id()
    described = {
        "TaskArn": f"arn:aws:ecs:{region}:{account}:task/{cluster}/{task}",
        "TaskDefinitionArn": definition["taskDefinitionArn"],
        "LastStatus": "STOPPED",
        "StopCode": "EssentialContainerExited",
        "StoppedReason": "Essential container in task exited",
        "Containers": [{"Name": container["name"], "ExitCode": code, "LastStatus": "STOPPED"}],
    }
    if code != 0 and resource.endswith(".sync"):
        raise states._ExecutionError("States.TaskFailed", json.dumps(described))
    return described


def batch_submit_job(resource, data):
    if KIND == "none":
        raise states._ExecutionError("Batch.ServerException", "this emulator runs no jobs; mock the state")
    request = camel(data)
    status, _, body = batch._submit_job(request)
    made = json.loads(body)
    if status >= 400:
        raise states._ExecutionError("Batch.ClientException", made.get("message", ""))
    name = request["jobDefinition"].rsplit("/", 1)[-1].split(":")[0]
    container = dict(batch._job_definitions[name][-1].get("containerProperties") or {})
    job = batch._jobs[made["jobId"]]
    overrides = request.get("containerOverrides") or {}
    group, stream = log_of(container, "default", made["jobId"])
    job.update(status="RUNNING", startedAt=int(time.time() * 1000), stoppedAt=None)
    job["container"] = {**container, "logStreamName": stream}
    environment = variables(container.get("environment"), overrides.get("environment"))
    code = run_task(
        container["image"],
        {**environment, "AWS_BATCH_JOB_ID": made["jobId"], "AWS_BATCH_JOB_ATTEMPT": "1"},
        made["jobId"],
        (group, stream),
    )
    job["container"]["exitCode"] = code
    job.update(
        status="SUCCEEDED" if code == 0 else "FAILED",
        statusReason="Essential container in task exited",
        stoppedAt=int(time.time() * 1000),
    )
    described = pascal(copy.deepcopy(job))
    if code != 0:
        raise states._ExecutionError("States.TaskFailed", json.dumps(described, default=str))
    return described


states._SERVICE_DISPATCH["arn:aws:states:::ecs:runTask"] = ecs_run_task
states._SERVICE_DISPATCH["arn:aws:states:::batch:submitJob"] = batch_submit_job

if __name__ == "__main__":
    from ministack.app import main

    main()
