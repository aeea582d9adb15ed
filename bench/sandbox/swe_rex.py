"""SWE-ReX's local deployment, driven over lines of JSON: {"id": 1, "do": "create"|"command"|"stop", "box": 1}.

Each box has a thread and an event loop of its own: in one loop its blocking calls would stand in each other's way.
"""

import asyncio
import json
import sys
import threading

from swerex.deployment.local import LocalDeployment
from swerex.runtime.abstract import BashAction, CreateBashSessionRequest

boxes = {}
lock = threading.Lock()


def answer(message):
    with lock:
        print(json.dumps(message), flush=True)


class Box:
    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.deployment = LocalDeployment()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def create(self):
        await self.deployment.start()
        await self.deployment.runtime.create_session(CreateBashSessionRequest(startup_timeout=60))

    async def command(self):
        await self.deployment.runtime.run_in_session(BashAction(command="true", timeout=60))

    async def stop(self):
        await self.deployment.stop()

    def do(self, what, number):
        async def work():
            try:
                await getattr(self, what)()
                answer({"id": number})
            except Exception as error:  # told to the other side, which counts it
                answer({"id": number, "error": f"{type(error).__name__}: {error}"[:300]})

        asyncio.run_coroutine_threadsafe(work(), self.loop)


for line in sys.stdin:
    asked = json.loads(line)
    box = boxes.setdefault(asked["box"], None) or Box()
    boxes[asked["box"]] = box
    box.do(asked["do"], asked["id"])
    if asked["do"] == "stop":
        del boxes[asked["box"]]
