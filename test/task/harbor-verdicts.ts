// biome-ignore-all lint/suspicious/noTemplateCurlyInString: task files hold references of this form
// Small task folders and what Harbor 0.26.0 made of each: whether its own loader (harbor.models.task.task.Task, under
// Python 3.13) takes the folder and then finds how to build each environment it names. The verdicts were recorded by
// running Harbor, not by reading it. src/task/load.test.ts holds the loader to them.

import type { FolderFiles } from "./folder.ts";

export interface HarborCase {
  /** Content of task.toml. */
  readonly toml: string;
  /** Beside instruction.md, environment/Dockerfile and tests/test.sh, which every case has unless it says null. */
  readonly files?: FolderFiles;
  readonly harbor: "accepts" | "refuses";
  /** A part of our message, for a case that we refuse. */
  readonly says?: string;
  /** The reason, where our verdict is the opposite. */
  readonly weDiffer?: string;
}

const step = (name: string) => ({ [`steps/${name}/instruction.md`]: "do it\n" });

const noTests = { "tests/test.sh": null };
const noDockerfile = { "environment/Dockerfile": null };

const accepts = (toml: string, files: FolderFiles = {}): HarborCase => ({
  toml,
  files,
  harbor: "accepts",
});
const refuses = (toml: string, says: string, files: FolderFiles = {}): HarborCase => ({
  toml,
  says,
  files,
  harbor: "refuses",
});

const NAN = "a limit that compares false with everything limits nothing";
const OUTSIDE = "a link out of the task means something else on the next machine";
const NEWLINE = "a line break in a name gets into paths and rules";
const TOML_1_1 = "TOML 1.1 allows what TOML 1.0, which Python 3.13 reads, does not";

export const HARBOR_CASES: readonly HarborCase[] = [
  // The file itself.
  accepts(""),
  accepts("# nothing but a comment\n"),
  accepts('schema_version = "1.4"\r\n[agent]\r\ntimeout_sec = 60\r\n'),
  accepts('schema_version = "1.4"\r[agent]\rtimeout_sec = 60\r'),
  refuses("schema_version =", "task.toml:1:17"),
  refuses('a = 1\n[agent]\nuser = "x"\nuser = "y"', "task.toml:4"),
  refuses("[agent]\n[agent]", "task.toml:2"),
  { ...refuses('agent = { user = "a", }', ""), weDiffer: TOML_1_1 },
  { ...refuses('\ufeffschema_version = "1.4"', ""), weDiffer: "a byte order mark is no content" },

  // Top level.
  accepts('version = "1.0"'),
  accepts('version = "0.0"'),
  accepts('version = 1\nschema_version = "1.1"'),
  accepts('schema_version = "9.9"'),
  accepts("nonsense = 1\n[reward]\nkey = true"),
  accepts('source = "hub"'),
  accepts('multi_step_reward_strategy = "final"'),
  refuses("version = 1.0", "task.toml:1: version: expected text in quotes, got 1"),
  refuses("schema_version = 1.4", "schema_version: expected text in quotes"),
  refuses("source = 5", "source: expected text in quotes"),
  refuses('multi_step_reward_strategy = "last"', 'expected "mean" or "final", got "last"'),
  accepts('[metadata]\nauthor = "x"\ntags = ["a", 1]\nday = 1979-05-27\ninner.deep = { a = 1 }'),
  refuses("metadata = []", "metadata: expected a table, got []"),
  refuses("environment = 1979-05-27", "environment: expected a table"),
  refuses("agent = [1]", "agent: expected a table"),

  // [task].
  accepts('task.name = "org/name"'),
  accepts('task = { name = "O.r-g/n_a.m-e", version = "x", keywords = ["k"], description = "d" }'),
  accepts('task = { name = "a/b", authors = [{ name = "A" }, { name = "B", email = "b@c" }] }'),
  accepts('task = { name = "a/b", author = "unknown key" }'),
  refuses('task.name = "name"', "task.name: expected a name of the form org/name"),
  refuses('task.name = "org/.name"', "org/name"),
  refuses('task.name = "org/na..me"', "org/name"),
  refuses('task.name = "a/b/c"', "org/name"),
  refuses('task.name = "a/b c"', "org/name"),
  { ...accepts('task.name = "a/b\\n"'), weDiffer: NEWLINE, says: "org/name" },
  refuses("[task]", "task.toml:1: task.name: expected text in quotes, got nothing"),
  refuses('task = { name = "a/b", version = "" }', "task.version: expected at least 1 characters"),
  refuses('task = { name = "a/b", version = 1 }', "task.version"),
  refuses('task = { name = "a/b", authors = ["A"] }', "task.authors[0]: expected a table"),
  refuses('task = { name = "a/b", authors = [{ email = "b@c" }] }', "task.authors[0].name"),
  refuses('task = { name = "a/b", keywords = "k" }', "task.keywords: expected a list"),
  refuses('task = { name = "a/b", description = 1 }', "task.description"),
  refuses('task = "a/b"', "task: expected a table"),

  // Numbers, in all the spellings that pass.
  accepts("agent.timeout_sec = 900"),
  accepts("agent.timeout_sec = 900.5"),
  accepts('agent.timeout_sec = " 1000.5 "'),
  accepts('agent.timeout_sec = "1_000.5"'),
  refuses('agent.timeout_sec = " 1_000.5 "', "a number"),
  accepts('agent.timeout_sec = "1e3"'),
  accepts('agent.timeout_sec = "-inf"'),
  accepts("agent.timeout_sec = inf"),
  accepts("agent.timeout_sec = -5"),
  accepts("agent.timeout_sec = true"),
  accepts("agent.timeout_sec = 99999999999999999999"),
  { ...accepts("agent.timeout_sec = nan"), weDiffer: NAN, says: "expected a number, got NaN" },
  refuses('agent.timeout_sec = "15m"', 'agent.timeout_sec: expected a number, got "15m"'),
  refuses('agent.timeout_sec = "1__0"', "a number"),
  refuses('agent.timeout_sec = "0x10"', "a number"),
  refuses('agent.timeout_sec = ""', "a number"),
  refuses("agent.timeout_sec = 1979-05-27", "a number"),
  refuses("agent.timeout_sec = [60]", "a number"),
  accepts("environment.memory_mb = 2048.0"),
  accepts('environment.memory_mb = "2_048.0"'),
  accepts("environment.memory_mb = true"),
  accepts("environment.memory_mb = 9223372036854775808"),
  refuses("environment.memory_mb = 2048.5", "environment.memory_mb: expected a whole number, got 2048.5"),
  refuses('environment.memory_mb = "2G"', "a whole number"),
  refuses('environment.memory_mb = "2048."', "a whole number"),
  refuses("environment.memory_mb = 1e19", "a whole number"),
  refuses("environment.memory_mb = inf", "a whole number"),
  accepts("environment = { storage_mb = 1, gpus = 0, build_timeout_sec = 1 }"),
  refuses("environment.storage_mb = 0.5", "environment.storage_mb"),
  refuses('environment.gpus = "one"', "environment.gpus"),
  refuses("environment.build_timeout_sec = {}", "environment.build_timeout_sec"),
  accepts("environment.cpus = 0.5"),
  accepts("environment.cpus = 2.0"),
  accepts('environment.cpus = "1.5"'),
  accepts("environment.cpus = -1"),
  refuses("environment.cpus = inf", "environment.cpus: expected a finite number"),
  refuses("environment.cpus = nan", "a finite number"),
  refuses('environment.cpus = "two"', "a finite number"),

  // Old spellings of resources and network.
  accepts('environment = { memory = "2G", storage = "10G" }'),
  accepts('environment.memory = " 1.5 g "'),
  accepts('environment.memory = "512M"'),
  accepts('environment.memory = "100K"'),
  accepts('environment = { memory = "8G", memory_mb = 8192 }'),
  accepts("environment = { memory = 2048, memory_mb = 1 }"),
  refuses('environment.memory = "2GB"', 'environment.memory: expected a size such as "512M"'),
  refuses('environment.memory = "2Gi"', "a size such as"),
  refuses('environment.memory = "2048"', "a size such as"),
  refuses('environment.memory = "nanM"', "a size such as"),
  refuses('environment.memory = "infG"', "a size such as"),
  refuses('environment.memory = ""', "a size such as"),
  refuses('environment.storage = "1T"', "environment.storage: expected a size such as"),
  refuses(
    '[environment]\nmemory = "2G"\nmemory_mb = 1024',
    "task.toml:2: environment.memory: expected the same size",
  ),
  refuses('environment = { memory = "2G", memory_mb = "2048" }', "the same size"),
  refuses('environment = { storage = "1G", storage_mb = 1 }', "environment.storage: expected the same size"),
  accepts("environment.allow_internet = false"),
  accepts('environment.allow_internet = "Yes"'),
  accepts("environment.allow_internet = 1.0"),
  accepts('environment = { allow_internet = false, network_mode = "public" }'),
  refuses("environment.allow_internet = 2", "environment.allow_internet: expected true or false"),
  refuses('environment.allow_internet = "maybe"', "true or false"),

  // Network.
  accepts('environment.network_mode = "no-network"'),
  accepts(
    'environment = { network_mode = "allowlist", allowed_hosts = ["Example.com.", "*.a.b", "1.0.0.0/8", "::1"] }',
  ),
  accepts('environment.network_mode = "allowlist"'),
  accepts("environment.allowed_hosts = []"),
  refuses('environment.network_mode = "Public"', 'expected "public" or "no-network" or "allowlist"'),
  refuses(
    'environment.allowed_hosts = ["a.b"]',
    "environment.allowed_hosts: expected no allowed_hosts unless",
  ),
  refuses(
    'environment = { network_mode = "no-network", allowed_hosts = ["a.b"] }',
    "no allowed_hosts unless",
  ),
  refuses('environment = { network_mode = "allowlist", allowed_hosts = "a.b" }', "a list"),
  refuses(
    'environment = { network_mode = "allowlist", allowed_hosts = ["https://a.b"] }',
    "no scheme, port or path",
  ),
  refuses('environment = { network_mode = "allowlist", allowed_hosts = ["a.b:443"] }', "allowed_hosts[0]"),
  refuses(
    'environment = { network_mode = "allowlist", allowed_hosts = ["ok", "10.1.0.0/8"] }',
    "allowed_hosts[1]",
  ),
  refuses('environment = { network_mode = "allowlist", allowed_hosts = ["*.1.2.3.4"] }', "CIDR range"),
  {
    ...accepts('environment = { network_mode = "allowlist", allowed_hosts = ["a\\n.b"] }'),
    weDiffer: NEWLINE,
    says: "a host name",
  },
  accepts('agent = { network_mode = "allowlist", allowed_hosts = ["a.b"] }'),
  accepts('verifier.network_mode = "public"'),
  refuses("agent.allowed_hosts = []", "agent.allowed_hosts: expected no allowed_hosts unless this table"),
  refuses('verifier = { network_mode = "public", allowed_hosts = ["a.b"] }', "verifier.allowed_hosts"),

  // Other keys of [environment].
  accepts('environment.os = "LINUX"'),
  refuses('environment.os = "windows"', "tests/test.bat, because the tests run on windows"),
  accepts('environment.os = "Windows"', { ...noTests, "tests/test.bat": "" }),
  refuses('environment.os = "mac"', 'environment.os: expected "linux" or "windows"'),
  accepts(
    'environment = { gpu_types = ["H100"], workdir = "/app", skills_dir = "/s", env = { A = "${B}" } }',
  ),
  refuses('environment.gpu_types = "H100"', "environment.gpu_types: expected a list"),
  refuses("environment.gpu_types = [100]", "environment.gpu_types[0]"),
  refuses("environment.workdir = true", "environment.workdir"),
  refuses("environment.skills_dir = []", "environment.skills_dir"),
  refuses("environment.env = { A = 1 }", "environment.env.A: expected text in quotes, got 1"),
  refuses("environment.env = []", "environment.env: expected a table"),
  accepts('environment.tpu = { type = "v4", topology = " 2x2x1 " }'),
  refuses('environment.tpu = { type = "", topology = "2x2" }', "environment.tpu.type"),
  refuses(
    'environment.tpu = { type = "v4", topology = "4" }',
    "environment.tpu.topology: expected dimensions",
  ),
  refuses('environment.tpu = { type = "v4" }', "environment.tpu.topology"),
  accepts('[environment.healthcheck]\ncommand = "true"\nretries = "3"\ninterval_sec = 1'),
  refuses(
    "[environment.healthcheck]\nretries = 3",
    "environment.healthcheck.command: expected text in quotes, got nothing",
  ),
  refuses('environment.healthcheck = { command = "true", retries = 1.5 }', "environment.healthcheck.retries"),

  // MCP servers.
  accepts('[[environment.mcp_servers]]\nname = "a"\nurl = "http://x"'),
  accepts('[[environment.mcp_servers]]\nname = "a"\ntransport = "http"\nurl = "http://x"'),
  accepts('[[environment.mcp_servers]]\nname = "a"\ntransport = "stdio"\ncommand = "c"\nargs = ["d"]'),
  accepts(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { Authorization = "Bearer ${TOKEN}" } }]',
  ),
  accepts(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { X-Trace = "plain ${WHO:-me}" } }]',
  ),
  refuses('[[environment.mcp_servers]]\nname = "a"', "environment.mcp_servers[0].url: expected an address"),
  refuses('[[environment.mcp_servers]]\nurl = "x"', "environment.mcp_servers[0].name"),
  refuses(
    'environment.mcp_servers = [{ name = "a", url = "x", transport = "tcp" }]',
    "environment.mcp_servers[0].transport",
  ),
  refuses(
    'environment.mcp_servers = [{ name = "a", transport = "stdio" }]',
    "environment.mcp_servers[0].command",
  ),
  refuses(
    'environment.mcp_servers = [{ name = "a", transport = "stdio", command = "c", headers = { A = "b" } }]',
    "environment.mcp_servers[0].headers: expected no headers",
  ),
  refuses(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { "A b" = "c" } }]',
    "an HTTP header name",
  ),
  refuses('environment.mcp_servers = [{ name = "a", url = "x", headers = { A = "b\\nc" } }]', "on one line"),
  refuses(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { A = "${b-c}" } }]',
    "references of the form",
  ),
  refuses(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { Authorization = "Bearer abc" } }]',
    "the credential as",
  ),
  refuses(
    'environment.mcp_servers = [{ name = "a", url = "x", headers = { A = "${MY_KEY:-abc}" } }]',
    "the credential as",
  ),

  // [agent], [verifier], [solution].
  accepts("agent.user = 1000"),
  accepts('agent.user = "alice"'),
  accepts("agent.user = 1000.0"),
  refuses("agent.user = 1.5", "agent.user: expected a user name or a numeric user id"),
  accepts('verifier = { timeout_sec = 60, user = "root", env = { KEY = "${KEY}", B = "${B:-c}" } }'),
  accepts("[verifier.env]\n[solution.env]"),
  refuses('verifier.timeout_sec = "long"', "verifier.timeout_sec"),
  refuses("[verifier.env]\nN = 1", "task.toml:2: verifier.env.N"),
  refuses("[solution.env]\nN = true", "solution.env.N"),
  refuses("solution = 1", "solution: expected a table"),
  accepts(
    '[[verifier.collect]]\ncommand = "dump"\n[[verifier.collect]]\ncommand = "x"\nservice = "db"\ntimeout_sec = 5\nuser = 1',
  ),
  refuses("[[verifier.collect]]\nservice = 'db'", "verifier.collect[0].command"),
  refuses(
    "[[verifier.collect]]\ncommand = 'x'\nservice = '-db'",
    "verifier.collect[0].service: expected a service name",
  ),
  refuses("[verifier]\ncollect = 'x'", "verifier.collect: expected a list"),

  // Separate verifiers.
  accepts('verifier.environment_mode = "shared"'),
  accepts('verifier.environment_mode = "separate"'),
  accepts('verifier.environment_mode = "separate"', { ...noTests, "tests/Dockerfile": "FROM x\n" }),
  refuses('verifier.environment_mode = "separate"', "the test script is missing", noTests),
  accepts('verifier.environment.docker_image = "x"', noTests),
  accepts("[verifier.environment]\ncpus = 1"),
  refuses("[verifier.environment]\ncpus = 1", "the test script is missing", noTests),
  accepts('[verifier.environment]\nos = "windows"', { ...noTests, "tests/test.bat": "" }),
  refuses('verifier.environment_mode = "own"', "verifier.environment_mode"),
  refuses(
    'verifier = { environment_mode = "shared", environment = {} }',
    "verifier.environment_mode: expected",
  ),
  refuses('verifier.environment.memory = "2GB"', "verifier.environment.memory"),
  accepts('environment.docker_image = "x"\nverifier.environment_mode = "separate"', noDockerfile),

  // Artifacts.
  accepts(
    'artifacts = ["/app/out", { source = "/db", destination = "a/b", exclude = ["*.log"], service = "db" }]',
  ),
  accepts(
    'artifacts = ["", "a/./b", { source = "C:/x", service = "db" }, { source = "x", destination = "" }]',
  ),
  accepts('artifacts = [{ source = "x", destination = "./manifest.json" }]'),
  refuses('artifacts = "x"', "artifacts: expected a list"),
  refuses("artifacts = [1]", "artifacts[0]: expected a table"),
  refuses(
    'artifacts = ["a/../b"]',
    "task.toml:1: artifacts[0].source: expected a path in the container without '..'",
  ),
  refuses('artifacts = [{ destination = "x" }]', "artifacts[0].source"),
  refuses(
    'artifacts = [{ source = "x", destination = "/x" }]',
    "artifacts[0].destination: expected a relative path",
  ),
  refuses('artifacts = [{ source = "x", destination = "a/../b" }]', "a relative path"),
  refuses('artifacts = [{ source = "x", destination = "a\\\\b" }]', "a relative path"),
  refuses('artifacts = [{ source = "x", destination = "." }]', "a relative path"),
  refuses(
    'artifacts = [{ source = "x", destination = "manifest.json/" }]',
    "a name other than manifest.json",
  ),
  refuses('artifacts = [{ source = "x", service = "db" }]', "artifacts[0].source: expected an absolute path"),
  refuses('artifacts = [{ source = "/x", service = "" }]', "artifacts[0].service"),
  refuses('artifacts = [{ source = "/x", exclude = "a" }]', "artifacts[0].exclude"),

  // Steps.
  accepts("steps = []"),
  accepts('[[steps]]\nname = "a"', step("a")),
  accepts('[[steps]]\nname = "a"', { ...step("a"), "instruction.md": null }),
  accepts('[[steps]]\nname = "a"', { ...step("a"), ...noTests, "steps/a/tests/test.sh": "" }),
  accepts('[[steps]]\nname = "a b"\n[[steps]]\nname = "ä"', { ...step("a b"), ...step("ä") }),
  accepts(
    '[[steps]]\nname = "a"\nmin_reward = 0.5\nartifacts = ["/x"]\n[steps.agent]\ntimeout_sec = 1\n[steps.verifier]\nenv = { A = "b" }\n[steps.healthcheck]\ncommand = "true"',
    step("a"),
  ),
  accepts('[[steps]]\nname = "a"\nmin_reward = { reward = "1", speed = 2 }', step("a")),
  refuses("[[steps]]\nmin_reward = 1", "task.toml:1: steps[0].name", step("a")),
  refuses('[steps]\nname = "a"', "steps: expected a list", step("a")),
  refuses('[[steps]]\nname = "a"', "cannot read a file of the task", {}),
  refuses('[[steps]]\nname = "a"\n[[steps]]\nname = "b"', "steps/b/instruction.md", step("a")),
  refuses('[[steps]]\nname = "a"', "tests/test.sh", { ...step("a"), ...noTests }),
  refuses(
    '[[steps]]\nname = "a"\n[[steps]]\nname = "A"',
    "task.toml:4: steps[1].name: expected a name that no other",
    {
      ...step("a"),
      ...step("A"),
    },
  ),
  refuses('[[steps]]\nname = "é"\n[[steps]]\nname = "e\u0301"', "steps[1].name", {
    ...step("é"),
    ...step("e\u0301"),
  }),
  refuses('[[steps]]\nname = ""', "steps[0].name: expected a folder name"),
  refuses('[[steps]]\nname = ".."', "a folder name"),
  refuses('[[steps]]\nname = "a/b"', "a name without control characters", step("a/b")),
  refuses('[[steps]]\nname = "a:b"', "a name without control characters", step("a:b")),
  refuses('[[steps]]\nname = "a."', "ends in neither", step("a.")),
  refuses('[[steps]]\nname = "con.txt"', "no Windows device", step("con.txt")),
  refuses(`[[steps]]\nname = "${"ä".repeat(128)}"`, "at most 255 bytes"),
  refuses('[[steps]]\nname = "a"\nmin_reward = "high"', "steps[0].min_reward: expected a table", step("a")),
  refuses(
    '[[steps]]\nname = "a"\nmin_reward = { reward = "high" }',
    "steps[0].min_reward.reward: expected a number",
    step("a"),
  ),
  refuses('[[steps]]\nname = "a"\nartifacts = ["../x"]', "steps[0].artifacts[0].source", step("a")),
  refuses(
    '[[steps]]\nname = "a"\n[steps.agent]\nallowed_hosts = []',
    "task.toml:4: steps[0].agent.allowed_hosts",
    step("a"),
  ),
  refuses(
    '[[steps]]\nname = "a"\n[steps.healthcheck]\nretries = 1',
    "steps[0].healthcheck.command",
    step("a"),
  ),
  refuses(
    '[[steps]]\nname = "a"\n[steps.verifier]\nenvironment_mode = "shared"\nenvironment = {}',
    "steps[0].verifier",
    step("a"),
  ),
  accepts('[[steps]]\nname = "a"\n[steps.verifier.environment]\ndocker_image = "x"', {
    ...step("a"),
    ...noTests,
  }),
  accepts('[verifier.environment]\ndocker_image = "x"\n[[steps]]\nname = "a"', { ...step("a"), ...noTests }),
  accepts('[[steps]]\nname = "a"\n[steps.verifier]\nenvironment_mode = "separate"', {
    ...step("a"),
    ...noTests,
    "steps/a/tests/Dockerfile": "FROM x\n",
  }),
  refuses(
    '[verifier.environment]\ndocker_image = "x"\n[[steps]]\nname = "a"\n[steps.verifier]\nenvironment_mode = "shared"',
    "the test script is missing",
    {
      ...step("a"),
      ...noTests,
    },
  ),

  // Files.
  refuses("", "task.toml", { "task.toml": null }),
  refuses("", "instruction.md", { "instruction.md": null }),
  refuses("", "instruction.md", { "instruction.md": null, "instruction.md/x": "" }),
  refuses("", "the test script is missing", noTests),
  refuses("", "the test script is missing", { ...noTests, "tests/run.sh": "" }),
  accepts("", { ...noTests, "tests/test.sh/odd": "" }),
  refuses("", "nothing says how to make the environment", noDockerfile),
  refuses("", "rename", { ...noDockerfile, "environment/docker-compose.yml": "" }),
  refuses('environment.docker_image = ""', "nothing says how", noDockerfile),
  accepts("", { ...noDockerfile, "environment/docker-compose.yaml": "" }),
  accepts('environment.docker_image = "x"', noDockerfile),
  accepts('environment.docker_image = "x"', { ...noDockerfile, "environment/data.csv": "1" }),

  // Symbolic links.
  accepts("", { "tests/link": { link: "../environment/Dockerfile" } }),
  accepts("", { "tests/link": { link: "nowhere" } }),
  accepts("", { ...noTests, "tests/test.sh": { link: "../environment/Dockerfile" } }),
  accepts("", { ...noTests, tests: { link: "environment/tests" }, "environment/tests/test.sh": "" }),
  refuses("", "the test script is missing", { "tests/test.sh": { link: "nowhere" } }),
  refuses("", "symbolic link leads out of the task, to /etc/passwd", {
    "tests/link": { link: "/etc/passwd" },
  }),
  refuses("", "leads out of the task", { "tests/link": { link: "../../elsewhere" } }),
  refuses("", "leads out of the task", { "solution/solve.sh": { link: "/bin/true" } }),
  refuses('[[steps]]\nname = "a"', "leads out of the task", {
    ...step("a"),
    "steps/a/workdir/x": { link: "/etc" },
  }),
  {
    ...accepts("", { "environment/etc": { link: "/etc" } }),
    weDiffer: OUTSIDE,
    says: "leads out of the task",
  },
  {
    ...accepts("", { "README.md": { link: "/etc/hostname" } }),
    weDiffer: OUTSIDE,
    says: "leads out of the task",
  },
  refuses("", "symbolic links form a cycle", { "tests/loop": { link: "." } }),
  refuses("", "symbolic links form a cycle", {
    "tests/a/b": { link: "../c" },
    "tests/c/d": { link: "../a" },
  }),
  accepts("", { "environment/loop": { link: "." } }),
  accepts("", { "tests/self": { link: "self" } }),

  // .harborignore.
  refuses("", "ignored by a .harborignore", { "tests/.harborignore": "*.sh\n" }),
  refuses("", "ignored by a .harborignore", { "tests/.harborignore": "/test.sh" }),
  accepts("", { "tests/.harborignore": "*.sh\n!test.sh\n" }),
  accepts("", { "tests/.harborignore": "# test.sh\n\nother\n" }),
  accepts("", { ".harborignore": "*\n" }),
  accepts("", { "tests/.harborignore": "data\n", "tests/data/test.sh": "" }),
  refuses("", "a pattern that ends in an escape", { "tests/.harborignore": "a\\\n" }),
  refuses("", "cannot read a file of the task", { "tests/.harborignore/x": "" }),
  refuses("", "ignored by a .harborignore", {
    "tests/.harborignore": "hidden\n",
    "tests/test.sh": { link: "hidden/t.sh" },
    "tests/hidden/t.sh": "",
  }),
  {
    ...accepts("", { "tests/.harborignore": "out\n", "tests/out": { link: "/etc" } }),
    weDiffer: OUTSIDE,
    says: "leads out",
  },
  accepts("", { "tests/.harborignore": "up\n", "tests/up": { link: ".." } }),
  refuses('[[steps]]\nname = "a"', "ignored by a .harborignore", {
    ...step("a"),
    "steps/a/tests/test.sh": "",
    "steps/a/tests/.harborignore": "*",
  }),
];
