# Harbor's Docker environment and, for turns, the tmux session of its Terminus 2; tuned so that a container ends within a
# second. Argument: an image that has bash and tmux. TMPDIR must be a folder that the container engine sees too.
import tempfile
from pathlib import Path

from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import EnvironmentConfig
from harbor.models.trial.paths import TrialPaths

TUNING = "services: {main: {init: true, stop_grace_period: 1s, network_mode: none}}\n"


class HarborBox:
    count = 0

    def __init__(self):
        HarborBox.count += 1
        folder = Path(tempfile.mkdtemp(prefix="harbor-"))
        (folder / "environment").mkdir()
        (folder / "tuning.yaml").write_text(TUNING)
        self.paths = TrialPaths(folder / "trial")
        self.paths.mkdir()
        name = f"bench-{HarborBox.count}"
        self.environment = DockerEnvironment(
            environment_dir=folder / "environment",
            environment_name=name,
            session_id=f"{folder.name}__{name}__env",
            trial_paths=self.paths,
            task_env_config=EnvironmentConfig(docker_image=sys.argv[1]),
            extra_docker_compose=[folder / "tuning.yaml"],
        )
        self.session = None

    async def create(self):
        await self.environment.start(force_build=False)

    async def command(self):
        result = await self.environment.exec("true")
        assert result.return_code == 0, result

    async def turn(self):
        if self.session is None:
            self.session = TmuxSession(
                "bench", self.environment, Path("/tmp/bench.pane"), None, None, pane_width=160, pane_height=40
            )
            await self.session.start()
        await self.session.send_keys([":", "Enter"], block=False, min_timeout_sec=0.0)
        await self.session.get_incremental_output()

    async def stop(self):
        await self.environment.stop(delete=True)


serve(HarborBox)
