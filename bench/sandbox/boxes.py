"""Boxes driven over lines of JSON: {"id": 1, "do": "create"|"command"|"turn"|"stop", "box": 1}.

Each box has a thread and an event loop of its own: in one loop its blocking calls would stand in each other's way.
"""

import asyncio
import json
import os
import sys
import threading

lock = threading.Lock()
# Keep stdout for our lines: redirect the libraries' prints to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def answer(message):
    with lock:
        answers.write(json.dumps(message) + "\n")
        answers.flush()


def serve(make_box):
    """make_box() has the coroutines create, command, turn and stop."""
    boxes = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["box"] not in boxes:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True).start()
            boxes[asked["box"]] = (make_box(), loop)
        box, loop = boxes[asked["box"]]

        async def work(box=box, loop=loop, what=asked["do"], number=asked["id"]):
            try:
                await getattr(box, what)()
                answer({"id": number})
            except Exception as error:  # told to the other side, which counts it
                answer({"id": number, "error": f"{type(error).__name__}: {error}"[:300]})
            if what == "stop":
                loop.call_soon(loop.stop)

        asyncio.run_coroutine_threadsafe(work(), loop)
        if asked["do"] == "stop":
            del boxes[asked["box"]]
