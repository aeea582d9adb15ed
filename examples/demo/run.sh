#!/bin/sh
# The demo: tasks, a training run, what it changed on tasks it was not trained on, and a report. Each line is a command
# that you can run by itself; run again it goes on where it stopped.
set -e
cd "$(dirname "$0")/../.."

./t1 tasks generate
./t1 run start examples/demo/ppo.yaml --name demo --continue
./t1 evaluate demo --pool .t1/tasks/held-out-parameters
./t1 evaluate demo --pool .t1/tasks/held-out-families
./t1 report demo --out demo-report.html
