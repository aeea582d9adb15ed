# SWE-ReX's local deployment, with one bash session per box.
from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import BashAction, CreateBashSessionRequest


class SweRexBox:
    def __init__(self):
        self.deployment = LocalDeployment()

    async def create(self):
        await self.deployment.start()
        await self.deployment.runtime.create_session(CreateBashSessionRequest(startup_timeout=60))

    async def command(self):
        await self.deployment.runtime.run_in_session(BashAction(command="true", timeout=60))

    async def stop(self):
        await self.deployment.stop()


serve(SweRexBox)
