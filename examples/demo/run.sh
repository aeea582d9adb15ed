#!/bin/sh
# The demo: tasks, a training run, what it changed on tasks it was not trained on, and a report. Each line is a command
# that you can run by itself; run again it goes on where it stopped.
set -e
cd "$(dirname "$0")/../.."
step() { echo "step $1 of 5: $2" >&2; }

step 1 "generate tasks"
./t1 tasks generate
step 2 "train"
./t1 run start examples/demo/ppo.yaml --name demo --continue
step 3 "evaluate on families of tasks that it never saw"
./t1 evaluate demo --pool .t1/tasks/held-out-families
step 4 "evaluate on names and combinations that it never saw"
result=$(./t1 evaluate demo --pool .t1/tasks/held-out-parameters)
echo "$result"
step 5 "write the report"
./t1 report demo --out demo-report.html
echo "$(echo "$result" | tail -n 1). Open demo-report.html."
